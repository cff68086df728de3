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
	s := &rotation.Snapshot{Nodes: map[string]rotation.Node{}, Pods: map[string][]*corev1.Pod{}}
	ofPool := client.MatchingLabels{karpv1.NodePoolLabelKey: name}

	var claims karpv1.NodeClaimList
	if err := from.List(ctx, &claims, ofPool); err != nil {
		return nil, fmt.Errorf("list NodeClaims of NodePool %s: %w", name, err)
	}
	for i := range claims.Items {
		s.NodeClaims = append(s.NodeClaims, nodeClaimFrom(&claims.Items[i]))
	}
	var nodes corev1.NodeList
	if err := from.List(ctx, &nodes, ofPool); err != nil {
		return nil, fmt.Errorf("list Nodes of NodePool %s: %w", name, err)
	}
	for i := range nodes.Items {
		n := nodeFrom(&nodes.Items[i])
		s.Nodes[n.Name] = n
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
	s.NodePool = nodePoolFrom(&pool)
	s.Governance = r.policies.govern(pool.Labels, policies.Items, now)
	active := s.NodePool.Annotations[rotation.AnnotationActive]
	for i := range placeholders.Items {
		pod := &placeholders.Items[i]
		if pod.Spec.NodeSelector[karpv1.NodePoolLabelKey] != name {
			continue
		}
		if p := placeholderFrom(pod); active != "" && p.Name == rotation.PlaceholderName(active) {
			s.Placeholder = &p
		} else {
			s.Strays = append(s.Strays, p)
		}
	}
	if !pods {
		return s, nil
	}
	for _, node := range rotation.Focus(*s, now) {
		var list corev1.PodList
		if err := from.List(ctx, &list, client.MatchingFields{"spec.nodeName": node}); err != nil {
			return nil, fmt.Errorf("list pods on Node %s: %w", node, err)
		}
		for i := range list.Items {
			s.Pods[node] = append(s.Pods[node], &list.Items[i])
		}
	}
	return s, nil
}
