package lab

import (
	"context"
	"errors"
	"sync"
)

// ComponentStatus is how a component is doing.
type ComponentStatus struct {
	Name    string
	PID     int    // zero when it was stopped
	Address string // host:port
	State   State
	Reason  string   // why it is not ready
	Log     string   // path
	Lines   []string // the last lines of the log, of a dead component only
}

// State is one word for a component.
type State string

// What a component can be.
const (
	Ready   State = "ready"
	Unready State = "unready" // it runs, but its health endpoint does not say so
	Stopped State = "stopped" // by Lab.Stop
	Dead    State = "dead"    // by itself, or by a signal
)

// Status asks every component, in the order of Components.
func (l *Lab) Status(ctx context.Context) []ComponentStatus {
	_ = l.refresh() // a lab that is gone has only dead components
	described := l.components()
	all := make([]ComponentStatus, len(Components()))
	client, clientErr := l.probeClient()
	var wg sync.WaitGroup
	for i, name := range Components() {
		wg.Go(func() {
			c := described[name]
			all[i] = l.look(c)
			if all[i].State != Ready {
				return
			}
			err := clientErr
			if err == nil {
				err = probeAll(ctx, client, c.health)
			}
			if err != nil {
				all[i].State, all[i].Reason = Unready, err.Error()
			}
		})
	}
	wg.Wait()
	if clientErr == nil {
		client.CloseIdleConnections()
	}
	return all
}

// look judges a component by its process only; what runs is taken for ready.
func (l *Lab) look(c component) ComponentStatus {
	s := ComponentStatus{Name: c.name, Address: c.addr, Log: l.dir.log(c.name), State: Ready}
	p, running := l.snapshot().Running[c.name]
	if !running {
		s.State, s.Reason = Stopped, "not started, or stopped on purpose"
		return s
	}
	s.PID = p.PID
	if !p.alive() {
		s.State, s.Reason, s.Lines = Dead, "its process is gone", lastLines(s.Log, shownLines)
	}
	return s
}

// Check returns a ComponentError for every component that has died, and nil while all that should run does. It asks no
// health endpoint, so it is cheap enough to explain any other failure with.
func (l *Lab) Check() error {
	if err := l.refresh(); err != nil {
		return err
	}
	described := l.components()
	var dead []error
	for _, name := range Components() {
		if l.look(described[name]).State == Dead {
			dead = append(dead, l.componentError(name, "died"))
		}
	}
	return errors.Join(dead...)
}
