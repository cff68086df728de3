package rotation

import (
	"fmt"
	"strconv"
	"time"
)

// Explanation is the one answer to why a NodeClaim, or a NodePool as a whole, is not rotating
// now, and when it will. Instants that there are none of are zero.
type Explanation struct {
	NodePool  string `json:"nodePool"`
	NodeClaim string `json:"nodeClaim,omitempty"` // empty: the answer is about the pool
	Policy    string `json:"policy,omitempty"`    // the governing one

	Blocker           // the first in the way
	Also    []Blocker `json:"also"` // what else is, in the order in which it is asked

	Outlook  *Outlook  `json:"outlook"`  // of the NodeClaim, or of the one of the pool that is next
	Rotation *UnderWay `json:"rotation"` // the one under way in the pool
	Findings []Finding `json:"findings"`
}

// Blocker is something that keeps a rotation from starting, or from going on.
type Blocker struct {
	Reason  string    `json:"reason"` // a Reason, or the Standing of a NodeClaim
	Detail  string    `json:"detail"`
	Opens   time.Time `json:"opens,omitzero"` // when it is gone by itself; zero if only an event takes it away
	Numbers []Sum     `json:"numbers,omitempty"`
}

// free is the answer when nothing is in the way.
var free = Blocker{Reason: string(Eligible), Detail: "nothing is in the way: the controller begins within a minute, if it runs"}

// Explain answers for a NodeClaim of the pool, or for the pool if name is empty. It asks the
// functions that Decide asks, and does not stop at the first that says no.
//
// For a pool the first blocker is the Reason of Decide. For a NodeClaim, what is wrong with its
// pool comes first; then its own standing, as no window matters to one that is not due; then
// what passes.
func Explain(s Snapshot, name string, e Evidence, now time.Time) Explanation {
	s.Unswept = true // marks of nobody are taken away beside the rest
	d := Decide(s, now)
	x := Explanation{NodePool: s.NodePool.Name, NodeClaim: name, Also: []Blocker{}, Findings: []Finding{}, Rotation: s.underWay(d, e, now)}
	x.Findings = append(x.Findings, Examine(s, now)...)
	p, c := s.Governance.Policy, s.claim(name)
	var all []Blocker
	switch {
	case p == nil:
		all = []Blocker{{Reason: string(d.Reason), Detail: d.Detail}}
	case x.Rotation != nil && (c == nil || name == x.Rotation.NodeClaim):
		all = []Blocker{x.Rotation.blocker(d)}
	case c != nil:
		all = s.inTheWayOf(p, c, x.Rotation, now)
	default:
		all = s.inTheWay(p, now)
	}
	if len(all) == 0 {
		all = []Blocker{free}
	}
	x.Blocker, x.Also = all[0], append(x.Also, all[1:]...)
	if p == nil {
		return x
	}
	x.Policy = p.Name
	if c == nil {
		c = s.upNext(p, now)
	}
	if c != nil {
		x.Outlook = s.outlook(p, c, all, now)
	}
	return x
}

// inTheWay is what keeps the pool at rest.
func (s *Snapshot) inTheWay(p *Policy, now time.Time) []Blocker {
	v := s.survey(p, now)
	var all []Blocker
	for g := range s.closedGates(p, v.first, now) {
		all = append(all, s.closed(p, g))
		if g.Reason == ReasonPolicyInvalid { // what is left of the policy would mislead
			return all
		}
	}
	c := s.upNext(p, now)
	if v.census[Eligible] == 0 {
		b := Blocker{Reason: string(ReasonNoCandidate), Detail: v.census.String(), Opens: v.next}
		if c != nil {
			b.Numbers = p.age(c, now)
		}
		return append(all, b)
	}
	if v.first != nil {
		c = v.first
	}
	return append(all, s.tooLarge(p, c, now)...)
}

// inTheWayOf is what keeps one NodeClaim, which is not on the rotation, from it.
func (s *Snapshot) inTheWayOf(p *Policy, c *NodeClaim, under *UnderWay, now time.Time) []Blocker {
	var lasting, passing []Blocker
	for g := range s.closedGates(p, c, now) {
		switch g.Reason {
		case ReasonPolicyInvalid:
			return []Blocker{s.closed(p, g)}
		case ReasonStatic, ReasonInfeasible:
			lasting = append(lasting, s.closed(p, g))
		case ReasonDisruption:
			if under != nil { // which is that disruption
				continue
			}
			fallthrough
		default:
			passing = append(passing, s.closed(p, g))
		}
	}
	all := lasting
	standing, changes, err := s.standing(p, c, now)
	if standing != Eligible {
		all = append(all, s.stands(p, c, standing, changes, err, now))
	}
	if under != nil {
		all = append(all, Blocker{Reason: string(ReasonOther), Detail: fmt.Sprintf("NodeClaim %s of NodePool %s is on the rotation: one at a time", under.NodeClaim, s.NodePool.Name)})
	}
	all = append(all, passing...)
	if standing != Eligible {
		return all
	}
	if first := s.ahead(p, c, now); first != nil {
		all = append(all, Blocker{Reason: string(ReasonNotFirst), Detail: fmt.Sprintf("NodeClaim %s goes first, with the deadline %s", first.Name, stamp(first.Created.Add(*first.ExpireAfter)))})
	}
	return append(all, s.tooLarge(p, c, now)...)
}

// ahead is the NodeClaim that goes first if it is not c, which is eligible: the choice of survey,
// and outside of windows the one to be expected.
func (s *Snapshot) ahead(p *Policy, c *NodeClaim, now time.Time) *NodeClaim {
	first := s.survey(p, now).first
	if first == nil {
		first = s.upNext(p, now)
	}
	if first == nil || !before(first, c) {
		return nil
	}
	return first
}

// upNext is the NodeClaim with the earliest deadline of those that are eligible, else of those
// that time alone keeps from it.
func (s *Snapshot) upNext(p *Policy, now time.Time) *NodeClaim {
	var first *NodeClaim
	chosen := false
	for i := range s.NodeClaims {
		c := &s.NodeClaims[i]
		standing, changes, _ := s.standing(p, c, now)
		ready := standing == Eligible
		if !ready && changes.IsZero() || chosen && !ready {
			continue
		}
		if first == nil || ready && !chosen || before(c, first) {
			first, chosen = c, ready
		}
	}
	return first
}

// closed is a closed gate with its numbers.
func (s *Snapshot) closed(p *Policy, g gate) Blocker {
	b := Blocker{Reason: string(g.Reason), Detail: g.Detail, Opens: g.Opens}
	a := s.NodePool.Annotations
	switch g.Reason {
	case ReasonInfeasible:
		b.Numbers = p.Arithmetic(s.NodePool)
	case ReasonOutOfWindow:
		if next, ok := p.Windows.Next(g.Opens.Add(-1)); ok && !g.Opens.IsZero() {
			b.Numbers = []Sum{{"next window", stamp(next.Start) + " until " + stampOr(next.End, "further notice"), ""}}
		}
		if b.Detail == "" {
			b.Detail = "no window opens in the next 400 days"
		}
	case ReasonFrozen:
		b.Numbers = []Sum{{short(AnnotationFreeze), a[AnnotationFreeze], ""}}
	case ReasonCooldown:
		b.Numbers = []Sum{{short(AnnotationLastRotation), a[AnnotationLastRotation], ""}, {"cooldownAfter", p.CooldownAfter.String(), ""}}
	case ReasonFailurePause:
		b.Numbers = []Sum{{short(AnnotationLastFailure), a[AnnotationLastFailure], ""}, {"failurePause", p.FailurePause.String(), ""}}
	}
	return b
}

// stands is why a NodeClaim is not eligible.
func (s *Snapshot) stands(p *Policy, c *NodeClaim, standing Standing, changes time.Time, err error, now time.Time) Blocker {
	b := Blocker{Reason: string(standing), Opens: changes}
	switch standing {
	case NotDue:
		b.Detail = fmt.Sprintf("it is %s old, and due past %s", now.Sub(c.Created).Truncate(time.Second), p.terms(c).Threshold)
		b.Numbers = p.age(c, now)
	case Backoff:
		failed, _ := readPast(c.Annotations, AnnotationFailedAt, now) // whose error is a standing of its own
		b.Detail = fmt.Sprintf("attempt %d failed at %s, and the next one may start at %s", c.retries(), stamp(failed), stamp(changes))
		b.Numbers = []Sum{
			{short(AnnotationFailedAt), stamp(failed), ""}, {short(AnnotationRetryCount), strconv.Itoa(c.retries()), ""},
			{"backoff", changes.Sub(failed).String(), fmt.Sprintf("retryBackoff %s, doubled with each failure to at most %d times, within the window", p.RetryBackoff, 1<<(backoffSteps-1))},
		}
	case Never:
		b.Detail = "its expireAfter is Never: it has no deadline, and nothing rotates it"
	case NotReady:
		b.Detail = "it is not Ready, and left to Karpenter's repair or expiry"
		if _, registered := s.Nodes[c.NodeName]; !registered {
			b.Detail = "its Node has not registered"
		}
	case OptedOut:
		b.Detail = fmt.Sprintf("Node %s carries %s=true, which somebody has put there", c.NodeName, AnnotationDoNotDisrupt)
	case Deleting:
		b.Detail = "it is being deleted since " + stamp(c.Deleting)
	case InFlight:
		b.Detail = "it is in state " + c.state() + " without a rotation that owns it: the controller's next pass fails the attempt"
	case Expired:
		b.Detail = "Karpenter's expiry took it before its surge was ready"
	case Unreadable:
		b.Detail = err.Error()
	}
	return b
}

// age is how old a claim is, how old it may get, and why.
func (p *Policy) age(c *NodeClaim, now time.Time) []Sum {
	due, expires := p.due(c)
	if !expires {
		return nil
	}
	t := p.terms(c)
	return []Sum{
		{"age of " + c.Name, now.Sub(c.Created).Truncate(time.Second).String(), ""},
		{"ageThreshold (A)", t.Threshold.String(), p.howDue(c.ExpireAfter, t)},
		{"due past", stamp(due), ""},
	}
}

// tooLarge is a limit of the pool that the surge for c does not fit under, if there is one.
func (s *Snapshot) tooLarge(p *Policy, c *NodeClaim, now time.Time) []Blocker {
	f, lacks := s.tooLittle(p, c)
	if !lacks || p.surgeless(c, now) {
		return nil
	}
	z, _ := headroom(s.NodePool, size(c, s.Pods[c.NodeName], p.WholeNodeReservation))
	used := s.NodePool.InUse[z.Resource]
	return []Blocker{{Reason: string(ReasonInsufficientHeadroom), Detail: f.String(), Numbers: []Sum{
		{"resource", string(z.Resource), ""}, {"wanted for " + c.Name, z.Want.String(), ""},
		{"remaining", z.Remaining.String(), fmt.Sprintf("limit %s - in use %s", z.Limit.String(), used.String())},
	}}}
}

// stampOr is an instant, or other words if there is none.
func stampOr(t time.Time, otherwise string) string {
	if t.IsZero() {
		return otherwise
	}
	return stamp(t)
}
