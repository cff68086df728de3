package aws

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/tasuki-io/tasuki/internal/executor"
)

// nic is what EC2 shows of a network interface. It may be some seconds old.
type nic struct {
	id, subnet string
	primary    netip.Addr   // the IPv4 one
	addresses  []netip.Addr // all others
	fixed      []netip.Addr // those that cannot leave: the primary ones
	forwards   bool
}

func (n *nic) has(a netip.Addr) bool { return a == n.primary || slices.Contains(n.addresses, a) }

// readTime is how long EC2 may take to answer a read: one that hangs leaves time for others.
const readTime = 5 * time.Second

// read reads one NIC by its ID.
func (s *session) read(ctx context.Context, id string) (*nic, error) {
	list, err := s.list(ctx, &ec2.DescribeNetworkInterfacesInput{NetworkInterfaceIds: []string{id}})
	if err != nil {
		return nil, err
	}
	if len(list) != 1 {
		return nil, fmt.Errorf("EC2 shows %d network interfaces for %s", len(list), id)
	}
	return list[0], nil
}

// holder returns the NIC that has the address of the request: here, if it shows it, or
// another one of its subnet; nil when none shows it.
func (s *session) holder(ctx context.Context, here *nic) (*nic, error) {
	if here.has(s.Address) {
		return here, nil
	}
	list, err := s.having(ctx, here.subnet, []netip.Addr{s.Address})
	if err != nil || len(list) == 0 {
		return nil, err
	}
	return list[0], nil
}

// having returns the NICs of a subnet that have any of some addresses of one family. Elsewhere in
// the account the same IPv4 address may well be somebody else's.
func (s *session) having(ctx context.Context, subnet string, addresses []netip.Addr) ([]*nic, error) {
	by := types.Filter{Name: aws.String("addresses.private-ip-address")}
	if addresses[0].Is6() {
		by.Name = aws.String("ipv6-addresses.ipv6-address")
	}
	for _, a := range addresses {
		by.Values = append(by.Values, a.String())
	}
	return s.list(ctx, &ec2.DescribeNetworkInterfacesInput{Filters: []types.Filter{{Name: aws.String("subnet-id"), Values: []string{subnet}}, by}})
}

// filterValues is how many values a filter of EC2 takes.
const filterValues = 200

// locate reads the NIC of the request, and which NICs of its subnet have the addresses.
func (s *session) locate(ctx context.Context) executor.Result {
	here, err := s.read(ctx, s.NIC)
	if err != nil {
		return s.unread(err)
	}
	on := map[netip.Addr][]string{}
	families := map[bool][]netip.Addr{}
	for _, a := range s.Addresses {
		families[a.Is6()] = append(families[a.Is6()], a)
	}
	for _, family := range families {
		for some := range slices.Chunk(family, filterValues) {
			list, err := s.having(ctx, here.subnet, some)
			if err != nil {
				r := s.unread(err)
				r.NIC = here.seen()
				return r
			}
			for _, n := range list {
				for _, a := range some {
					if n.has(a) {
						on[a] = append(on[a], n.id)
					}
				}
			}
		}
	}
	return s.Found(here.seen(), on)
}

func (s *session) list(ctx context.Context, in *ec2.DescribeNetworkInterfacesInput) (all []*nic, err error) {
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	for pages := ec2.NewDescribeNetworkInterfacesPaginator(s.ec2, in); pages.HasMorePages(); {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for i := range page.NetworkInterfaces {
			n, err := shown(&page.NetworkInterfaces[i])
			if err != nil {
				return nil, err
			}
			all = append(all, n)
		}
	}
	return all, nil
}

func shown(from *types.NetworkInterface) (*nic, error) {
	n := &nic{
		id:       aws.ToString(from.NetworkInterfaceId),
		subnet:   aws.ToString(from.SubnetId),
		forwards: from.SourceDestCheck != nil && !*from.SourceDestCheck,
	}
	for _, p := range from.PrivateIpAddresses {
		a, err := netip.ParseAddr(aws.ToString(p.PrivateIpAddress))
		switch {
		case err != nil:
			return nil, fmt.Errorf("EC2 shows an address of %s that is none: %w", n.id, err)
		case aws.ToBool(p.Primary):
			n.primary, n.fixed = a, append(n.fixed, a)
		default:
			n.addresses = append(n.addresses, a)
		}
	}
	for _, p := range from.Ipv6Addresses {
		a, err := netip.ParseAddr(aws.ToString(p.Ipv6Address))
		if err != nil {
			return nil, fmt.Errorf("EC2 shows an address of %s that is none: %w", n.id, err)
		}
		n.addresses = append(n.addresses, a)
		if aws.ToBool(p.IsPrimaryIpv6) {
			n.fixed = append(n.fixed, a)
		}
	}
	return n, nil
}
