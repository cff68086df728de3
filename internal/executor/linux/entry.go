package linux

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// Protocol marks the neighbour entries that are ours (NDA_PROTOCOL, whose numbers are those
// of rtnetlink routes). `ip neigh show proxy` shows it as "proto 116".
const Protocol = 116

// entry is a proxy neighbour entry of an interface.
type entry struct {
	addr     netip.Addr
	protocol uint8
}

func (e entry) ours() bool { return e.protocol == Protocol }

// entries lists the proxy neighbour entries of the interface, of anybody.
func (p *port) entries() ([]entry, error) {
	var found []entry
	var err error
	for range 3 { // a dump is interrupted by a change of any entry
		p.calls++
		if found, err = p.dump(); !errors.Is(err, netlink.ErrDumpInterrupted) {
			break
		}
	}
	if err != nil {
		return nil, kernel(err, "list the proxy neighbour entries of %s", p.name)
	}
	return found, nil
}

func (p *port) dump() ([]entry, error) {
	q := nl.NewNetlinkRequest(unix.RTM_GETNEIGH, unix.NLM_F_DUMP)
	q.AddData(&netlink.Ndmsg{Index: uint32(p.index), Flags: netlink.NTF_PROXY})
	messages, err := q.Execute(unix.NETLINK_ROUTE, unix.RTM_NEWNEIGH)
	if err != nil {
		return nil, err
	}
	var found []entry
	for _, m := range messages {
		n, err := netlink.NeighDeserialize(m)
		if err != nil {
			return nil, fmt.Errorf("an entry cannot be read: %w", err)
		}
		addr, ok := netip.AddrFromSlice(n.IP)
		if !ok || n.LinkIndex != p.index || n.Flags&netlink.NTF_PROXY == 0 {
			continue
		}
		e := entry{addr: addr.Unmap()}
		attributes, err := nl.ParseRouteAttr(m[(&netlink.Ndmsg{}).Len():])
		if err != nil {
			return nil, fmt.Errorf("the entry of %s cannot be read: %w", addr, err)
		}
		for _, a := range attributes {
			if a.Attr.Type == netlink.NDA_PROTOCOL && len(a.Value) == 1 {
				e.protocol = a.Value[0]
			}
		}
		found = append(found, e)
	}
	return found, nil
}

// find looks for the entry of an address.
func (p *port) find(a netip.Addr) (e entry, ok bool, err error) {
	all, err := p.entries()
	if err != nil {
		return entry{}, false, err
	}
	at := slices.IndexFunc(all, func(e entry) bool { return e.addr == a })
	if at < 0 {
		return entry{}, false, nil
	}
	return all[at], true, nil
}

func (p *port) add(a netip.Addr) error {
	if err := p.change(unix.RTM_NEWNEIGH, unix.NLM_F_CREATE|unix.NLM_F_EXCL, a); err != nil {
		return kernel(err, "place the proxy neighbour entry of %s on %s", a, p.name)
	}
	return nil
}

// remove takes an entry away; one that is not there is gone.
func (p *port) remove(a netip.Addr) error {
	if err := p.change(unix.RTM_DELNEIGH, 0, a); err != nil && !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.ENODEV) {
		return kernel(err, "remove the proxy neighbour entry of %s from %s", a, p.name)
	}
	return nil
}

func (p *port) change(kind, flags int, a netip.Addr) error {
	p.calls++
	q := nl.NewNetlinkRequest(kind, flags|unix.NLM_F_ACK)
	q.AddData(&netlink.Ndmsg{Family: uint8(nl.GetIPFamily(a.AsSlice())), Index: uint32(p.index), State: netlink.NUD_PERMANENT, Flags: netlink.NTF_PROXY})
	q.AddData(nl.NewRtAttr(netlink.NDA_DST, a.AsSlice()))
	q.AddData(nl.NewRtAttr(netlink.NDA_PROTOCOL, []byte{Protocol}))
	_, err := q.Execute(unix.NETLINK_ROUTE, 0)
	return err
}
