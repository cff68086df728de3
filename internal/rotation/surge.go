package rotation

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// surgeHost returns the node that now holds the capacity for the drain of c, or what is
// still missing. The test is strict: the placeholder runs and is not going away, and its
// host is a Ready, schedulable, undisrupted node of the same pool other than the
// candidate (§3.3).
func (s *Snapshot) surgeHost(c *NodeClaim) (Node, string) {
	p := s.Placeholder
	switch {
	case p == nil:
		return Node{}, "there is no placeholder"
	case p.Deleting:
		return Node{}, fmt.Sprintf("placeholder %s is being deleted", p.Name)
	case p.NodeName == "" && p.Waiting != (Waiting{}):
		return Node{}, fmt.Sprintf("placeholder %s is not scheduled: %s", p.Name, p.Waiting.Message)
	case p.NodeName == "":
		return Node{}, fmt.Sprintf("placeholder %s is not scheduled", p.Name)
	case p.NodeName == c.NodeName:
		return Node{}, fmt.Sprintf("placeholder %s is on the candidate's own node %s", p.Name, p.NodeName)
	case p.Phase != corev1.PodRunning:
		return Node{}, fmt.Sprintf("placeholder %s is %s on node %s", p.Name, p.Phase, p.NodeName)
	}
	n, ok := s.Nodes[p.NodeName]
	host := s.claimOn(p.NodeName)
	switch {
	case n.Claim == c.Name, host != nil && host.Name == c.Name:
		return Node{}, fmt.Sprintf("placeholder %s is on node %s, which is the candidate's own, too", p.Name, p.NodeName)
	case !ok:
		return Node{}, fmt.Sprintf("node %s is not a node of NodePool %s", p.NodeName, s.NodePool.Name)
	case n.Deleting, host != nil && !host.Deleting.IsZero():
		return Node{}, fmt.Sprintf("node %s is being deleted", n.Name)
	case n.disrupted():
		return Node{}, fmt.Sprintf("node %s carries the taint %s", n.Name, taintDisrupt)
	case n.Unschedulable:
		return Node{}, fmt.Sprintf("node %s is cordoned", n.Name)
	case !n.Ready:
		return Node{}, fmt.Sprintf("node %s is not Ready", n.Name)
	}
	return n, ""
}

// surgePath says how the capacity came to be: with a NodeClaim born within the attempt,
// or on one that was there. It reports what can be seen, not what caused it, and is empty
// when the host's claim cannot be found.
func (s *Snapshot) surgePath(host Node, start time.Time) string {
	c := s.claimOn(host.Name)
	switch {
	case c == nil || start.IsZero():
		return ""
	case c.bornWithin(start):
		return PathProvisioned
	}
	return PathAbsorbed
}

// unproven names a claim that was born within the attempt and has a Node that the
// placeholder never reached: it may be the surge, and nothing proves it.
func (s *Snapshot) unproven(c *NodeClaim, start time.Time) string {
	for i := range s.NodeClaims {
		if o := &s.NodeClaims[i]; o.Name != c.Name && o.bornWithin(start) && o.Deleting.IsZero() {
			return fmt.Sprintf("NodeClaim %s was created in the attempt, but its placeholder never came to node %s: it is left to Karpenter", o.Name, s.nodeOf(o))
		}
	}
	return ""
}

// unregistered are the NodeClaims that were born within the attempt and have no Node yet.
func (s *Snapshot) unregistered(c *NodeClaim, start time.Time) []*NodeClaim {
	var fits []*NodeClaim
	for i := range s.NodeClaims {
		if o := &s.NodeClaims[i]; o.Name != c.Name && o.bornWithin(start) && o.Deleting.IsZero() && s.nodeOf(o) == "" {
			fits = append(fits, o)
		}
	}
	return fits
}

// awaited is the NodeClaim that makes room for the placeholder, nil if none can be. Of several
// that may, it is the youngest.
func (s *Snapshot) awaited(c *NodeClaim, now time.Time) *NodeClaim {
	if s.Placeholder == nil {
		return nil
	}
	if surge := s.claim(c.Annotations[AnnotationSurgeClaim]); surge != nil {
		return surge
	}
	if s.Placeholder.NodeName != "" {
		return s.boundClaim(c)
	}
	fits := s.unregistered(c, earliest(c.startedAt(now), s.Placeholder.Created))
	if len(fits) == 0 {
		return nil
	}
	return slices.MaxFunc(fits, func(a, b *NodeClaim) int {
		return cmp.Or(a.Created.Compare(b.Created), strings.Compare(a.Name, b.Name))
	})
}

// boundClaim is the NodeClaim under the node that the placeholder is bound to: the surge
// claim that the attempt has induced or been absorbed by.
func (s *Snapshot) boundClaim(c *NodeClaim) *NodeClaim {
	if s.Placeholder == nil {
		return nil
	}
	if b := s.claimOn(s.Placeholder.NodeName); b != nil && b.Name != c.Name {
		return b
	}
	return nil
}

// reapable returns the NodeClaim that a rollback of c may delete: one that this attempt
// has brought into being and that carries nobody's pods. It is the recorded surge claim,
// else the one under the placeholder, else, if none was ever recorded, the only claim of
// the pool that was born within the attempt and has no Node yet. When two or more fit that
// last description none is proven ours, and why says so.
func (s *Snapshot) reapable(c *NodeClaim, now time.Time) (claim *NodeClaim, why string) {
	start := c.startedAt(now)
	recorded := c.Annotations[AnnotationSurgeClaim]
	surge := s.claim(recorded)
	if surge == nil || surge.Name == c.Name { // nothing makes the candidate its own surge
		surge = s.boundClaim(c)
	}
	if surge == nil && recorded != "" {
		return nil, "" // it is gone already, and no other may be taken for it
	}
	// An attempt whose placeholder was never created, or is gone, comes here too, and what fits
	// may be Karpenter's answer to somebody else's pods. The risk is taken: a claim without a
	// Node runs nothing, Karpenter launches another for pods that still wait, and left alone it
	// would be a second extra node of a rotation that failed.
	if surge == nil {
		fits := s.unregistered(c, start)
		if len(fits) > 1 {
			return nil, fmt.Sprintf("%d NodeClaims without a Node were created since %s, and none is proven to be the surge: they are left to Karpenter", len(fits), stamp(start))
		}
		if len(fits) == 0 {
			return nil, s.unproven(c, start)
		}
		return fits[0], ""
	}
	switch {
	case !surge.Deleting.IsZero():
		return nil, ""
	case start.IsZero():
		return nil, fmt.Sprintf("NodeClaim %s is not proven to be of this attempt, whose start cannot be read: it stays", surge.Name)
	case !surge.bornWithin(start):
		return nil, fmt.Sprintf("surge host %s was there before the attempt: it stays", surge.Name)
	}
	for _, node := range s.nodesOf(surge) {
		for _, pod := range s.Pods[node] {
			if Occupies(pod) {
				return nil, fmt.Sprintf("surge node %s already runs %s/%s: it stays", node, pod.Namespace, pod.Name)
			}
		}
	}
	return surge, ""
}
