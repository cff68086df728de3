package rotation

import (
	"fmt"
	"sort"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// drain asserts what draining wants and otherwise waits for Karpenter: the mirror, no
// placeholder, the claim deleted, in that order. However long the drain takes, the pool
// stays anchored: the deletion cannot be taken back, and a second one would hit the same
// workloads.
func (s *Snapshot) drain(c *NodeClaim, now time.Time) Decision {
	d := Decision{Active: c.Name, Reason: ReasonAwaitingDrain}
	if s.NodePool.Annotations[AnnotationActiveState] != StateDraining {
		d.Plan = append(d.Plan, Step{
			Act: ActRecordDraining, On: s.NodePool.Object,
			Set: map[string]string{AnnotationActiveState: StateDraining}, Facts: Facts{NodeClaim: c.Name, Node: c.NodeName},
		})
	}
	if s.Placeholder != nil {
		d.Plan = append(d.Plan, s.deletePlaceholder(c.Name))
	}
	if c.Deleting.IsZero() {
		d.Plan = append(d.Plan, Step{Act: ActDeleteNodeClaim, On: c.Object, Facts: Facts{NodeClaim: c.Name, Node: c.NodeName, Mode: s.mode()}})
		return s.notBegun(d, c, now)
	}
	d.Detail = fmt.Sprintf("Karpenter drains node %s since %s", c.NodeName, stamp(c.Deleting))
	bound := c.Deleting.Add(plus(grace(c.GracePeriod), buffer))
	if now.Before(bound) {
		d.Wake = bound
		return d
	}
	d.Stuck = Stuck{Since: bound, On: s.blockers(c.NodeName)}
	d.Detail = fmt.Sprintf("%s and should have ended by %s: %s", d.Detail, stamp(bound), d.Stuck)
	return d
}

// notBegun tells of a drain that should have ended, counted from the transition, and has not
// begun: somebody does not let the NodeClaim be deleted.
func (s *Snapshot) notBegun(d Decision, c *NodeClaim, now time.Time) Decision {
	at, err := readPast(s.NodePool.Annotations, AnnotationDrainingAt, now)
	bound := at.Add(plus(grace(c.GracePeriod), buffer))
	if err != nil || at.IsZero() || now.Before(bound) {
		return d
	}
	d.Stuck = Stuck{Since: bound, NotBegun: "its deletion is not let through; look for webhooks and admission policies on NodeClaims"}
	switch {
	case s.Placeholder != nil:
		d.Stuck.NotBegun = fmt.Sprintf("its placeholder %s does not go; look for finalizers on the pod", s.Placeholder.Name)
	case s.Trouble != "":
		d.Stuck.NotBegun += ": " + s.Trouble
	}
	d.Detail = fmt.Sprintf("NodeClaim %s was to be drained from %s on: %s", c.Name, stamp(at), d.Stuck)
	return d
}

// Stuck is a drain past its bound: the claim's own grace period and a buffer (§5.2). The
// zero value is a drain that is not, or none at all.
type Stuck struct {
	Since time.Time
	On    string // the pods that are left on the node, sorted

	NotBegun string // what keeps the NodeClaim from being deleted
}

// String says what is in the way, and what to look at.
func (s Stuck) String() string {
	if s.NotBegun != "" {
		return s.NotBegun
	}
	if s.On == "" {
		return "no workload pod is left on the node; look for finalizers on the Node and the NodeClaim, and for volumes that do not detach"
	}
	return "still on the node: " + s.On + "; look at their PodDisruptionBudgets and finalizers, or set terminationGracePeriod to bound a drain"
}

// blockers names the pods that keep a node from being empty: those that Karpenter evicts
// and waits for. Which budget protects them is not the controller's to read; an explanation does.
func (s *Snapshot) blockers(node string) string {
	const most = 10
	var left []string
	for _, pod := range s.remaining(node) {
		left = append(left, pod.Namespace+"/"+pod.Name)
	}
	sort.Strings(left)
	if n := len(left) - most; n > 0 {
		left = append(left[:most], fmt.Sprintf("and %d more", n))
	}
	return strings.Join(left, ", ")
}

// remaining are the pods for which a drain of the node waits.
func (s *Snapshot) remaining(node string) []*corev1.Pod {
	var left []*corev1.Pod
	for _, pod := range s.Pods[node] {
		if Occupies(pod) && !toleratesDisruption(pod) {
			left = append(left, pod)
		}
	}
	return left
}

// toleratesDisruption reports a pod that Karpenter leaves on the node to the end.
func toleratesDisruption(pod *corev1.Pod) bool {
	for _, t := range pod.Spec.Tolerations {
		all := t.Key == "" && t.Operator == corev1.TolerationOpExists
		if (all || t.Key == taintDisrupt) && (t.Effect == "" || t.Effect == corev1.TaintEffectNoSchedule) {
			return true
		}
	}
	return false
}
