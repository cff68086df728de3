package rotator

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/tasuki-io/tasuki/api/v1alpha1"
	"github.com/tasuki-io/tasuki/internal/rotation"
)

// carryOn is what to write next for a rotation under way, nil if the pool has to be looked at as
// a whole. Of what the cache has shown it reads anew what that is decided on, object by object. The
// API server answers for an object at once; a list waits until its cache is current, for which
// it asks etcd once in 100 ms at most, and that of a large pool takes seconds.
func (r *Rotator) carryOn(ctx context.Context, s *rotation.Snapshot, now time.Time) ([]rotation.Step, error) {
	party := s.Party()
	if same, err := r.refresh(ctx, s, party, now); err != nil || !same {
		return nil, err
	}
	d := rotation.Decide(*s, now)
	if !party.Covers(s.Party()) || !s.CarriesOn(d) {
		return nil, nil
	}
	return d.Plan, nil
}

// refresh reads the party, the placeholder, the policy and the NodePool of a rotation under way
// anew. It reports false when it is no longer that rotation, or that policy which governs it.
func (r *Rotator) refresh(ctx context.Context, s *rotation.Snapshot, party rotation.Party, now time.Time) (bool, error) {
	var (
		name, active = s.NodePool.Name, s.NodePool.Annotations[rotation.AnnotationActive]
		governs      = s.Governance.Policy.Name
		claims       = make([]karpv1.NodeClaim, len(party.NodeClaims))
		nodes        = make([]corev1.Node, len(party.Nodes))
		placeholder  corev1.Pod
		policy       v1alpha1.RotationPolicy
		policies     v1alpha1.RotationPolicyList
		pool         karpv1.NodePool
	)
	reads := []func(context.Context) error{
		reading("placeholder", r.Live, r.placeholderKey(active), &placeholder),
		reading("RotationPolicy", r.Live, client.ObjectKey{Name: governs}, &policy),
	}
	for i, of := range party.NodeClaims {
		reads = append(reads, reading("NodeClaim", r.Live, client.ObjectKey{Name: of}, &claims[i]))
	}
	for i, of := range party.Nodes {
		reads = append(reads, reading("Node", r.Live, client.ObjectKey{Name: of}, &nodes[i]))
	}
	if err := each(ctx, r.Live, reads); err != nil {
		return false, err
	}
	if err := reading("NodePool", r.Live, client.ObjectKey{Name: name}, &pool)(ctx); err != nil { // last, as in observe
		return false, err
	}
	if err := r.Client.List(ctx, &policies); err != nil {
		return false, fmt.Errorf("list the RotationPolicies: %w", err)
	}
	known := slices.DeleteFunc(slices.Clone(policies.Items), func(p v1alpha1.RotationPolicy) bool { return p.Name == governs })
	s.Governance = r.policies.govern(pool.Labels, append(known, policy), now)
	if p := s.Governance.Policy; p == nil || p.Name != governs || pool.Annotations[rotation.AnnotationActive] != active {
		return false, nil
	}

	ofPool := func(o client.Object) bool { return o.GetLabels()[karpv1.NodePoolLabelKey] == name }
	s.NodePool = nodePoolFrom(&pool)
	s.NodeClaims = slices.DeleteFunc(s.NodeClaims, func(c rotation.NodeClaim) bool { return slices.Contains(party.NodeClaims, c.Name) })
	for i := range claims {
		if ofPool(&claims[i]) {
			s.NodeClaims = append(s.NodeClaims, nodeClaimFrom(&claims[i]))
		}
	}
	for i, of := range party.Nodes {
		if delete(s.Nodes, of); ofPool(&nodes[i]) {
			s.Nodes[of] = nodeFrom(&nodes[i])
		}
	}
	s.Placeholder = nil
	if placeholder.Spec.NodeSelector[karpv1.NodePoolLabelKey] == name {
		p := placeholderFrom(&placeholder)
		s.Placeholder = &p
	}
	return true, nil
}
