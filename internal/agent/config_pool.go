package agent

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/tasuki-io/tasuki/internal/capture"
)

// The defaults and bounds of the durations of a pool.
const (
	defaultHold, leastHold, mostHold = 10 * time.Second, 0, time.Hour
	defaultTTL, leastTTL, mostTTL    = 10 * time.Second, time.Second, time.Hour
)

// pool reads a MobilityPool.
func (o *configObject) pool() capture.Pool {
	var prefix, addresses, hold, ttl, members *yaml.Node
	p := capture.Pool{Name: o.name}
	if !o.need(o.at, "spec", o.spec) || !o.fields(o.spec, "spec",
		configField{"prefix", &prefix}, configField{"addresses", &addresses}, configField{"members", &members},
		configField{"deprovisionHoldDuration", &hold}, configField{"leaseTTL", &ttl}) {
		return p
	}
	if o.need(o.spec, "prefix", prefix) {
		p.Prefix = o.prefix(prefix, "prefix")
	}
	p.Hold = o.duration(hold, "deprovisionHoldDuration", defaultHold, leastHold, mostHold)
	p.LeaseTTL = o.duration(ttl, "leaseTTL", defaultTTL, leastTTL, mostTTL)

	o.mark("leaseTTL", ttl)
	o.mark("addresses", addresses)
	o.mark("members", members)

	nodes := o.list(addresses, "addresses")
	p.Addresses = make([]capture.Address, 0, len(nodes))
	for _, n := range nodes {
		if a := o.address(n, p.Prefix); a.Addr.IsValid() {
			p.Addresses = append(p.Addresses, a)
		}
	}
	slices.SortFunc(p.Addresses, func(a, b capture.Address) int { return a.Addr.Compare(b.Addr) })
	p.Members = o.members(o.list(members, "members"))
	return p
}

// address reads an address and its owner. The address is invalid when it is not to be used.
func (o *configObject) address(n *yaml.Node, prefix netip.Prefix) (a capture.Address) {
	var address, owner, node, site *yaml.Node
	if !o.fields(n, "an address", configField{"address", &address}, configField{"owner", &owner}) {
		return a
	}
	if o.need(n, "owner", owner) && o.fields(owner, "owner", configField{"node", &node}, configField{"site", &site}) {
		a.Owner.Node = o.word(node, "owner.node")
		if o.need(owner, "owner.site", site) {
			a.Owner.Site = o.word(site, "owner.site")
		}
	}
	if !o.need(n, "address", address) {
		return a
	}
	text := o.text(address, "address")
	addr, err := ParseAddress(text)
	first, taken := o.load.addresses[addr]
	switch {
	case text == "":
	case err != nil:
		o.report(address, "%v", err)
	case addr.Zone() != "":
		o.report(address, "address %s has a zone, which only one host knows: write it without", quoteValue(text))
	case addr.Is4In6():
		o.report(address, "address %s is one of IPv4 inside of IPv6: write %s", text, addr.Unmap())
	case prefix.IsValid() && !prefix.Contains(addr):
		o.report(address, "address %s is outside of prefix %s: correct one of the two", addr, prefix)
	case addr.IsUnspecified() || addr.IsLoopback() || addr.IsMulticast():
		o.report(address, "address %s is not one of a single host: take it out", addr)
	case taken && first.o == o:
		o.report(address, "address %s is there twice, at %s as well: keep one", addr, first)
	case taken:
		o.report(address, "address %s is in MobilityPool %s as well, at %s, and would have two lines of epochs: leave it in one", addr, first.o.name, first)
	default:
		o.load.addresses[addr] = configSpot{o, address}
		a.Addr = addr
	}
	return a
}

func (o *configObject) prefix(n *yaml.Node, field string) netip.Prefix {
	text := o.text(n, field)
	p, err := netip.ParsePrefix(text)
	switch {
	case text == "":
	case err != nil:
		o.report(n, "%s %s is not a prefix: write one such as 10.0.0.0/24 or 2001:db8::/64, with its length", field, quoteValue(text))
	case p.Addr().Is4In6():
		o.report(n, "%s %s is one of IPv4 inside of IPv6: write it as IPv4", field, p)
	case p != p.Masked():
		o.report(n, "%s %s has bits beyond its length: write %s", field, p, p.Masked())
	default:
		return p
	}
	return netip.Prefix{}
}

// ParseAddress reads an address that a person has written, and says what is wrong with one that
// is none.
func ParseAddress(text string) (netip.Addr, error) {
	const write = "write one such as 10.0.0.1 or 2001:db8::1"
	addr, err := netip.ParseAddr(text)
	switch prefix, isPrefix := netip.ParsePrefix(text); {
	case err == nil:
		return addr, nil
	case text == "":
		return addr, errors.New("the address is empty: " + write)
	case isPrefix == nil:
		return addr, fmt.Errorf("address %s has a length: write %s", quoteValue(text), prefix.Addr())
	}
	return addr, fmt.Errorf("address %s is not an IP address: %s", quoteValue(text), write)
}
