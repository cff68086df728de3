package agent

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/tasuki-io/tasuki/internal/capture"
	"github.com/tasuki-io/tasuki/internal/executor"
	"github.com/tasuki-io/tasuki/internal/journal"
)

// attempt is one try of an action that the journal has begun. It runs beside the passes and
// touches nothing of theirs.
type attempt struct {
	agent   *Agent
	row     capture.Action
	profile executor.Profile
	post    *post // of what is placed on a LAN
}

// ending is how an attempt ended.
type ending struct {
	journal.Ending
	outcome   executor.Outcome // "" when the provider was not asked
	wish      time.Duration    // of the provider, to be left alone
	claim     capture.Claim    // as the store had it when the provider had answered; zero is unknown
	permanent bool
	stale     capture.Stale
}

// run asks the store for the claim as it is now, the gate, and then the provider; and so
// before each part of an action that takes several (spec C3). It ends by the row's deadline.
func (t *attempt) run(ctx context.Context) ending {
	ctx, cancel := context.WithTimeout(ctx, t.row.Deadline.Sub(t.agent.now()))
	defer cancel()
	for asked := false; ; asked = true {
		current, err := t.agent.store.Claim(ctx, t.row.Key)
		if err != nil {
			return ending{Ending: journal.Ending{
				State: capture.Failed, Reason: fmt.Sprintf("the claims store did not say who holds %s now: %v", t.row.Key, err), Answered: true, Unasked: !asked,
			}}
		}
		if current.Epoch < t.row.Epoch { // not stale, as the line goes on above what the store has lost
			return ending{Ending: journal.Ending{
				State: capture.Failed, Reason: fmt.Sprintf("the claims store has lost epoch %d of %s: it knows %s", t.row.Epoch, t.row.Key, current), Answered: true, Unasked: !asked,
			}}
		}
		if stale := capture.Gate(current, t.row.Token); stale != "" {
			return ending{stale: stale, Ending: journal.Ending{State: capture.Skipped, Reason: string(stale), Answered: true, Unasked: !asked}}
		}
		if !t.agent.lease.holds(t.agent.now()) {
			return ending{Ending: journal.Ending{
				State: capture.Failed, Reason: fmt.Sprintf("the lease of node %s may have ended: it begins nothing until it is renewed", t.agent.node), Answered: true, Unasked: !asked,
			}}
		}
		if t.profile.Provider == "" {
			return ending{permanent: true, Ending: journal.Ending{
				State: capture.Failed, Reason: fmt.Sprintf("CloudProviderProfile %s is not configured: add it", t.row.ProviderRef), Answered: true, Unasked: !asked,
			}}
		}
		r, err := t.ask(ctx)
		if err != nil {
			return ending{Ending: journal.Ending{State: capture.Failed, Reason: err.Error(), Answered: true, Unasked: !asked}}
		}
		if r.Outcome != executor.OutcomeAgain {
			end := endingOf(r)
			if t.row.Provider == capture.Linux {
				end.Answered = true // it has ended, and nobody else is there to carry it out
			}
			end.claim, _ = t.agent.store.Claim(ctx, t.row.Key) // without it, a late success is not called so
			return end
		}
	}
}

func (t *attempt) request() executor.Request {
	return executor.Request{
		Version: executor.Version, ID: t.row.ID(), Verb: t.row.Verb, Profile: t.profile, NIC: t.row.NIC, Address: t.row.Key.Address,
		Reassign: t.row.Reassign, ReadFirst: t.row.Attempts > 1,
		Silent: t.post != nil && t.post.silent,
	}
}

// endingOf is what an executor's answer means for the row.
func endingOf(r executor.Result) ending {
	e := ending{outcome: r.Outcome, wish: r.Wish(), Ending: journal.Ending{State: capture.Failed, Code: r.Code, Reason: r.Message, Answered: true}}
	switch r.Outcome {
	case executor.OutcomeDone, executor.OutcomeAlready:
		e.State, e.Reason = capture.Succeeded, ""
	case executor.OutcomeThrottled:
		e.State = capture.Approved
	case executor.OutcomePermanent, executor.OutcomeRefused:
		e.permanent = true
	case executor.OutcomeUnknown:
		e.Answered = false
	}
	return e
}

// jitter spreads a wait over its last half.
func jitter(d time.Duration) time.Duration { return d/2 + rand.N(d/2+1) }
