package rotation

import (
	"slices"
	"strings"
	"time"
)

// Anchors are the NodeClaims that a NodePool is anchored on. What belongs to one of them is
// not stale: its rotation is carried on, as after any crash.
type Anchors map[string]bool

// AnchorsOf collects the anchors of all pools.
func AnchorsOf(pools []NodePool) Anchors {
	a := Anchors{}
	for i := range pools {
		if name := pools[i].Annotations[AnnotationActive]; name != "" {
			a[name] = true
		}
	}
	return a
}

// Remains are objects of any pool that may carry marks of a rotation.
type Remains struct {
	NodePools    []NodePool
	NodeClaims   []NodeClaim
	Nodes        []Node
	Placeholders []Placeholder
}

// strays are the steps that sweep this one pool. They come before anything else, on every
// pass: a mark is always written after the anchor that owns it, so one without an anchor is
// what a person, a leader that woke up late, or a lost annotation has left behind. A
// placeholder that is on its way out already is not waited for, nor is what cannot be taken
// away: the caller tries each step for itself, and if none comes to anything decides anew with
// Unswept.
func (s *Snapshot) strays(now time.Time) []Step {
	left := Remains{NodePools: []NodePool{s.NodePool}, NodeClaims: s.NodeClaims}
	for _, p := range s.Strays {
		if !p.Deleting {
			left.Placeholders = append(left.Placeholders, p)
		}
	}
	for _, n := range s.Nodes {
		if marked(n) {
			left.Nodes = append(left.Nodes, n)
		}
	}
	slices.SortFunc(left.Nodes, func(a, b Node) int { return strings.Compare(a.Name, b.Name) })
	return Sweep(AnchorsOf(left.NodePools), left, now)
}

// Sweep returns the steps that take away what no anchored rotation owns (§5.3): each for
// the version of the object that was read, and none that depends on another. No crash
// leaves such marks behind; a person with kubectl or an older controller can.
//
// A claim that failed or expired keeps its annotations: they hold its backoff, or that it
// is never to be chosen again.
func Sweep(anchors Anchors, left Remains, now time.Time) []Step {
	var steps []Step
	for _, p := range left.Placeholders {
		if !anchors[p.SurgeFor] {
			steps = append(steps, Step{Act: ActDeletePlaceholder, On: p.Object, Facts: Facts{NodeClaim: p.SurgeFor}})
		}
	}
	for _, n := range left.Nodes {
		of := n.Annotations[AnnotationSurgeFor]
		if anchors[of] || anchors[n.Claim] {
			continue
		}
		if st := release(n, of); len(st.Clear) > 0 {
			steps = append(steps, st)
		}
	}
	for i := range left.NodeClaims {
		c := &left.NodeClaims[i]
		inFlight := c.state() == StatePending || c.state() == StateDraining
		if inFlight && !anchors[c.Name] && c.Deleting.IsZero() { // one that goes takes its state with it
			steps = append(steps, Step{
				Act: ActFailOrphan, On: c.Object,
				Set:   map[string]string{AnnotationState: StateFailed, AnnotationFailedAt: stamp(now)},
				Clear: present(c.Annotations, slices.Concat(attemptSet, requestSet)...),
				Facts: Facts{NodeClaim: c.Name, Node: c.NodeName, Outcome: Failure, Reason: "state " + c.state() + " without a rotation that owns it"},
			})
		}
	}
	for _, p := range left.NodePools {
		if p.Annotations[AnnotationActive] != "" {
			continue
		}
		if orphaned := present(p.Annotations, anchorSet...); len(orphaned) > 0 {
			steps = append(steps, Step{Act: ActClearOrphan, On: p.Object, Clear: orphaned})
		}
	}
	return steps
}
