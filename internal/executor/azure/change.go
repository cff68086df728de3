package azure

import (
	"context"
	"fmt"
	"net/http"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/arm"

	"github.com/tasuki-io/tasuki/internal/executor"
)

// change is the one change of a request: what becomes of a NIC.
type change struct {
	nic   *arm.ResourceID // the one that is changed, and that shows whether it was
	edit  func(*nic) ([]byte, error)
	shows func(*nic) bool
	// refused is the result of a refusal that this change knows better than others, without an
	// outcome for any other.
	refused func(refusal error) executor.Result
}

// The provisioning states that matter: of a NIC that is as it shows, and of one that ARM has given
// up on, until it is put again. In any other, ARM is at work on it.
const (
	stateSucceeded = "Succeeded"
	stateFailed    = "Failed"
)

// attempts is how often our own NIC is read and edited when others keep changing it.
const attempts = 5

// alter makes a change to the NIC of this host. What others have done to it meanwhile is
// kept: a refused put is followed by a new read (case c11). After each read, look ends the request
// if it returns an outcome.
func (s *session) alter(ctx context.Context, c *change, look func(*nic) executor.Result) executor.Result {
	for try := 1; ; try++ {
		n, err := s.read(ctx, c.nic)
		if err != nil {
			return s.unread(err, c.nic)
		}
		if r := look(n); r.Outcome != "" {
			return r
		}
		if c.shows(n) && n.state != stateFailed {
			return s.await(ctx, c, n)
		}
		op, err := s.send(ctx, c, n)
		if !answered(err, http.StatusPreconditionFailed) {
			return s.settle(ctx, c, op, err)
		}
		if try == attempts {
			return executor.Resultf(executor.OutcomeRetry, "PreconditionFailed", "%s: somebody else changes that NIC all the time: it was edited %d times, and had changed each time: %s", s.Subject(), attempts, said(err))
		}
	}
}

// await is the result of a NIC that shows what is to be, before any change.
func (s *session) await(ctx context.Context, c *change, n *nic) executor.Result {
	if n.state == stateSucceeded {
		return executor.Result{Outcome: executor.OutcomeAlready}
	}
	r := s.verify(ctx, c, nil, "ARM was at work on it before", "")
	switch r.Outcome {
	case executor.OutcomeDone:
		r.Outcome = executor.OutcomeAlready
	case executor.OutcomeUnknown:
		r.Outcome = executor.OutcomeRetry // this process has left nothing behind
	}
	return r
}

// send sends a change once, to a NIC that is as it was read. One that shows the change already is
// sent as it is, for ARM to take it up again. The error is what ARM said, if it said anything.
func (s *session) send(ctx context.Context, c *change, n *nic) (*operation, error) {
	s.Wire.Forget()
	edit := c.edit
	if c.shows(n) {
		edit = (*nic).whole
	}
	document, err := edit(n)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, s.changeTime)
	defer cancel()
	return s.arm.put(ctx, c.nic, n.etag, document)
}

// settle says how a change ended. One that was accepted, and one that may have been carried
// out without an answer, is read until it shows.
func (s *session) settle(ctx context.Context, c *change, op *operation, err error) executor.Result {
	outcome, code := s.class(err)
	switch {
	case outcome == executor.OutcomeDone:
		return s.verify(ctx, c, op, "ARM has accepted it", "")
	case outcome == executor.OutcomeUnknown:
		return s.verify(ctx, c, nil, "ARM has not said how it ended ("+said(err)+")", code)
	}
	return s.refusal(c, err)
}

// refusal is the result of a change that ARM says it does not carry out.
func (s *session) refusal(c *change, err error) executor.Result {
	if c.refused != nil {
		if r := c.refused(err); r.Outcome != "" {
			return r
		}
	}
	outcome, code := s.class(err)
	return executor.Resultf(outcome, code, "%s: %s", s.Subject(), s.advice(err, c.nic))
}

// verify reads the NIC until it shows a change and is provisioned, and asks the operation
// meanwhile, as often as ARM wants to be asked, whether it has failed.
func (s *session) verify(ctx context.Context, c *change, op *operation, before, code string) executor.Result {
	unseen := ""
	r := s.Poll(ctx, func() executor.Result {
		n, err := s.read(ctx, c.nic)
		switch unseen = s.name(c.nic) + " does not show it yet"; {
		case err != nil:
			unseen = "the last read failed: " + s.advice(err, c.nic)
			if outcome, _ := s.class(err); outcome == executor.OutcomePermanent {
				return executor.Resultf(executor.OutcomeUnknown, code, "%s: %s; %s", s.Subject(), before, unseen)
			}
		case !c.shows(n):
		case n.state == stateSucceeded:
			return executor.Result{Outcome: executor.OutcomeDone}
		case n.state == stateFailed && op.mute():
			return executor.Resultf(executor.OutcomeRetry, code, "%s: %s; %s shows it, and that ARM has failed to provision it: the next attempt puts it again", s.Subject(), before, s.name(c.nic))
		default:
			unseen = fmt.Sprintf("%s shows it as %s", s.name(c.nic), n.state)
		}
		if err := op.failure(ctx, s.Clock.Now(), n); err != nil {
			return s.refusal(c, err) // accepted, and then not carried out
		}
		return executor.Result{}
	})
	if r.Outcome == "" {
		r = executor.Resultf(executor.OutcomeUnknown, code, "%s: %s; %s, and it may be done yet", s.Subject(), before, unseen)
	}
	return r
}
