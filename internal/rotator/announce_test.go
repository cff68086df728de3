package rotator

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/tasuki-io/tasuki/internal/rotation"
)

// told are the Events, without what they quote.
func (s *spoken) told() []string {
	var out []string
	for _, e := range s.events {
		head, _, _ := strings.Cut(e, ":")
		out = append(out, head)
	}
	return out
}

// R09: nodes born together, more of them than the windows can take. One warning, before
// anything happens; that another node joins is no news.
func TestR09ABatchIsWarnedOfOnce(t *testing.T) {
	p, s := web(), &spoken{}
	p.Spec.AgeThreshold = "auto"
	p.Spec.MaintenanceWindows[0].End = "00:30"
	world := []client.Object{p, pool(nil)}
	for i := range 12 {
		name := fmt.Sprintf("c%02d", i)
		world = append(world, claim(name, time.Hour, nil), node(name, nil))
	}
	live := apiServer(interceptor.Funcs{}, world...)
	r := newRotator(live, live, s)
	pass(t, r)
	if err := live.Create(t.Context(), claim("c12", time.Hour, nil)); err != nil {
		t.Fatal(err)
	}
	pass(t, r)
	if diff := cmp.Diff([]string{"Warning ThroughputBurstShortfall web"}, s.told()); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	for name, want := range map[string]float64{"throughput_capacity": 2, "t_rot_estimate_seconds": 900, "short_lead_nodes": 0} {
		if got := testutil.ToFloat64(r.announce.metrics.gauges[name].WithLabelValues("web")); got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
}

// R09: the policy comes into an open window with nodes that are due. What is wrong with it
// is told before the first of them is touched, and not again while they are rotated.
func TestR09ABatchIsWarnedOfBeforeItsRotation(t *testing.T) {
	s := &spoken{}
	world := []client.Object{web(), pool(nil)}
	for _, name := range []string{"a", "b", "c"} {
		world = append(world, claim(name, 300*time.Hour, nil), node(name, nil))
	}
	live := apiServer(interceptor.Funcs{}, world...)
	r := newRotator(live, live, s)
	pass(t, r)
	pass(t, r)
	if diff := cmp.Diff([]string{"Warning ThroughputBurstShortfall web", "Normal RotationStarted web"}, s.told()); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// R23: the placeholder of a clamped surge is preempted and created again. That it is clamped
// is told once in the attempt; that it fits nowhere, once until it fits.
func TestAClampAndAPlaceholderWithoutRoomAreToldOnTheNodeClaim(t *testing.T) {
	s := &spoken{}
	a := claim("a", 300*time.Hour, nil)
	a.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
	n := node("a", nil)
	n.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1500m")}
	live := apiServer(interceptor.Funcs{}, web(), pool(nil), a, n, pod("p1", "node-a", "1500m"))
	r := newRotator(live, live, s)
	for range 2 {
		pass(t, r)
		var p corev1.Pod
		key := client.ObjectKey{Namespace: "node-rotation-system", Name: rotation.PlaceholderName("a")}
		if err := live.Get(t.Context(), key, &p); err != nil {
			t.Fatal(err)
		}
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "0/1 nodes are available"}}
		if err := live.Status().Update(t.Context(), &p); err != nil {
			t.Fatal(err)
		}
		pass(t, r)
		r.Now = func() time.Time { return now.Add(6 * time.Minute) } // past provisioningEstimate
		pass(t, r)
		pass(t, r)
		if err := live.Delete(t.Context(), &p); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{"Normal RotationStarted web", "Normal SurgeClamped a", "Warning SurgeUnschedulable a"}
	if diff := cmp.Diff(want, s.told()); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// R22: a pool with a fixed number of nodes says so once in its life, however often its
// policy comes and goes. A pool of the same name that is created later is another one.
func TestR22AStaticPoolSaysSoOncePerUID(t *testing.T) {
	s := &spoken{}
	static := func(uid types.UID) *karpv1.NodePool {
		p := pool(nil)
		p.UID, p.Spec.Replicas = uid, new(int64)
		return p
	}
	live := apiServer(interceptor.Funcs{}, web(), static("1"), claim("a", 300*time.Hour, nil), node("a", nil))
	r := newRotator(live, live, s)
	pass(t, r)
	pass(t, r)
	if err := live.Delete(t.Context(), web()); err != nil {
		t.Fatal(err)
	}
	pass(t, r)
	if err := live.Create(t.Context(), web()); err != nil {
		t.Fatal(err)
	}
	pass(t, r)
	if diff := cmp.Diff([]string{"Warning StaticNodePool web"}, s.told()); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if err := live.Delete(t.Context(), static("1")); err != nil {
		t.Fatal(err)
	}
	if err := live.Create(t.Context(), static("2")); err != nil {
		t.Fatal(err)
	}
	pass(t, r)
	if diff := cmp.Diff([]string{"Warning StaticNodePool web", "Warning StaticNodePool web"}, s.told()); diff != "" {
		t.Errorf("events with the new pool (-want +got):\n%s", diff)
	}
}

// R25: what a drain hangs on is read from the API server, as the cache knows no pods, and
// told once for every change.
func TestR25AStuckDrainNamesWhatItHangsOn(t *testing.T) {
	world := func() []client.Object {
		a := claim("a", 300*time.Hour, pending(2*time.Hour, map[string]string{rotation.AnnotationState: rotation.StateDraining}))
		a.Spec.TerminationGracePeriod = nil
		a.DeletionTimestamp, a.Finalizers = &metav1.Time{Time: now.Add(-62 * time.Minute)}, []string{"karpenter.sh/termination"}
		return []client.Object{web(), pool(anchored(map[string]string{rotation.AnnotationActiveState: "draining"})), a, node("a", surgeFor(nil))}
	}
	w, s := &writes{}, &spoken{}
	live := apiServer(w.hooks(), append(world(), pod("last", "node-a", "600m"))...)
	r := newRotator(apiServer(interceptor.Funcs{}, world()...), live, s)
	var lines []string
	logger := funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{})
	for range 2 {
		if _, err := r.Reconcile(log.IntoContext(t.Context(), logger), reconcile.Request{NamespacedName: types.NamespacedName{Name: "web"}}); err != nil {
			t.Fatal(err)
		}
	}
	if len(lines) != 1 || !strings.Contains(lines[0], `"drain is stuck"`) || !strings.Contains(lines[0], "still on the node: default/last") {
		t.Errorf("logged %q, want one line that names default/last", lines)
	}
	if got := testutil.ToFloat64(r.announce.metrics.gauges["drain_stuck"].WithLabelValues("web")); got != 1 {
		t.Errorf("drain_stuck is %v, want 1", got)
	}
	if len(w.made) > 0 {
		t.Errorf("wrote %q; a drain is not taken back, and the pool stays anchored", w.made)
	}
}

// A lagging cache still shows the stamp of a window that was judged: it is counted once.
func TestAMissedWindowIsToldByTheWriteThatClearsIt(t *testing.T) {
	p, w, s := web(), &writes{}, &spoken{}
	p.Spec.MaintenanceWindows[0].End = "02:00"
	stamped := map[string]string{rotation.AnnotationWindowOpened: now.Add(-time.Hour).Format(time.RFC3339)}
	world := func() []client.Object {
		return []client.Object{p, pool(maps.Clone(stamped)), claim("a", 300*time.Hour, nil), node("a", nil)}
	}
	live := apiServer(w.hooks(), world()...)
	r := newRotator(apiServer(interceptor.Funcs{}, world()...), live, s)
	for range 3 {
		pass(t, r)
		clear(r.recent.written) // as when the cache lags for long
	}
	if diff := cmp.Diff([]string{"patch web"}, w.made); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
	want := []string{"Warning WindowMissed web: The maintenance window seen open at 2026-03-04T01:10:00Z has closed without a rotation: 1 NodeClaims are eligible, 0 in backoff"}
	if diff := cmp.Diff(want, s.events); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if got := testutil.ToFloat64(r.announce.metrics.missed.WithLabelValues("web")); got != 1 {
		t.Errorf("window_missed_total is %v, want 1", got)
	}
	var after karpv1.NodePool
	if err := live.Get(t.Context(), client.ObjectKey{Name: "web"}, &after); err != nil || len(after.Annotations) > 0 {
		t.Errorf("the pool keeps %v (%v)", after.Annotations, err)
	}
}

func TestAShortLifeIsToldOnItsNodeClaimOnce(t *testing.T) {
	p, s := web(), &spoken{}
	p.Spec.AgeThreshold = "auto"
	p.Spec.MaintenanceWindows[0].Start, p.Spec.MaintenanceWindows[0].End = "04:00", "06:00"
	short := claim("a", time.Minute, nil)
	short.Spec.ExpireAfter = karpv1.MustParseNillableDuration("24h")
	live := apiServer(interceptor.Funcs{}, p, pool(nil), short, node("a", nil))
	r := newRotator(live, live, s)
	pass(t, r)
	pass(t, r)
	if diff := cmp.Diff([]string{"Warning ShortLead a"}, s.told()); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if got := testutil.ToFloat64(r.announce.metrics.gauges["short_lead_nodes"].WithLabelValues("web")); got != 1 {
		t.Errorf("short_lead_nodes is %v, want 1", got)
	}
}

// An operator corrects a freeze, and not for the better.
func TestAWarningThatSaysSomethingElseIsTold(t *testing.T) {
	s := &spoken{}
	live := apiServer(interceptor.Funcs{}, web(), pool(map[string]string{rotation.AnnotationFreeze: "tomorrow"}), claim("a", time.Hour, nil), node("a", nil))
	r := newRotator(live, live, s)
	pass(t, r)
	var p karpv1.NodePool
	if err := live.Get(t.Context(), client.ObjectKey{Name: "web"}, &p); err != nil {
		t.Fatal(err)
	}
	p.Annotations[rotation.AnnotationFreeze] = "on monday"
	if err := live.Update(t.Context(), &p); err != nil {
		t.Fatal(err)
	}
	pass(t, r)
	if diff := cmp.Diff([]string{"Warning FreezeInvalid web", "Warning FreezeInvalid web"}, s.told()); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// A placeholder waits while the scheduler counts other nodes every time.
func TestTheReasonForStandingStillIsLoggedOnChange(t *testing.T) {
	var lines []string
	ctx := log.IntoContext(t.Context(), funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{}))
	a := newAnnouncer(&spoken{}, newMetrics(prometheus.NewRegistry()))
	on := claimRef(rotation.Object{Kind: rotation.KindNodePool, Name: "web"})
	for range 3 {
		a.answer(ctx, on, rotation.Decision{Reason: rotation.ReasonOutOfWindow})
	}
	for i := range 3 {
		a.answer(ctx, on, rotation.Decision{Active: "a", Unscheduled: rotation.Waiting{Reason: "Unschedulable", Message: fmt.Sprintf("0/%d nodes", i)}})
	}
	if len(lines) != 2 || !strings.Contains(lines[0], "no rotation candidate") || !strings.Contains(lines[1], "not schedulable") {
		t.Errorf("logged %q, want one line each", lines)
	}
}

// Karpenter took the node before its surge was ready.
func TestAnExpiredRotationIsCountedByTheReleaseOfItsAnchor(t *testing.T) {
	live := apiServer(interceptor.Funcs{}, web(), pool(anchored(nil)))
	r := newRotator(live, live, &spoken{})
	pass(t, r)
	if got := testutil.ToFloat64(r.announce.metrics.completed.WithLabelValues("web", "expired")); got != 1 {
		t.Errorf("completed_total{expired} is %v, want 1", got)
	}
}

func TestARotationThatLosesItsPolicyIsTold(t *testing.T) {
	s := &spoken{}
	live := apiServer(interceptor.Funcs{}, pool(anchored(nil)), claim("a", 300*time.Hour, pending(time.Minute, nil)), node("a", surgeFor(nil)))
	pass(t, newRotator(live, live, s))
	if diff := cmp.Diff([]string{"Warning GovernanceLost web"}, s.told()); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

func TestAFallbackIsCountedAndToldAtItsStart(t *testing.T) {
	p, s := web(), &spoken{}
	p.Spec.Surge.ForcefulFallback.Enabled = true
	live := apiServer(interceptor.Funcs{}, p, pool(nil), claim("a", 335*time.Hour+30*time.Minute, nil), node("a", nil))
	r := newRotator(live, live, s)
	pass(t, r)
	if diff := cmp.Diff([]string{"Normal RotationStarted web", "Warning ForcefulFallback web"}, s.told()); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if got := testutil.ToFloat64(r.announce.metrics.fallback.WithLabelValues("web")); got != 1 {
		t.Errorf("forceful_fallback_total is %v, want 1", got)
	}
}
