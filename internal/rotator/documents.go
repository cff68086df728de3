package rotator

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"

	"github.com/awslabs/operatorpkg/status"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	karpapis "sigs.k8s.io/karpenter/pkg/apis"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/yaml"

	"github.com/tasuki-io/tasuki/api/v1alpha1"
	"github.com/tasuki-io/tasuki/internal/rotation"
)

// Documents are the objects as YAML which, read from files, comes to the same plans: the
// policies, and all others. Only what a decision reads is in it: nothing of a pod's images,
// commands and environment, and of annotations only those of rotations.
func (o Objects) Documents() (policies, others []byte, err error) {
	add := func(to *[]byte, version, kind string, object any) {
		fields := map[string]any{}
		raw, failed := json.Marshal(object)
		if failed == nil {
			failed = json.Unmarshal(raw, &fields)
		}
		if failed != nil {
			err = cmp.Or(err, fmt.Errorf("write a %s as YAML: %w", kind, failed))
			return
		}
		if s, _ := fields["status"].(map[string]any); len(s) == 0 {
			delete(fields, "status")
		}
		if m, _ := fields["metadata"].(map[string]any); m["creationTimestamp"] == nil {
			delete(m, "creationTimestamp")
		}
		fields["apiVersion"], fields["kind"] = version, kind
		text, failed := yaml.Marshal(fields)
		err = cmp.Or(err, failed)
		if len(*to) > 0 {
			*to = append(*to, "---\n"...)
		}
		*to = append(*to, text...)
	}
	const karpenter = karpapis.Group + "/v1"
	for _, p := range o.Policies {
		add(&policies, v1alpha1.GroupVersion.String(), "RotationPolicy", &v1alpha1.RotationPolicy{ObjectMeta: metav1.ObjectMeta{Name: p.Name}, Spec: p.Spec})
	}
	for _, p := range o.NodePools {
		meta := metav1.ObjectMeta{Name: p.Name, Labels: p.Labels, Annotations: ours(p.Annotations)}
		add(&others, karpenter, "NodePool", &karpv1.NodePool{ObjectMeta: meta, Spec: p.Spec, Status: karpv1.NodePoolStatus{Resources: p.Status.Resources}})
	}
	for _, c := range o.NodeClaims {
		add(&others, karpenter, "NodeClaim", bareClaim(c))
	}
	for _, n := range o.Nodes {
		add(&others, "v1", "Node", bareNode(n))
	}
	for _, p := range o.Pods {
		add(&others, "v1", "Pod", barePod(p))
	}
	return policies, others, err
}

// named is what a decision reads of the metadata of any object.
func named(of metav1.ObjectMeta) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: of.Name, Namespace: of.Namespace, Annotations: ours(of.Annotations),
		CreationTimestamp: of.CreationTimestamp, DeletionTimestamp: of.DeletionTimestamp,
	}
}

func bareClaim(c karpv1.NodeClaim) *karpv1.NodeClaim {
	out := &karpv1.NodeClaim{ObjectMeta: named(c.ObjectMeta), Spec: c.Spec, Status: karpv1.NodeClaimStatus{
		NodeName: c.Status.NodeName, Allocatable: c.Status.Allocatable, Capacity: c.Status.Capacity,
	}}
	out.Labels = map[string]string{karpv1.NodePoolLabelKey: c.Labels[karpv1.NodePoolLabelKey]}
	if out.Spec.Requirements == nil {
		out.Spec.Requirements = []karpv1.NodeSelectorRequirementWithMinValues{}
	}
	ready := metav1.ConditionFalse // without a condition it would be taken to be Ready
	if nodeClaimFrom(&c).Ready {
		ready = metav1.ConditionTrue
	}
	out.Status.Conditions = []status.Condition{{Type: status.ConditionReady, Status: ready, Reason: "Read", LastTransitionTime: c.CreationTimestamp}}
	return out
}

func bareNode(n corev1.Node) *corev1.Node {
	out := &corev1.Node{ObjectMeta: named(n.ObjectMeta), Status: corev1.NodeStatus{Allocatable: n.Status.Allocatable}}
	out.Labels, out.OwnerReferences = n.Labels, n.OwnerReferences
	out.Spec.Taints, out.Spec.Unschedulable = n.Spec.Taints, n.Spec.Unschedulable
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			out.Status.Conditions = append(out.Status.Conditions, corev1.NodeCondition{Type: c.Type, Status: c.Status})
		}
	}
	return out
}

func barePod(p corev1.Pod) *corev1.Pod {
	out := &corev1.Pod{ObjectMeta: named(p.ObjectMeta), Spec: corev1.PodSpec{
		NodeName: p.Spec.NodeName, NodeSelector: p.Spec.NodeSelector, Tolerations: p.Spec.Tolerations,
		Overhead: p.Spec.Overhead, Resources: p.Spec.Resources, Containers: bareContainers(p.Spec.Containers), InitContainers: bareContainers(p.Spec.InitContainers),
	}, Status: corev1.PodStatus{
		Phase: p.Status.Phase, Conditions: p.Status.Conditions, Resources: p.Status.Resources, AllocatedResources: p.Status.AllocatedResources,
		ContainerStatuses: bareStatuses(p.Status.ContainerStatuses), InitContainerStatuses: bareStatuses(p.Status.InitContainerStatuses),
	}}
	if mirror, ok := p.Annotations[corev1.MirrorPodAnnotationKey]; ok {
		out.Annotations = maps.Clone(out.Annotations)
		out.Annotations[corev1.MirrorPodAnnotationKey] = mirror
	}
	if a := p.Spec.Affinity; a != nil {
		out.Spec.Affinity = &corev1.Affinity{NodeAffinity: a.NodeAffinity}
	}
	if v, ok := p.Labels[rotation.LabelPlaceholder]; ok {
		out.Labels = map[string]string{rotation.LabelPlaceholder: v}
	}
	out.OwnerReferences = p.OwnerReferences
	return out
}

func bareContainers(all []corev1.Container) (out []corev1.Container) {
	for _, c := range all {
		out = append(out, corev1.Container{Name: c.Name, Resources: c.Resources, ResizePolicy: c.ResizePolicy, RestartPolicy: c.RestartPolicy})
	}
	return out
}

func bareStatuses(all []corev1.ContainerStatus) (out []corev1.ContainerStatus) {
	for _, c := range all {
		out = append(out, corev1.ContainerStatus{Name: c.Name, Resources: c.Resources, AllocatedResources: c.AllocatedResources})
	}
	return out
}
