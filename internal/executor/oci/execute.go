package oci

import (
	"context"
	"time"

	"github.com/oracle/oci-go-sdk/v65/core"

	"github.com/tasuki-io/tasuki/internal/executor"
	"github.com/tasuki-io/tasuki/internal/executor/cloud"
)

// Execute carries out one request. It is an executor.Execute.
func Execute(ctx context.Context, q executor.Request) executor.Result {
	return execute(ctx, q, cloud.Wall{}, limits{read: 5 * time.Second, change: 10 * time.Second, identity: 10 * time.Second})
}

// limits are how long others may take to answer: a read that hangs leaves time for others, and
// what a change leaves of the patience goes into reading what became of it.
type limits struct{ read, change, identity time.Duration }

func execute(ctx context.Context, q executor.Request, c cloud.Clock, l limits) executor.Result {
	s := &session{Session: cloud.Begin(q, newWire(ctx, l), c), token: token(q)}
	id, r := identify(ctx, q.Profile, l.identity)
	if id == nil {
		return r
	}
	return s.perform(ctx, id)
}

// session is one request on its way.
type session struct {
	*cloud.Session
	token string // what OCI knows the request by
	net   core.VirtualNetworkClient
}

// perform carries out a request in the name of an identity.
func (s *session) perform(ctx context.Context, id *identity) executor.Result {
	var err error
	if s.net, err = id.client(s.Wire, s.Request); err != nil {
		return executor.Resultf(executor.OutcomePermanent, "", "profile %s: %v", s.Profile.Name, err)
	}
	return s.End(cloud.Verbs{Assign: s.assign, Unassign: s.unassign, Forward: s.forward, Describe: s.describe, Locate: s.locate}.Perform(ctx, s.Request), id.redact)
}

func (s *session) describe(ctx context.Context) executor.Result {
	n, err := s.vnic(ctx)
	if err != nil {
		return s.unread(err)
	}
	return s.shown(ctx, n)
}

// shown is the result of a read of a VNIC with its addresses.
func (s *session) shown(ctx context.Context, n *vnic) executor.Result {
	shown := &executor.NIC{Forwards: n.forwards}
	for _, f := range []family{s.v4(), s.v6()} {
		all, err := f.list(ctx, filter{vnic: n.id})
		if err != nil {
			return s.unread(err)
		}
		for _, o := range all {
			switch {
			case o.primary:
				shown.Primary = o.address
			case o.block == 0: // a block of addresses is none of ours
				shown.Addresses = append(shown.Addresses, o.address)
			}
		}
	}
	return executor.Result{Outcome: executor.OutcomeDone, NIC: shown}
}
