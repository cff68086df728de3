package vrrp

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// dumps are where keepalived writes its data to, in its own view of the files.
const dumps = "tmp/keepalived*.data"

// maxDump bounds a data file in bytes; a thousand instances take some MiB.
const maxDump = 16 << 20

// ask sends SIGUSR1 to a keepalived, and to nothing that could die of it.
func (m machine) ask(p process, fifo string) (func() map[string]line, error) {
	dir := fmt.Sprintf("/proc/%d", p.pid)
	exe, err := os.Readlink(dir + "/exe")
	if err != nil {
		return nil, fmt.Errorf("see which program process %d runs: %w", p.pid, err)
	}
	if name, _, _ := strings.Cut(filepath.Base(exe), " "); name != "keepalived" {
		return nil, fmt.Errorf("process %d runs %s, which is not keepalived and is not asked for its state", p.pid, exe)
	}
	blocked, _ := strconv.ParseUint(status(p.pid, "SigBlk"), 16, 64) // for a signalfd
	caught, _ := strconv.ParseUint(status(p.pid, "SigCgt"), 16, 64)
	if (blocked|caught)&(1<<(uint(unix.SIGUSR1)-1)) == 0 {
		return nil, fmt.Errorf("keepalived (process %d) does not listen to SIGUSR1 yet", p.pid)
	}

	pidfd, err := unix.PidfdOpen(p.pid, 0)
	if err != nil {
		return nil, fmt.Errorf("ask keepalived (process %d): %w", p.pid, err)
	}
	defer unix.Close(pidfd)
	if v, err := m.vitals(p.pid); err != nil || v.process != p {
		return nil, fmt.Errorf("keepalived (process %d) is gone", p.pid)
	}
	before := stamps(dir)
	if err := unix.PidfdSendSignal(pidfd, unix.SIGUSR1, nil, 0); err != nil {
		return nil, fmt.Errorf("ask keepalived (process %d): %w", p.pid, err)
	}
	return func() map[string]line { return answer(dir, fifo, before) }, nil
}

// stamp tells a written file from the same file before.
type stamp struct {
	file    fileID
	changed unix.Timespec
}

func stamps(dir string) map[string]stamp {
	found := map[string]stamp{}
	paths, _ := filepath.Glob(dir + "/root/" + dumps)
	for _, path := range paths {
		var s unix.Stat_t
		if unix.Lstat(path, &s) == nil {
			found[path] = stamp{file: fileID{s.Dev, s.Ino}, changed: s.Mtim}
		}
	}
	return found
}

// answer is what a data file of the process that dir is of says of each instance, if it was
// written since and is about this FIFO; nil is no answer yet.
func answer(dir, fifo string, before map[string]stamp) map[string]line {
	for path, now := range stamps(dir) {
		if now == before[path] {
			continue
		}
		if data := readOwn(dir, path); data != "" {
			if lines := parseDump(data, fifo); lines != nil {
				return lines
			}
		}
	}
	return nil
}

// readOwn reads a file that only the user of a process can have written.
func readOwn(dir, path string) string {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
	if err != nil {
		return ""
	}
	f := os.NewFile(uintptr(fd), path)
	defer f.Close()
	var file, owner unix.Stat_t
	if unix.Fstat(fd, &file) != nil || unix.Stat(dir, &owner) != nil ||
		file.Mode&unix.S_IFMT != unix.S_IFREG || file.Uid != owner.Uid || file.Mode&0o022 != 0 {
		return ""
	}
	data, _ := io.ReadAll(io.LimitReader(f, maxDump))
	return string(data)
}

// parseDump reads the state of each instance from a data file. A file that is written to
// still says less, and nothing else.
func parseDump(data, fifo string) map[string]line {
	if !strings.Contains(data, "otify fifo = "+fifo+", uid:gid ") {
		return nil // it is of another keepalived, or not there yet
	}
	found := map[string]line{}
	var l line
	for s := range strings.Lines(data) {
		s, whole := strings.CutSuffix(s, "\n")
		name, value, _ := strings.Cut(strings.TrimSpace(s), " = ")
		switch {
		case !whole:
		case !strings.HasPrefix(s, "  "): // a heading
			l = line{}
			if name == "VRRP Instance" {
				l.name = value
			}
		case l.name == "":
		case name == "State" && (value == string(Master) || value == string(Backup) || value == string(Fault)):
			l.word = Word(value)
		case name == "Effective priority":
			if n, err := strconv.ParseUint(value, 10, 8); err == nil && l.word != Unknown {
				l.priority = int(n)
				found[l.name] = l
			}
		}
	}
	return found
}
