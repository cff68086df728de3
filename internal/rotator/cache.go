package rotator

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/tasuki-io/tasuki/api/v1alpha1"
	"github.com/tasuki-io/tasuki/internal/rotation"
)

// cacheOptions keep of every object only what a snapshot reads, and of the pods only the
// placeholders: the pods of a node are read from the API server when a decision needs them.
// What is read from the cache is shared with it, and nobody may change it.
func cacheOptions(namespace string) cache.Options {
	placeholders := labels.SelectorFromSet(labels.Set{rotation.LabelPlaceholder: "true"})
	return cache.Options{
		DefaultTransform:             cache.TransformStripManagedFields(),
		DefaultUnsafeDisableDeepCopy: new(true),
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Pod{}:       {Namespaces: map[string]cache.Config{namespace: {LabelSelector: placeholders}}},
			&corev1.Node{}:      {Transform: slimNode},
			&karpv1.NodeClaim{}: {Transform: slimClaim},
		},
	}
}

// watchEarly has the cache watch what the reconcilers read from its start on. Else a standby
// would fill its caches only once it leads, and be called ready with none. What there are many
// of is found by its pool.
func watchEarly(ctx context.Context, c cache.Cache) error {
	for _, kind := range []client.Object{&karpv1.NodePool{}, &corev1.Pod{}, &v1alpha1.RotationPolicy{}} {
		if _, err := c.GetInformer(ctx, kind, cache.BlockUntilSynced(false)); err != nil {
			return err
		}
	}
	for _, kind := range []client.Object{&karpv1.NodeClaim{}, &corev1.Node{}} {
		err := c.IndexField(ctx, kind, poolIndex, func(o client.Object) []string { return []string{o.GetLabels()[karpv1.NodePoolLabelKey]} })
		if err != nil {
			return err
		}
	}
	return nil
}

// poolIndex finds the NodeClaims and Nodes of a pool.
const poolIndex = "pool"

// indexed is a client of the caches. A list of what has the label of one pool looks at the
// objects of that pool alone: the caches have no index of labels.
type indexed struct{ client.Client }

func (c indexed) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	var o client.ListOptions
	o.ApplyOptions(opts)
	if o.LabelSelector != nil {
		if pool, one := o.LabelSelector.RequiresExactMatch(karpv1.NodePoolLabelKey); one {
			o.FieldSelector = fields.OneTermEqualSelector(poolIndex, pool)
		}
	}
	return c.Client.List(ctx, list, &o)
}

func slimNode(o any) (any, error) {
	n, ok := o.(*corev1.Node)
	if !ok {
		return o, nil
	}
	slim := &corev1.Node{ObjectMeta: slimMeta(&n.ObjectMeta)}
	slim.Spec.Taints, slim.Spec.Unschedulable = n.Spec.Taints, n.Spec.Unschedulable
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			slim.Status.Conditions = []corev1.NodeCondition{{Type: c.Type, Status: c.Status}}
		}
	}
	return slim, nil
}

func slimClaim(o any) (any, error) {
	c, ok := o.(*karpv1.NodeClaim)
	if !ok {
		return o, nil
	}
	slim := &karpv1.NodeClaim{ObjectMeta: slimMeta(&c.ObjectMeta)}
	slim.Spec.ExpireAfter, slim.Spec.TerminationGracePeriod, slim.Spec.Requirements = c.Spec.ExpireAfter, c.Spec.TerminationGracePeriod, c.Spec.Requirements
	slim.Status.NodeName, slim.Status.Allocatable = c.Status.NodeName, c.Status.Allocatable
	for _, cond := range c.Status.Conditions {
		if cond.Type == "Ready" {
			cond.Message = ""
			slim.Status.Conditions = append(slim.Status.Conditions, cond)
		}
	}
	return slim, nil
}

func slimMeta(m *metav1.ObjectMeta) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: m.Name, UID: m.UID, ResourceVersion: m.ResourceVersion, CreationTimestamp: m.CreationTimestamp, DeletionTimestamp: m.DeletionTimestamp,
		Labels: m.Labels, Annotations: ours(m.Annotations), OwnerReferences: m.OwnerReferences,
	}
}
