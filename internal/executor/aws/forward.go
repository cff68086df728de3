package aws

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/tasuki-io/tasuki/internal/executor"
)

// forward lets a NIC forward packets of addresses that are not its own, or not: EC2 calls the
// opposite of it the source/destination check.
func (s *session) forward(ctx context.Context, on bool) executor.Result {
	if s.ReadFirst {
		here, err := s.read(ctx, s.NIC)
		switch {
		case err != nil:
			return s.unread(err)
		case here.forwards == on:
			return executor.Result{Outcome: executor.OutcomeAlready}
		}
	}
	c := &change{action: "ModifyNetworkInterfaceAttribute", nic: s.NIC, shows: func(n *nic) bool { return n.forwards == on }}
	c.send = func(ctx context.Context, opts ...func(*ec2.Options)) error {
		_, err := s.ec2.ModifyNetworkInterfaceAttribute(ctx, &ec2.ModifyNetworkInterfaceAttributeInput{
			NetworkInterfaceId: &s.NIC,
			SourceDestCheck:    &types.AttributeBooleanValue{Value: aws.Bool(!on)},
			DryRun:             &s.DryRun,
		}, opts...)
		return err
	}
	err := s.send(ctx, c)
	if s.DryRun && err != nil {
		if _, code := s.class(err); code != "DryRunOperation" {
			return s.unread(err)
		}
		return executor.Resultf(executor.OutcomeDone, "DryRunOperation", "EC2 would let this host change forwarding on %s", s.NIC)
	}
	return s.settle(ctx, c, err)
}
