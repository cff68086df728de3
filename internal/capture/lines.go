package capture

import (
	"iter"
	"net/netip"
	"slices"
)

// lines are the entries of a scope in the order of their addresses: a decision on all of them goes
// along them, which takes a fraction of the time of looking up each. They are in chunks, so that a
// new one moves few others. None ever leaves, and no chunk is empty.
type lines [][]addressed

type addressed struct {
	addr netip.Addr
	*entry
}

// chunk is the size of a full one.
const chunk = 256

// place is where the entry of an address is, or belongs: in which chunk, and where there.
func (l lines) place(a netip.Addr) (in, at int, found bool) {
	in, found = slices.BinarySearchFunc(l, a, func(c []addressed, a netip.Addr) int { return c[0].addr.Compare(a) })
	if found || in == 0 {
		return in, 0, found
	}
	in--
	at, found = slices.BinarySearchFunc(l[in], a, func(e addressed, a netip.Addr) int { return e.addr.Compare(a) })
	return in, at, found
}

// with are the lines and a new one, of an address that has none yet.
func (l lines) with(a netip.Addr, e *entry) lines {
	in, at, _ := l.place(a)
	switch {
	case len(l) == 0:
		l = lines{nil}
	case len(l[in]) < chunk:
	case at == chunk: // what comes in order leaves full chunks behind
		in, at = in+1, 0
		l = slices.Insert(l, in, nil)
	default:
		l = slices.Insert(l, in+1, slices.Clone(l[in][at:]))
		l[in] = slices.Delete(l[in], at, chunk)
	}
	l[in] = slices.Insert(l[in], at, addressed{a, e})
	return l
}

// all are the entries in order.
func (l lines) all() iter.Seq2[netip.Addr, *entry] {
	return func(yield func(netip.Addr, *entry) bool) {
		for _, c := range l {
			for _, e := range c {
				if !yield(e.addr, e.entry) {
					return
				}
			}
		}
	}
}

// walk finds the entries of some lines, and at once the one after the last.
type walk struct {
	lines
	in, at int // where that is
}

// entry is the entry of an address, nil for none.
func (w *walk) entry(a netip.Addr) *entry {
	if w.in < len(w.lines) && w.at == len(w.lines[w.in]) {
		w.in, w.at = w.in+1, 0
	}
	if w.in >= len(w.lines) || w.lines[w.in][w.at].addr != a {
		var found bool
		if w.in, w.at, found = w.place(a); !found {
			return nil
		}
	}
	w.at++
	return w.lines[w.in][w.at-1].entry
}
