package oci

import (
	"context"

	"github.com/tasuki-io/tasuki/internal/executor"
)

// unassign takes an address from the VNIC of the request, and from no other: it is looked at
// where it is, and taken as it was then or not at all.
func (s *session) unassign(ctx context.Context) executor.Result {
	here, err := s.vnic(ctx)
	if err != nil {
		return s.unread(err)
	}
	o, err := s.find(ctx, here.subnet)
	switch {
	case err != nil:
		return s.unread(err)
	case s.left(o).Outcome != "":
		return s.left(o)
	case o.fixed() != "":
		return executor.Resultf(executor.OutcomePermanent, "", "%s is %s of %s, which OCI does not unassign: take it out of the pool, or delete the VNIC", s.Address, o.fixed(), o.vnic)
	}
	f := s.family()
	c := &change{
		action: "Delete" + f.kind,
		send:   func() error { return f.destroy(o) },
		shows: func(ctx context.Context) (bool, error) {
			o, err := s.find(ctx, here.subnet)
			return err == nil && s.left(o).Outcome != "", err
		},
	}
	if o.reserved { // somebody has it for longer
		c.action = f.kind + "VnicDetach"
		c.send = func() error { return f.detach(o) }
	}
	if s.DryRun {
		return executor.Resultf(executor.OutcomeDone, "", "%s would leave %s by %s; OCI has no dry run, so nothing tells whether this host may", s.Address, o.vnic, c.action)
	}
	err = c.send()
	switch _, code := s.class(err); code {
	case "NoEtagMatch", "NotAuthorizedOrNotFound":
		return s.contested(ctx, here.subnet, o, err, s.left) // case c12
	}
	return s.settle(ctx, c, err)
}

// left is the result of an address that is not on the VNIC of the request; it has no outcome
// when the address is.
func (s *session) left(o *object) executor.Result {
	if o == nil || o.vnic != s.NIC {
		return executor.Result{Outcome: executor.OutcomeAlready}
	}
	return executor.Result{}
}
