package rotator

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/tasuki-io/tasuki/api/v1alpha1"
	"github.com/tasuki-io/tasuki/internal/rotation"
)

// observe reads one pool and what belongs to it into a snapshot. It returns nil when the
// pool is gone. With pods it also reads the pods of the nodes that the decision looks at.
func (r *Rotator) observe(ctx context.Context, from client.Reader, name string, now time.Time, pods bool) (*rotation.Snapshot, error) {
	ofPool := client.MatchingLabels{karpv1.NodePoolLabelKey: name}

	var claims karpv1.NodeClaimList
	if err := from.List(ctx, &claims, ofPool); err != nil {
		return nil, fmt.Errorf("list NodeClaims of NodePool %s: %w", name, err)
	}
	var nodes corev1.NodeList
	if err := from.List(ctx, &nodes, ofPool); err != nil {
		return nil, fmt.Errorf("list Nodes of NodePool %s: %w", name, err)
	}
	var placeholders corev1.PodList
	if err := from.List(ctx, &placeholders, client.InNamespace(r.Namespace), client.MatchingLabels{rotation.LabelPlaceholder: "true"}); err != nil {
		return nil, fmt.Errorf("list placeholders in namespace %s: %w", r.Namespace, err)
	}
	var policies v1alpha1.RotationPolicyList
	if err := from.List(ctx, &policies); err != nil {
		return nil, fmt.Errorf("list RotationPolicies: %w", err)
	}
	// The pool comes last. A mark is always written after the anchor that owns it, so the
	// anchor of every mark read above is in what is read now, unless its rotation has ended.
	var pool karpv1.NodePool
	if err := from.Get(ctx, client.ObjectKey{Name: name}, &pool); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		return nil, fmt.Errorf("read NodePool %s: %w", name, err)
	}
	s := snapshotOf(&pool, claims.Items, nodes.Items, placeholders.Items)
	s.Governance = r.policies.govern(pool.Labels, policies.Items, now)
	if !pods {
		return s, nil
	}
	return s, r.observePods(ctx, from, s, now)
}

// observePods adds the pods that the decision looks at.
func (r *Rotator) observePods(ctx context.Context, from client.Reader, s *rotation.Snapshot, now time.Time) error {
	active := s.NodePool.Annotations[rotation.AnnotationActive]
	if active != "" && s.Placeholder == nil {
		if err := r.unlabelled(ctx, from, s, active); err != nil {
			return err
		}
	}
	return podsOn(ctx, from, s, rotation.Focus(*s, now))
}

// podsOn adds the pods on these nodes, unless they are there already.
func podsOn(ctx context.Context, from client.Reader, s *rotation.Snapshot, nodes []string) error {
	for _, node := range nodes {
		if _, read := s.Pods[node]; read {
			continue
		}
		var list corev1.PodList
		if err := from.List(ctx, &list, client.MatchingFields{"spec.nodeName": node}); err != nil {
			return fmt.Errorf("list pods on Node %s: %w", node, err)
		}
		s.Pods[node] = []*corev1.Pod{}
		for i := range list.Items {
			s.Pods[node] = append(s.Pods[node], &list.Items[i])
		}
	}
	return nil
}

// snapshotOf is what is known of a pool but for its policy and the pods on its nodes. Claims
// and nodes are those of the pool, the placeholders may be of any.
func snapshotOf(pool *karpv1.NodePool, claims []karpv1.NodeClaim, nodes []corev1.Node, placeholders []corev1.Pod) *rotation.Snapshot {
	s := &rotation.Snapshot{NodePool: nodePoolFrom(pool), Nodes: map[string]rotation.Node{}, Pods: map[string][]*corev1.Pod{}}
	for i := range claims {
		s.NodeClaims = append(s.NodeClaims, nodeClaimFrom(&claims[i]))
	}
	for i := range nodes {
		n := nodeFrom(&nodes[i])
		s.Nodes[n.Name] = n
	}
	active := s.NodePool.Annotations[rotation.AnnotationActive]
	for i := range placeholders {
		pod := &placeholders[i]
		if pod.Spec.NodeSelector[karpv1.NodePoolLabelKey] != pool.Name {
			continue
		}
		if p := placeholderFrom(pod); active != "" && p.Name == rotation.PlaceholderName(active) {
			s.Placeholder = &p
		} else {
			s.Strays = append(s.Strays, p)
		}
	}
	return s
}

// unlabelled finds the placeholder of the anchored NodeClaim by its name, should somebody have
// taken its label off.
func (r *Rotator) unlabelled(ctx context.Context, from client.Reader, s *rotation.Snapshot, active string) error {
	var pod corev1.Pod
	key := client.ObjectKey{Namespace: r.Namespace, Name: rotation.PlaceholderName(active)}
	err := from.Get(ctx, key, &pod)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("read placeholder %s: %w", key, err)
	}
	if pod.Spec.NodeSelector[karpv1.NodePoolLabelKey] == s.NodePool.Name { // else it is somebody else's pod
		p := placeholderFrom(&pod)
		s.Placeholder = &p
	}
	return nil
}
