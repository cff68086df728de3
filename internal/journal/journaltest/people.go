package journaltest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tasuki-io/tasuki/internal/capture"
	"github.com/tasuki-io/tasuki/internal/journal"
)

// Approve lets pending actions begin, and those that only the policy has approved.
func (m *Memory) Approve(_ context.Context, ids []string, who string, now time.Time) (approved []capture.Action, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if who == "" {
		return nil, errors.New("nobody approves")
	}
	if err := m.there(ids); err != nil {
		return nil, err
	}
	for _, id := range ids {
		r := m.rows[id]
		next := r.State
		switch {
		case r.State == capture.Pending:
			next = capture.Approved
		case r.Approver != capture.ByPolicy || r.State != capture.Approved && r.State != capture.Failed:
			continue
		}
		r.Approver = who
		approved = append(approved, m.become(r, next, now))
	}
	return approved, nil
}

// Hasten ends the backoff of actions.
func (m *Memory) Hasten(_ context.Context, ids []string, now time.Time) (hastened []capture.Action, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.there(ids); err != nil {
		return nil, err
	}
	for _, id := range ids {
		if r := m.rows[id]; !r.NotBefore.IsZero() {
			r.NotBefore = time.Time{}
			m.writes++
			r.written = m.writes
			hastened = append(hastened, r.Action)
		}
	}
	return hastened, nil
}

func (m *Memory) there(ids []string) error {
	for _, id := range ids {
		if m.rows[id] == nil {
			return fmt.Errorf("%w: %s", journal.ErrNoAction, id)
		}
	}
	return nil
}

// Undo plans the inverse of an action that has succeeded, if the gate lets it.
func (m *Memory) Undo(_ context.Context, id, who string, now time.Time) (undo capture.Action, stale capture.Stale, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.rows[id]
	switch {
	case who == "":
		return undo, "", errors.New("nobody asks for the undo")
	case r == nil:
		return undo, "", fmt.Errorf("%w: %s", journal.ErrNoAction, id)
	case r.State != capture.Succeeded || r.Undoes != "":
		return undo, "", fmt.Errorf("%s is %s and has no undo", id, r.State)
	}
	current := m.known[r.Key]
	undo = r.Action.Undo(current)
	if stale = capture.Gate(current, undo.Token); stale != "" {
		return undo, stale, nil
	}
	if m.rows[undo.ID()] != nil {
		return capture.Action{}, "", fmt.Errorf("%s is planned already", undo.ID())
	}
	m.rows[undo.ID()] = &row{Action: undo}
	return m.become(m.rows[undo.ID()], capture.Pending, now), "", nil
}
