package azure

import (
	"context"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/arm"

	"github.com/tasuki-io/tasuki/internal/executor"
)

// unassign takes an address from the NIC of the request, and from no other.
func (s *session) unassign(ctx context.Context) executor.Result {
	a := s.Address
	return s.alter(ctx, s.removal(s.here), func(n *nic) executor.Result {
		switch c, ok := n.has(a); {
		case ok && c.primary:
			return executor.Resultf(executor.OutcomePermanent, "", "%s is the primary address of %s, which ARM does not remove: take it out of the pool, or delete the NIC", a, s.NIC)
		case ok && s.DryRun:
			return executor.Resultf(executor.OutcomeDone, "", "%s would leave %s; ARM has no dry run, so nothing tells whether this host may", a, s.NIC)
		case s.DryRun:
			return executor.Result{Outcome: executor.OutcomeAlready}
		}
		return executor.Result{}
	})
}

// removal takes the address of the request from one NIC.
func (s *session) removal(id *arm.ResourceID) *change {
	return &change{
		nic:   id,
		edit:  func(n *nic) ([]byte, error) { return n.without(s.Address) },
		shows: func(n *nic) bool { return !s.shows(n) },
	}
}
