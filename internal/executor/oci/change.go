package oci

import (
	"context"
	"fmt"
	"time"

	"github.com/tasuki-io/tasuki/internal/executor"
)

// change is the one call of a request that changes something.
type change struct {
	action string // the name of the call
	send   func() error
	// shows reads whether it was carried out.
	shows func(context.Context) (bool, error)
}

// settle says how a change ended. One that was accepted, and one that may have been carried
// out without an answer, is read until it shows.
func (s *session) settle(ctx context.Context, c *change, err error) executor.Result {
	outcome, code := s.class(err)
	switch outcome {
	case executor.OutcomeDone:
		return s.verify(ctx, c, "OCI has accepted "+c.action, "")
	case executor.OutcomeUnknown:
		return s.verify(ctx, c, fmt.Sprintf("OCI has not said how %s ended (%v)", c.action, brief(err)), code)
	}
	return executor.Resultf(outcome, code, "%s: %s", s.Subject(), s.advice(err))
}

// verify reads until a change shows. OCI may take its time to show what it has done (case
// c07), so what does not show is neither done nor lost.
func (s *session) verify(ctx context.Context, c *change, said, code string) executor.Result {
	unseen := ""
	r := s.Poll(ctx, func() executor.Result {
		shows, err := c.shows(ctx)
		outcome, _ := s.class(err)
		switch unseen = "it does not show yet"; {
		case shows:
			return executor.Result{Outcome: executor.OutcomeDone}
		case err != nil:
			unseen = "the last read failed: " + s.advice(err)
		}
		if outcome == executor.OutcomePermanent {
			return executor.Resultf(executor.OutcomeUnknown, code, "%s; %s", said, unseen)
		}
		return executor.Result{}
	})
	if r.Outcome != "" {
		return r
	}
	return executor.Resultf(executor.OutcomeUnknown, code, "%s; %s: %s may be done yet", said, unseen, s.Subject())
}

// contested reads what has become of an address that OCI would not change, until it is over
// or shows why. It is not asked for again: whoever was faster may be its new holder, so the
// gate comes first.
func (s *session) contested(ctx context.Context, subnet string, was *object, refusal error, over func(*object) executor.Result) executor.Result {
	outcome, code := s.class(refusal)
	r := s.PollUntil(ctx, s.Clock.Now().Add(doubtTime), func() executor.Result {
		o, err := s.find(ctx, subnet)
		if err != nil {
			return executor.Result{}
		}
		r := over(o)
		if r.Outcome == "" && changed(was, o) {
			r = executor.Resultf(executor.OutcomeRetry, code, "%s was changed by somebody else meanwhile, and is %s: it is read anew: %s", s.Address, where(o), brief(refusal))
		}
		return r
	})
	if r.Outcome == "" {
		r = executor.Resultf(outcome, code, "%s: %s", s.Subject(), s.advice(refusal))
	}
	return r
}

// changed reports that an object is not as it was.
func changed(was, is *object) bool {
	if was == nil || is == nil {
		return was != is
	}
	return was.id != is.id || was.etag != is.etag
}

// doubtTime is how long a refusal and what reads show may contradict each other before the
// refusal is taken at its word.
const doubtTime = 5 * time.Second
