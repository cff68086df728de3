package aws

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/ec2"

	"github.com/tasuki-io/tasuki/internal/executor"
)

// change is the one call of a request that changes something.
type change struct {
	action string // the name of the call
	nic    string // the one that it changes, and that shows whether it was carried out
	send   func(context.Context, ...func(*ec2.Options)) error
	shows  func(*nic) bool
	// blind is set when the NIC looked before as it is to look after: a call that is not
	// answered leaves no trace.
	blind bool
}

// send sends a change once. The error is what EC2 said, if it said anything.
func (s *session) send(ctx context.Context, c *change) error {
	ctx, cancel := context.WithTimeout(ctx, s.changeTime)
	defer cancel()
	return c.send(ctx, once)
}

// settle says how a change ended. One that was accepted, and one that may have been carried
// out without an answer, is read until it shows.
func (s *session) settle(ctx context.Context, c *change, err error) executor.Result {
	outcome, code := s.class(err)
	switch {
	case outcome == executor.OutcomeDone:
		return s.verify(ctx, c, "EC2 has accepted "+c.action, "")
	case outcome == executor.OutcomeUnknown && c.blind:
		return executor.Resultf(outcome, code, "EC2 has not said how %s of %s ended, and %s looks as it did before: %v", c.action, s.Subject(), c.nic, err)
	case outcome == executor.OutcomeUnknown:
		return s.verify(ctx, c, fmt.Sprintf("EC2 has not said how %s ended (%v)", c.action, err), code)
	}
	return executor.Resultf(outcome, code, "%s: %s", s.Subject(), advice(err, c.nic))
}

// verify reads the NIC until a change shows. EC2 may take its time to show what it has done
// (case c07), so what does not show is neither done nor lost.
func (s *session) verify(ctx context.Context, c *change, said, code string) executor.Result {
	unseen := ""
	r := s.Poll(ctx, func() executor.Result {
		n, err := s.read(ctx, c.nic)
		switch unseen = c.nic + " does not show it yet"; {
		case err == nil && c.shows(n):
			return executor.Result{Outcome: executor.OutcomeDone}
		case err != nil:
			unseen = "the last read failed: " + advice(err, c.nic)
		}
		if outcome, _ := s.class(err); outcome == executor.OutcomePermanent {
			return executor.Resultf(executor.OutcomeUnknown, code, "%s; %s", said, unseen)
		}
		return executor.Result{}
	})
	if r.Outcome == "" {
		r = executor.Resultf(executor.OutcomeUnknown, code, "%s; %s: %s may be done yet", said, unseen, s.Subject())
	}
	return r
}
