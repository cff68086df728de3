package oci

import (
	"context"
	"net/netip"

	"github.com/tasuki-io/tasuki/internal/executor"
)

// locate reads the VNIC of the request, and which VNICs of its subnet have the addresses. For one
// address of a family it asks for that, for several it lists the subnet.
func (s *session) locate(ctx context.Context) executor.Result {
	n, err := s.vnic(ctx)
	if err != nil {
		return s.unread(err)
	}
	here := s.shown(ctx, n)
	if here.Outcome != executor.OutcomeDone {
		return here
	}
	on := map[netip.Addr][]string{}
	for six, f := range map[bool]family{false: s.v4(), true: s.v6()} {
		asked := filter{subnet: n.subnet}
		count := 0
		for _, a := range s.Addresses {
			if a.Is6() == six {
				asked.address = a
				count++
			}
		}
		if count == 0 {
			continue
		}
		if count > 1 {
			asked.address = netip.Addr{}
		}
		all, err := f.list(ctx, asked)
		if err != nil {
			r := s.unread(err)
			r.NIC = here.NIC
			return r
		}
		for _, o := range all {
			if o.vnic != "" && o.block == 0 {
				on[o.address] = append(on[o.address], o.vnic)
			}
		}
	}
	return s.Found(here.NIC, on)
}
