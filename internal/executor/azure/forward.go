package azure

import (
	"context"

	"github.com/tasuki-io/tasuki/internal/executor"
)

// forward lets a NIC forward packets of addresses that are not its own, or not.
func (s *session) forward(ctx context.Context, on bool) executor.Result {
	c := &change{
		nic:   s.here,
		edit:  func(n *nic) ([]byte, error) { return n.edited(forwarding, on) },
		shows: func(n *nic) bool { return n.forwards == on },
	}
	return s.alter(ctx, c, func(n *nic) executor.Result {
		switch {
		case s.DryRun && c.shows(n):
			return executor.Result{Outcome: executor.OutcomeAlready}
		case s.DryRun:
			return executor.Resultf(executor.OutcomeDone, "", "forwarding would change on %s; ARM has no dry run, so nothing tells whether this host may", s.NIC)
		}
		return executor.Result{}
	})
}
