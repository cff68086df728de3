package capture

import (
	"cmp"
	"slices"
	"strings"
)

// Absent are the nodes that may hold nothing at this time.
type Absent struct {
	Drained map[string]bool // at run time; the configuration drains too
	Dead    map[string]bool // their lease is gone; nil without liveness
	// Unheard are those of whom the claims store has never heard: they may have claims of their
	// own. In a store that all nodes share there are none.
	Unheard map[string]bool
}

// ranking is who may hold the addresses of one domain of a pool, the best first.
type ranking []*Member

// rank orders the members that share a domain. Those that are drained or dead are left out,
// except one without a group, which is always active.
func rank(p *Pool, domain Domain, absent Absent) ranking {
	var r ranking
	for i := range p.Members {
		m := &p.Members[i]
		if m.Domain() == domain && !m.gone(absent) {
			r = append(r, m)
		}
	}
	slices.SortFunc(r, func(a, b *Member) int {
		return cmp.Or(cmp.Compare(a.Priority, b.Priority), strings.Compare(a.Node, b.Node))
	})
	return r
}

func (m *Member) gone(absent Absent) bool {
	return m.Group != "" && (m.drained(absent) || absent.Dead[m.Node])
}

func (m *Member) drained(absent Absent) bool {
	return m.Group != "" && (m.Drain || absent.Drained[m.Node])
}

// unhurried is who is to hold a line for now: whoever holds it and may, until the one with a better
// right takes it. That one does so by itself, so that nobody lets go for one that cannot act; and not
// while an attempt of its own from before may be carried out yet, as it would have to wait for that.
func (d *deciding) unhurried(l *line, choice choice) Holder {
	current, holder := l.Claim.Holder, choice.holder
	if current == holder || holder == None || !choice.may {
		return holder
	}
	if current == d.self && !d.s.Absent.Unheard[string(holder)] || holder == d.self && l.busy {
		return current
	}
	return holder
}

// choice is who is to hold an address, and whether the one that holds it may.
type choice struct {
	holder Holder
	may    bool
}

func (r ranking) choose(home string, current Holder) choice {
	return choice{r.desired(home, current), slices.ContainsFunc(r, func(m *Member) bool {
		return Holder(m.Node) == current && m.Site != home
	})}
}

// remembering is choose for whoever asks about many addresses: it answers alike about those
// that live at one site and have one holder.
func (r ranking) remembering() func(home string, current Holder) choice {
	type question struct {
		home    string
		current Holder
	}
	answers := map[question]choice{}
	return func(home string, current Holder) choice {
		q := question{home, current}
		answer, known := answers[q]
		if !known {
			answer = r.choose(home, current)
			answers[q] = answer
		}
		return answer
	}
}

// desired is the holder that an address is to have, given the one that it has. The lowest
// priority wins, and then the name; but whoever holds keeps, unless another has a strictly
// better priority, so that nothing moves when an equal returns. A member of the site where
// the address lives never captures it.
func (r ranking) desired(home string, current Holder) Holder {
	var best *Member
	for _, m := range r {
		switch {
		case m.Site == home:
			continue
		case best == nil:
			best = m
		case m.Priority > best.Priority:
			return Holder(best.Node)
		}
		if Holder(m.Node) == current {
			return current
		}
	}
	if best == nil {
		return None
	}
	return Holder(best.Node)
}
