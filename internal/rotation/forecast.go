package rotation

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/tasuki-io/tasuki/internal/window"
)

// Turn is what a forecast says of one NodeClaim: when it is rotated, or that it is not.
type Turn struct {
	NodeClaim string // of a claim that is yet to be born: the one that it replaces, and "+1"
	Deadline  time.Time

	Start      time.Time         // of the rotation; of a claim that is lost, its deadline
	Occurrence window.Occurrence // in which the rotation starts
	Mode       string            // ModeSurge or ModeFallback

	// Lost says what kept the claim from being rotated, a Standing or a Reason, if Karpenter's
	// expiry takes it. It is empty for one that is rotated.
	Lost string
}

// Margin is how long before its deadline the rotation of the claim starts, zero if it never does.
// Not below t_rot, the rotation is in time even if it takes as long as it may.
func (t Turn) Margin() time.Duration { return t.Deadline.Sub(t.Start) }

// MostTurns is where a forecast ends at the latest: claims that live for seconds would fill it.
const MostTurns = 1_000_000

// Forecast plays the controller from one instant until another, against a Karpenter that is
// never late: a surge is ready after provisioningEstimate, a drain ends after drainEstimate, a
// claim goes at its deadline, and what goes is replaced by a claim of the pool's template. A
// node that is not Ready is taken to be so by the time that it is due; one that is due already
// stays as it is. Turns are in the order of their starts. A pool that no single policy governs
// has none.
//
// Decide decides, at every instant at which its answer can change. It is shown only those claims
// on which the answer can depend, which are few, and queues know which.
func Forecast(s Snapshot, from, to time.Time) []Turn {
	p := s.Governance.Policy
	if p == nil {
		return nil
	}
	f := newPlay(settle(s, p, from), from, to)
	for now := from; len(f.turns) < MostTurns; {
		f.happen(now)
		if !now.Before(to) && f.active() == "" {
			break
		}
		s := f.view(now)
		d := s.decide(now)
		for _, step := range d.Plan {
			f.act(step, now)
		}
		if len(d.Plan) > 0 && !waits(d, now) {
			continue
		}
		if f.shut(d, now) {
			if now = d.Wake; now.IsZero() {
				break
			}
			continue
		}
		next := earliest(d.Wake, f.next())
		if d.Reason == ReasonNoCandidate || d.Reason == ReasonInsufficientHeadroom { // another may come
			next = earliest(next, f.changes())
		}
		if next.IsZero() {
			break
		}
		now = next
	}
	slices.SortStableFunc(f.turns, func(a, b Turn) int {
		return cmp.Or(a.Start.Compare(b.Start), strings.Compare(a.NodeClaim, b.NodeClaim))
	})
	return f.turns
}

// waits reports a plan after which there is nothing to write until Karpenter has done its part, or
// the time for that is up.
func waits(d Decision, now time.Time) bool {
	return (d.Reason == ReasonAwaitingSurge || d.Reason == ReasonAwaitingDrain) && d.Wake.After(now)
}

// shut reports one of the first gates, which time alone opens, and has Karpenter do until then
// what it does: no node that goes or comes changes the answer, nor does any later gate.
func (f *play) shut(d Decision, now time.Time) bool {
	switch d.Reason {
	case ReasonPolicyInvalid, ReasonStatic, ReasonInfeasible, ReasonOutOfWindow:
	default:
		return false
	}
	opens := d.Wake
	if opens.IsZero() {
		opens = later(now, f.to)
	}
	f.closed = d.Reason
	for at := f.next(); !at.IsZero() && at.Before(opens) && len(f.turns) < MostTurns; at = f.next() {
		f.happen(at)
	}
	f.closed = ""
	return true
}

// view is what Decide is shown: the claims that are not calm, one of those that are on their
// way out, and of the calm ones that are eligible the first. It lasts until the next view.
func (f *play) view(now time.Time) Snapshot {
	clear(f.pool.Nodes)
	s := f.pool
	s.NodeClaims = s.NodeClaims[:0]
	show := func(c *actor) {
		s.NodeClaims = append(s.NodeClaims, c.NodeClaim)
		for _, name := range c.nodes {
			s.Nodes[name] = f.nodes[name]
		}
	}
	for name, c := range f.watched {
		switch {
		case name == f.active():
			show(c)
		case c.place == leaving:
			delete(f.watched, name)
		case f.active() == "" && f.calm(c): // else it may be the surge
			delete(f.watched, name)
			f.sort(c, now)
		default:
			show(c)
		}
	}
	for name, c := range f.leaving {
		if f.watched[name] == nil {
			show(c)
			break
		}
	}
	for {
		w, ok := f.waiting.first()
		if !ok || now.Before(w.at) {
			break
		}
		f.waiting.pop()
		f.sort(w.actor, now)
	}
	if c, ok := f.eligible.first(); ok {
		show(c)
	}
	for _, name := range f.loose {
		s.Nodes[name] = f.nodes[name]
	}
	f.pool.NodeClaims = s.NodeClaims // its room is used again
	return s
}

// calm reports a claim of which nothing is to be seen but its age: no rotation has a part in
// it.
func (f *play) calm(c *actor) bool {
	for _, name := range c.nodes {
		if marked(f.nodes[name]) {
			return false
		}
	}
	switch c.state() {
	case "", StateExpired, StateFailed:
		return true
	}
	return false
}

// marked reports a node that carries an annotation of ours.
func marked(n Node) bool {
	for key := range n.Annotations {
		if strings.HasPrefix(key, prefix) {
			return true
		}
	}
	return false
}

// sort puts a calm claim where it is found again.
func (f *play) sort(c *actor, now time.Time) {
	switch standing, changes, _ := f.standing(c, now); {
	case standing == Eligible:
		c.place = eligible
		f.eligible.push(c)
	case !changes.IsZero():
		c.place = waiting
		f.waiting.push(timed{changes, c})
	default:
		c.place = idle
	}
}

func (f *play) standing(c *actor, now time.Time) (Standing, time.Time, error) {
	s := Snapshot{Nodes: f.nodes}
	return s.standing(f.policy, &c.NodeClaim, now)
}

// changes is when another calm claim may come to be eligible.
func (f *play) changes() time.Time {
	w, _ := f.waiting.first()
	return w.at
}
