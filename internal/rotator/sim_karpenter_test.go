package rotator

import (
	"fmt"
	"slices"
	"time"

	"github.com/awslabs/operatorpkg/status"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

const (
	simNodeMilli = 4000 // cpu of every node
	simDud       = "simulation/dud"
)

var simDisrupted = corev1.Taint{Key: karpv1.DisruptedTaintKey, Effect: corev1.TaintEffectNoSchedule}

func simNodeName(claim string) string { return "n-" + claim }

func (s *sim) claims(pool string) []*karpv1.NodeClaim {
	var out []*karpv1.NodeClaim
	for _, o := range s.api.objects[simClaims] {
		if o.GetLabels()[karpv1.NodePoolLabelKey] == pool {
			out = append(out, o.(*karpv1.NodeClaim))
		}
	}
	return out
}

func (s *sim) node(name string) *corev1.Node {
	n, _ := s.api.get(simNodes, name).(*corev1.Node)
	return n
}

func disrupted(n *corev1.Node) bool {
	return n != nil && slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == karpv1.DisruptedTaintKey })
}

func readyClaim(c *karpv1.NodeClaim) bool { return len(c.Status.Conditions) > 0 }

// karpenter lists what Karpenter may do next, and when.
func (s *sim) karpenter(add adder) {
	for _, spec := range simSpecs {
		pool, ok := s.api.get(simPools, spec.name).(*karpv1.NodePool)
		if !ok {
			continue
		}
		claims := s.claims(spec.name)
		if since, short := s.short(spec.name); short && s.withinLimit(pool, len(claims)) {
			add(since.Add(time.Second), 20, "karpenter", "launch", spec.name)
			if s.weather {
				add(since.Add(time.Second), 3, "karpenter", "launch", spec.name, "dud")
			}
		}
		if n := pool.Status.Resources["nodes"]; n.Value() != int64(len(claims)) {
			add(s.api.now, 8, "karpenter", "count", spec.name)
		}
		for _, c := range claims {
			s.lifecycle(add, c, len(claims))
		}
	}
}

func (s *sim) withinLimit(pool *karpv1.NodePool, claims int) bool {
	limit, ok := pool.Spec.Limits["nodes"]
	return !ok || int64(claims) < limit.Value()
}

func (s *sim) lifecycle(add adder, c *karpv1.NodeClaim, all int) {
	n, born := s.node(simNodeName(c.Name)), c.CreationTimestamp.Time
	if c.DeletionTimestamp != nil {
		s.termination(add, c, n)
		return
	}
	add(born.Add(c.Spec.ExpireAfter.Duration.Abs()), 3, "karpenter", "expire", c.Name)
	switch {
	case n == nil && c.Annotations[simDud] == "":
		add(born.Add(20*time.Second), 20, "karpenter", "register", c.Name)
	case n == nil:
		add(born.Add(15*time.Minute), 5, "karpenter", "giveup", c.Name)
	case c.Status.NodeName == "":
		add(s.api.now, 15, "karpenter", "name", c.Name)
	case !readyClaim(c) && nodeReady(n):
		add(s.api.now, 15, "karpenter", "initialize", c.Name)
	}
	if n == nil || n.Annotations[karpv1.DoNotDisruptAnnotationKey] == "true" || s.disruptions(c) > 0 {
		return
	}
	if disrupted(n) { // it was going to, and then was not
		add(s.api.now, 10, "karpenter", "delete", c.Name)
		add(s.api.now, 10, "karpenter", "untaint", c.Name)
	} else if s.weather {
		add(s.api.now, 1, "karpenter", "disrupt", c.Name)
	}
	if s.weather && all > 1 && s.used(n.Name) == 0 && readyClaim(c) {
		add(born.Add(5*time.Minute), 1, "karpenter", "disrupt", c.Name)
	}
}

// disruptions counts what goes on elsewhere in the pool of c: its budget is one.
func (s *sim) disruptions(c *karpv1.NodeClaim) int {
	count := 0
	for _, o := range s.claims(c.Labels[karpv1.NodePoolLabelKey]) {
		if o.Name != c.Name && (o.DeletionTimestamp != nil || disrupted(s.node(simNodeName(o.Name)))) {
			count++
		}
	}
	return count
}

// termination is what becomes of a NodeClaim that is being deleted.
func (s *sim) termination(add adder, c *karpv1.NodeClaim, n *corev1.Node) {
	switch {
	case n == nil:
		add(s.api.now, 10, "karpenter", "finalize", c.Name)
		return
	case n.DeletionTimestamp == nil || !disrupted(n):
		add(s.api.now, 15, "karpenter", "drain", c.Name)
		return
	}
	left := 0
	forced := c.DeletionTimestamp.Add(c.Spec.TerminationGracePeriod.Duration)
	for _, p := range s.pods(n.Name) {
		left++
		switch {
		case p.DeletionTimestamp != nil: // the kubelet's turn
			add(forced, 10, "karpenter", "evict", p.Name)
		case isPlaceholder(p) || s.unavailable(p.Spec.NodeSelector[karpv1.NodePoolLabelKey]) == 0:
			add(s.api.now, 12, "karpenter", "evict", p.Name)
		default:
			add(forced, 12, "karpenter", "evict", p.Name)
		}
	}
	if left == 0 {
		add(s.api.now, 12, "karpenter", "finalize", c.Name)
	}
}

// short reports pods for which there is no room, and since when: what Karpenter launches for.
// It plans the pods of nodes that are being deleted as pending, and the placeholder's room as
// taken.
func (s *sim) short(pool string) (since time.Time, short bool) {
	type pending struct {
		size int64
		at   time.Time
	}
	var free []int64
	var want []pending
	for _, c := range s.claims(pool) {
		n := s.node(simNodeName(c.Name))
		switch {
		case c.DeletionTimestamp != nil:
			if n != nil {
				for _, p := range s.pods(n.Name) {
					want = append(want, pending{podMilli(p), c.DeletionTimestamp.Time})
				}
			}
		case n == nil:
			free = append(free, simNodeMilli)
		case !n.Spec.Unschedulable && !disrupted(n):
			free = append(free, simNodeMilli-s.used(n.Name))
		}
	}
	for _, o := range s.api.objects[simPods] {
		if p := o.(*corev1.Pod); p.Spec.NodeName == "" && p.DeletionTimestamp == nil && p.Spec.NodeSelector[karpv1.NodePoolLabelKey] == pool {
			want = append(want, pending{podMilli(p), p.CreationTimestamp.Time})
		}
	}
	slices.SortStableFunc(want, func(a, b pending) int { return int(b.size - a.size) })
next:
	for _, w := range want {
		for i := range free {
			if free[i] >= w.size {
				free[i] -= w.size
				continue next
			}
		}
		if !short || w.at.Before(since) {
			since, short = w.at, true
		}
	}
	return since, short
}

// karpenterDoes is one thing that Karpenter does. It reports whether it could.
func (s *sim) karpenterDoes(verb, on, with string) bool {
	const by = "karpenter"
	if verb == "launch" || verb == "count" {
		pool, ok := s.api.get(simPools, on).(*karpv1.NodePool)
		if !ok {
			return false
		}
		claims := s.claims(on)
		if verb == "launch" {
			if _, short := s.short(on); !short || !s.withinLimit(pool, len(claims)) {
				return false
			}
			s.launch(pool, with)
			return true
		}
		s.api.change(by, simPools, pool, func(o client.Object) {
			o.(*karpv1.NodePool).Status.Resources = corev1.ResourceList{"nodes": *resource.NewQuantity(int64(len(claims)), resource.DecimalSI)}
		})
		return true
	}
	if verb == "evict" {
		p, ok := s.api.get(simPods, on).(*corev1.Pod)
		if ok {
			s.evict(by, p)
		}
		return ok
	}
	c, ok := s.api.get(simClaims, on).(*karpv1.NodeClaim)
	if !ok {
		return false
	}
	n := s.node(simNodeName(on))
	editNode := func(edit func(*corev1.Node)) {
		s.api.change(by, simNodes, n, func(o client.Object) { edit(o.(*corev1.Node)) })
	}
	switch {
	case verb == "register" && n == nil && c.DeletionTimestamp == nil:
		s.register(c)
	case verb == "name" && n != nil && c.Status.NodeName == "":
		s.api.change(by, simClaims, c, func(o client.Object) { o.(*karpv1.NodeClaim).Status.NodeName = n.Name })
	case verb == "initialize" && n != nil && c.Status.NodeName != "":
		s.api.change(by, simClaims, c, func(o client.Object) {
			o.(*karpv1.NodeClaim).Status.Conditions = []status.Condition{{Type: "Ready", Status: metav1.ConditionTrue}}
		})
	case (verb == "expire" || verb == "giveup" || verb == "delete") && c.DeletionTimestamp == nil:
		s.api.remove(by, simClaims, c, false)
	case verb == "disrupt" && n != nil && !disrupted(n):
		editNode(func(n *corev1.Node) { n.Spec.Taints = append(n.Spec.Taints, simDisrupted) })
	case verb == "untaint" && disrupted(n) && c.DeletionTimestamp == nil:
		editNode(func(n *corev1.Node) { n.Spec.Taints = nil })
	case verb == "drain" && n != nil && c.DeletionTimestamp != nil:
		if !disrupted(n) {
			editNode(func(n *corev1.Node) { n.Spec.Taints = append(n.Spec.Taints, simDisrupted) })
			n = s.node(n.Name)
		}
		s.api.remove(by, simNodes, n, false)
	case verb == "finalize" && c.DeletionTimestamp != nil && (n == nil || len(s.pods(n.Name)) == 0):
		if n != nil {
			s.api.end(by, simNodes, n)
		}
		s.api.end(by, simClaims, s.api.get(simClaims, on))
	default:
		return false
	}
	return true
}

func (s *sim) launch(pool *karpv1.NodePool, with string) {
	s.launches++
	c := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{
		Name:       fmt.Sprintf("%s-%d", pool.Name, s.launches),
		Labels:     map[string]string{karpv1.NodePoolLabelKey: pool.Name},
		Finalizers: []string{"karpenter.sh/termination"},
	}}
	if with != "" {
		c.Annotations = map[string]string{simDud: "true"}
	}
	c.Spec.ExpireAfter = pool.Spec.Template.Spec.ExpireAfter
	c.Spec.TerminationGracePeriod = pool.Spec.Template.Spec.TerminationGracePeriod
	c.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: *resource.NewMilliQuantity(simNodeMilli, resource.DecimalSI)}
	_ = s.api.create("karpenter", simClaims, c)
}

// register brings the Node of a claim up. The claim does not name it yet.
func (s *sim) register(c *karpv1.NodeClaim) {
	name := simNodeName(c.Name)
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: name, Finalizers: []string{"karpenter.sh/termination"},
		Labels: map[string]string{
			karpv1.NodePoolLabelKey: c.Labels[karpv1.NodePoolLabelKey], corev1.LabelHostname: name, corev1.LabelTopologyZone: "z",
		},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "karpenter.sh/v1", Kind: "NodeClaim", Name: c.Name, UID: c.UID}},
	}}
	n.Status.Allocatable = c.Status.Allocatable
	_ = s.api.create("karpenter", simNodes, n)
}
