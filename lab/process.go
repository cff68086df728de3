package lab

import (
	"context"
	"errors"
	"os"
	"syscall"
	"time"
)

// process is the identity of a process: a pid alone may belong to another one tomorrow.
type process struct {
	PID   int    `json:"pid"`
	Start uint64 `json:"start"` // clock ticks since boot
}

func self() process {
	p := process{PID: os.Getpid()}
	p.Start, _ = birth(p.PID)
	return p
}

func (p process) alive() bool {
	if p.PID == 0 || p.Start == 0 {
		return false
	}
	start, ok := birth(p.PID)
	return ok && start == p.Start
}

// end asks the process to stop, and after grace makes it. It returns when the process is gone; a process that is gone
// already is fine. Zero grace kills at once.
func (p process) end(ctx context.Context, grace time.Duration) error {
	if grace > 0 {
		if err := p.signal(syscall.SIGTERM); errors.Is(err, os.ErrProcessDone) {
			return nil
		}
		asked, cancel := context.WithTimeout(ctx, grace)
		err := p.wait(asked)
		cancel()
		if err == nil {
			return nil
		}
	}
	if err := p.signal(syscall.SIGKILL); errors.Is(err, os.ErrProcessDone) {
		return nil
	} else if err != nil {
		return err
	}
	return p.wait(ctx)
}

// wait returns nil when the process is gone.
func (p process) wait(ctx context.Context) error {
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for p.alive() {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ticker.C:
		}
	}
	return nil
}
