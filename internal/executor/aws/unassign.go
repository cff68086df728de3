package aws

import (
	"context"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/ec2"

	"github.com/tasuki-io/tasuki/internal/executor"
)

// unassign takes an address from the NIC of the request, and from no other. That the NIC does
// not show the address proves nothing, as it may be fresh: only EC2's own answer does, or
// another NIC that has it.
func (s *session) unassign(ctx context.Context) executor.Result {
	a := s.Address
	here, err := s.read(ctx, s.NIC)
	switch {
	case err != nil:
		return s.unread(err)
	case slices.Contains(here.fixed, a):
		return executor.Resultf(executor.OutcomePermanent, "", "%s is a primary address of %s, which EC2 does not unassign: take it out of the pool, or delete the NIC", a, here.id)
	case s.DryRun && here.has(a):
		return executor.Resultf(executor.OutcomeDone, "", "%s would leave %s; EC2 has no dry run of it, so nothing tells whether this host may", a, here.id)
	case s.DryRun:
		return executor.Result{Outcome: executor.OutcomeAlready}
	case s.ReadFirst && !here.has(a):
		elsewhere, err := s.holder(ctx, here)
		if err != nil {
			return s.unread(err)
		}
		if elsewhere != nil {
			return executor.Result{Outcome: executor.OutcomeAlready}
		}
	}
	c := s.removal(here.id)
	c.blind = !here.has(a)
	err = s.send(ctx, c)
	if refuses(err, "not assigned") {
		return executor.Result{Outcome: executor.OutcomeAlready}
	}
	return s.settle(ctx, c, err)
}

// removal takes the address of the request from one NIC, by name.
func (s *session) removal(nicID string) *change {
	a := s.Address
	c := &change{nic: nicID, shows: func(n *nic) bool { return !n.has(a) }}
	if a.Is6() {
		c.action = "UnassignIpv6Addresses"
		c.send = func(ctx context.Context, opts ...func(*ec2.Options)) error {
			_, err := s.ec2.UnassignIpv6Addresses(ctx, &ec2.UnassignIpv6AddressesInput{
				NetworkInterfaceId: &nicID, Ipv6Addresses: []string{a.String()},
			}, opts...)
			return err
		}
		return c
	}
	c.action = "UnassignPrivateIpAddresses"
	c.send = func(ctx context.Context, opts ...func(*ec2.Options)) error {
		_, err := s.ec2.UnassignPrivateIpAddresses(ctx, &ec2.UnassignPrivateIpAddressesInput{
			NetworkInterfaceId: &nicID, PrivateIpAddresses: []string{a.String()},
		}, opts...)
		return err
	}
	return c
}
