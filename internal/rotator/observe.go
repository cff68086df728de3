package rotator

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/tasuki-io/tasuki/api/v1alpha1"
	"github.com/tasuki-io/tasuki/internal/rotation"
)

// observe reads one pool and what belongs to it into a snapshot, with the pods on these nodes. It
// returns nil when the pool is gone.
func (r *Rotator) observe(ctx context.Context, from client.Reader, name string, now time.Time, podsOn ...string) (*rotation.Snapshot, error) {
	var (
		claims       karpv1.NodeClaimList
		nodes        corev1.NodeList
		placeholders corev1.PodList
		policies     v1alpha1.RotationPolicyList
		pods         = make([]corev1.PodList, len(podsOn))
		labelled     = client.MatchingLabels{karpv1.NodePoolLabelKey: name}
	)
	reads := []func(context.Context) error{
		listing("NodeClaims of NodePool "+name, from, &claims, labelled),
		listing("Nodes of NodePool "+name, from, &nodes, labelled),
		listing("placeholders in namespace "+r.Namespace, from, &placeholders, client.InNamespace(r.Namespace), client.MatchingLabels{rotation.LabelPlaceholder: "true"}),
		listing("the RotationPolicies", from, &policies),
	}
	for i, node := range podsOn {
		reads = append(reads, listingPods(node, from, &pods[i]))
	}
	if err := each(ctx, from, reads); err != nil {
		return nil, err
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
	for i, node := range podsOn {
		s.Pods[node] = pointers(pods[i].Items)
	}
	return s, nil
}

// each does these reads, in no order. A list of the API server can wait up to 100 ms until its
// cache is current, so they wait together; a cache answers at once.
func each(ctx context.Context, from client.Reader, reads []func(context.Context) error) error {
	if _, live := from.(patient); live {
		group, ctx := errgroup.WithContext(ctx)
		for _, read := range reads {
			group.Go(func() error { return read(ctx) })
		}
		return group.Wait()
	}
	for _, read := range reads {
		if err := read(ctx); err != nil {
			return err
		}
	}
	return nil
}

func listing(what string, from client.Reader, list client.ObjectList, opts ...client.ListOption) func(context.Context) error {
	return func(ctx context.Context) error {
		if err := from.List(ctx, list, opts...); err != nil {
			return fmt.Errorf("list %s: %w", what, err)
		}
		return nil
	}
}

func listingPods(node string, from client.Reader, list *corev1.PodList) func(context.Context) error {
	return listing("pods on Node "+node, from, list, client.MatchingFields{"spec.nodeName": node})
}

func pointers(pods []corev1.Pod) []*corev1.Pod {
	out := make([]*corev1.Pod, len(pods))
	for i := range pods {
		out[i] = &pods[i]
	}
	return out
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
		if err := listingPods(node, from, &list)(ctx); err != nil {
			return err
		}
		s.Pods[node] = pointers(list.Items)
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
