package azure

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"net/url"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/arm"

	"github.com/tasuki-io/tasuki/internal/executor"
	"github.com/tasuki-io/tasuki/internal/executor/cloud"
)

// read reads one NIC.
func (s *session) read(ctx context.Context, id *arm.ResourceID) (*nic, error) {
	data, err := s.arm.get(ctx, id, nil)
	if err != nil {
		return nil, err
	}
	n, err := decode(data)
	switch {
	case err != nil:
		return nil, fmt.Errorf("ARM shows of %s what is no NIC: %w", id, err)
	case n.etag == "" || n.subnet() == "":
		return nil, fmt.Errorf("ARM shows of %s no etag, or no subnet of a primary address", id)
	}
	n.id = id
	return n, nil
}

// holder is the ID of the IP configuration that has the address of the request in a subnet, of
// another NIC than that of the request if there is one; nil when none shows it.
func (s *session) holder(ctx context.Context, subnet *arm.ResourceID) (*arm.ResourceID, error) {
	all, err := s.inhabitants(ctx, subnet)
	if err != nil {
		return nil, err
	}
	var has *arm.ResourceID
	for _, whole := range all[s.Address] {
		id, err := arm.ParseResourceID(whole)
		if err != nil {
			return nil, fmt.Errorf("ARM shows of %s what is no IP configuration: %w", subnet, err)
		}
		if has == nil || same(has.Parent, s.here) {
			has = id
		}
	}
	return has, nil
}

// inhabitants are the IDs of the IP configurations that a subnet shows, by their address. It shows
// whatever has an address in it, in any resource group.
func (s *session) inhabitants(ctx context.Context, subnet *arm.ResourceID) (map[netip.Addr][]string, error) {
	data, err := s.arm.get(ctx, subnet, url.Values{"$expand": {configurations}})
	if err != nil {
		return nil, err
	}
	var shown struct {
		Properties struct {
			IPConfigurations []struct {
				ID         string `json:"id"`
				Properties struct {
					PrivateIPAddress string `json:"privateIPAddress"`
				} `json:"properties"`
			} `json:"ipConfigurations"`
		} `json:"properties"`
	}
	if err := json.Unmarshal(data, &shown); err != nil {
		return nil, fmt.Errorf("ARM shows of %s what is no subnet: %w", subnet, err)
	}
	all := map[netip.Addr][]string{}
	for _, c := range shown.Properties.IPConfigurations {
		if a, err := netip.ParseAddr(c.Properties.PrivateIPAddress); err == nil {
			all[a] = append(all[a], c.ID)
		}
	}
	return all, nil
}

// locate reads the NIC of the request, and on which NICs its subnet shows the addresses.
func (s *session) locate(ctx context.Context) executor.Result {
	here, err := s.read(ctx, s.here)
	if err != nil {
		return s.unread(err, s.here)
	}
	subnet, err := arm.ParseResourceID(here.subnet())
	if err != nil {
		return executor.Resultf(executor.OutcomePermanent, "", "subnet of %s: %v", s.NIC, err)
	}
	all, err := s.inhabitants(ctx, subnet)
	if err != nil {
		r := s.unread(err, subnet)
		r.NIC = here.seen()
		return r
	}
	on := map[netip.Addr][]string{}
	for _, a := range s.Addresses {
		for _, whole := range all[a] {
			nic, _, _ := strings.Cut(whole, "/ipConfigurations/")
			if id, err := arm.ParseResourceID(nic); err == nil {
				nic = s.name(id)
			}
			on[a] = append(on[a], nic)
		}
	}
	return s.Found(here.seen(), on)
}

// unread is the result of a request that ends with a failed read, before any change.
func (s *session) unread(err error, id *arm.ResourceID) executor.Result {
	outcome, code := s.class(err)
	return cloud.Unread(outcome, code, "%s", s.advice(err, id))
}
