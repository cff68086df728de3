package azure

import (
	"context"
	"fmt"
	"net/http"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/arm"

	"github.com/tasuki-io/tasuki/internal/executor"
)

// assign puts an address on the NIC of the request. With Reassign it takes it from the NIC that
// has it first, and leaves the rest to the next attempt.
func (s *session) assign(ctx context.Context) executor.Result {
	a := s.Address
	var here *nic
	c := &change{
		nic:     s.here,
		edit:    func(n *nic) ([]byte, error) { return n.with(a) },
		shows:   s.shows,
		refused: func(refusal error) executor.Result { return s.noRoom(here, refusal) },
	}
	return s.alter(ctx, c, func(n *nic) executor.Result {
		first := here == nil
		here = n
		return s.look(ctx, n, first)
	})
}

func (s *session) shows(n *nic) bool {
	_, ok := n.has(s.Address)
	return ok
}

// look looks where the address is before an assignment. It returns a result without an outcome
// when the address is to be assigned now. Without Reassign that is left to ARM, which assigns no
// address twice. It takes the address only from who had it at the first look.
func (s *session) look(ctx context.Context, here *nic, first bool) executor.Result {
	a := s.Address
	switch c, ok := here.has(a); {
	case ok && c.primary:
		return executor.Resultf(executor.OutcomeAlready, "", "%s is the primary address of %s, which it cannot leave", a, s.NIC)
	case ok && s.DryRun:
		return executor.Result{Outcome: executor.OutcomeAlready}
	case !s.Reassign && !s.DryRun:
		return executor.Result{}
	}
	subnet, err := arm.ParseResourceID(here.subnet())
	if err != nil {
		return executor.Resultf(executor.OutcomePermanent, "", "subnet of %s: %v", s.NIC, err)
	}
	has, err := s.holder(ctx, subnet)
	switch {
	case err != nil:
		return s.unread(err, subnet)
	case has != nil && !same(has.Parent, s.here) && !first:
		return executor.Resultf(executor.OutcomeRetry, "", "%s has come to %s meanwhile, which may have it rightly", a, s.name(has.Parent))
	case has != nil && !same(has.Parent, s.here):
		return s.move(ctx, here, has)
	case s.DryRun:
		return executor.Resultf(executor.OutcomeDone, "", "%s is free, and %s is there; ARM has no dry run, so nothing tells whether this host may", a, s.NIC)
	}
	return executor.Result{}
}

// move takes the address from another NIC, exactly as that was when it was seen to have it. If
// it has changed since then it is left alone: it may have got the address back, as the new holder.
func (s *session) move(ctx context.Context, here *nic, has *arm.ResourceID) executor.Result {
	a, id := s.Address, has.Parent
	if !isNIC(id) {
		return executor.Resultf(executor.OutcomePermanent, "", "%s is on %s, which is no NIC that can be changed: take the address out of the pool, or away from there", a, has)
	}
	from, err := s.read(ctx, id)
	if answered(err, http.StatusNotFound) {
		from, err = &nic{}, nil // deleted: it has nothing
	}
	if err != nil {
		return s.unread(err, id)
	}
	config, ok := from.has(a)
	switch {
	case !ok && s.shows(here):
		return executor.Result{} // the subnet is late to show that it has left
	case !ok:
		return executor.Resultf(executor.OutcomeRetry, "", "%s has left %s, although its subnet shows it there", a, s.name(id))
	case config.primary:
		return executor.Resultf(executor.OutcomePermanent, "", "%s is the primary address of %s and cannot move to %s: take it out of the pool, or delete that NIC", a, s.name(id), s.NIC)
	case !s.Reassign:
		return executor.Resultf(executor.OutcomePermanent, "", "%s: unassign it from %s, or take it out of the pool", s.elsewhere(s.name(id)), s.name(id))
	case s.DryRun:
		return executor.Resultf(executor.OutcomeDone, "", "%s would be taken from %s; ARM has no dry run, so nothing tells whether this host may", a, s.name(id))
	}
	c := s.removal(id)
	op, err := s.send(ctx, c, from)
	if answered(err, http.StatusPreconditionFailed) {
		return executor.Resultf(executor.OutcomeRetry, "PreconditionFailed", "%s has changed since it was seen to have %s, and may have it rightly: %s", s.name(id), a, said(err))
	}
	r := s.settle(ctx, c, op, err)
	if r.Outcome == executor.OutcomeDone {
		r = executor.Resultf(executor.OutcomeAgain, "", "%s was taken from %s and is on no NIC: it is yet to be assigned to %s", a, s.name(id), s.NIC)
		if config.public != "" {
			r.Message += "; the public address " + config.public + " went with it there, and ARM has dissociated it"
		}
	}
	return r
}

func (s *session) elsewhere(name string) string {
	return fmt.Sprintf("%s is on %s, and was not put there for this pool: somebody has to decide", s.Address, name)
}

// noRoom is the result of an assignment that ARM refuses because of the address, or of the NIC
// (case c13), without an outcome for any other refusal.
func (s *session) noRoom(here *nic, refusal error) executor.Result {
	switch c := code(refusal); {
	case taken(c) && s.Reassign:
		return executor.Resultf(executor.OutcomeRetry, c, "%s has a holder that its subnet does not show yet: it is taken from there next: %s", s.Address, said(refusal))
	case taken(c):
		return executor.Resultf(executor.OutcomePermanent, c, "%s: unassign it there, or take it out of the pool: %s", s.elsewhere("another NIC"), said(refusal))
	case limit(refusal):
		return executor.Resultf(executor.OutcomePermanent, c, "%s takes no more addresses (it has %d IP configurations): %s stays out. Release an address, or move some to another NIC: %s", s.NIC, len(here.configs), s.Address, said(refusal))
	}
	return executor.Result{}
}
