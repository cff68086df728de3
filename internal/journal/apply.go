package journal

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tasuki-io/tasuki/internal/capture"
)

// Apply writes the part of a plan that is the journal's, in one transaction. Each entry stands
// for itself: one that does not fit what is there does nothing.
//
// An entry that the plan derived from one of its own bumps holds only if that bump is known:
// the gate is asked about new actions and markers, and about the end of those whose key the
// plan has bumped.
func (j *Journal) Apply(ctx context.Context, plan *capture.Plan, now time.Time) (r Receipt, err error) {
	if len(plan.Skips)+len(plan.Drops)+len(plan.Marks)+len(plan.Imports)+len(plan.Admits)+len(plan.Resumes) == 0 {
		return r, nil
	}
	if err := possible(plan); err != nil {
		return r, err
	}
	err = j.write(ctx, func(t *tx) error {
		r = Receipt{}
		return (&applying{tx: t, r: &r, now: now, bumped: bumped(plan)}).apply(plan)
	})
	if err != nil {
		return Receipt{}, err
	}
	return r, nil
}

// possible refuses a plan that no decision makes.
func possible(plan *capture.Plan) error {
	for i := range plan.Marks {
		m := &plan.Marks[i]
		if m.Marker.ID() != m.Action.ID() {
			return fmt.Errorf("the marker %s is not that of the action %s", m.Marker.ID(), m.Action.ID())
		}
		if err := begins(&m.Action); err != nil {
			return err
		}
	}
	return each(plan.Imports, begins)
}

func begins(a *capture.Action) error {
	if a.State != capture.Pending || a.Attempts != 0 {
		return fmt.Errorf("%s is planned as %s with %d attempts: an action begins as pending", a.ID(), a.State, a.Attempts)
	}
	return nil
}

func bumped(plan *capture.Plan) map[capture.Key]bool {
	keys := make(map[capture.Key]bool, len(plan.Bumps))
	for i := range plan.Bumps {
		keys[plan.Bumps[i].Key] = true
	}
	return keys
}

// applying is a plan being written.
type applying struct {
	*tx
	r      *Receipt
	now    time.Time
	bumped map[capture.Key]bool
}

func (a *applying) apply(plan *capture.Plan) error {
	for _, part := range []func() error{
		func() error { return each(plan.Skips, a.skip) },
		func() error { return each(plan.Drops, a.drop) },
		func() error { return each(plan.Marks, a.mark) },
		func() error { return each(plan.Imports, a.admit) },
		func() error { return each(plan.Admits, a.approve) },
		func() error { return each(plan.Resumes, a.resume) },
	} {
		if err := part(); err != nil {
			return err
		}
	}
	return nil
}

func each[E any](entries []E, do func(*E) error) error {
	for i := range entries {
		if err := do(&entries[i]); err != nil {
			return err
		}
	}
	return nil
}

// still reads the row of a planned action, if it is open and as it was when the plan was made.
func (a *applying) still(planned *capture.Action) (r Row, ok bool, err error) {
	r, err = a.row(planned.ID())
	if errors.Is(err, ErrNoAction) {
		return r, false, nil
	}
	return r, err == nil && r.State.Open() && r.State == planned.State && r.Attempts == planned.Attempts, err
}

// holds reports whether something is stale, or was not found so because of a bump.
func (a *applying) holds(t capture.Token) (bool, error) {
	if !a.bumped[t.Key] {
		return true, nil
	}
	stale, err := a.gate(t)
	return stale != "", err
}

func (a *applying) skip(s *capture.Skip) error {
	r, ok, err := a.still(&s.Action)
	if err != nil || !ok {
		return err
	}
	if ok, err = a.holds(r.Token); err != nil || !ok {
		return err
	}
	r.Reason = string(s.Why)
	return a.become(&r, capture.Skipped, r.Reason)
}

func (a *applying) become(r *Row, to capture.State, detail string) error {
	row, err := a.tx.become(r, to, detail, a.now)
	a.r.Actions = append(a.r.Actions, row)
	return err
}

func (a *applying) drop(d *capture.Drop) error {
	if d.Why != "" {
		if ok, err := a.holds(d.Marker.Token); err != nil || !ok {
			return err
		}
	}
	n, err := a.Exec(`DELETE FROM markers WHERE id = ?`, d.Marker.ID())
	if n > 0 {
		a.r.Unmarked = append(a.r.Unmarked, d.Marker)
	}
	return err
}

// mark writes a marker and the row of its release, both or neither.
func (a *applying) mark(m *capture.Mark) error {
	if ok, err := a.passes(&m.Action); err != nil || !ok {
		return err
	}
	k := m.Marker
	n, err := a.Exec(`
		INSERT INTO markers (id, verb, pool, address, domain, epoch, holder, provider, provider_ref, nic, repair)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
		k.ID(), k.Verb, k.Key.Pool, address(k.Key.Address), k.Key.Domain, k.Epoch, k.Holder, k.Provider, k.ProviderRef, k.NIC, k.Repair)
	if err != nil {
		return err
	}
	if n > 0 {
		a.r.Marked = append(a.r.Marked, k)
	}
	return a.insertIfNew(&m.Action)
}

// admit writes an action that is not there, if the gate lets it in (ADR 0008 §4).
func (a *applying) admit(planned *capture.Action) error {
	if ok, err := a.passes(planned); err != nil || !ok {
		return err
	}
	return a.insertIfNew(planned)
}

func (a *applying) passes(planned *capture.Action) (bool, error) {
	stale, err := a.gate(planned.Token)
	if stale != "" && err == nil {
		a.r.Fenced = append(a.r.Fenced, capture.Skip{Action: *planned, Why: stale})
	}
	return stale == "", err
}

func (a *applying) insertIfNew(planned *capture.Action) error {
	if _, err := a.row(planned.ID()); !errors.Is(err, ErrNoAction) {
		return err
	}
	row, err := a.insert(*planned, "", a.now)
	a.r.Actions = append(a.r.Actions, row)
	return err
}

func (a *applying) approve(planned *capture.Action) error {
	r, err := a.row(planned.ID())
	if errors.Is(err, ErrNoAction) || err == nil && r.State != capture.Pending {
		return nil
	}
	if err != nil {
		return err
	}
	r.Approver = capture.ByPolicy
	return a.become(&r, capture.Approved, "approved by the "+capture.ByPolicy)
}

func (a *applying) resume(planned *capture.Action) error {
	r, err := a.row(planned.ID())
	if errors.Is(err, ErrNoAction) || err == nil && (r.State != capture.Running || r.Attempts != planned.Attempts) {
		return nil
	}
	if err != nil {
		return err
	}
	return a.become(&r, capture.Approved, "the attempt has not ended in time")
}
