package rotator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	var left rotation.Remains
	err := ask(ctx, func(ctx context.Context) (err error) { left.NodePools, err = s.pools(ctx); return err })
	if err != nil {
		return err
	}
	err = s.remains(ctx, &left)
	return errors.Join(err, s.repairAll(ctx, rotation.AnchorsOf(left.NodePools), left))
}

// sweepOf sweeps what a NodePool that is gone has left: deleted with --cascade=orphan, it leaves
// nodes behind that nobody else would ever give back.
func (r *Rotator) sweepOf(ctx context.Context, pool string) error {
	var left rotation.Remains
	err := r.remains(ctx, &left, client.MatchingLabels{karpv1.NodePoolLabelKey: pool})
	left.Placeholders = slices.DeleteFunc(left.Placeholders, func(p rotation.Placeholder) bool { return p.NodePool != pool })
	if err != nil || len(rotation.Sweep(nil, left, r.Now())) == 0 {
		return err
	}
	pools, err := r.pools(ctx) // and it itself, should it be there again
	if err != nil {
		return err
	}
	return r.repairAll(ctx, rotation.AnchorsOf(pools), left)
}

// pools reads all pools from the API server: their anchors are what protects a rotation under
// way, and are not taken from a cache.
func (r *Rotator) pools(ctx context.Context) ([]rotation.NodePool, error) {
	var all karpv1.NodePoolList
	if err := r.Live.List(ctx, &all); err != nil {
		return nil, fmt.Errorf("list NodePools: %w", err)
	}
	var pools []rotation.NodePool
	for i := range all.Items {
		pools = append(pools, nodePoolFrom(&all.Items[i]))
	}
	return pools, nil
}

func (r *Rotator) repairAll(ctx context.Context, anchors rotation.Anchors, left rotation.Remains) (err error) {
	for _, step := range rotation.Sweep(anchors, left, r.Now()) {
		if e := r.repair(ctx, anchors, step.On); e != nil {
			err = errors.Join(err, fmt.Errorf("%s %s %s: %w", step.Act, step.On.Kind, step.On.Name, e))
		}
	}
	return err
}

// sweepStrays takes each stray mark away that lets itself be taken, and reports whether the
// pool has to be looked at anew. One that is held by somebody's webhook is told and left: it
// must not keep the pool from all else.
func (r *Rotator) sweepStrays(ctx context.Context, pool *metav1.PartialObjectMetadata, strays []rotation.Step) (moved bool) {
	for _, st := range strays {
		err := r.act(ctx, []rotation.Step{st}, func(st rotation.Step) {
			r.announce.step(ctx, pool, st)
			r.announce.swept(ctx, pool.Name, st)
		})
		switch {
		case err == nil, errors.Is(err, errRefused), ctx.Err() != nil:
			moved = true
		default:
			log.FromContext(ctx).Error(err, "sweep: a mark without a rotation cannot be taken away; it is tried again with every pass")
		}
	}
	return moved
}

// remains lists what may carry marks, from the caches: each object is read again before it
// is written. The options narrow the NodeClaims and Nodes.
func (r *Rotator) remains(ctx context.Context, left *rotation.Remains, of ...client.ListOption) error {
	var claims karpv1.NodeClaimList
	var nodes corev1.NodeList
	var pods corev1.PodList
	err := errors.Join(
		r.Client.List(ctx, &claims, of...), r.Client.List(ctx, &nodes, of...),
		r.Client.List(ctx, &pods, client.InNamespace(r.Namespace), client.MatchingLabels{rotation.LabelPlaceholder: "true"}),
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
func (r *Rotator) repair(ctx context.Context, anchors rotation.Anchors, on rotation.Object) error {
	const tries = 5
	var err error
	for range tries {
		fresh, pool, e := r.reread(ctx, on)
		if e != nil {
			return client.IgnoreNotFound(e)
		}
		steps := rotation.Sweep(anchors, fresh, r.Now())
		if len(steps) == 0 {
			return nil
		}
		if _, err = r.write(ctx, steps[0]); err == nil {
			r.announce.swept(log.IntoContext(ctx, log.FromContext(ctx).WithValues("nodepool", pool)), pool, steps[0])
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
func (r *Rotator) reread(ctx context.Context, on rotation.Object) (fresh rotation.Remains, pool string, err error) {
	key := client.ObjectKey{Name: on.Name}
	switch on.Kind {
	case rotation.KindNodePool:
		var o karpv1.NodePool
		err = r.Live.Get(ctx, key, &o)
		fresh.NodePools, pool = []rotation.NodePool{nodePoolFrom(&o)}, o.Name
	case rotation.KindNodeClaim:
		var o karpv1.NodeClaim
		err = r.Live.Get(ctx, key, &o)
		fresh.NodeClaims, pool = []rotation.NodeClaim{nodeClaimFrom(&o)}, o.Labels[karpv1.NodePoolLabelKey]
	case rotation.KindNode:
		var o corev1.Node
		err = r.Live.Get(ctx, key, &o)
		fresh.Nodes, pool = []rotation.Node{nodeFrom(&o)}, o.Labels[karpv1.NodePoolLabelKey]
	case rotation.KindPlaceholder:
		var o corev1.Pod
		key.Namespace = r.Namespace
		err = r.Live.Get(ctx, key, &o)
		fresh.Placeholders, pool = []rotation.Placeholder{placeholderFrom(&o)}, o.Spec.NodeSelector[karpv1.NodePoolLabelKey]
	}
	return fresh, pool, err
}
