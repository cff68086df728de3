package rotation

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	podresource "k8s.io/component-helpers/resource"
)

// Sizing is how large the placeholder is, and why (§3.3). Quantities are per resource.
type Sizing struct {
	Pods     int                 // pods that will need a new home
	Sum      corev1.ResourceList // what they request together
	Overhead corev1.ResourceList // what DaemonSets request on the candidate's node
	Requests corev1.ResourceList // what the placeholder requests: Sum, clamped or raised
	Clamped  bool                // Requests is below Sum somewhere
	Raised   bool                // Requests is above Sum somewhere: a whole node is reserved

	// Refused names the first resource, by name, that the drain requests and whose
	// ceiling is not positive. The clamp is then not applied to any resource.
	Refused corev1.ResourceName
}

// size adds up the pods that will be rescheduled and clamps the sum to what Karpenter
// believes a node like the candidate can hold: its estimate of the allocatable capacity
// minus the DaemonSets. A resource that the claim does not report is not clamped. With
// whole, it reserves all that such a node can hold, for a drain of at least one pod: of cpu,
// of memory, and of whatever else the drain requests.
func size(c *NodeClaim, pods []*corev1.Pod, whole bool) Sizing {
	z := Sizing{Sum: corev1.ResourceList{}, Overhead: corev1.ResourceList{}}
	for _, pod := range pods {
		switch {
		case finished(pod):
		case ownedBy(pod, "DaemonSet"):
			add(z.Overhead, podRequests(pod))
		case reschedulable(pod):
			z.Pods++
			add(z.Sum, podRequests(pod))
		}
	}
	z.Requests = z.Sum.DeepCopy()
	for _, name := range names(z.Sum) {
		if limit, ok := z.ceiling(c, name); ok && limit.Sign() <= 0 {
			z.Refused = name
			return z
		}
	}
	if whole && z.Pods > 0 {
		z.raise(c, corev1.ResourceCPU)
		z.raise(c, corev1.ResourceMemory)
	}
	for _, name := range names(z.Sum) {
		if whole {
			z.raise(c, name)
		}
		if limit, ok := z.ceiling(c, name); ok && limit.Cmp(z.Sum[name]) < 0 {
			z.Requests[name] = limit
			z.Clamped = true
		}
	}
	return z
}

// ceiling is how much of a resource a node like the candidate can hold besides DaemonSets,
// if the claim reports the resource at all.
func (z *Sizing) ceiling(c *NodeClaim, name corev1.ResourceName) (resource.Quantity, bool) {
	limit, reported := c.Allocatable[name]
	if !reported {
		return resource.Quantity{}, false
	}
	limit = limit.DeepCopy()
	limit.Sub(z.Overhead[name])
	return limit, true
}

func (z *Sizing) raise(c *NodeClaim, name corev1.ResourceName) {
	if limit, ok := z.ceiling(c, name); ok && limit.Cmp(z.Requests[name]) > 0 {
		z.Requests[name] = limit
		z.Raised = true
	}
}

// reschedulable reports whether the pod will need room elsewhere once the node drains.
// Static pods, finished pods, pods pinned to this very node and pods already on their
// way out do not; a terminating StatefulSet pod does, as its successor waits for it.
func reschedulable(pod *corev1.Pod) bool {
	if !Occupies(pod) || pinned(pod) {
		return false
	}
	return pod.DeletionTimestamp == nil || ownedBy(pod, "StatefulSet")
}

// Occupies reports a pod that is somebody's workload on its node: not one that comes with
// every node, not a finished one, not a placeholder.
func Occupies(pod *corev1.Pod) bool {
	return !finished(pod) && !ownedBy(pod, "DaemonSet") && !static(pod) && pod.Labels[LabelPlaceholder] == ""
}

func finished(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

func static(pod *corev1.Pod) bool {
	_, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]
	return mirror || ownedBy(pod, "Node")
}

func ownedBy(pod *corev1.Pod, kind string) bool {
	for _, o := range pod.OwnerReferences {
		if o.Kind == kind {
			return true
		}
	}
	return false
}

// pinned reports a pod that can only run on the node that it is on. Every term of a
// required affinity must pin it: the terms are alternatives.
func pinned(pod *corev1.Pod) bool {
	if _, ok := pod.Spec.NodeSelector[labelHostname]; ok {
		return true
	}
	a := pod.Spec.Affinity
	if a == nil || a.NodeAffinity == nil || a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return false
	}
	terms := a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	for _, t := range terms {
		if !pins(t) {
			return false
		}
	}
	return len(terms) > 0
}

func pins(t corev1.NodeSelectorTerm) bool {
	for _, e := range t.MatchExpressions {
		if e.Key == labelHostname && e.Operator == corev1.NodeSelectorOpIn {
			return true
		}
	}
	for _, f := range t.MatchFields {
		if f.Key == "metadata.name" && f.Operator == corev1.NodeSelectorOpIn {
			return true
		}
	}
	return false
}

// podRequests is what the scheduler counts: containers, sidecars, init containers, pod
// level resources and overhead, resized values included. Zero quantities are dropped.
func podRequests(pod *corev1.Pod) corev1.ResourceList {
	requests := podresource.PodRequests(pod, podresource.PodResourcesOptions{UseStatusResources: true})
	for name, q := range requests {
		if q.Sign() <= 0 {
			delete(requests, name)
		}
	}
	return requests
}

func add(to, more corev1.ResourceList) {
	for name, q := range more {
		sum := to[name].DeepCopy()
		sum.Add(q)
		to[name] = sum
	}
}

func names(l corev1.ResourceList) []corev1.ResourceName {
	return slices.Sorted(maps.Keys(l))
}

// indivisible reports a resource for which the API server demands limits equal to
// requests: extended resources and huge pages.
func indivisible(name corev1.ResourceName) bool {
	n := string(name)
	if strings.HasPrefix(n, corev1.ResourceHugePagesPrefix) {
		return true
	}
	return strings.Contains(n, "/") && !strings.HasPrefix(n, "kubernetes.io/") && !strings.HasPrefix(n, "requests.")
}

// Shortfall is a limit of the NodePool that leaves no room for the surge.
type Shortfall struct {
	Resource               corev1.ResourceName
	Want, Remaining, Limit resource.Quantity
}

const resourceNodes corev1.ResourceName = "nodes"

// headroom asks what Karpenter will ask before it launches: whether every limit of the
// NodePool leaves room for the placeholder, and for one more node. It returns the first
// shortfall by resource name.
func headroom(pool NodePool, z Sizing) (Shortfall, bool) {
	for _, name := range names(pool.Limits) {
		want, asked := z.Requests[name]
		if name == resourceNodes {
			want, asked = *resource.NewQuantity(1, resource.DecimalSI), true
		}
		if !asked {
			continue
		}
		limit := pool.Limits[name]
		remaining := limit.DeepCopy()
		remaining.Sub(pool.InUse[name])
		if want.Cmp(remaining) > 0 {
			return Shortfall{Resource: name, Want: want, Remaining: remaining, Limit: limit}, false
		}
	}
	return Shortfall{}, true
}
