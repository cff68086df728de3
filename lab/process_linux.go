package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// birth reads when a process started, in clock ticks since boot, from /proc/<pid>/stat. A process that has exited and
// waits to be reaped counts as gone.
func birth(pid int) (ticks uint64, alive bool) {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, false
	}
	// The command, in parentheses, may itself hold spaces and parentheses; the state (field 3) follows the last one.
	end := bytes.LastIndexByte(stat, ')')
	fields := bytes.Fields(stat[end+1:])
	if end < 0 || len(fields) < 20 || fields[0][0] == 'Z' || fields[0][0] == 'X' {
		return 0, false
	}
	ticks, err = strconv.ParseUint(string(fields[19]), 10, 64)
	return ticks, err == nil
}

// signal sends sig if, and only if, p is still the process it was. The handle is taken before the identity is checked,
// so that a pid used again in between is not hit.
func (p process) signal(sig syscall.Signal) error {
	handle, err := os.FindProcess(p.PID)
	if err != nil {
		return os.ErrProcessDone
	}
	defer handle.Release()
	if !p.alive() {
		return os.ErrProcessDone
	}
	return handle.Signal(sig)
}

// spawner starts processes on one thread that never ends: the kernel's parent-death signal is tied to the thread that
// forked, and the Go runtime ends threads as it pleases.
var spawner = sync.OnceValue(func() chan<- func() {
	work := make(chan func())
	go func() {
		runtime.LockOSThread()
		for f := range work {
			f()
		}
	}()
	return work
})

// StartProcess starts cmd in a session of its own, so that Ctrl-C at the terminal reaches only this process, which then
// stops what it has started in order. Unless detached, the kernel kills it when this process dies.
func StartProcess(cmd *exec.Cmd, detached bool) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if !detached {
		cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	}
	started := make(chan error)
	spawner() <- func() { started <- cmd.Start() }
	return <-started
}

// spawn starts a process of the lab and reaps it when it ends.
func spawn(cmd *exec.Cmd, detached bool) (process, error) {
	if err := StartProcess(cmd, detached); err != nil {
		return process{}, err
	}
	p := process{PID: cmd.Process.Pid}
	// Not yet reaped, so the pid is still its own; a zombie has a start time, too, but is of no use.
	p.Start, _ = birth(p.PID)
	go func() { _ = cmd.Wait() }()
	return p, nil
}

// interruptGroup makes the end of cmd's context interrupt the whole process group: the go command and its compilers.
func interruptGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }
	cmd.WaitDelay = 10 * time.Second
}

// lockFile takes an exclusive lock, waiting until ctx ends; busy, unless nil, is called once if it has to wait. The
// kernel drops the lock when this process dies.
func lockFile(ctx context.Context, path string, busy func()) (unlock func(), err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { f.Close() }, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			f.Close()
			return nil, fmt.Errorf("locking %s: %w", path, err)
		}
		if busy != nil {
			busy()
			busy = nil
		}
		select {
		case <-ctx.Done():
			f.Close()
			return nil, context.Cause(ctx)
		case <-ticker.C:
		}
	}
}
