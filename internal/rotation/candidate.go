package rotation

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tasuki-io/tasuki/internal/window"
)

// Standing is where one NodeClaim stands in the choice of a candidate (§3.2).
type Standing string

// The standings. Eligible alone may be chosen; Backoff alone is past its threshold and
// held by nothing else.
const (
	Eligible   Standing = "eligible"
	Backoff    Standing = "inBackoff"
	NotDue     Standing = "notDue"
	Never      Standing = "neverExpires"
	NotReady   Standing = "notReady"
	OptedOut   Standing = "optedOut"
	Deleting   Standing = "deleting"
	InFlight   Standing = "inFlight" // pending or draining
	Expired    Standing = "expired"
	Unreadable Standing = "unreadable" // an annotation that cannot be read
)

// Census counts the claims of a pool by standing.
type Census map[Standing]int

// String lists the non-zero counts in a fixed order.
func (c Census) String() string {
	var parts []string
	for k, n := range c {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%s=%d", k, n))
		}
	}
	if len(parts) == 0 {
		return "no NodeClaim"
	}
	slices.Sort(parts)
	return strings.Join(parts, " ")
}

// survey is one look over all claims of the pool.
type survey struct {
	census   Census
	first    *NodeClaim   // of those that may go now, the one with the earliest deadline
	deadline time.Time    // of first
	next     time.Time    // when a standing changes by itself, zero if none does
	asked    time.Time    // the same of the claims that are asked for now
	retries  int          // the highest retry-count
	pastDue  []*NodeClaim // claims past their threshold, whatever else holds them
	warn     []Warning
}

// survey ranks the claims: earliest deadline, then earliest creation, then name. The
// order holds with an explicit ageThreshold too. Outside of windows only those may go that a
// person asks for now.
func (s *Snapshot) survey(p *Policy, now time.Time) survey {
	v := survey{census: Census{}}
	_, open := p.Windows.At(now)
	for i := range s.NodeClaims {
		c := &s.NodeClaims[i]
		standing, changes, err := s.standing(p, c, now)
		v.census[standing]++
		v.next = earliest(v.next, changes)
		asked := c.requested() == RequestNow
		if asked {
			v.asked = earliest(v.asked, changes)
		}
		v.retries = max(v.retries, c.retries())
		err = cmp.Or(err, c.checkRetries(), c.checkRequest())
		if err != nil {
			v.warn = append(v.warn, Warning{Code: "AnnotationInvalid", Message: fmt.Sprintf("NodeClaim %s: %v", c.Name, err)})
		}
		if due, ok := p.due(c); ok && now.After(due) {
			v.pastDue = append(v.pastDue, c)
		}
		if standing == Eligible && (open || asked) && (v.first == nil || before(c, v.first)) {
			v.first, v.deadline = c, c.Created.Add(*c.ExpireAfter)
		}
	}
	slices.SortFunc(v.pastDue, func(a, b *NodeClaim) int { return strings.Compare(a.Name, b.Name) })
	return v
}

// standing judges one claim, and says when that verdict changes by itself.
func (s *Snapshot) standing(p *Policy, c *NodeClaim, now time.Time) (Standing, time.Time, error) {
	due, expires := p.due(c)
	node, registered := s.Nodes[c.NodeName]
	switch {
	case !c.Deleting.IsZero():
		return Deleting, time.Time{}, nil
	case c.state() == StateExpired:
		return Expired, time.Time{}, nil
	case c.state() == StatePending, c.state() == StateDraining:
		return InFlight, time.Time{}, nil
	case !expires:
		return Never, time.Time{}, nil
	case !now.After(due) && c.requested() == "":
		return NotDue, due.Add(1), nil // due is exclusive
	case !c.Ready || !registered:
		return NotReady, time.Time{}, nil
	case node.optedOut():
		return OptedOut, time.Time{}, nil
	case c.state() == "":
		return Eligible, time.Time{}, nil
	case c.state() == StateFailed:
		failed, err := readPast(c.Annotations, AnnotationFailedAt, now)
		if err != nil {
			return Unreadable, readable(err), err
		}
		if until := failed.Add(p.backoff(failed, c.retries(), now)); now.Before(until) {
			return Backoff, until, nil
		}
		return Eligible, time.Time{}, nil
	}
	return Unreadable, time.Time{}, fmt.Errorf("annotation %s is %q: want one of %s, %s, %s, %s, or remove it",
		AnnotationState, c.state(), StatePending, StateDraining, StateFailed, StateExpired)
}

// due is the instant after which the claim may be rotated: deadline - leadTime.
func (p *Policy) due(c *NodeClaim) (time.Time, bool) {
	t := p.terms(c)
	return c.Created.Add(t.Threshold), t.Expires
}

func before(a, b *NodeClaim) bool {
	if da, db := a.Created.Add(*a.ExpireAfter), b.Created.Add(*b.ExpireAfter); !da.Equal(db) {
		return da.Before(db)
	}
	if !a.Created.Equal(b.Created) {
		return a.Created.Before(b.Created)
	}
	return a.Name < b.Name
}

// backoff is how long a claim waits after its n-th failure: retryBackoff doubling up to
// eight times. Within the occurrence in which it failed, judged by the schedule as it is
// now, the ladder is brought down to the highest rung that still lands before the close,
// never below retryBackoff; if not even that fits, the full wait stands (§3.2).
func (p *Policy) backoff(failed time.Time, n int, now time.Time) time.Duration {
	rung := min(max(n, 1), backoffSteps) - 1
	full := times(p.RetryBackoff, 1<<rung)
	o, _ := p.Windows.At(now) // outside of a window it has no edges, and shortens nothing
	if !o.Contains(failed) {
		return full
	}
	return clampToOccurrence(o, failed, p.RetryBackoff, rung, full)
}

func clampToOccurrence(o window.Occurrence, failed time.Time, base time.Duration, rung int, full time.Duration) time.Duration {
	for ; rung >= 0; rung-- {
		if wait := times(base, 1<<rung); failed.Add(wait).Before(o.End) {
			return wait
		}
	}
	return full
}

// earliest returns the earlier of two instants, of which a zero one is none.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || (!b.IsZero() && b.Before(a)) {
		return b
	}
	return a
}
