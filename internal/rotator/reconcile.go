package rotator

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/tasuki-io/tasuki/internal/rotation"
)

const (
	// backstop bounds the sleep of a pool at rest, shortBackstop that of one in rotation,
	// should an event be lost. Neither is what normally wakes a pool.
	backstop      = time.Minute
	shortBackstop = 30 * time.Second
	// again is the pause before the pool is looked at anew after a plan, done or refused.
	again = 100 * time.Millisecond
	// later is the pause while a pod is in the way that should be gone; its end is an event.
	later = shortBackstop
)

// Rotator reconciles NodePools, one pass per call, none of which blocks (§5.2).
type Rotator struct {
	Client client.Client // reads the caches, writes
	Live   client.Reader // reads the API server

	Namespace                string
	PlaceholderImage         string
	PlaceholderPriorityClass string

	Now func() time.Time

	leads    func() error    // why it may not lead any more; nil leads alone
	swept    <-chan struct{} // closed once the sweep is done; nil does not wait
	policies *policies
	announce *announcer
	troubles troubles
	recent   recent
}

// Reconcile makes one pass over the pool.
func (r *Rotator) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	if r.swept != nil {
		select {
		case <-r.swept:
		case <-ctx.Done():
			return reconcile.Result{}, ctx.Err()
		}
	}
	now := r.Now()
	s, err := r.observe(ctx, r.Client, req.Name, now)
	if err != nil {
		return reconcile.Result{}, err
	}
	if s == nil {
		r.announce.forget(req.Name)
		return reconcile.Result{}, r.sweepOf(ctx, req.Name)
	}
	d := rotation.Decide(*s, now)
	if len(d.Plan) == 0 && d.Stuck == (rotation.Stuck{}) && r.announce.warnedOf(poolRef(s), d.Warnings) {
		r.announce.answer(ctx, poolRef(s), d)
		return sleep(d, r.Now()), nil
	}
	if r.recent.outdates(d.Plan, now) {
		return reconcile.Result{RequeueAfter: again}, nil
	}
	if d.Reason != rotation.ReasonSweeping { // which says nothing of a drain
		r.announce.metrics.set(req.Name, d)
	}
	if s.CarriesOn(d) {
		plan, err := r.carryOn(ctx, s, now)
		if err != nil {
			return reconcile.Result{}, err
		}
		if plan != nil {
			return r.perform(ctx, poolRef(s), plan)
		}
	}
	return r.pass(ctx, req.Name, rotation.Focus(*s, now)) // to act, to warn, or to see which pods a drain hangs on
}

// pass decides on what the API server says now, and acts. It will presumably look at the pods
// of these nodes.
func (r *Rotator) pass(ctx context.Context, name string, nodes []string) (reconcile.Result, error) {
	now := r.Now()
	s, err := r.observe(ctx, r.Live, name, now, nodes...)
	if err != nil {
		return reconcile.Result{}, err
	}
	if s == nil { // the cache will hear of it
		return reconcile.Result{RequeueAfter: again}, nil
	}
	if err := r.observePods(ctx, r.Live, s, now); err != nil {
		return reconcile.Result{}, err
	}
	s.Trouble = r.troubles.of(name)
	d := rotation.Decide(*s, now)
	pool := poolRef(s)
	if d.Reason == rotation.ReasonSweeping {
		if r.sweepStrays(ctx, pool, d.Plan) {
			return reconcile.Result{RequeueAfter: again}, nil
		}
		s.Unswept = true // nothing has changed but the time
		d = rotation.Decide(*s, now)
	}
	if len(d.Plan) == 0 {
		r.announce.answer(ctx, pool, d)
		return sleep(d, r.Now()), nil
	}
	r.announce.metrics.set(name, d)
	r.announce.warn(ctx, pool, d.Warnings)
	r.announce.notBegun(ctx, pool, d)
	// The reads can have taken so long that the window has closed meanwhile.
	if begins(d.Plan) && !d.Wake.IsZero() && !r.Now().Before(d.Wake) {
		return reconcile.Result{RequeueAfter: time.Millisecond}, nil
	}
	return r.perform(ctx, pool, d.Plan)
}

// perform acts, and says when to decide anew.
func (r *Rotator) perform(ctx context.Context, pool *metav1.PartialObjectMetadata, plan []rotation.Step) (reconcile.Result, error) {
	err := r.act(ctx, plan, func(st rotation.Step) { r.announce.step(ctx, pool, st) })
	r.troubles.note(pool.Name, err)
	switch {
	case errors.Is(err, errRefused):
		log.FromContext(ctx).V(1).Info("plan refused, deciding anew", "because", err.Error())
		return reconcile.Result{RequeueAfter: again}, nil
	case errors.Is(err, errNotYet), errors.Is(err, errTaken):
		log.FromContext(ctx).Info("plan waits", "because", err.Error())
		return reconcile.Result{RequeueAfter: later}, nil
	case err != nil:
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: again}, nil
}

// begins reports a plan that begins an attempt, for which every gate has to be open.
func begins(plan []rotation.Step) bool {
	return slices.ContainsFunc(plan, func(st rotation.Step) bool {
		return st.Act == rotation.ActClaimAnchor || st.Act == rotation.ActMarkPending
	})
}

// sleep is the time until the answer can change by itself, within the backstop. It is reckoned
// from the end of the pass, which an API server can have kept waiting.
func sleep(d rotation.Decision, now time.Time) reconcile.Result {
	limit := backstop
	if d.Active != "" {
		limit = shortBackstop
	}
	if d.Wake.IsZero() {
		return reconcile.Result{RequeueAfter: limit}
	}
	return reconcile.Result{RequeueAfter: max(time.Millisecond, min(limit, d.Wake.Sub(now)))}
}

func poolRef(s *rotation.Snapshot) *metav1.PartialObjectMetadata { return claimRef(s.NodePool.Object) }

// troubles remembers why the last plan of a pool failed, so that the end of the attempt can
// say it. It is for people alone: nothing is decided by it, and a restart forgets it.
type troubles struct{ byPool sync.Map }

func (t *troubles) note(pool string, err error) {
	switch {
	case err == nil:
		t.byPool.Delete(pool)
	case !errors.Is(err, errRefused) && !errors.Is(err, errNotYet):
		t.byPool.Store(pool, err.Error())
	}
}

func (t *troubles) of(pool string) string {
	v, _ := t.byPool.Load(pool)
	text, _ := v.(string)
	return text
}
