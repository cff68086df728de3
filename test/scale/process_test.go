package scale

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// usage is what a process has taken so far.
type usage struct {
	resident, peak float64 // MB of 10^6 bytes
	cpu            time.Duration
}

// usageOf reads it from /proc.
func usageOf(pid int) (usage, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return usage{}, fmt.Errorf("look at process %d: %w", pid, err)
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return usage{}, fmt.Errorf("look at process %d: %w", pid, err)
	}
	var u usage
	for line := range strings.Lines(string(status)) {
		f := strings.Fields(line)
		switch {
		case len(f) < 2:
		case f[0] == "VmRSS:":
			u.resident = megabytes(f[1])
		case f[0] == "VmHWM:":
			u.peak = megabytes(f[1])
		}
	}
	// The name in parentheses may hold spaces; user and system time follow as fields 14 and 15.
	f := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	const ticks = 100 // per second: USER_HZ of every Linux
	for _, t := range f[11:13] {
		n, err := strconv.Atoi(t)
		if err != nil {
			return usage{}, fmt.Errorf("processor time of process %d: %w", pid, err)
		}
		u.cpu += time.Duration(n) * time.Second / ticks
	}
	return u, nil
}

func megabytes(kibibytes string) float64 {
	n, _ := strconv.ParseFloat(kibibytes, 64) // 0 shows
	return n * 1024 / 1e6
}
