package aws

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2"

	"github.com/tasuki-io/tasuki/internal/executor"
	"github.com/tasuki-io/tasuki/internal/executor/cloud"
)

// Execute carries out one request. It is an executor.Execute.
func Execute(ctx context.Context, q executor.Request) executor.Result {
	return execute(ctx, q, cloud.Wall{}, changeTime)
}

// changeTime is how long EC2 may take to answer a change. What is left of the patience goes
// into reading what became of it.
const changeTime = 10 * time.Second

func execute(ctx context.Context, q executor.Request, c cloud.Clock, limit time.Duration) executor.Result {
	s := &session{Session: cloud.Begin(q, &cloud.Wire{}, c), changeTime: limit}
	id, r := identify(ctx, q.Profile)
	if id == nil {
		return r
	}
	s.ec2 = id.client(s.Wire, q)
	return s.End(cloud.Verbs{Assign: s.assign, Unassign: s.unassign, Forward: s.forward, Describe: s.describe, Locate: s.locate}.Perform(ctx, q), id.redact)
}

// session is one request on its way.
type session struct {
	*cloud.Session
	ec2        *ec2.Client
	changeTime time.Duration
}

func (s *session) describe(ctx context.Context) executor.Result {
	n, err := s.read(ctx, s.NIC)
	if err != nil {
		return s.unread(err)
	}
	return executor.Result{Outcome: executor.OutcomeDone, NIC: n.seen()}
}

func (n *nic) seen() *executor.NIC {
	return &executor.NIC{Primary: n.primary, Addresses: n.addresses, Forwards: n.forwards}
}
