package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// stopGrace is how long a component may take to stop in order. The API server would keep its watches open for a minute;
// nothing is lost when it is killed, because it answers a write only after etcd has it and the audit log says so.
func stopGrace(component string) time.Duration {
	if component == APIServer {
		return time.Second
	}
	return 10 * time.Second
}

// goneWithin is far more than a killed process needs to disappear.
const goneWithin = 10 * time.Second

// Stop stops a component in order and returns when it is gone; one that is stopped already is fine. Status then calls it
// stopped, not dead.
func (l *Lab) Stop(component string) error {
	p, running, err := l.process(component)
	if err != nil {
		return err
	}
	if !running {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), goneWithin+stopGrace(component))
	defer cancel()
	if err := p.end(ctx, stopGrace(component)); err != nil {
		return fmt.Errorf("stopping %s (process %d) of lab %s: %w", component, p.PID, l.Name(), err)
	}
	return l.change(func(s *state) { delete(s.Running, component) })
}

// Start starts a component that was stopped or has died, with the ports and the data that it had, and returns when it is
// ready. One that runs already is fine.
func (l *Lab) Start(ctx context.Context, component string) error {
	p, running, err := l.process(component)
	if err != nil {
		return err
	}
	if running && p.alive() {
		return nil
	}
	if err := l.launch(ctx, component); err != nil {
		return fmt.Errorf("starting %s of lab %s: %w", component, l.Name(), err)
	}
	return nil
}

// Signal sends a signal to a component: SIGKILL to see what its death does, SIGSTOP and SIGCONT for a pause. A component
// that dies of it is dead to Status, unlike one that was stopped.
func (l *Lab) Signal(component string, sig syscall.Signal) error {
	p, running, err := l.process(component)
	if err != nil {
		return err
	}
	if !running {
		return fmt.Errorf("sending %s to %s of lab %s: it is stopped", sig, component, l.Name())
	}
	err = p.signal(sig)
	if errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("sending %s to %s of lab %s: process %d is gone", sig, component, l.Name(), p.PID)
	}
	if err != nil {
		return fmt.Errorf("sending %s to %s (process %d) of lab %s: %w", sig, component, p.PID, l.Name(), err)
	}
	if sig == syscall.SIGKILL {
		// So that the caller sees the death it asked for.
		ctx, cancel := context.WithTimeout(context.Background(), goneWithin)
		defer cancel()
		if err := p.wait(ctx); err != nil {
			return fmt.Errorf("killing %s (process %d) of lab %s: it is still there: %w", component, p.PID, l.Name(), err)
		}
	}
	return nil
}

// process returns a component's process as recorded, and whether there is one.
func (l *Lab) process(component string) (process, bool, error) {
	if _, err := l.component(component); err != nil {
		return process{}, false, err
	}
	if err := l.refresh(); err != nil {
		return process{}, false, err
	}
	p, running := l.snapshot().Running[component]
	return p, running, nil
}
