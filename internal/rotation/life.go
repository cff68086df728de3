package rotation

import (
	"cmp"
	"slices"
	"time"
)

// Life is what a forecast makes of one NodeClaim, from its birth on.
type Life struct {
	NodeClaim string
	Created   time.Time
	Due       time.Time // from then on it may be rotated; zero if it never expires
	Deadline  time.Time // zero if it never expires
	Standing  Standing  // now; empty for one that is yet to be born

	Turn *Turn // nil if it is neither rotated nor lost in the time of the forecast
}

// Lives are those of the turns of a forecast, in their order, and then those of the other claims
// of the pool, the one with the earliest deadline first.
func Lives(s Snapshot, turns []Turn, now time.Time) []Life {
	p := s.Governance.Policy
	if p == nil {
		return nil
	}
	there := make(map[string]Life, len(s.NodeClaims))
	for i := range s.NodeClaims {
		c := &s.NodeClaims[i]
		l := p.life(c)
		l.Standing, _, _ = s.standing(p, c, now)
		there[c.Name] = l
	}
	lives := make([]Life, 0, len(turns)+len(there))
	for i, t := range turns {
		l, known := there[t.NodeClaim]
		if !known { // born in the forecast, of the template; that it has a turn says that it expires
			expireAfter := s.NodePool.ExpireAfter
			l = p.life(&NodeClaim{
				Object: Object{Name: t.NodeClaim}, Created: t.Deadline.Add(-*expireAfter), ExpireAfter: expireAfter, GracePeriod: s.NodePool.GracePeriod,
			})
		}
		l.Turn = &turns[i]
		lives = append(lives, l)
	}
	for _, l := range lives {
		delete(there, l.NodeClaim)
	}
	first := len(lives)
	for _, l := range there {
		lives = append(lives, l)
	}
	slices.SortFunc(lives[first:], func(a, b Life) int {
		if a.Deadline.IsZero() != b.Deadline.IsZero() {
			return -a.Deadline.Compare(b.Deadline) // those that never expire are last
		}
		return cmp.Or(a.Deadline.Compare(b.Deadline), cmp.Compare(a.NodeClaim, b.NodeClaim))
	})
	return lives
}

func (p *Policy) life(c *NodeClaim) Life {
	l := Life{NodeClaim: c.Name, Created: c.Created}
	if due, expires := p.due(c); expires {
		l.Due, l.Deadline = due, c.Created.Add(*c.ExpireAfter)
	}
	return l
}
