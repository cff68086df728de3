package rotator

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/tasuki-io/tasuki/internal/rotation"
)

func isPlaceholder(p *corev1.Pod) bool { return p.Labels[rotation.LabelPlaceholder] != "" }

func podMilli(p *corev1.Pod) int64 { return p.Spec.Containers[0].Resources.Requests.Cpu().MilliValue() }

func nodeReady(n *corev1.Node) bool {
	return slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// pods are those bound to a node.
func (s *sim) pods(node string) []*corev1.Pod {
	var out []*corev1.Pod
	for _, o := range s.api.objects[simPods] {
		if p := o.(*corev1.Pod); p.Spec.NodeName == node {
			out = append(out, p)
		}
	}
	return out
}

// hosts counts the placeholders on a node: where one is, it is worth to disturb.
func (s *sim) hosts(node string) int {
	count := 0
	for _, o := range s.api.objects[simPods] {
		if p := o.(*corev1.Pod); p.Spec.NodeName == node && isPlaceholder(p) {
			count++
		}
	}
	return count
}

func (s *sim) used(node string) int64 {
	var sum int64
	for _, o := range s.api.objects[simPods] {
		if p := o.(*corev1.Pod); p.Spec.NodeName == node {
			sum += podMilli(p)
		}
	}
	return sum
}

// unavailable counts the workload's pods of a pool that do not run: its budget allows none.
func (s *sim) unavailable(pool string) int {
	count := 0
	for _, o := range s.api.objects[simPods] {
		p := o.(*corev1.Pod)
		if !isPlaceholder(p) && p.Spec.NodeSelector[karpv1.NodePoolLabelKey] == pool && (p.Status.Phase != corev1.PodRunning || p.DeletionTimestamp != nil) {
			count++
		}
	}
	return count
}

// workload creates a pod of a pool's ReplicaSet.
func (s *sim) workload(pool string) *corev1.Pod {
	s.replicas++
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("web-%s-%d", pool, s.replicas)},
		Spec: corev1.PodSpec{
			NodeSelector: map[string]string{karpv1.NodePoolLabelKey: pool},
			Containers: []corev1.Container{{Name: "web", Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: *resource.NewMilliQuantity(1000, resource.DecimalSI)},
			}}},
		},
	}
	_ = s.api.create("workload", simPods, p)
	return p
}

// evict ends a pod. A ReplicaSet creates its successor at once.
func (s *sim) evict(by string, p *corev1.Pod) {
	if isPlaceholder(p) && len(p.Finalizers) > 0 {
		s.api.remove(by, simPods, p, true)
		return
	}
	s.api.end(by, simPods, p)
	if !isPlaceholder(p) {
		s.workload(p.Spec.NodeSelector[karpv1.NodePoolLabelKey])
	}
}

// fits says whether the scheduler may bind the pod to the node. A stale view does not know
// of a cordon that is a moment old.
func (s *sim) fits(p *corev1.Pod, n *corev1.Node, stale bool) bool {
	switch {
	case n.Labels[karpv1.NodePoolLabelKey] != p.Spec.NodeSelector[karpv1.NodePoolLabelKey], !nodeReady(n), n.DeletionTimestamp != nil, disrupted(n):
		return false
	case n.Spec.Unschedulable && (!stale || s.api.now.Sub(s.cordoned[n.Name]) > 5*time.Second):
		return false
	}
	return true
}

// cluster lists what the scheduler and the kubelets may do next.
func (s *sim) cluster(add adder) {
	for _, o := range s.api.objects[simNodes] {
		n := o.(*corev1.Node)
		if !nodeReady(n) {
			add(s.api.now, 15, "kubelet", "ready", n.Name)
		} else if s.weather {
			add(s.api.now, 1+2*s.hosts(n.Name), "kubelet", "unready", n.Name)
		}
	}
	for _, o := range s.api.objects[simPods] {
		p := o.(*corev1.Pod)
		switch {
		case p.DeletionTimestamp != nil && len(p.Finalizers) == 0:
			add(s.api.now, 15, "kubelet", "end", p.Name)
		case p.DeletionTimestamp != nil:
		case p.Spec.NodeName == "":
			s.schedule(add, p)
		case s.node(p.Spec.NodeName) == nil:
			add(s.api.now, 15, "kubelet", "end", p.Name)
		case p.Status.Phase == corev1.PodPending:
			add(s.api.now, 20, "kubelet", "run", p.Name)
		case s.weather && isPlaceholder(p) && p.Status.Phase == corev1.PodRunning:
			add(s.api.now, 1, "kubelet", "fail", p.Name)
		}
		if len(p.OwnerReferences) > 0 && p.DeletionTimestamp == nil && s.api.get(simClaims, p.OwnerReferences[0].Name) == nil {
			add(s.api.now, 10, "kubelet", "collect", p.Name)
		}
	}
}

func (s *sim) schedule(add adder, p *corev1.Pod) {
	found := false
	var giveWay string
	for _, o := range s.api.objects[simNodes] {
		n := o.(*corev1.Node)
		if !s.fits(p, n, s.weather) {
			continue
		}
		free := simNodeMilli - s.used(n.Name)
		if free >= podMilli(p) {
			found = true
			add(s.api.now, 20, "scheduler", "bind", p.Name, n.Name)
		} else if !isPlaceholder(p) {
			for _, q := range s.pods(n.Name) {
				if isPlaceholder(q) && q.DeletionTimestamp == nil && free+podMilli(q) >= podMilli(p) {
					giveWay = q.Name
				}
			}
		}
	}
	if found {
		return
	}
	if giveWay != "" {
		add(s.api.now, 10, "scheduler", "preempt", giveWay)
	}
	if len(p.Status.Conditions) == 0 {
		add(s.api.now, 5, "scheduler", "refuse", p.Name)
	}
}

// clusterDoes is one thing that the scheduler or a kubelet does.
func (s *sim) clusterDoes(verb, on, with string) bool {
	if verb == "ready" || verb == "unready" {
		n := s.node(on)
		if n == nil || nodeReady(n) == (verb == "ready") {
			return false
		}
		status := corev1.ConditionFalse
		if verb == "ready" {
			status = corev1.ConditionTrue
		}
		s.api.change("kubelet", simNodes, n, func(o client.Object) {
			o.(*corev1.Node).Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status}}
		})
		return true
	}
	p, ok := s.api.get(simPods, on).(*corev1.Pod)
	if !ok {
		return false
	}
	edit := func(by string, do func(*corev1.Pod)) bool {
		s.api.change(by, simPods, p, func(o client.Object) { do(o.(*corev1.Pod)) })
		return true
	}
	switch verb {
	case "bind":
		n := s.node(with)
		if n == nil || p.Spec.NodeName != "" || p.DeletionTimestamp != nil || !s.fits(p, n, true) || simNodeMilli-s.used(n.Name) < podMilli(p) {
			return false
		}
		if n.Spec.Unschedulable {
			s.saw("bound to a node just cordoned")
		}
		return edit("scheduler", func(p *corev1.Pod) { p.Spec.NodeName, p.Status.Conditions = with, nil })
	case "refuse":
		return p.Spec.NodeName == "" && edit("scheduler", func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "no room"}}
		})
	case "preempt":
		if p.Spec.NodeName == "" {
			return false
		}
		s.saw("preemption")
		s.api.remove("scheduler", simPods, p, false)
		return true
	case "run":
		return p.Spec.NodeName != "" && p.Status.Phase == corev1.PodPending && edit("kubelet", func(p *corev1.Pod) { p.Status.Phase = corev1.PodRunning })
	case "fail":
		return edit("kubelet", func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed })
	case "collect":
		s.evict("kubelet", p)
		return true
	case "end":
		if len(p.Finalizers) > 0 {
			return false
		}
		s.evict("kubelet", p)
		return true
	}
	return false
}
