package oci

import (
	"context"
	"fmt"

	"github.com/tasuki-io/tasuki/internal/executor"
)

// assign puts an address on the VNIC of the request.
func (s *session) assign(ctx context.Context) executor.Result {
	here, err := s.vnic(ctx)
	if err != nil {
		return s.unread(err)
	}
	o, err := s.find(ctx, here.subnet)
	if err != nil {
		return s.unread(err)
	}
	if r := s.stays(o, nil); r.Outcome != "" {
		return r
	}
	f := s.family()
	c := &change{action: "Create" + f.kind, send: f.create}
	if o != nil {
		c.action = "Update" + f.kind
		c.send = func() error { return f.move(o) }
	}
	if s.DryRun {
		return executor.Resultf(executor.OutcomeDone, "", "%s would do it: %s is %s; OCI has no dry run, so nothing tells whether this host may", c.action, s.Address, where(o))
	}
	c.shows = func(ctx context.Context) (bool, error) {
		o, err := s.find(ctx, here.subnet)
		return o != nil && o.vnic == s.NIC && o.settled(), err
	}
	err = c.send()
	switch _, code := s.class(err); code {
	case "LimitExceeded":
		return s.full(ctx, err)
	case "NoEtagMatch", "Conflict", "NotAuthorizedOrNotFound", "NotAuthorizedOrResourceAlreadyExists":
		return s.contested(ctx, here.subnet, o, err, func(o *object) executor.Result { return s.stays(o, err) })
	}
	return s.settle(ctx, c, err)
}

// where is where an address is.
func where(o *object) string {
	switch {
	case o == nil:
		return "free"
	case o.vnic == "":
		return "reserved, and on no VNIC"
	}
	return "on " + o.vnic
}

// stays is the result of an address that is not to be moved to the VNIC of the request, with
// what OCI said if it was asked; it has no outcome when the address is.
func (s *session) stays(o *object, refusal error) executor.Result {
	if o == nil {
		return executor.Result{}
	}
	a, fixed := s.Address, o.fixed()
	_, code := s.class(refusal)
	said := ""
	if refusal != nil {
		said = ": " + brief(refusal)
	}
	switch {
	case o.vnic == s.NIC && !o.settled():
		return executor.Resultf(executor.OutcomeRetry, code, "%s is %s on %s: it is not there to stay", a, o.state, o.vnic)
	case o.vnic == s.NIC && fixed != "":
		return executor.Resultf(executor.OutcomeAlready, code, "%s is %s of %s, which it cannot leave", a, fixed, o.vnic)
	case o.vnic == s.NIC:
		return executor.Result{Outcome: executor.OutcomeAlready}
	case fixed != "":
		return executor.Resultf(executor.OutcomePermanent, code, "%s is %s of %s and cannot move to %s: take it out of the pool, or delete that VNIC%s", a, fixed, o.vnic, s.NIC, said)
	case o.vnic != "" && !s.Reassign:
		return executor.Resultf(executor.OutcomePermanent, code, "%s is on %s, and was not put there for this pool: somebody has to decide. Unassign it from %s, or take it out of the pool%s", a, o.vnic, o.vnic, said)
	}
	return executor.Result{}
}

// full is the result of a VNIC that takes no more addresses (case c13).
func (s *session) full(ctx context.Context, refusal error) executor.Result {
	_, code := s.class(refusal)
	has := ""
	if all, err := s.family().list(ctx, filter{vnic: s.NIC}); err == nil {
		has = fmt.Sprintf(" (it has %d)", len(all))
	}
	return executor.Resultf(executor.OutcomePermanent, code, "%s takes no more addresses%s: %s stays out. OCI allows 31 secondary private IPs and 32 IPv6 addresses on a VNIC, unless it has another limit for the tenancy. Release an address, or move some to another VNIC: %s",
		s.NIC, has, s.Address, brief(refusal))
}
