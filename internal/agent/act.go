package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tasuki-io/tasuki/internal/capture"
	"github.com/tasuki-io/tasuki/internal/journal"
)

// abreast is how many executors may run at once.
const abreast = 16

// pass observes, decides, and carries the plan out up to the attempts, which it begins and
// returns. They are to be run, and their endings to be handed to finish.
func (a *Agent) pass(ctx context.Context) ([]*attempt, capture.Decision, error) {
	if err := a.live(ctx); err != nil {
		return nil, capture.Decision{}, err
	}
	if err := a.observe(ctx); err != nil {
		return nil, capture.Decision{}, err
	}
	a.hurry(a.now())
	s, next := a.snapshot()
	d := capture.Decide(s, a.now())
	d.Wake = sooner(d.Wake, next)
	a.mu.Lock()
	a.last, a.gone = d, s.Absent.Dead
	a.mu.Unlock()
	a.tell.contested(d.Contests)
	if err := a.bump(ctx, d.Plan.Bumps); err != nil {
		return nil, d, err
	}
	if err := a.apply(ctx, &d.Plan); err != nil {
		return nil, d, err
	}
	var begun []*attempt
	for i := range d.Plan.Runs {
		if a.running >= abreast {
			break // the next ending makes room, and a pass
		}
		t, err := a.begin(ctx, d.Plan.Runs[i])
		if err != nil {
			return begun, d, err
		}
		if t != nil {
			begun = append(begun, t)
		}
	}
	return begun, d, nil
}

// bump raises epochs in the claims store. One that is refused was overtaken; the next pass
// sees by what.
func (a *Agent) bump(ctx context.Context, bumps []capture.Bump) error {
	if len(bumps) == 0 {
		return nil
	}
	done, err := a.store.Bump(ctx, bumps)
	if err != nil {
		return fmt.Errorf("raise %d epochs in the claims store: %w", len(bumps), err)
	}
	ours := map[capture.Key]capture.Claim{}
	for i, b := range bumps {
		if done[i] {
			ours[b.Key] = b.To
			a.tell.bumped(b)
		}
	}
	return a.learn(ctx, ours)
}

// apply writes the journal's part of a plan.
func (a *Agent) apply(ctx context.Context, p *capture.Plan) error {
	if len(p.Skips)+len(p.Drops)+len(p.Marks)+len(p.Imports)+len(p.Admits)+len(p.Resumes) == 0 {
		return nil
	}
	now := a.now()
	r, err := a.journal.Apply(ctx, p, now)
	if err != nil {
		return a.doubts(fmt.Errorf("journal the plan: %w", err))
	}
	a.unsaid = nil
	a.mu.Lock()
	for _, row := range r.Actions {
		row.Updated = now
		a.view.Record(row)
	}
	for _, m := range r.Marked {
		a.view.Mark(m)
	}
	for _, m := range r.Unmarked {
		a.view.Unmark(m)
	}
	a.mu.Unlock()
	a.tell.applied(r, a.last.Drifts)
	return nil
}

// begin claims a row for an attempt. It returns nil when the row is not to run any more.
func (a *Agent) begin(ctx context.Context, planned capture.Action) (*attempt, error) {
	now := a.now()
	deadline := now.Add(capture.ExecutorTime)
	row, stale, err := a.journal.Begin(ctx, planned.ID(), now, deadline)
	if errors.Is(err, journal.ErrNotStartable) || errors.Is(err, journal.ErrNoAction) {
		return nil, nil
	}
	if err != nil {
		return nil, a.doubts(fmt.Errorf("begin %s in the journal: %w", planned.ID(), err))
	}
	a.unsaid = nil
	row.Updated, row.Deadline, row.NotBefore = now, deadline, planned.NotBefore
	a.record(row)
	if stale != "" {
		a.tell.fenced(row, whereExecution, stale)
		return nil, nil
	}
	a.mu.Lock()
	a.running++
	a.begun++
	a.pace(lane{profile: row.ProviderRef}).begins(now)
	a.mu.Unlock()
	a.tell.began(row)
	return &attempt{agent: a, row: row, profile: a.config.profile(row.Target), post: a.postOf(&row)}, nil
}

// finish records how an attempt ended.
func (a *Agent) finish(ctx context.Context, t *attempt, end ending) error {
	id := t.row.ID()
	a.mu.Lock()
	a.running--
	if a.running == 0 {
		a.begun = 0
	}
	a.mu.Unlock()
	if end.claim.Epoch > t.row.Epoch {
		if err := a.note(ctx, t.row.Key, end.claim); err != nil {
			return a.doubts(err)
		}
	}
	now := a.now()
	a.heard(lane{profile: t.row.ProviderRef}, end.outcome, end.wish, t.row.Updated, now)
	end.NotBefore = a.again(t.row, end, now)
	row, err := a.journal.End(ctx, t.row, end.Ending, now)
	if errors.Is(err, journal.ErrGivenUp) {
		return nil // it was given up as dead; what it did is seen by reading
	}
	if err != nil {
		return a.doubts(fmt.Errorf("record the end of %s in the journal: %w", id, err))
	}
	a.unsaid = nil
	row.Updated, row.NotBefore = now, end.NotBefore
	a.record(row)
	t.ended(end.Ending)
	superseded := a.view.Current(row.Key).Epoch != row.Epoch
	a.tell.ended(row, end, now.Sub(t.row.Updated), superseded)
	return nil
}

func (a *Agent) record(row capture.Action) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.view.Record(row)
}

// again is when the next attempt may begin: the later the more of them have failed, and never
// all at once. What was throttled goes with the pace of all.
func (a *Agent) again(row capture.Action, end ending, now time.Time) time.Time {
	switch end.State {
	case capture.Failed:
	case capture.Approved:
		return a.pace(lane{profile: row.ProviderRef}).next
	default:
		return now
	}
	wait := min(time.Second<<min(row.Attempts-1, 10), time.Minute)
	if end.permanent {
		wait = time.Minute // at once the longest
	}
	return now.Add(a.jitter(wait))
}
