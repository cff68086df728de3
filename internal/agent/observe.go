package agent

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/tasuki-io/tasuki/internal/capture"
	"github.com/tasuki-io/tasuki/internal/claims"
)

// observe reads what has changed in the claims store. What this node learns of epochs is in
// its journal before anything is decided on it.
func (a *Agent) observe(ctx context.Context) error {
	if a.doubt {
		if err := a.load(ctx); err != nil {
			return fmt.Errorf("read the journal: %w", err)
		}
	}
	changes, err := a.changes(ctx)
	if err != nil {
		return err
	}
	a.mu.Lock()
	a.living.Look(changes.Alive, a.now())
	a.mu.Unlock()
	if changes.Revision == a.revision {
		return nil
	}
	if changes.Reset && a.revision != (claims.Revision{}) { // what it has lost is not in it
		if err := a.load(ctx); err != nil {
			return fmt.Errorf("read the journal: %w", err)
		}
	}
	if err := a.learn(ctx, changes.Claims); err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if changes.Reset {
		clear(a.leases)
	}
	for _, l := range changes.Leases {
		a.leases[l.Home] = l
	}
	a.drained = map[string]bool{}
	for _, node := range changes.Drained {
		a.drained[node] = true
	}
	a.revision = changes.Revision
	return nil
}

// changes reads what the claims store has that this node has not seen. A store that does not show
// this node to be alive has lost its lease, as a restored one has: the others take it for dead,
// and whatever it claimed now they would claim back, until it is renewed.
func (a *Agent) changes(ctx context.Context) (changes claims.Changes, err error) {
	for try := range 2 {
		if changes, err = a.store.Changes(ctx, a.revision); err != nil {
			return changes, fmt.Errorf("read the claims store: %w", err)
		}
		if try > 0 || slices.Contains(changes.Alive, a.node) {
			break
		}
		if err := a.renew(ctx); err != nil {
			return changes, err
		}
	}
	return changes, nil
}

// learn takes note of claims, in its journal first. What the view knows already is there.
func (a *Agent) learn(ctx context.Context, claimed map[capture.Key]capture.Claim) error {
	if len(claimed) == 0 {
		return nil
	}
	news := map[capture.Key]capture.Claim{}
	for k, c := range claimed {
		if c.Tells(a.view.Line(k).Known) {
			news[k] = c
		}
	}
	if err := a.journal.Note(ctx, news); err != nil {
		return a.doubts(fmt.Errorf("note the epochs in the journal: %w", err))
	}
	now := a.now()
	a.mu.Lock()
	defer a.mu.Unlock()
	for k, c := range claimed {
		a.view.Learn(k, c, now)
	}
	return nil
}

// note takes note of a claim that was current when an attempt had ended. It may be older than
// what the store has told since, so it is not taken for the current one.
func (a *Agent) note(ctx context.Context, k capture.Key, c capture.Claim) error {
	if err := a.journal.Note(ctx, map[capture.Key]capture.Claim{k: c}); err != nil {
		return fmt.Errorf("note the epoch of %s in the journal: %w", k, err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.view.Note(k, c)
	return nil
}

// snapshot is what the next decision reads, and when time alone changes it.
func (a *Agent) snapshot() (*capture.Snapshot, time.Time) {
	a.hearLAN()
	absent, next := a.absent(a.now())
	homes := make(map[capture.Home]string, len(a.leases))
	for h, l := range a.leases {
		homes[h] = l.Owner.Site
	}
	return &capture.Snapshot{
		Node: a.node, Pools: a.config.Pools, Providers: a.config.Providers(), Policy: a.config.Policy,
		Absent: absent, Returned: a.living.Returned, Homes: homes, Masters: a.lan.mastered(), Begun: a.begun,
		View: a.view, Paces: a.slowed(a.now()), NICs: a.nics,
	}, next
}
