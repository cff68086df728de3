package capture

import (
	"cmp"
	"slices"
	"strings"
)

// Standing is how a member stands to an address: what bars it from holding it, if anything.
type Standing struct {
	Member *Member
	Bar    Bar
}

// Bar is why a member may not hold an address.
type Bar string

// The bars.
const (
	BarHome  Bar = "home"    // the address lives at the member's own site
	BarDrain Bar = "drained" // by its configuration, or at run time
	BarDead  Bar = "dead"    // its lease is gone

	// BarMaster is told by whoever knows: a node knows it of itself alone.
	BarMaster Bar = "notMaster" // its VRRP instance is not proven to be MASTER
)

// Standings lists the members of a domain as they are asked for an address that lives at a
// site, those that may hold it first, each with what bars it.
func Standings(p *Pool, domain Domain, home string, absent Absent) []Standing {
	var list []Standing
	for i := range p.Members {
		m := &p.Members[i]
		if m.Domain() != domain {
			continue
		}
		s := Standing{Member: m}
		switch {
		case m.Site == home:
			s.Bar = BarHome
		case m.drained(absent):
			s.Bar = BarDrain
		case m.gone(absent):
			s.Bar = BarDead
		}
		list = append(list, s)
	}
	slices.SortStableFunc(list, func(a, b Standing) int {
		return cmp.Or(boolean(a.Bar != "")-boolean(b.Bar != ""), cmp.Compare(a.Member.Priority, b.Member.Priority), strings.Compare(a.Member.Node, b.Member.Node))
	})
	return list
}

func boolean(b bool) int {
	if b {
		return 1
	}
	return 0
}
