package rotator

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/tasuki-io/tasuki/internal/rotation"
)

func object(kind rotation.Kind, o client.Object) rotation.Object {
	return rotation.Object{Kind: kind, Name: o.GetName(), UID: string(o.GetUID()), Version: o.GetResourceVersion()}
}

// ours keeps the annotations that a decision reads.
func ours(annotations map[string]string) map[string]string {
	out := map[string]string{}
	for k, v := range annotations {
		if k == karpv1.DoNotDisruptAnnotationKey || strings.HasPrefix(k, "noderotation.io/") {
			out[k] = v
		}
	}
	return out
}

func nodePoolFrom(p *karpv1.NodePool) rotation.NodePool {
	t := p.Spec.Template.Spec
	out := rotation.NodePool{
		Object:       object(rotation.KindNodePool, p),
		Annotations:  ours(p.Annotations),
		Static:       p.Spec.Replicas != nil,
		ExpireAfter:  t.ExpireAfter.Duration,
		Requirements: requirementsFrom(t.Requirements),
		Taints:       t.Taints,
		Limits:       corev1.ResourceList(p.Spec.Limits),
		InUse:        p.Status.Resources,
	}
	if t.TerminationGracePeriod != nil {
		out.GracePeriod = &t.TerminationGracePeriod.Duration
	}
	return out
}

func nodeClaimFrom(c *karpv1.NodeClaim) rotation.NodeClaim {
	out := rotation.NodeClaim{
		Object:       object(rotation.KindNodeClaim, c),
		Annotations:  ours(c.Annotations),
		Created:      c.CreationTimestamp.Time,
		ExpireAfter:  c.Spec.ExpireAfter.Duration,
		Requirements: requirementsFrom(c.Spec.Requirements),
		NodeName:     c.Status.NodeName,
		Allocatable:  c.Status.Allocatable,
	}
	if c.DeletionTimestamp != nil {
		out.Deleting = c.DeletionTimestamp.Time
	}
	if g := c.Spec.TerminationGracePeriod; g != nil {
		out.GracePeriod = &g.Duration
	}
	for _, cond := range c.Status.Conditions {
		if cond.Type == "Ready" {
			out.Ready = cond.Status == "True"
		}
	}
	return out
}

func requirementsFrom(in []karpv1.NodeSelectorRequirementWithMinValues) []rotation.Requirement {
	out := make([]rotation.Requirement, 0, len(in))
	for _, r := range in {
		out = append(out, rotation.Requirement{Key: r.Key, Operator: string(r.Operator), Values: r.Values})
	}
	return out
}

func nodeFrom(n *corev1.Node) rotation.Node {
	out := rotation.Node{
		Object:        object(rotation.KindNode, n),
		Labels:        n.Labels,
		Annotations:   ours(n.Annotations),
		Taints:        n.Spec.Taints,
		Allocatable:   n.Status.Allocatable,
		Unschedulable: n.Spec.Unschedulable,
		Deleting:      n.DeletionTimestamp != nil,
	}
	for _, o := range n.OwnerReferences {
		if o.Kind == "NodeClaim" {
			out.Claim = o.Name
		}
	}
	for _, cond := range n.Status.Conditions {
		if cond.Type == corev1.NodeReady {
			out.Ready = cond.Status == corev1.ConditionTrue
		}
	}
	return out
}

func placeholderFrom(p *corev1.Pod) rotation.Placeholder {
	out := rotation.Placeholder{
		Object:   object(rotation.KindPlaceholder, p),
		NodePool: p.Spec.NodeSelector[karpv1.NodePoolLabelKey],
		SurgeFor: p.Annotations[rotation.AnnotationSurgeFor],
		Created:  p.CreationTimestamp.Time,
		NodeName: p.Spec.NodeName,
		Phase:    p.Status.Phase,
		Deleting: p.DeletionTimestamp != nil,
	}
	for _, cond := range p.Status.Conditions {
		if cond.Type == corev1.PodScheduled && cond.Status == corev1.ConditionFalse {
			out.Waiting = rotation.Waiting{Reason: cond.Reason, Message: cond.Message}
		}
	}
	return out
}
