package oci

import (
	"context"

	"github.com/oracle/oci-go-sdk/v65/core"

	"github.com/tasuki-io/tasuki/internal/executor"
)

// forward lets a VNIC forward packets of addresses that are not its own, or not: OCI calls it
// to skip the source/destination check. The update names that and nothing else, as OCI leaves
// alone what an update does not name, and takes an empty list of security groups for none.
func (s *session) forward(ctx context.Context, on bool) executor.Result {
	here, err := s.vnic(ctx)
	switch {
	case err != nil:
		return s.unread(err)
	case here.forwards == on:
		return executor.Result{Outcome: executor.OutcomeAlready}
	case s.DryRun:
		return executor.Resultf(executor.OutcomeDone, "", "UpdateVnic would do it; OCI has no dry run, so nothing tells whether this host may")
	}
	c := &change{
		action: "UpdateVnic",
		send: func() error {
			_, err := s.net.UpdateVnic(unhurried, core.UpdateVnicRequest{
				VnicId: &s.NIC, IfMatch: &here.etag, OpcRequestId: &s.token,
				UpdateVnicDetails: core.UpdateVnicDetails{SkipSourceDestCheck: &on},
			})
			return err
		},
		shows: func(ctx context.Context) (bool, error) {
			n, err := s.vnic(ctx)
			return err == nil && n.forwards == on, err
		},
	}
	refusal := c.send()
	if _, code := s.class(refusal); code != "NoEtagMatch" {
		return s.settle(ctx, c, refusal)
	}
	r := s.PollUntil(ctx, s.Clock.Now().Add(doubtTime), func() executor.Result {
		n, err := s.vnic(ctx)
		switch {
		case err == nil && n.forwards == on:
			return executor.Result{Outcome: executor.OutcomeAlready}
		case err == nil && n.etag != here.etag:
			return s.settle(ctx, c, refusal) // somebody else has changed it: the next attempt reads anew
		}
		return executor.Result{}
	})
	if r.Outcome == "" {
		r = s.settle(ctx, c, refusal)
	}
	return r
}
