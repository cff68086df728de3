package lab

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"time"
)

// state is what lab.json keeps: enough to find, judge, restart and end a lab from any process.
type state struct {
	Name     string    `json:"name"`
	Created  time.Time `json:"created"`
	Owner    process   `json:"owner"` // the process that brought the lab up
	Ready    bool      `json:"ready"` // the start is over
	Build    string    `json:"build"` // folder of the programs
	Ports    ports     `json:"ports"`
	Settings settings  `json:"settings"`
	// Running holds the process of every component that was started and not stopped on purpose: a process here that is
	// not alive has died.
	Running map[string]process `json:"running"`
}

func readState(d layout) (state, error) {
	content, err := os.ReadFile(d.state())
	if err != nil {
		return state{}, err
	}
	var s state
	if err := json.Unmarshal(content, &s); err != nil {
		return state{}, fmt.Errorf("reading %s: %w: end the lab's processes and remove its folder", d.state(), err)
	}
	if s.Running == nil {
		s.Running = make(map[string]process)
	}
	return s, nil
}

// write replaces lab.json in one step: a reader in another process sees the old or the new one.
func (s state) write(d layout) error {
	content, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding the state of lab %s: %w", s.Name, err)
	}
	temporary := d.state() + ".tmp"
	if err := os.WriteFile(temporary, append(content, '\n'), 0o600); err != nil {
		return fmt.Errorf("writing the state of lab %s: %w", s.Name, err)
	}
	if err := os.Rename(temporary, d.state()); err != nil {
		return fmt.Errorf("writing the state of lab %s: %w", s.Name, err)
	}
	return nil
}

// snapshot copies the state as last known.
func (l *Lab) snapshot() state {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.state
	s.Running = maps.Clone(s.Running)
	return s
}

// refresh takes up what other processes did to the lab.
func (l *Lab) refresh() error { return l.change(nil) }

// change alters the state, as other processes left it, and writes it down.
func (l *Lab) change(alter func(*state)) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	current, err := readState(l.dir)
	if missing(err) {
		return fmt.Errorf("lab %s is %w any more", l.Name(), ErrNotFound)
	}
	if err != nil {
		return err
	}
	l.state = current
	if alter == nil {
		return nil
	}
	alter(&l.state)
	return l.state.write(l.dir)
}

// alive tells whether anything of the lab still runs.
func (s state) alive() bool {
	for _, p := range s.Running {
		if p.alive() {
			return true
		}
	}
	return false
}

// starting tells whether another process is bringing the lab up right now.
func (s state) starting() bool { return !s.Ready && s.Owner.alive() }

func missing(err error) bool { return errors.Is(err, fs.ErrNotExist) }
