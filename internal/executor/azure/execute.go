package azure

import (
	"context"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/arm"

	"github.com/tasuki-io/tasuki/internal/executor"
	"github.com/tasuki-io/tasuki/internal/executor/cloud"
)

// Execute carries out one request. It is an executor.Execute.
func Execute(ctx context.Context, q executor.Request) executor.Result {
	return execute(ctx, q, cloud.Wall{}, changeTime)
}

// changeTime is how long ARM may take to answer a change. What is left of the patience goes
// into reading what became of it.
const changeTime = 10 * time.Second

func execute(ctx context.Context, q executor.Request, c cloud.Clock, limit time.Duration) executor.Result {
	s := &session{Session: cloud.Begin(q, &cloud.Wire{}, c), changeTime: limit}
	var err error
	if s.here, err = resourceOf(q); err != nil {
		return executor.Resultf(executor.OutcomePermanent, "", "%v", err)
	}
	var r executor.Result
	if s.arm, r = identify(ctx, q, s.Wire); s.arm == nil {
		return r
	}
	return s.End(cloud.Verbs{Assign: s.assign, Unassign: s.unassign, Forward: s.forward, Describe: s.describe, Locate: s.locate}.Perform(ctx, q), s.arm.redact)
}

// session is one request on its way.
type session struct {
	*cloud.Session
	here       *arm.ResourceID // the NIC of the request
	arm        *client
	changeTime time.Duration
}

func (s *session) describe(ctx context.Context) executor.Result {
	n, err := s.read(ctx, s.here)
	if err != nil {
		return s.unread(err, s.here)
	}
	return executor.Result{Outcome: executor.OutcomeDone, NIC: n.seen()}
}

func (n *nic) seen() *executor.NIC {
	seen := &executor.NIC{Forwards: n.forwards}
	for _, c := range n.configs {
		switch {
		case !c.address.IsValid():
		case c.primary:
			seen.Primary = c.address
		default:
			seen.Addresses = append(seen.Addresses, c.address)
		}
	}
	return seen
}
