package rotator

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpapis "sigs.k8s.io/karpenter/pkg/apis"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/tasuki-io/tasuki/api/v1alpha1"
	"github.com/tasuki-io/tasuki/internal/manifest"
	"github.com/tasuki-io/tasuki/internal/rotation"
)

// Objects are what is known of a cluster, or assumed of one.
type Objects struct {
	Policies   []v1alpha1.RotationPolicy
	NodePools  []karpv1.NodePool
	NodeClaims []karpv1.NodeClaim
	Nodes      []corev1.Node
	Pods       []corev1.Pod // those that occupy nodes, and the placeholders
}

// Kinds are those that Objects are read from files as; policies is the CustomResourceDefinition
// of RotationPolicies.
func Kinds(policies []byte) []manifest.Kind {
	const karpenter = karpapis.Group + "/v1"
	return []manifest.Kind{
		{APIVersion: v1alpha1.GroupVersion.String(), Kind: "RotationPolicy", Definition: policies, New: func() any { return &v1alpha1.RotationPolicy{} }},
		{APIVersion: karpenter, Kind: "NodePool", Definition: karpapis.NodePoolCRD, New: func() any { return &karpv1.NodePool{} }},
		{APIVersion: karpenter, Kind: "NodeClaim", Definition: karpapis.NodeClaimCRD, New: func() any { return &karpv1.NodeClaim{} }},
		{APIVersion: "v1", Kind: "Node", New: func() any { return &corev1.Node{} }},
		{APIVersion: "v1", Kind: "Pod", New: func() any { return &corev1.Pod{} }},
	}
}

// ObjectsOf are the objects that were read from files. What the files leave out is taken to be
// well: a NodeClaim without a status is Ready, and if there is no Node at all, each NodeClaim
// has one. Notes say what is left aside.
func ObjectsOf(read []manifest.Object) (o Objects, notes []string, err error) {
	count := map[string]int{}
	for _, r := range read {
		count[r.Kind]++
	}
	o.NodeClaims = slices.Grow(o.NodeClaims, count["NodeClaim"])
	o.Nodes = slices.Grow(o.Nodes, count["Node"])
	o.Pods = slices.Grow(o.Pods, count["Pod"])
	for _, r := range read {
		switch v := r.Value.(type) {
		case *v1alpha1.RotationPolicy:
			o.Policies = append(o.Policies, *v)
		case *karpv1.NodePool:
			o.NodePools = append(o.NodePools, *v)
		case *karpv1.NodeClaim:
			if v.CreationTimestamp.IsZero() {
				return Objects{}, nil, fmt.Errorf("%s: NodeClaim %s: metadata.creationTimestamp is missing, and with it the age of the node", r.Place(), v.Name)
			}
			o.NodeClaims = append(o.NodeClaims, *v)
		case *corev1.Node:
			o.Nodes = append(o.Nodes, *v)
		case *corev1.Pod:
			o.Pods = append(o.Pods, *v)
		}
	}
	o.assume()
	aside := map[string]int{}
	for i := range o.NodeClaims {
		pool := o.NodeClaims[i].Labels[karpv1.NodePoolLabelKey]
		if !slices.ContainsFunc(o.NodePools, func(p karpv1.NodePool) bool { return p.Name == pool }) {
			aside[pool]++
		}
	}
	for pool, n := range aside {
		note := fmt.Sprintf("%d NodeClaims of NodePool %s are left aside, as that is not in the input", n, pool)
		if pool == "" {
			note = fmt.Sprintf("%d NodeClaims are left aside, as they have no label %s", n, karpv1.NodePoolLabelKey)
		}
		notes = append(notes, note)
	}
	for i := range o.Policies {
		p := &o.Policies[i]
		if len(o.NodePools) > 0 && !slices.ContainsFunc(o.NodePools, func(pool karpv1.NodePool) bool { return selects(p, pool.Labels) }) {
			notes = append(notes, fmt.Sprintf("RotationPolicy %s selects no NodePool of the input: spec.nodePoolSelector fits the metadata.labels of none", p.Name))
		}
	}
	slices.Sort(notes)
	return o, notes, nil
}

// assume fills in what nobody has said.
func (o *Objects) assume() {
	nodes := len(o.Nodes) > 0
	if !nodes {
		o.Nodes = slices.Grow(o.Nodes, len(o.NodeClaims))
	}
	for i := range o.NodeClaims {
		c := &o.NodeClaims[i]
		if c.Status.NodeName == "" && len(c.Status.Conditions) == 0 {
			c.Status.NodeName = c.Name
			c.StatusConditions().SetTrue("Ready")
		}
		if nodes || c.Status.NodeName == "" {
			continue
		}
		o.Nodes = append(o.Nodes, corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: c.Status.NodeName, Labels: map[string]string{karpv1.NodePoolLabelKey: c.Labels[karpv1.NodePoolLabelKey]}},
			Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
		})
	}
	for i := range o.NodePools {
		if p := &o.NodePools[i]; p.Status.Resources == nil {
			p.Status.Resources = o.inUse(p.Name)
		}
	}
}

// inUse is what Karpenter would report of a pool.
func (o *Objects) inUse(pool string) corev1.ResourceList {
	sum := corev1.ResourceList{}
	n := int64(0)
	for i := range o.NodeClaims {
		c := &o.NodeClaims[i]
		if c.Labels[karpv1.NodePoolLabelKey] != pool {
			continue
		}
		n++
		for name, q := range c.Status.Capacity {
			total := sum[name].DeepCopy()
			total.Add(q)
			sum[name] = total
		}
	}
	sum["nodes"] = *resource.NewQuantity(n, resource.DecimalSI)
	return sum
}

// page is how many objects a request asks for.
const page = 500

// Observe reads a cluster, and writes nothing. All pods are read only if a limit may leave too
// little room for them.
func Observe(ctx context.Context, from client.Reader) (Objects, error) {
	var o Objects
	if err := everyOne(ctx, from, &v1alpha1.RotationPolicyList{}, func(l *v1alpha1.RotationPolicyList) { o.Policies = append(o.Policies, l.Items...) }); err != nil {
		return Objects{}, fmt.Errorf("list RotationPolicies: %w", err)
	}
	if err := everyOne(ctx, from, &karpv1.NodePoolList{}, func(l *karpv1.NodePoolList) { o.NodePools = append(o.NodePools, l.Items...) }); err != nil {
		return Objects{}, fmt.Errorf("list NodePools: %w", err)
	}
	if err := everyOne(ctx, from, &karpv1.NodeClaimList{}, func(l *karpv1.NodeClaimList) { o.NodeClaims = append(o.NodeClaims, l.Items...) }); err != nil {
		return Objects{}, fmt.Errorf("list NodeClaims: %w", err)
	}
	if err := everyOne(ctx, from, &corev1.NodeList{}, func(l *corev1.NodeList) { o.Nodes = append(o.Nodes, l.Items...) }, client.HasLabels{karpv1.NodePoolLabelKey}); err != nil {
		return Objects{}, fmt.Errorf("list Nodes: %w", err)
	}
	var which []client.ListOption
	if !slices.ContainsFunc(o.NodePools, limited) {
		which = append(which, client.MatchingLabels{rotation.LabelPlaceholder: "true"})
	}
	if err := everyOne(ctx, from, &corev1.PodList{}, func(l *corev1.PodList) { o.Pods = append(o.Pods, l.Items...) }, which...); err != nil {
		return Objects{}, fmt.Errorf("list Pods: %w", err)
	}
	return o, nil
}

// limited reports a pool whose headroom depends on what pods request.
func limited(p karpv1.NodePool) bool {
	for name := range p.Spec.Limits {
		if name != "nodes" {
			return true
		}
	}
	return false
}

// everyOne hands over a list, page by page.
func everyOne[L client.ObjectList](ctx context.Context, from client.Reader, l L, take func(L), which ...client.ListOption) error {
	for more := ""; ; {
		if err := from.List(ctx, l, append(which, client.Limit(page), client.Continue(more))...); err != nil {
			return err
		}
		take(l)
		if more = l.GetContinue(); more == "" {
			return nil
		}
	}
}
