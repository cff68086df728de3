package rotator

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/tasuki-io/tasuki/api/v1alpha1"
	"github.com/tasuki-io/tasuki/internal/rotation"
)

// observe reads one pool and what belongs to it into a snapshot, with the pods on these nodes. It
// returns nil when the pool is gone.
func (r *Rotator) observe(ctx context.Context, from client.Reader, name string, now time.Time, podsOn ...string) (*rotation.Snapshot, error) {
	var (
		claims       []rotation.NodeClaim
		nodes        []rotation.Node
		placeholders []corev1.Pod
		policies     []v1alpha1.RotationPolicy
		pods         = make([][]*corev1.Pod, len(podsOn))
		labelled     = client.MatchingLabels{karpv1.NodePoolLabelKey: name}
	)
	reads := []func(context.Context) error{
		listing("NodeClaims of NodePool "+name, from, func(l *karpv1.NodeClaimList) { claims = append(claims, views(l.Items, nodeClaimFrom)...) }, labelled),
		listing("Nodes of NodePool "+name, from, func(l *corev1.NodeList) { nodes = append(nodes, views(l.Items, nodeFrom)...) }, labelled),
		listing("placeholders in namespace "+r.Namespace, from, func(l *corev1.PodList) { placeholders = append(placeholders, l.Items...) },
			client.InNamespace(r.Namespace), client.MatchingLabels{rotation.LabelPlaceholder: "true"}),
		listing("the RotationPolicies", from, func(l *v1alpha1.RotationPolicyList) { policies = append(policies, l.Items...) }),
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
	if err := reading("NodePool", from, client.ObjectKey{Name: name}, &pool)(ctx); err != nil {
		return nil, err
	}
	if pool.Name == "" {
		return nil, nil
	}
	s := snapshotOf(&pool, claims, nodes, placeholders)
	s.Governance = r.policies.govern(pool.Labels, policies, now)
	for i, node := range podsOn {
		s.Pods[node] = pods[i]
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

// chunk is how many objects of a list the API server is asked for at once, as kubectl does. A Node
// has ten times as much to tell as a snapshot keeps of it.
const chunk = 500

// listing hands a list over, that of the API server in chunks, all of which are of one instant.
func listing[T any, L interface {
	*T
	client.ObjectList
}](what string, from client.Reader, take func(L), opts ...client.ListOption) func(context.Context) error {
	_, live := from.(patient)
	if live { // a cache knows no chunks
		opts = append(opts, client.Limit(chunk))
	}
	return func(ctx context.Context) error {
		for next := ""; ; {
			list := L(new(T))
			if err := from.List(ctx, list, append(slices.Clip(opts), client.Continue(next))...); err != nil {
				return fmt.Errorf("list %s: %w", what, err)
			}
			take(list)
			if next = list.GetContinue(); !live || next == "" {
				return nil
			}
		}
	}
}

// reading reads one object, and leaves it empty if there is none. A kind that is not served, as
// for a moment when its definition is replaced, is no object that is gone.
func reading(what string, from client.Reader, key client.ObjectKey, into client.Object) func(context.Context) error {
	return func(ctx context.Context) error {
		if len(content.IsPathSegmentName(key.Name)) > 0 {
			return nil // nothing has such a name, whoever wrote it into an annotation
		}
		err := from.Get(ctx, key, into)
		if err != nil && (!apierrors.IsNotFound(err) || apierrors.IsUnexpectedServerError(err)) {
			return fmt.Errorf("read %s %s: %w", what, strings.TrimPrefix(key.String(), "/"), err)
		}
		return nil
	}
}

func listingPods(node string, from client.Reader, pods *[]*corev1.Pod) func(context.Context) error {
	*pods = []*corev1.Pod{} // none, and not unread
	return listing("pods on Node "+node, from, func(l *corev1.PodList) {
		*pods = append(*pods, views(l.Items, func(p *corev1.Pod) *corev1.Pod { return p })...)
	}, client.MatchingFields{"spec.nodeName": node})
}

// views is what is read of these objects.
func views[T, V any](objects []T, view func(*T) V) []V {
	out := make([]V, len(objects))
	for i := range objects {
		out[i] = view(&objects[i])
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
		var pods []*corev1.Pod
		if err := listingPods(node, from, &pods)(ctx); err != nil {
			return err
		}
		s.Pods[node] = pods
	}
	return nil
}

// snapshotOf is what is known of a pool but for its policy and the pods on its nodes. Claims
// and nodes are those of the pool, the placeholders may be of any.
func snapshotOf(pool *karpv1.NodePool, claims []rotation.NodeClaim, nodes []rotation.Node, placeholders []corev1.Pod) *rotation.Snapshot {
	s := &rotation.Snapshot{NodePool: nodePoolFrom(pool), NodeClaims: claims, Nodes: make(map[string]rotation.Node, len(nodes)), Pods: map[string][]*corev1.Pod{}}
	for _, n := range nodes {
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
	if err := reading("placeholder", from, r.placeholderKey(active), &pod)(ctx); err != nil {
		return err
	}
	if pod.Spec.NodeSelector[karpv1.NodePoolLabelKey] == s.NodePool.Name { // else it is somebody else's pod
		p := placeholderFrom(&pod)
		s.Placeholder = &p
	}
	return nil
}
