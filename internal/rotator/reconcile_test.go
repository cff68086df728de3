package rotator

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/tasuki-io/tasuki/internal/rotation"
)

// writes counts the writes that reach a world, and can make some of them fail.
type writes struct {
	made []string
	fail func(verb string, o client.Object) error
}

func (w *writes) hooks() interceptor.Funcs {
	note := func(verb string, o client.Object) error {
		if w.fail != nil {
			if err := w.fail(verb, o); err != nil {
				return err
			}
		}
		w.made = append(w.made, verb+" "+o.GetName())
		return nil
	}
	return interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if err := note("create", o); err != nil {
				return err
			}
			return c.Create(ctx, o, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			if err := note("patch", o); err != nil {
				return err
			}
			return c.Patch(ctx, o, p, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			if err := note("delete", o); err != nil {
				return err
			}
			return c.Delete(ctx, o, opts...)
		},
	}
}

func readyWorld() []client.Object {
	return []client.Object{
		web(), pool(anchored(nil)),
		claim("a", 300*time.Hour, pending(time.Minute, nil)), node("a", surgeFor(map[string]string{rotation.AnnotationCordoned: "true"})),
		claim("b", 30*time.Second, nil), node("b", nil), placeholderOn("node-b"),
	}
}

func TestRotationStartsWithTheAnchorAndTheWholeAttempt(t *testing.T) {
	w, s := &writes{}, &spoken{}
	live := apiServer(w.hooks(), web(), pool(nil), claim("a", 300*time.Hour, nil), node("a", nil), pod("p1", "node-a", "600m"), pod("p2", "node-a", "600m"))
	pass(t, newRotator(live, live, s))

	want := []string{"patch web", "patch a", "patch node-a", "create noderotation-surge-a"}
	if diff := cmp.Diff(want, w.made); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
	var p corev1.Pod
	if err := live.Get(t.Context(), client.ObjectKey{Namespace: "node-rotation-system", Name: "noderotation-surge-a"}, &p); err != nil {
		t.Fatal(err)
	}
	if got := p.Spec.Containers[0].Resources.Requests.Cpu().String(); got != "1200m" {
		t.Errorf("placeholder requests cpu %s, want the sum of both pods, 1200m", got)
	}
	if len(s.events) != 1 || !strings.HasPrefix(s.events[0], "Normal RotationStarted web") {
		t.Errorf("events %q, want one RotationStarted", s.events)
	}
}

func TestHandOverIsReleaseThenDrain(t *testing.T) {
	w, s := &writes{}, &spoken{}
	live := apiServer(w.hooks(), readyWorld()...)
	pass(t, newRotator(live, live, s))

	want := []string{"patch node-b", "patch web", "patch a", "delete noderotation-surge-a", "delete a"}
	if diff := cmp.Diff(want, w.made[len(w.made)-5:]); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
}

// R19: the caches are half a minute behind and still show a placeholder that is pending,
// while readyTimeout has passed by the time of this pass. The API server knows better.
func TestR19StaleCacheDoesNotRollBack(t *testing.T) {
	w, s := &writes{}, &spoken{}
	old := pending(16*time.Minute, nil)
	cache := apiServer(interceptor.Funcs{}, web(), pool(anchored(nil)), claim("a", 300*time.Hour, old), node("a", surgeFor(nil)))
	live := apiServer(w.hooks(), web(), pool(anchored(map[string]string{rotation.AnnotationActiveState: "draining"})),
		claim("a", 300*time.Hour, pending(16*time.Minute, map[string]string{rotation.AnnotationState: "draining"})), node("a", surgeFor(nil)))
	pass(t, newRotator(cache, live, s))

	if diff := cmp.Diff([]string{"delete a"}, w.made); diff != "" {
		t.Errorf("the drain should simply go on (-want +got):\n%s", diff)
	}
	if len(s.events) != 0 {
		t.Errorf("announced %q from a stale cache", s.events)
	}
}

func TestR19StaleCacheDoesNotStartASecondRotation(t *testing.T) {
	w, s := &writes{}, &spoken{}
	cache := apiServer(interceptor.Funcs{}, web(), pool(nil), claim("a", 300*time.Hour, nil), node("a", nil), claim("b", 290*time.Hour, nil), node("b", nil))
	finished := pool(map[string]string{rotation.AnnotationLastRotation: now.Add(-time.Second).Format(time.RFC3339)})
	live := apiServer(w.hooks(), web(), finished, claim("b", 290*time.Hour, nil), node("b", nil))
	pass(t, newRotator(cache, live, s))

	if len(w.made) != 0 {
		t.Errorf("wrote %q, want nothing within the cooldown", w.made)
	}
}

func TestR19StaleCacheDoesNotWarnAgain(t *testing.T) {
	s, young := &spoken{}, time.Hour
	live := apiServer(interceptor.Funcs{}, web(), pool(nil), claim("a", young, nil), claim("b", young, nil), claim("c", young, nil), claim("d", young, nil))
	old := apiServer(interceptor.Funcs{}, web(), pool(nil), claim("a", young, nil))
	r := newRotator(live, live, s)
	for _, cache := range []client.Client{live, old, live} {
		r.Client = split{Client: live, cache: cache}
		pass(t, r)
	}
	told := 0
	for _, e := range s.events {
		if strings.Contains(e, "ThroughputBurstShortfall") {
			told++
		}
	}
	if told != 1 {
		t.Errorf("told %d times that the nodes born together are too many, want once: %q", told, s.events)
	}
}

func TestCompletionIsAnnouncedOncePerReleasedAnchor(t *testing.T) {
	w, s := &writes{}, &spoken{}
	draining := anchored(map[string]string{
		rotation.AnnotationActiveState: "draining", rotation.AnnotationDrainingAt: now.Add(-time.Minute).Format(time.RFC3339),
		rotation.AnnotationSurgeWait: "40s", rotation.AnnotationSurgePath: "provisioned",
	})
	stale := apiServer(interceptor.Funcs{}, web(), pool(draining), claim("b", time.Hour, nil), node("b", surgeFor(nil)))
	live := apiServer(w.hooks(), web(), pool(draining), claim("b", time.Hour, nil), node("b", surgeFor(nil)))
	r := newRotator(stale, live, s)
	for range 3 {
		pass(t, r)
		clear(r.recent.written) // as when the cache lags for long
	}
	if diff := cmp.Diff([]string{"patch node-b", "patch web"}, w.made); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
	if got := testutil.ToFloat64(r.announce.metrics.completed.WithLabelValues("web", "success")); got != 1 {
		t.Errorf("completed_total{success} is %v after three passes over a lagging cache, want 1", got)
	}
	want := []string{"Normal RotationCompleted web: Rotated NodeClaim a (mode surge, surgePath provisioned) in 1m40s"}
	if diff := cmp.Diff(want, s.events); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

func TestAConflictEndsThePlanAndAnnouncesNothing(t *testing.T) {
	w, s := &writes{fail: func(verb string, o client.Object) error {
		return apierrors.NewConflict(schema.GroupResource{Resource: "nodepools"}, o.GetName(), errors.New("moved on"))
	}}, &spoken{}
	live := apiServer(w.hooks(), web(), pool(nil), claim("a", 300*time.Hour, nil), node("a", nil))
	res := pass(t, newRotator(live, live, s))
	if len(w.made) != 0 || len(s.events) != 0 {
		t.Errorf("wrote %q and said %q after a refused first write", w.made, s.events)
	}
	if res.RequeueAfter != again {
		t.Errorf("requeue after %s, want %s", res.RequeueAfter, again)
	}
}

// The second writer's version wins: what was decided on an older one is refused by the
// API server itself, not by a check of ours.
func TestAWriteIsValidForTheVersionDecidedOn(t *testing.T) {
	live := apiServer(interceptor.Funcs{}, pool(nil))
	r := newRotator(live, live, &spoken{})
	step := rotation.Step{
		Act: rotation.ActClaimAnchor, On: rotation.Object{Kind: rotation.KindNodePool, Name: "web", UID: "pool", Version: "1"},
		Set: map[string]string{rotation.AnnotationActive: "a"},
	}
	err := r.act(t.Context(), []rotation.Step{step}, func(rotation.Step) { t.Error("announced a refused step") })
	if !errors.Is(err, errRefused) {
		t.Errorf("got %v, want a refusal", err)
	}
}

// A finalizer of somebody else keeps the placeholder: the claim is not deleted while its
// room is taken, or Karpenter would launch a second node.
func TestTheClaimStaysWhileThePlaceholderDoes(t *testing.T) {
	w, s := &writes{}, &spoken{}
	world := readyWorld()
	world[len(world)-1].SetFinalizers([]string{"example.com/audit"})
	live := apiServer(w.hooks(), world...)
	res := pass(t, newRotator(live, live, s))
	if got := w.made[len(w.made)-1]; got != "delete noderotation-surge-a" {
		t.Errorf("last write %q, want the deletion of the placeholder", got)
	}
	if res.RequeueAfter != later {
		t.Errorf("requeue after %s, want %s", res.RequeueAfter, later)
	}
	var c karpv1.NodeClaim
	if err := live.Get(t.Context(), client.ObjectKey{Name: "a"}, &c); err != nil || c.DeletionTimestamp != nil {
		t.Errorf("NodeClaim a: %v, deleted %v; want it untouched", err, c.DeletionTimestamp)
	}
}

func TestAnIdlePoolWritesNothingAndWakesAtItsEdge(t *testing.T) {
	w, s := &writes{}, &spoken{}
	live := apiServer(w.hooks(), web(), pool(nil), claim("a", 24*time.Hour-30*time.Second, nil), node("a", nil))
	res := pass(t, newRotator(live, live, s))
	if len(w.made) != 0 {
		t.Errorf("wrote %q", w.made)
	}
	if want := 30*time.Second + 1; res.RequeueAfter != want {
		t.Errorf("wakes in %s, want %s: just past the claim's threshold", res.RequeueAfter, want)
	}
}

func TestAReasonAndAWarningAreToldOnTransitionOnly(t *testing.T) {
	s := &spoken{}
	frozen := pool(map[string]string{rotation.AnnotationFreeze: "tomorrow"})
	live := apiServer(interceptor.Funcs{}, web(), frozen, claim("a", 300*time.Hour, nil), node("a", nil))
	r := newRotator(live, live, s)
	pass(t, r)
	pass(t, r)
	if len(s.events) != 1 || !strings.Contains(s.events[0], `FreezeInvalid web: annotation noderotation.io/freeze is "tomorrow"`) {
		t.Errorf("events %q, want one FreezeInvalid that quotes the value", s.events)
	}
}

// An alert on the increase of a counter sees its first event only if there was a zero before.
func TestCountersBeginAtZeroAndSurviveAConflict(t *testing.T) {
	live := apiServer(interceptor.Funcs{}, web(), pool(nil), claim("a", time.Hour, nil), node("a", nil))
	r := newRotator(live, live, &spoken{})
	pass(t, r)
	m := r.announce.metrics
	check := func(when string) {
		t.Helper()
		if c, f, w := testutil.CollectAndCount(m.completed), testutil.CollectAndCount(m.fallback), testutil.CollectAndCount(m.missed); c != 3 || f != 1 || w != 1 {
			t.Errorf("%s: %d outcomes, %d fallbacks, %d missed windows; want 3, 1, 1", when, c, f, w)
		}
	}
	check("governed")
	if err := live.Create(t.Context(), policy("other", map[string]string{"workload": "web"})); err != nil {
		t.Fatal(err)
	}
	pass(t, r)
	check("in conflict")
	if n := testutil.CollectAndCount(m.gauges["candidates"]); n != 0 {
		t.Errorf("%d gauges in a conflict, want none", n)
	}
}

func TestAPoolThatIsGoneLosesItsGauges(t *testing.T) {
	live := apiServer(interceptor.Funcs{}, web(), pool(nil), claim("a", time.Hour, nil), node("a", nil))
	r := newRotator(live, live, &spoken{})
	pass(t, r)
	if n := testutil.CollectAndCount(r.announce.metrics.gauges["candidates"]); n != 1 {
		t.Fatalf("%d series, want 1", n)
	}
	if err := live.Delete(t.Context(), pool(nil)); err != nil {
		t.Fatal(err)
	}
	pass(t, r)
	if n := testutil.CollectAndCount(r.announce.metrics.gauges["candidates"]); n != 0 {
		t.Errorf("%d series of a pool that is gone", n)
	}
}

// A leader that was paused in the middle of a plan created this placeholder after the next
// leader had ended the rotation.
func TestAStrayPlaceholderOfThePoolIsDeleted(t *testing.T) {
	w, s := &writes{}, &spoken{}
	resting := pool(map[string]string{rotation.AnnotationLastRotation: now.Format(time.RFC3339)})
	live := apiServer(w.hooks(), web(), resting, claim("b", time.Minute, nil), node("b", nil), placeholderOn(""))
	pass(t, newRotator(live, live, s))
	if diff := cmp.Diff([]string{"delete noderotation-surge-a"}, w.made); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
}

func TestAPlaceholderOfAnotherPoolIsLeftAlone(t *testing.T) {
	w, s := &writes{}, &spoken{}
	other := placeholderOn("")
	other.Spec.NodeSelector[karpv1.NodePoolLabelKey] = "api"
	live := apiServer(w.hooks(), web(), pool(nil), claim("b", time.Minute, nil), node("b", nil), other)
	pass(t, newRotator(live, live, s))
	if len(w.made) != 0 {
		t.Errorf("wrote %q", w.made)
	}
}

func TestThePlaceholderBelongsToItsNodeClaim(t *testing.T) {
	live := apiServer(interceptor.Funcs{}, web(), pool(nil), claim("a", 300*time.Hour, nil), node("a", nil))
	pass(t, newRotator(live, live, &spoken{}))
	var p corev1.Pod
	if err := live.Get(t.Context(), client.ObjectKey{Namespace: "node-rotation-system", Name: "noderotation-surge-a"}, &p); err != nil {
		t.Fatal(err)
	}
	want := []metav1.OwnerReference{{APIVersion: "karpenter.sh/v1", Kind: "NodeClaim", Name: "a", UID: "a"}}
	if diff := cmp.Diff(want, p.OwnerReferences); diff != "" {
		t.Errorf("owners (-want +got):\n%s", diff)
	}
}

// SIGTERM arrives while a write is on its way: that step is finished and announced, and the
// next one is left to the next leader.
func TestAStepInHandIsFinishedAndAnnounced(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	w, s := &writes{}, &spoken{}
	w.fail = func(string, client.Object) error { cancel(); return nil }
	live := apiServer(w.hooks(), web(), pool(nil), claim("a", 300*time.Hour, nil), node("a", nil))
	_, err := newRotator(live, live, s).Reconcile(ctx, reconcile.Request{NamespacedName: types.NamespacedName{Name: "web"}})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the end of the context", err)
	}
	if diff := cmp.Diff([]string{"patch web"}, w.made); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
	if len(s.events) != 1 {
		t.Errorf("announced %q, want the start", s.events)
	}
}

// The quota of the namespace forbids the placeholder. The attempt ends in time, and its end
// says why it failed rather than that there is no placeholder.
func TestAPlaceholderThatCannotBeCreatedIsTheReasonOfTheFailure(t *testing.T) {
	s := &spoken{}
	w := &writes{fail: func(verb string, _ client.Object) error {
		if verb == "create" {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", errors.New("exceeded quota: pods"))
		}
		return nil
	}}
	live := apiServer(w.hooks(), web(), pool(nil), claim("a", 300*time.Hour, nil), node("a", nil))
	r := newRotator(live, live, s)
	if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "web"}}); err == nil {
		t.Fatal("no error although the placeholder was refused")
	}
	r.Now = func() time.Time { return now.Add(16 * time.Minute) }
	pass(t, r)
	last := s.events[len(s.events)-1]
	if !strings.HasPrefix(last, "Warning RotationFailed a") || !strings.Contains(last, "exceeded quota: pods") {
		t.Errorf("the last Event is %q, want a failure that quotes the quota", last)
	}
}

func TestAPoolNeverSleepsPastItsBackstop(t *testing.T) {
	for _, tt := range []struct {
		name   string
		active string
		wake   time.Duration // 0 is none
		want   time.Duration
	}{
		{"at rest, nothing to wait for", "", 0, time.Minute},
		{"at rest, a window opens tomorrow", "", 24 * time.Hour, time.Minute},
		{"at rest, a threshold in a second", "", time.Second, time.Second},
		{"in rotation, nothing to wait for", "a", 0, 30 * time.Second},
		{"in rotation, readyTimeout in a while", "a", 45 * time.Second, 30 * time.Second},
		{"it has passed meanwhile", "", -time.Second, time.Millisecond},
	} {
		d := rotation.Decision{Active: tt.active}
		if tt.wake != 0 {
			d.Wake = now.Add(tt.wake)
		}
		if got := sleep(d, now).RequeueAfter; got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}

// The quota is in the way, then a conflict, then nothing any more.
func TestTroubleIsRememberedUntilAPlanSucceeds(t *testing.T) {
	var ts troubles
	for _, step := range []struct {
		err  error
		want string
	}{
		{errors.New("exceeded quota"), "exceeded quota"},
		{fmt.Errorf("%w: moved on", errRefused), "exceeded quota"},
		{fmt.Errorf("%w: still there", errNotYet), "exceeded quota"},
		{fmt.Errorf("%w: by another pod", errTaken), "the name is taken: by another pod"},
		{nil, ""},
	} {
		ts.note("web", step.err)
		if got := ts.of("web"); got != step.want {
			t.Errorf("after %v: %q, want %q", step.err, got, step.want)
		}
	}
}

// R20: the API server goes away in a drain. Passes fail, nothing is decided or announced by
// what the cache still shows, and the first pass after it is back goes on where it was.
func TestR20AnAPIServerThatIsAwayIsWaitedFor(t *testing.T) {
	away := false
	w, s := &writes{}, &spoken{}
	hooks := w.hooks()
	hooks.List = func(ctx context.Context, c client.WithWatch, l client.ObjectList, opts ...client.ListOption) error {
		if away {
			return apierrors.NewServiceUnavailable("connection refused")
		}
		return c.List(ctx, l, opts...)
	}
	hooks.Get = func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
		if away {
			return apierrors.NewServiceUnavailable("connection refused")
		}
		return c.Get(ctx, key, o, opts...)
	}
	world := func() []client.Object {
		return []client.Object{web(), pool(anchored(map[string]string{rotation.AnnotationActiveState: "draining"})),
			claim("a", 300*time.Hour, pending(time.Minute, map[string]string{rotation.AnnotationState: rotation.StateDraining})), node("a", surgeFor(nil))}
	}
	r := newRotator(apiServer(interceptor.Funcs{}, world()...), apiServer(hooks, world()...), s)
	away = true
	for range 3 {
		if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "web"}}); err == nil {
			t.Fatal("no error, and so no backoff, although the API server is away")
		}
	}
	if len(w.made) > 0 || len(s.events) > 0 {
		t.Errorf("wrote %q and said %q meanwhile", w.made, s.events)
	}
	away = false
	pass(t, r)
	if diff := cmp.Diff([]string{"delete a"}, w.made); diff != "" {
		t.Errorf("writes when it is back (-want +got):\n%s", diff)
	}
}

// The API server takes 20 seconds to answer a pass, and the cooldown ends within them.
func TestASlowPassDoesNotOversleep(t *testing.T) {
	last := map[string]string{rotation.AnnotationLastRotation: now.Add(10*time.Second - 10*time.Minute).Format(time.RFC3339)}
	live := apiServer(interceptor.Funcs{}, web(), pool(last), claim("a", 300*time.Hour, nil), node("a", nil))
	r := newRotator(live, live, &spoken{})
	asked := now.Add(-20 * time.Second)
	r.Now = func() time.Time { asked = asked.Add(20 * time.Second); return asked }
	if res := pass(t, r); res.RequeueAfter > time.Second {
		t.Errorf("the pool sleeps for %s, and could start at once", res.RequeueAfter)
	}
}

// The pass begins a second before the window closes, and the API server takes 20 seconds to
// answer the first of its reads.
func TestARotationDoesNotStartAfterItsWindowHasClosed(t *testing.T) {
	w, night := &writes{}, web()
	night.Spec.MaintenanceWindows[0].Start, night.Spec.MaintenanceWindows[0].End = "02:00", "03:00"
	at := time.Date(2026, 3, 4, 2, 59, 59, 0, time.UTC)
	hooks, reads := w.hooks(), 0
	hooks.List = func(ctx context.Context, c client.WithWatch, l client.ObjectList, o ...client.ListOption) error {
		if reads++; reads == 1 {
			at = at.Add(20 * time.Second)
		}
		return c.List(ctx, l, o...)
	}
	objects := []client.Object{night, pool(nil), claim("a", 300*time.Hour, nil), node("a", nil)}
	r := newRotator(apiServer(interceptor.Funcs{}, objects...), apiServer(hooks, objects...), &spoken{})
	r.Now = func() time.Time { return at }
	if res := pass(t, r); len(w.made) > 0 || res.RequeueAfter != time.Millisecond {
		t.Errorf("at %s it wrote %q, and comes again after %s", at.Format(time.TimeOnly), w.made, res.RequeueAfter)
	}
}
