package rotator

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/tasuki-io/tasuki/internal/rotation"
)

// orphans is a pool at rest on which a rotation of a has left all of its marks.
func orphans() []client.Object {
	old := node("a", surgeFor(map[string]string{rotation.AnnotationCordoned: "true"}))
	old.Spec.Unschedulable = true
	return []client.Object{
		pool(map[string]string{rotation.AnnotationActiveState: "draining"}),
		claim("a", 300*time.Hour, pending(time.Hour, nil)), old,
		claim("b", time.Hour, nil), node("b", surgeFor(nil)), placeholderOn("node-b"),
	}
}

func sweep(t *testing.T, r *Rotator) {
	t.Helper()
	done := make(chan struct{})
	if err := (&sweeper{Rotator: r, done: done}).Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-done
}

func TestTheSweepTakesEveryOrphanedMarkAway(t *testing.T) {
	w, s := &writes{}, &spoken{}
	live := apiServer(w.hooks(), orphans()...)
	r := newRotator(live, live, s)
	sweep(t, r)
	slices.Sort(w.made)
	want := []string{"delete noderotation-surge-a", "patch a", "patch node-a", "patch node-b", "patch web"}
	if diff := cmp.Diff(want, w.made); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
	var n corev1.Node
	if err := live.Get(t.Context(), client.ObjectKey{Name: "node-a"}, &n); err != nil || n.Spec.Unschedulable || len(n.Annotations) > 0 {
		t.Errorf("node-a: %v, unschedulable %t, annotations %v", err, n.Spec.Unschedulable, n.Annotations)
	}
	if diff := cmp.Diff([]string{"Warning RotationFailed a"}, s.told()); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if got := testutil.ToFloat64(r.announce.metrics.completed.WithLabelValues("web", "failure")); got != 1 {
		t.Errorf("completed_total{failure} is %v, want 1", got)
	}
	w.made = nil
	sweep(t, r)
	if len(w.made) > 0 {
		t.Errorf("a second sweep wrote %q", w.made)
	}
}

// R27: the old leader anchored the pool a moment before the lease changed hands. The new
// one's caches do not show it yet; the API server does.
func TestR27TheSweepSparesARotationThatItsCacheDoesNotKnow(t *testing.T) {
	w, s := &writes{}, &spoken{}
	cache := apiServer(interceptor.Funcs{}, orphans()...)
	world := orphans()
	world[0] = pool(anchored(map[string]string{rotation.AnnotationActiveState: "draining"}))
	sweep(t, newRotator(cache, apiServer(w.hooks(), world...), s))
	if len(w.made) > 0 || len(s.events) > 0 {
		t.Errorf("wrote %q and said %q on an anchored pool", w.made, s.events)
	}
}

// What has changed since it was listed is judged by what it is now.
func TestTheSweepJudgesAFreshRead(t *testing.T) {
	w, s := &writes{}, &spoken{}
	live := apiServer(w.hooks(), pool(nil), claim("a", 300*time.Hour, map[string]string{rotation.AnnotationState: rotation.StateExpired}), node("a", nil), node("b", nil))
	sweep(t, newRotator(apiServer(interceptor.Funcs{}, orphans()...), live, s))
	if len(w.made) > 0 || len(s.events) > 0 {
		t.Errorf("wrote %q and said %q by what a cache remembered", w.made, s.events)
	}
}

func TestASweepThatIsRefusedTriesAgainAndOneThatFailsGoesOn(t *testing.T) {
	s := &spoken{}
	refusals := 0
	w := &writes{}
	w.fail = func(_ string, o client.Object) error {
		switch {
		case o.GetName() == "node-a" && refusals < 2:
			refusals++
			return apierrors.NewConflict(schema.GroupResource{Resource: "nodes"}, o.GetName(), errors.New("moved on"))
		case o.GetName() == "node-b":
			return apierrors.NewInternalError(errors.New("no"))
		}
		return nil
	}
	live := apiServer(w.hooks(), orphans()...)
	sweep(t, newRotator(live, live, s))
	slices.Sort(w.made)
	if got := strings.Join(w.made, ", "); got != "delete noderotation-surge-a, patch a, patch node-a, patch web" {
		t.Errorf("writes %s", got)
	}
}

func TestNoPassBeforeTheSweep(t *testing.T) {
	reads := 0
	live := apiServer(interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, l client.ObjectList, opts ...client.ListOption) error {
		reads++
		return c.List(ctx, l, opts...)
	}}, web(), pool(nil), claim("a", 300*time.Hour, nil), node("a", nil))
	r := newRotator(live, live, &spoken{})
	r.swept = make(chan struct{})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err := r.Reconcile(ctx, reconcile.Request{NamespacedName: types.NamespacedName{Name: "web"}})
	if !errors.Is(err, context.DeadlineExceeded) || reads > 0 {
		t.Errorf("%v after %d lists; want it to wait", err, reads)
	}
}

// Without the list of anchors nothing is orphaned for sure, and the passes begin.
func TestASweepWithoutAnchorsWritesNothing(t *testing.T) {
	w, s := &writes{}, &spoken{}
	hooks := w.hooks()
	hooks.List = func(ctx context.Context, c client.WithWatch, l client.ObjectList, opts ...client.ListOption) error {
		if _, ok := l.(*karpv1.NodePoolList); ok {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "nodepools"}, "", nil)
		}
		return c.List(ctx, l, opts...)
	}
	live := apiServer(hooks, orphans()...)
	sweep(t, newRotator(live, live, s))
	if len(w.made) > 0 {
		t.Errorf("wrote %q", w.made)
	}
}

func TestOnlyTheLeaderSweeps(t *testing.T) {
	if !(&sweeper{}).NeedLeaderElection() {
		t.Error("a standby would sweep under a leader")
	}
}

func TestThePassesBeginWhateverCameOfTheSweep(t *testing.T) {
	live := apiServer(interceptor.Funcs{}, orphans()...)
	done := make(chan struct{})
	if err := (&sweeper{Rotator: newRotator(live, live, &spoken{}), done: done}).Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	select {
	case <-done:
	default:
		t.Error("they wait for ever")
	}
}

// The NodePool is deleted with --cascade=orphan in the middle of a rotation: its nodes stay, and
// no pass of a pool would ever give them back. What belongs to other pools is left alone.
func TestAPoolThatIsGoneLeavesNoMarks(t *testing.T) {
	w, s := &writes{}, &spoken{}
	n := node("a", surgeFor(map[string]string{rotation.AnnotationCordoned: "true"}))
	n.Spec.Unschedulable = true
	other, theirs := node("o", map[string]string{rotation.AnnotationSurgeFor: "o"}), placeholderOn("")
	other.Labels[karpv1.NodePoolLabelKey], theirs.Name, theirs.UID = "api", "noderotation-surge-o", "o"
	theirs.Spec.NodeSelector[karpv1.NodePoolLabelKey] = "api"
	live := apiServer(w.hooks(), web(), claim("a", 300*time.Hour, pending(time.Minute, nil)), n, placeholderOn(""), other, theirs)
	r := newRotator(live, live, s)
	for range 3 {
		pass(t, r)
	}
	if diff := cmp.Diff([]string{"delete noderotation-surge-a", "patch node-a", "patch a"}, w.made); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
	var got corev1.Node
	if err := live.Get(t.Context(), client.ObjectKey{Name: "node-a"}, &got); err != nil || got.Spec.Unschedulable || len(got.Annotations) > 0 {
		t.Errorf("its node is cordoned=%t with %v (%v)", got.Spec.Unschedulable, got.Annotations, err)
	}
}

// The cache has lost sight of a pool that is there, and anchored.
func TestAPoolThatIsThereIsNotSweptAsGone(t *testing.T) {
	w, objects := &writes{}, readyWorld()
	live := apiServer(w.hooks(), objects...)
	cache := apiServer(interceptor.Funcs{}, append(objects[:1:1], objects[2:]...)...)
	if pass(t, newRotator(cache, live, &spoken{})); len(w.made) > 0 {
		t.Errorf("wrote %q", w.made)
	}
}
