package capture

import (
	"net/netip"
	"slices"
)

// Addresses is a set of addresses: in order, each once.
type Addresses []netip.Addr

// NewAddresses is the set of some addresses. It keeps the list, and puts it in order.
func NewAddresses(list ...netip.Addr) Addresses {
	slices.SortFunc(list, netip.Addr.Compare)
	return slices.Compact(list)
}

// Has reports whether an address is in the set.
func (s Addresses) Has(a netip.Addr) bool { return s.has(a, new(int)) }

// has is Has for whoever asks about one address after the other, and has it look first near the
// last one.
func (s Addresses) has(a netip.Addr, near *int) bool {
	for i := *near; i < min(*near+2, len(s)); i++ {
		if s[i] == a {
			*near = i
			return true
		}
	}
	var found bool
	*near, found = slices.BinarySearchFunc(s, a, netip.Addr.Compare)
	return found
}
