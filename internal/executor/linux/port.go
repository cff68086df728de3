package linux

import (
	"errors"
	"net"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/tasuki-io/tasuki/internal/executor"
)

// port is an interface of this host.
type port struct {
	name  string
	index int
	mac   net.HardwareAddr
	up    bool
	calls int // of the kernel
}

func open(name string) (*port, error) {
	link, err := netlink.LinkByName(name)
	switch {
	case errors.As(err, &netlink.LinkNotFoundError{}):
		return nil, fault(executor.OutcomeRetry, "NoInterface", "this host has no interface %s: correct capture.interface, or bring it up", name)
	case err != nil:
		return nil, kernel(err, "look for the interface %s", name)
	}
	a := link.Attrs()
	return &port{name: a.Name, index: a.Index, mac: a.HardwareAddr, up: a.Flags&net.FlagUp != 0, calls: 1}, nil
}

// ready says what keeps this host from answering for an address on the interface, and from
// carrying what is then sent to it.
func (p *port) ready(a netip.Addr) error {
	if !p.up {
		return fault(executor.OutcomeRetry, "LinkDown", "interface %s is down: nobody would hear that it answers for %s", p.name, a)
	}
	if err := p.way(a); err != nil {
		return err
	}
	if on, err := p.sysctl(family(a), "forwarding"); err != nil {
		return err
	} else if !on {
		return fault(executor.OutcomeRetry, "ForwardingOff", "net.%s.conf.%s.forwarding is 0: the kernel does not answer for %s before ensure-forwarding-enabled (for IPv6, accept_ra has to be 0 or 2)", family(a), p.name, a)
	}
	if a.Is4() {
		return nil
	}
	all := &port{name: "all"}
	if on, err := all.sysctl(family(a), "forwarding"); err != nil {
		return err
	} else if forced, _ := p.sysctl(family(a), "force_forwarding"); !on && !forced { // since Linux 6.17
		return fault(executor.OutcomeRetry, "ForwardingOff", "net.ipv6.conf.all.forwarding is 0: this host would answer for %s on %s and drop what is sent to it; set it to 1", a, p.name)
	}
	return nil
}

// way refuses an address to which this host has no way, or none but through the interface
// itself: for those the kernel answers nobody.
func (p *port) way(a netip.Addr) error {
	p.calls++
	routes, err := netlink.RouteGet(a.AsSlice())
	switch {
	case errors.Is(err, unix.ENETUNREACH) || errors.Is(err, unix.EHOSTUNREACH) || errors.Is(err, unix.EINVAL) || err == nil && len(routes) == 0:
		return fault(executor.OutcomeRetry, "NoRoute", "this host has no route to %s, which it would answer for on %s: let the overlay bring one", a, p.name)
	case err != nil:
		return kernel(err, "look for the route to %s", a)
	}
	for _, r := range routes {
		switch {
		case r.Type == unix.RTN_LOCAL:
			return fault(executor.OutcomePermanent, "AddressIsLocal", "%s is an address of this host itself: take it off before another site's is captured on %s", a, p.name)
		case r.Type != unix.RTN_UNICAST:
			return fault(executor.OutcomeRetry, "NoRoute", "the route of this host to %s leads nowhere (type %d): let the overlay bring one", a, r.Type)
		case r.LinkIndex == p.index:
			return fault(executor.OutcomeRetry, "NoRoute", "the route of this host to %s leads out of %s, where it would answer for it: let the overlay bring a more specific one", a, p.name)
		}
	}
	return nil
}

// primary is the first address of the interface, the zero Addr if it has none.
func (p *port) primary() (netip.Addr, error) {
	p.calls++
	addrs, err := netlink.AddrList(&netlink.GenericLink{LinkAttrs: netlink.LinkAttrs{Index: p.index}}, netlink.FAMILY_ALL)
	if err != nil {
		return netip.Addr{}, kernel(err, "list the addresses of %s", p.name)
	}
	at := slices.IndexFunc(addrs, func(a netlink.Addr) bool { return a.IP.IsGlobalUnicast() })
	if at < 0 {
		return netip.Addr{}, nil
	}
	a, _ := netip.AddrFromSlice(addrs[at].IP)
	return a.Unmap(), nil
}
