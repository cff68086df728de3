package rotator

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/tasuki-io/tasuki/internal/rotation"
)

// sweepTimeout bounds how long the first reconcile waits for an API server that does not
// answer the sweep.
const sweepTimeout = 30 * time.Second

// sweeper takes away the marks that no anchored rotation owns, once, before the new leader
// makes its first pass (§5.3).
type sweeper struct {
	*Rotator
	done chan<- struct{}
}

// Start sweeps and lets the passes begin, whatever came of it: the sweep is best effort.
func (s *sweeper) Start(ctx context.Context) error {
	defer close(s.done)
	ctx, cancel := context.WithTimeout(log.IntoContext(ctx, log.Log.WithName("sweep")), sweepTimeout)
	defer cancel()
	if err := s.sweep(ctx); err != nil {
		log.FromContext(ctx).Error(err, "the sweep is not complete; what is left is harmless, and the next start tries again")
	}
	return nil
}

// NeedLeaderElection keeps a standby from sweeping under a leader.
func (s *sweeper) NeedLeaderElection() bool { return true }

func (s *sweeper) sweep(ctx context.Context) error {
	// The anchors are what protects a rotation under way: they are not taken from a cache.
	var pools karpv1.NodePoolList
	var last error
	err := wait.PollUntilContextCancel(ctx, time.Second, true, func(ctx context.Context) (bool, error) {
		last = s.Live.List(ctx, &pools)
		return last == nil || final(last), nil
	})
	if err := errors.Join(err, last); err != nil {
		return fmt.Errorf("list NodePools: %w", err)
	}
	var left rotation.Remains
	for i := range pools.Items {
		left.NodePools = append(left.NodePools, nodePoolFrom(&pools.Items[i]))
	}
	anchors := rotation.AnchorsOf(left.NodePools)
	err = s.remains(ctx, &left)
	for _, step := range rotation.Sweep(anchors, left, s.Now()) {
		if e := s.repair(ctx, anchors, step.On); e != nil {
			err = errors.Join(err, fmt.Errorf("%s %s %s: %w", step.Act, step.On.Kind, step.On.Name, e))
		}
	}
	return err
}

// remains lists what may carry marks, from the caches: each object is read again before it
// is written.
func (s *sweeper) remains(ctx context.Context, left *rotation.Remains) error {
	var claims karpv1.NodeClaimList
	var nodes corev1.NodeList
	var pods corev1.PodList
	err := errors.Join(
		s.Client.List(ctx, &claims), s.Client.List(ctx, &nodes),
		s.Client.List(ctx, &pods, client.InNamespace(s.Namespace), client.MatchingLabels{rotation.LabelPlaceholder: "true"}),
	)
	for i := range claims.Items {
		left.NodeClaims = append(left.NodeClaims, nodeClaimFrom(&claims.Items[i]))
	}
	for i := range nodes.Items {
		left.Nodes = append(left.Nodes, nodeFrom(&nodes.Items[i]))
	}
	for i := range pods.Items {
		left.Placeholders = append(left.Placeholders, placeholderFrom(&pods.Items[i]))
	}
	return err
}

// repair reads the object, judges it anew by the anchors of the start, and writes only if it
// is still orphaned; a conflict begins again.
func (s *sweeper) repair(ctx context.Context, anchors rotation.Anchors, on rotation.Object) error {
	const tries = 5
	var err error
	for range tries {
		fresh, pool, e := s.reread(ctx, on)
		if e != nil {
			return client.IgnoreNotFound(e)
		}
		steps := rotation.Sweep(anchors, fresh, s.Now())
		if len(steps) == 0 {
			return nil
		}
		if _, err = s.write(ctx, steps[0]); err == nil {
			s.announce.swept(ctx, pool, steps[0])
			return nil
		}
		if !apierrors.IsConflict(err) {
			return client.IgnoreNotFound(err)
		}
	}
	return err
}

// reread reads one object from the API server, and the name of the pool that it says it
// belongs to.
func (s *sweeper) reread(ctx context.Context, on rotation.Object) (fresh rotation.Remains, pool string, err error) {
	key := client.ObjectKey{Name: on.Name}
	switch on.Kind {
	case rotation.KindNodePool:
		var o karpv1.NodePool
		err = s.Live.Get(ctx, key, &o)
		fresh.NodePools, pool = []rotation.NodePool{nodePoolFrom(&o)}, o.Name
	case rotation.KindNodeClaim:
		var o karpv1.NodeClaim
		err = s.Live.Get(ctx, key, &o)
		fresh.NodeClaims, pool = []rotation.NodeClaim{nodeClaimFrom(&o)}, o.Labels[karpv1.NodePoolLabelKey]
	case rotation.KindNode:
		var o corev1.Node
		err = s.Live.Get(ctx, key, &o)
		fresh.Nodes, pool = []rotation.Node{nodeFrom(&o)}, o.Labels[karpv1.NodePoolLabelKey]
	case rotation.KindPlaceholder:
		var o corev1.Pod
		key.Namespace = s.Namespace
		err = s.Live.Get(ctx, key, &o)
		fresh.Placeholders, pool = []rotation.Placeholder{placeholderFrom(&o)}, o.Spec.NodeSelector[karpv1.NodePoolLabelKey]
	}
	return fresh, pool, err
}
