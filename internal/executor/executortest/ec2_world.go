package executortest

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
)

// Interface is a network interface of the fake.
type Interface struct {
	ID, Subnet, VPC string
	Primary         netip.Addr
	Primary6        netip.Addr   // the primary IPv6 address, if it has one
	Secondary       []netip.Addr // of both families
	Limit           int          // addresses of each family; zero is no limit
	Forwards        bool         // its source/destination check is off
}

// all lists every address of the interface.
func (i *Interface) all() []netip.Addr {
	return slices.DeleteFunc(append([]netip.Addr{i.Primary, i.Primary6}, i.Secondary...), func(a netip.Addr) bool { return !a.IsValid() })
}

func (i *Interface) count(six bool) (n int) {
	for _, a := range i.all() {
		if a.Is6() == six {
			n++
		}
	}
	return n
}

// state is the world of EC2 at one time.
type state struct {
	nics map[string]Interface
	eips map[eip]netip.Addr // elastic addresses by what they are associated with
}

// eip is what an elastic address is associated with: it moves with the private address.
type eip struct {
	subnet  string
	private netip.Addr
}

func (s *state) clone() *state {
	c := &state{maps.Clone(s.nics), maps.Clone(s.eips)}
	for id, n := range c.nics {
		n.Secondary = slices.Clone(n.Secondary)
		c.nics[id] = n
	}
	return c
}

// holder is the NIC of a subnet that has an address.
func (s *state) holder(subnet string, a netip.Addr) (Interface, bool) {
	for _, n := range s.nics {
		if n.Subnet == subnet && slices.Contains(n.all(), a) {
			return n, true
		}
	}
	return Interface{}, false
}

// assign puts an address on a NIC, and takes it from the one that has it.
func (s *state) assign(id string, a netip.Addr) {
	for _, from := range s.nics {
		if from.Subnet != s.nics[id].Subnet || from.ID == id {
			continue
		}
		if a == from.Primary || a == from.Primary6 {
			return
		}
		s.strip(from.ID, a)
	}
	s.add(id, a)
}

func (s *state) add(id string, a netip.Addr) {
	n := s.nics[id]
	if slices.Contains(n.all(), a) {
		return
	}
	n.Secondary = append(slices.Clone(n.Secondary), a)
	s.nics[id] = n
}

// strip takes a secondary address from a NIC. Its elastic address stays with the private one.
func (s *state) strip(id string, a netip.Addr) {
	n := s.nics[id]
	n.Secondary = slices.DeleteFunc(slices.Clone(n.Secondary), func(b netip.Addr) bool { return a == b })
	s.nics[id] = n
}

// unassign takes a secondary address from a NIC, and its elastic address from it.
func (s *state) unassign(id string, a netip.Addr) {
	if n := s.nics[id]; slices.Contains(n.Secondary, a) {
		s.strip(id, a)
		delete(s.eips, eip{n.Subnet, a})
	}
}

// AddNIC adds a network interface, or replaces the one of that ID.
func (f *EC2) AddNIC(n Interface) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.settle()
	for _, a := range n.all() {
		if has, taken := f.world.planned.holder(n.Subnet, a); taken && has.ID != n.ID {
			panic(fmt.Sprintf("%s is on %s, and cannot be on %s too", a, has.ID, n.ID))
		}
	}
	f.world.alter(func(s *state) { s.nics[n.ID] = n })
}

// NIC is a network interface as it is now, whatever reads show.
func (f *EC2) NIC(id string) Interface {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.settle()
	return f.world.current().clone().nics[id]
}

// Holders lists the NICs that have an address now, in order, whatever reads show.
func (f *EC2) Holders(a netip.Addr) (ids []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.settle()
	for id, n := range f.world.current().nics {
		if slices.Contains(n.all(), a) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// Place puts an address on a NIC by hand, and takes it from the one that has it. On no NIC
// ("") it is removed from all.
func (f *EC2) Place(id string, a netip.Addr) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.settle()
	f.world.alter(func(s *state) {
		if id != "" {
			s.assign(id, a)
			return
		}
		for from := range s.nics {
			s.unassign(from, a)
		}
	})
}

// Double puts an address on a NIC by hand, and leaves it where else it is.
func (f *EC2) Double(id string, a netip.Addr) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.settle()
	f.world.alter(func(s *state) { s.add(id, a) })
}

// Associate gives the private address of a subnet an elastic one.
func (f *EC2) Associate(subnet string, private, public netip.Addr) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.world.alter(func(s *state) { s.eips[eip{subnet, private}] = public })
}

// Elastic is the NIC on which an elastic address is now, "" for none.
func (f *EC2) Elastic(public netip.Addr) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.settle()
	s := f.world.current()
	for at, a := range s.eips {
		if n, ok := s.holder(at.subnet, at.private); ok && a == public {
			return n.ID
		}
	}
	return ""
}
