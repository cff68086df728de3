package vrrp

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// process names one, also when its number is used again.
type process struct {
	pid   int
	start uint64 // in ticks since boot
}

// vitals are signs of life.
type vitals struct {
	process
	parent   int
	state    byte   // of /proc/PID/stat: T is stopped
	switches uint64 // how often it was put on or taken off a processor: a heartbeat
}

// host is what is asked of the operating system. Its times are those since boot, which do
// not jump, and which go on while the machine is suspended.
type host interface {
	now() time.Duration
	// writer is the one process that has a FIFO open for writing, if nobody else has it open.
	writer(path string, id fileID) (process, error)
	vitals(pid int) (vitals, error)
	// ask has keepalived write its data file; the answer is what has been written since.
	ask(p process, fifo string) (answer func() map[string]line, err error)
}

type machine struct{}

func (machine) now() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		panic(err) // every kernel that runs Go has it
	}
	return time.Duration(t.Nano())
}

func (machine) vitals(pid int) (vitals, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return vitals{}, err
	}
	// The name, in parentheses, may hold anything.
	f := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(f) < 20 {
		return vitals{}, fmt.Errorf("/proc/%d/stat is %q", pid, stat)
	}
	v := vitals{process: process{pid: pid}, state: f[0][0]}
	v.parent, _ = strconv.Atoi(f[1])
	v.start, err = strconv.ParseUint(f[19], 10, 64)
	if err != nil {
		return vitals{}, err
	}
	for _, name := range []string{"voluntary_ctxt_switches", "nonvoluntary_ctxt_switches"} {
		n, err := strconv.ParseUint(status(pid, name), 10, 64)
		if err != nil {
			return vitals{}, fmt.Errorf("/proc/%d/status: %s: %w", pid, name, err)
		}
		v.switches += n
	}
	return v, nil
}

// status is a field of /proc/PID/status, "" when there is none.
func status(pid int, name string) string {
	data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	for l := range strings.Lines(string(data)) {
		if value, ok := strings.CutPrefix(l, name+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

func (m machine) writer(path string, id fileID) (process, error) {
	writers, readers := m.holders(path, id)
	var found []vitals
	for _, pid := range writers {
		if v, err := m.vitals(pid); err == nil {
			found = append(found, v)
		}
	}
	// keepalived's child is a copy of it until it has become a script.
	var own []vitals
	for _, v := range found {
		child := false
		for _, o := range found {
			child = child || v.parent == o.pid
		}
		if !child {
			own = append(own, v)
		}
	}
	switch {
	case len(own) == 0:
		return process{}, fmt.Errorf("the process that has the FIFO %s open for writing cannot be seen: run as root, in the PID namespace of the host", path)
	case len(own) > 1:
		return process{}, fmt.Errorf("processes %d and %d both have the FIFO %s open for writing: give keepalived's VRRP process one of its own (vrrp_notify_fifo)", own[0].pid, own[1].pid, path)
	case len(readers) > 0:
		return process{}, fmt.Errorf("process %d reads the FIFO %s too, and takes words away: let it read another one", readers[0], path)
	}
	return own[0].process, nil
}

// holders lists who has a file open for writing, and who only for reading; this process may
// have it open once, and is listed if it has it open again.
func (machine) holders(path string, id fileID) (writers, readers []int) {
	base := filepath.Base(path)
	processes, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range processes {
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil {
			continue
		}
		own := pid == os.Getpid()
		fds, _ := os.ReadDir(dir + "/fd") // none of a process that may not be looked at
		for _, fd := range fds {
			link := dir + "/fd/" + fd.Name()
			if to, err := os.Readlink(link); err != nil || !strings.Contains(to, base) {
				continue
			}
			var s unix.Stat_t
			if err := unix.Stat(link, &s); err != nil || (fileID{s.Dev, s.Ino}) != id {
				continue
			}
			if own {
				own = false
				continue
			}
			if mode(dir+"/fdinfo/"+fd.Name()) == unix.O_RDONLY {
				readers = append(readers, pid)
			} else {
				writers = append(writers, pid)
			}
			break
		}
	}
	return writers, readers
}

// mode is how a file is open: O_RDONLY, O_WRONLY or O_RDWR.
func mode(fdinfo string) int {
	data, _ := os.ReadFile(fdinfo)
	for l := range strings.Lines(string(data)) {
		if value, ok := strings.CutPrefix(l, "flags:"); ok {
			if n, err := strconv.ParseInt(strings.TrimSpace(value), 8, 64); err == nil {
				return int(n) & unix.O_ACCMODE
			}
		}
	}
	return unix.O_RDONLY // which is the one that is refused
}
