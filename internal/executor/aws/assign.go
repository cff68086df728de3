package aws

import (
	"context"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/ec2"

	"github.com/tasuki-io/tasuki/internal/executor"
)

// assign puts an address on the NIC of the request.
func (s *session) assign(ctx context.Context) executor.Result {
	if s.ReadFirst || s.DryRun || s.Address.Is6() {
		if r := s.look(ctx); r.Outcome != "" {
			return r
		}
	}
	c := &change{action: "AssignPrivateIpAddresses", nic: s.NIC, send: s.assign4, shows: func(n *nic) bool { return n.has(s.Address) }}
	if s.Address.Is6() {
		c.action, c.send = "AssignIpv6Addresses", s.assign6
	}
	err := s.send(ctx, c)
	switch _, code := s.class(err); code {
	case "PrivateIpAddressLimitExceeded":
		return s.full(ctx, err)
	case "InvalidParameterValue":
		return s.taken(ctx, err)
	}
	return s.settle(ctx, c, err)
}

// look reads before an assignment. It returns a result without an outcome when the address
// is to be assigned now.
func (s *session) look(ctx context.Context) executor.Result {
	here, err := s.read(ctx, s.NIC)
	if err != nil {
		return s.unread(err)
	}
	if here.has(s.Address) && (s.ReadFirst || s.DryRun) {
		return s.already(here)
	}
	if !s.DryRun && s.Address.Is4() {
		return executor.Result{}
	}
	has, err := s.holder(ctx, here)
	switch {
	case err != nil:
		return s.unread(err)
	case has != nil && has != here:
		return s.move(ctx, has)
	case s.DryRun:
		return executor.Resultf(executor.OutcomeDone, "", "%s is free, and %s is there; EC2 has no dry run of an assignment, so nothing tells whether this host may", s.Address, here.id)
	}
	return executor.Result{}
}

func (s *session) assign4(ctx context.Context, opts ...func(*ec2.Options)) error {
	_, err := s.ec2.AssignPrivateIpAddresses(ctx, &ec2.AssignPrivateIpAddressesInput{
		NetworkInterfaceId: &s.NIC,
		PrivateIpAddresses: []string{s.Address.String()},
		AllowReassignment:  &s.Reassign,
	}, opts...)
	return err
}

func (s *session) assign6(ctx context.Context, opts ...func(*ec2.Options)) error {
	_, err := s.ec2.AssignIpv6Addresses(ctx, &ec2.AssignIpv6AddressesInput{
		NetworkInterfaceId: &s.NIC,
		Ipv6Addresses:      []string{s.Address.String()},
	}, opts...)
	return err
}

// already is the result of an address that is where it is to be.
func (s *session) already(here *nic) executor.Result {
	r := executor.Result{Outcome: executor.OutcomeAlready}
	if slices.Contains(here.fixed, s.Address) {
		r.Message = fmt.Sprintf("%s is a primary address of %s, which it cannot leave", s.Address, here.id)
	}
	return r
}

// move takes an IPv6 address from the NIC that has it, as EC2 assigns none that is taken. It
// names exactly that NIC, so that whoever has got the address since keeps it. Of a dry run
// it says what would become of it, whichever family it is of.
func (s *session) move(ctx context.Context, from *nic) executor.Result {
	a := s.Address
	switch {
	case !s.Reassign || slices.Contains(from.fixed, a):
		return s.elsewhere(from, nil)
	case s.DryRun:
		return executor.Resultf(executor.OutcomeDone, "", "%s would be taken from %s; EC2 has no dry run of an assignment, so nothing tells whether this host may", a, from.id)
	}
	c := s.removal(from.id)
	err := s.send(ctx, c)
	if refuses(err, "not assigned") {
		return executor.Resultf(executor.OutcomeRetry, "InvalidParameterValue", "%s has left %s, although EC2 still shows it there", a, from.id)
	}
	r := s.settle(ctx, c, err)
	if r.Outcome == executor.OutcomeDone {
		r = executor.Resultf(executor.OutcomeAgain, "", "%s was taken from %s and is on no NIC: it is yet to be assigned to %s", a, from.id, s.NIC)
	}
	return r
}

// taken reads who has an address that EC2 would not assign, as long as no NIC shows it.
func (s *session) taken(ctx context.Context, refusal error) executor.Result {
	_, code := s.class(refusal)
	r := s.Poll(ctx, func() executor.Result {
		here, err := s.read(ctx, s.NIC)
		var has *nic
		if err == nil {
			has, err = s.holder(ctx, here)
		}
		switch {
		case err == nil && has == here:
			return s.already(here)
		case err == nil && has != nil && s.Reassign && s.Address.Is6() && !slices.Contains(has.fixed, s.Address):
			return executor.Resultf(executor.OutcomeRetry, code, "%s is on %s, which EC2 did not show before: it is taken from there next", s.Address, has.id)
		case err == nil && has != nil:
			return s.elsewhere(has, refusal)
		case !refuses(refusal, "assigned"):
			return executor.Resultf(executor.OutcomePermanent, code, "%s: %s", s.Subject(), advice(refusal, s.NIC))
		}
		return executor.Result{}
	})
	if r.Outcome == "" {
		r = executor.Resultf(executor.OutcomeRetry, code, "%s has an owner that EC2 does not show: %v", s.Address, refusal)
	}
	return r
}

// elsewhere is the result of an address that another NIC has and keeps, with what EC2 said if
// it was asked.
func (s *session) elsewhere(has *nic, refusal error) executor.Result {
	why := fmt.Sprintf("%s is on %s, and was not put there for this pool: somebody has to decide. Unassign it from %s, or take it out of the pool", s.Address, has.id, has.id)
	if slices.Contains(has.fixed, s.Address) {
		why = fmt.Sprintf("%s is a primary address of %s and cannot move to %s: take it out of the pool, or delete that NIC", s.Address, has.id, s.NIC)
	}
	if refusal == nil {
		return executor.Resultf(executor.OutcomePermanent, "", "%s", why)
	}
	_, code := s.class(refusal)
	return executor.Resultf(executor.OutcomePermanent, code, "%s: %v", why, refusal)
}

// full is the result of a NIC that takes no more addresses (case c13). EC2 does not tell the
// limit, so it is what the NIC has.
func (s *session) full(ctx context.Context, refusal error) executor.Result {
	_, code := s.class(refusal)
	has := ""
	if here, err := s.read(ctx, s.NIC); err == nil {
		count := 0
		for _, a := range append(here.addresses, here.primary) {
			if a.IsValid() && a.Is6() == s.Address.Is6() {
				count++
			}
		}
		has = fmt.Sprintf(" (it has %d, the limit of its instance type)", count)
	}
	return executor.Resultf(executor.OutcomePermanent, code, "%s takes no more addresses%s: %s stays out. Release an address, move some to another NIC, or take a larger instance type", s.NIC, has, s.Address)
}
