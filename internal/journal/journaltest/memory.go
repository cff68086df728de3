package journaltest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tasuki-io/tasuki/internal/capture"
	"github.com/tasuki-io/tasuki/internal/journal"
)

// Memory is a journal as it should be, without a file. It is what a simulation of the agent
// uses: what it holds outlives the agent that a simulation kills. The zero value is an empty
// journal.
type Memory struct {
	mu      sync.Mutex
	known   map[capture.Key]capture.Claim
	rows    map[string]*row
	markers map[string]capture.Marker
	writes  int
}

type row struct {
	capture.Action
	written    int
	superseded bool
}

var _ Journal = (*Memory)(nil)

// Load reads everything.
func (m *Memory) Load(context.Context) (journal.Contents, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := journal.Contents{Known: map[capture.Key]capture.Claim{}}
	maps.Copy(c.Known, m.known)
	rows := slices.SortedFunc(maps.Values(m.rows), func(a, b *row) int { return cmp.Compare(a.written, b.written) })
	for _, r := range rows {
		c.Actions = append(c.Actions, r.Action)
	}
	c.Markers = slices.SortedFunc(maps.Values(m.markers), func(a, b capture.Marker) int { return strings.Compare(a.ID(), b.ID()) })
	return c, nil
}

// Superseded reports whether an action succeeded after its epoch had moved on.
func (m *Memory) Superseded(id string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.rows[id]
	return r != nil && r.superseded
}

// Note raises the known epochs.
func (m *Memory) Note(_ context.Context, current map[capture.Key]capture.Claim) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.known == nil {
		m.known = map[capture.Key]capture.Claim{}
	}
	for k, c := range current {
		if c.Tells(m.known[k]) {
			m.known[k] = c
		}
	}
	return nil
}

func (m *Memory) gate(t capture.Token) capture.Stale { return capture.Gate(m.known[t.Key], t) }

// become is a row in another state; the times that mean nothing there are cleared.
func (m *Memory) become(r *row, to capture.State, now time.Time) capture.Action {
	if m.writes++; r.State != to {
		r.Updated = now
	}
	r.State, r.written = to, m.writes
	if to != capture.Running {
		r.Deadline = time.Time{}
	}
	if to != capture.Approved && to != capture.Failed {
		r.NotBefore = time.Time{}
	}
	return r.Action
}

// Apply writes a plan.
func (m *Memory) Apply(_ context.Context, plan *capture.Plan, now time.Time) (r journal.Receipt, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := impossible(plan); err != nil {
		return r, err
	}
	bumped := map[capture.Key]bool{}
	for _, b := range plan.Bumps {
		bumped[b.Key] = true
	}
	holds := func(t capture.Token) bool { return !bumped[t.Key] || m.gate(t) != "" }
	for _, s := range plan.Skips {
		old := m.rows[s.Action.ID()]
		if old != nil && old.State.Open() && old.State == s.Action.State && old.Attempts == s.Action.Attempts && holds(s.Action.Token) {
			old.Reason = string(s.Why)
			r.Actions = append(r.Actions, m.become(old, capture.Skipped, now))
		}
	}
	for _, d := range plan.Drops {
		id := d.Marker.ID()
		if _, there := m.markers[id]; there && (d.Why == "" || holds(d.Marker.Token)) {
			delete(m.markers, id)
			r.Unmarked = append(r.Unmarked, d.Marker)
		}
	}
	for _, k := range plan.Marks {
		m.admit(k.Action, &k.Marker, now, &r)
	}
	for _, a := range plan.Imports {
		m.admit(a, nil, now, &r)
	}
	for _, a := range plan.Admits {
		if old := m.rows[a.ID()]; old != nil && old.State == capture.Pending {
			old.Approver = capture.ByPolicy
			r.Actions = append(r.Actions, m.become(old, capture.Approved, now))
		}
	}
	for _, a := range plan.Resumes {
		if old := m.rows[a.ID()]; old != nil && old.State == capture.Running && old.Attempts == a.Attempts {
			r.Actions = append(r.Actions, m.become(old, capture.Approved, now))
		}
	}
	return r, nil
}

// impossible is what makes a plan an error, and nothing of it written.
func impossible(plan *capture.Plan) error {
	begin := slices.Clone(plan.Imports)
	for _, k := range plan.Marks {
		if k.Marker.ID() != k.Action.ID() {
			return fmt.Errorf("the marker %s is not that of the action %s", k.Marker.ID(), k.Action.ID())
		}
		begin = append(begin, k.Action)
	}
	for _, a := range begin {
		if a.State != capture.Pending || a.Attempts != 0 {
			return fmt.Errorf("%s is to be planned as %s", a.ID(), a.State)
		}
	}
	return nil
}

// admit writes a marker and its action, or an action alone, if the gate lets it.
func (m *Memory) admit(a capture.Action, marker *capture.Marker, now time.Time, r *journal.Receipt) {
	if stale := m.gate(a.Token); stale != "" {
		r.Fenced = append(r.Fenced, capture.Skip{Action: a, Why: stale})
		return
	}
	id := a.ID()
	if marker != nil && m.markers[id] == (capture.Marker{}) {
		if m.markers == nil {
			m.markers = map[string]capture.Marker{}
		}
		m.markers[id] = *marker
		r.Marked = append(r.Marked, *marker)
	}
	if m.rows[id] != nil {
		return
	}
	if m.rows == nil {
		m.rows = map[string]*row{}
	}
	m.rows[id] = &row{Action: capture.Action{Token: a.Token, Target: a.Target, Reassign: a.Reassign, Repair: a.Repair, Undoes: a.Undoes}}
	r.Actions = append(r.Actions, m.become(m.rows[id], capture.Pending, now))
}

// Begin claims an action.
func (m *Memory) Begin(_ context.Context, id string, now, deadline time.Time) (capture.Action, capture.Stale, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.rows[id]
	switch {
	case deadline.IsZero():
		return capture.Action{}, "", errors.New("no deadline")
	case r == nil:
		return capture.Action{}, "", fmt.Errorf("%w: %s", journal.ErrNoAction, id)
	case r.State != capture.Approved && r.State != capture.Failed:
		return r.Action, "", fmt.Errorf("%s is %s: %w", id, r.State, journal.ErrNotStartable)
	}
	if stale := m.gate(r.Token); stale != "" {
		r.Reason = string(stale)
		return m.become(r, capture.Skipped, now), stale, nil
	}
	r.Attempts++
	r.Unanswered++
	r.Deadline = deadline
	return m.become(r, capture.Running, now), "", nil
}

// End writes down how an attempt ended.
func (m *Memory) End(_ context.Context, begun capture.Action, e journal.Ending, now time.Time) (capture.Action, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.rows[begun.ID()]
	switch {
	case !slices.Contains([]capture.State{capture.Succeeded, capture.Failed, capture.Skipped, capture.Approved}, e.State):
		return capture.Action{}, fmt.Errorf("an attempt does not end as %q", e.State)
	case r == nil:
		return capture.Action{}, fmt.Errorf("%w: %s", journal.ErrNoAction, begun.ID())
	case r.State != capture.Running || r.Attempts != begun.Attempts:
		return r.Action, fmt.Errorf("attempt %d of %s: %w", begun.Attempts, begun.ID(), journal.ErrGivenUp)
	}
	if e.Unasked {
		r.Attempts--
	}
	if e.Unasked || e.Answered {
		r.Unanswered--
	}
	r.Reason, r.NotBefore = e.Reason, e.NotBefore
	if e.State == capture.Succeeded {
		r.Reason, r.superseded = "", m.known[r.Key].Epoch != r.Epoch
		if undone := m.rows[r.Undoes]; undone != nil && undone.State == capture.Succeeded {
			m.become(undone, capture.RolledBack, now)
		}
	}
	return m.become(r, e.State, now), nil
}
