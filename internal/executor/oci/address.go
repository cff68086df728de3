package oci

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/oracle/oci-go-sdk/v65/core"
)

// object is an address as OCI has it: a private IP or an IPv6. It may be some seconds old.
type object struct {
	id, etag string
	vnic     string // "" is one that is reserved, and on none
	address  netip.Addr
	primary  bool
	reserved bool   // it outlives being on a VNIC
	block    int    // the prefix length of a block of addresses; 0 is a single one
	state    string // of an IPv6
}

// fixed says why nobody can take an address from its VNIC, or nothing.
func (o *object) fixed() string {
	switch {
	case o.primary:
		return "the primary address"
	case o.block != 0:
		return fmt.Sprintf("the block %s/%d", o.address, o.block)
	}
	return ""
}

// settled reports an address that is neither coming nor going.
func (o *object) settled() bool {
	return o.state == "" || o.state == string(core.Ipv6LifecycleStateAvailable)
}

// filter is what a list is of: the addresses of a VNIC, of a subnet, or what a subnet has of one
// address.
type filter struct {
	vnic, subnet string
	address      netip.Addr
}

func (f filter) query() (vnic, subnet, address *string) {
	if f.vnic != "" {
		return &f.vnic, nil, nil
	}
	if !f.address.IsValid() {
		return nil, &f.subnet, nil
	}
	a := f.address.String()
	return nil, &f.subnet, &a
}

// family are the calls for addresses of one family: OCI has them twice, and alike.
type family struct {
	kind    string // as the names of its calls have it
	list    func(ctx context.Context, f filter) ([]*object, error)
	get     func(ctx context.Context, id string) (*object, error)
	create  func() error
	move    func(o *object) error
	destroy func(o *object) error
	detach  func(o *object) error
}

// family is that of the address of the request.
func (s *session) family() family {
	if s.Address.Is6() {
		return s.v6()
	}
	return s.v4()
}

func (s *session) v4() family {
	rest := s.Address.String()
	return family{
		kind: "PrivateIp",
		list: func(ctx context.Context, f filter) (all []*object, err error) {
			in := core.ListPrivateIpsRequest{OpcRequestId: &s.token}
			in.VnicId, in.SubnetId, in.IpAddress = f.query()
			for {
				page, err := again(ctx, s, func() (core.ListPrivateIpsResponse, error) { return s.net.ListPrivateIps(unhurried, in) })
				if err != nil {
					return nil, err
				}
				for i := range page.Items {
					o, err := private(&page.Items[i])
					if err != nil {
						return nil, err
					}
					all = append(all, o)
				}
				if in.Page = page.OpcNextPage; in.Page == nil {
					return all, nil
				}
			}
		},
		get: func(ctx context.Context, id string) (*object, error) {
			in := core.GetPrivateIpRequest{PrivateIpId: &id, OpcRequestId: &s.token}
			out, err := again(ctx, s, func() (core.GetPrivateIpResponse, error) { return s.net.GetPrivateIp(unhurried, in) })
			if err != nil {
				return nil, err
			}
			return tagged(private(&out.PrivateIp))(out.Etag)
		},
		create: func() error {
			_, err := s.net.CreatePrivateIp(unhurried, core.CreatePrivateIpRequest{
				CreatePrivateIpDetails: core.CreatePrivateIpDetails{VnicId: &s.NIC, IpAddress: &rest},
				OpcRequestId:           &s.token, OpcRetryToken: &s.token,
			})
			return err
		},
		move: func(o *object) error {
			_, err := s.net.UpdatePrivateIp(unhurried, core.UpdatePrivateIpRequest{
				UpdatePrivateIpDetails: core.UpdatePrivateIpDetails{VnicId: &s.NIC},
				PrivateIpId:            &o.id, IfMatch: &o.etag, OpcRequestId: &s.token,
			})
			return err
		},
		destroy: func(o *object) error {
			_, err := s.net.DeletePrivateIp(unhurried, core.DeletePrivateIpRequest{PrivateIpId: &o.id, IfMatch: &o.etag, OpcRequestId: &s.token})
			return err
		},
		detach: func(o *object) error {
			_, err := s.net.PrivateIpVnicDetach(unhurried, core.PrivateIpVnicDetachRequest{PrivateIpId: &o.id, IfMatch: &o.etag, OpcRequestId: &s.token, OpcRetryToken: &s.token})
			return err
		},
	}
}

func (s *session) v6() family {
	rest := s.Address.String()
	return family{
		kind: "Ipv6",
		list: func(ctx context.Context, f filter) (all []*object, err error) {
			in := core.ListIpv6sRequest{OpcRequestId: &s.token}
			in.VnicId, in.SubnetId, in.IpAddress = f.query()
			for {
				page, err := again(ctx, s, func() (core.ListIpv6sResponse, error) { return s.net.ListIpv6s(unhurried, in) })
				if err != nil {
					return nil, err
				}
				for i := range page.Items {
					o, err := ipv6(&page.Items[i])
					if err != nil {
						return nil, err
					}
					if o.state != string(core.Ipv6LifecycleStateTerminated) { // it is listed for a while
						all = append(all, o)
					}
				}
				if in.Page = page.OpcNextPage; in.Page == nil {
					return all, nil
				}
			}
		},
		get: func(ctx context.Context, id string) (*object, error) {
			in := core.GetIpv6Request{Ipv6Id: &id, OpcRequestId: &s.token}
			out, err := again(ctx, s, func() (core.GetIpv6Response, error) { return s.net.GetIpv6(unhurried, in) })
			if err != nil {
				return nil, err
			}
			return tagged(ipv6(&out.Ipv6))(out.Etag)
		},
		create: func() error {
			_, err := s.net.CreateIpv6(unhurried, core.CreateIpv6Request{
				CreateIpv6Details: core.CreateIpv6Details{VnicId: &s.NIC, IpAddress: &rest},
				OpcRequestId:      &s.token, OpcRetryToken: &s.token,
			})
			return err
		},
		move: func(o *object) error {
			_, err := s.net.UpdateIpv6(unhurried, core.UpdateIpv6Request{
				UpdateIpv6Details: core.UpdateIpv6Details{VnicId: &s.NIC},
				Ipv6Id:            &o.id, IfMatch: &o.etag, OpcRequestId: &s.token,
			})
			return err
		},
		destroy: func(o *object) error {
			_, err := s.net.DeleteIpv6(unhurried, core.DeleteIpv6Request{Ipv6Id: &o.id, IfMatch: &o.etag, OpcRequestId: &s.token})
			return err
		},
		detach: func(o *object) error {
			_, err := s.net.Ipv6VnicDetach(unhurried, core.Ipv6VnicDetachRequest{Ipv6Id: &o.id, IfMatch: &o.etag, OpcRequestId: &s.token, OpcRetryToken: &s.token})
			return err
		},
	}
}

func private(p *core.PrivateIp) (*object, error) {
	o := &object{id: text(p.Id), vnic: text(p.VnicId), primary: p.IsPrimary != nil && *p.IsPrimary, reserved: p.Lifetime == core.PrivateIpLifetimeReserved}
	return o, o.parse(p.IpAddress, p.CidrPrefixLength)
}

func ipv6(p *core.Ipv6) (*object, error) {
	o := &object{id: text(p.Id), vnic: text(p.VnicId), reserved: p.Lifetime == core.Ipv6LifetimeReserved, state: string(p.LifecycleState)}
	return o, o.parse(p.IpAddress, p.CidrPrefixLength)
}

// parse reads an address, and how many follow it.
func (o *object) parse(address *string, prefix *int) (err error) {
	if o.address, err = netip.ParseAddr(text(address)); err != nil {
		return fmt.Errorf("OCI shows an address (%s) that is none: %w", o.id, err)
	}
	if prefix != nil && *prefix < o.address.BitLen() {
		o.block = *prefix
	}
	return nil
}

// tagged gives an object its etag, without which nobody may change it.
func tagged(o *object, err error) func(etag *string) (*object, error) {
	return func(etag *string) (*object, error) {
		if err != nil {
			return nil, err
		}
		if o.etag = text(etag); o.etag == "" {
			return nil, fmt.Errorf("OCI shows %s without an etag", o.id)
		}
		return o, nil
	}
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
