package rotator

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/tasuki-io/tasuki/internal/rotation"
)

// written collects log lines in place of a controller's log.
type written struct{ lines []string }

func (w *written) in(ctx context.Context) context.Context {
	return log.IntoContext(ctx, funcr.New(func(_, line string) {
		w.lines = append(w.lines, strings.TrimPrefix(line, `"level"=0 "msg"=`))
	}, funcr.Options{}))
}

// What is said of each durable step: the log line with all that it promises, the Event, and
// the counter.
func TestWhatEachStepSays(t *testing.T) {
	deadline, opened := now.Add(time.Hour), now.Add(-2*time.Hour)
	claimA := rotation.Object{Kind: rotation.KindNodeClaim, Name: "a", UID: "a"}
	placeholder := &rotation.PlaceholderSpec{
		Name: "noderotation-surge-a", For: claimA, Avoided: []string{"host-a"}, Dropped: []string{"team"},
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")},
		Sizing:   rotation.Sizing{Pods: 2, Clamped: true},
		Clamps:   []rotation.Clamp{{Resource: corev1.ResourceCPU, Sum: resource.MustParse("2"), Limit: resource.MustParse("1")}},
	}
	for _, tt := range []struct {
		name   string
		step   rotation.Step
		log    string
		event  string
		metric string // what is no longer zero
	}{
		{
			"a start", rotation.Step{Act: rotation.ActClaimAnchor, Facts: rotation.Facts{NodeClaim: "a", Node: "node-a", Mode: rotation.ModeSurge, Age: 300 * time.Hour, Eligible: 3, Deadline: deadline}},
			`"rotation candidate selected" "nodeclaim"="a" "age"="300h0m0s" "eligible"=3 "deadline"="2026-03-04T03:10:00Z" "surgeless"=false`,
			"Normal RotationStarted web: Rotating NodeClaim a on node node-a, whose deadline is 2026-03-04T03:10:00Z", "",
		},
		{
			"a start that was asked for", rotation.Step{Act: rotation.ActClaimAnchor, Facts: rotation.Facts{NodeClaim: "a", Node: "node-a", Mode: rotation.ModeSurge, Age: time.Hour, Eligible: 1, Deadline: deadline, Requested: rotation.RequestNow, RequestedBy: "mei"}},
			`"rotation candidate selected" "requested"="now" "requestedBy"="mei" "nodeclaim"="a" "age"="1h0m0s" "eligible"=1 "deadline"="2026-03-04T03:10:00Z" "surgeless"=false`,
			"Normal RotationStarted web: Rotating NodeClaim a on node node-a, whose deadline is 2026-03-04T03:10:00Z, as mei asked to now", "",
		},
		{
			"a start without a surge", rotation.Step{Act: rotation.ActClaimAnchor, Facts: rotation.Facts{NodeClaim: "a", Node: "node-a", Mode: rotation.ModeFallback, Age: time.Hour, Eligible: 1, Deadline: deadline}},
			`"rotation candidate selected" "nodeclaim"="a" "age"="1h0m0s" "eligible"=1 "deadline"="2026-03-04T03:10:00Z" "surgeless"=true`,
			"Normal RotationStarted web: Rotating NodeClaim a on node node-a, whose deadline is 2026-03-04T03:10:00Z; " +
				"Warning ForcefulFallback web: NodeClaim a is drained without a surge: its deadline 2026-03-04T03:10:00Z is too near for one", "forceful_fallback_total 1",
		},
		{
			"a placeholder", rotation.Step{Act: rotation.ActCreatePlaceholder, Create: placeholder, Facts: rotation.Facts{NodeClaim: "a"}},
			`"surge placeholder created" "nodeclaim"="a" "placeholder"="noderotation-surge-a" "requests"={"cpu"="1"} "pods"=2 "exclusions"=["host-a"] "clamp"="SurgeClampBandExceeded" "wholeNode"=false "droppedRequirements"=["team"]`,
			"Warning SurgeClampBandExceeded a: the placeholder reserves what Karpenter believes a node like this one can hold: cpu 1 of 2 (short by 1, measured band 0)", "",
		},
		{
			"capacity", rotation.Step{Act: rotation.ActRecordDraining, Facts: rotation.Facts{NodeClaim: "a", SurgeNode: "node-b", SurgeWait: 40 * time.Second, SurgePath: "provisioned"}},
			`"surge node ready" "nodeclaim"="a" "surgeNode"="node-b" "surgeWait"="40s" "surgePath"="provisioned"`, "", "duration_seconds surge_wait 40",
		},
		{"a mirror that was lost", rotation.Step{Act: rotation.ActRecordDraining, Facts: rotation.Facts{NodeClaim: "a", Node: "node-a"}}, "", "", ""},
		{
			"a drain", rotation.Step{Act: rotation.ActDeleteNodeClaim, Facts: rotation.Facts{NodeClaim: "a", Node: "node-a", Mode: rotation.ModeSurge}},
			`"drain started" "nodeclaim"="a" "node"="node-a" "mode"="surge"`, "", "",
		},
		{
			"a failure", rotation.Step{Act: rotation.ActMarkFailed, On: claimA, Facts: rotation.Facts{NodeClaim: "a", Outcome: rotation.Failure, Reason: "no node", Kept: "node-c stays", Timeout: 15 * time.Minute, RetryCount: 2, BackoffUntil: deadline}},
			`"rotation attempt failed" "nodeclaim"="a" "reason"="no node" "readyTimeout"="15m0s" "retryCount"=2 "backoffUntil"="2026-03-04T03:10:00Z" "surgeKept"="node-c stays"`,
			"Warning RotationFailed a: The surge was not ready within 15m0s: no node. Attempt 2 is rolled back; the next one may start from 2026-03-04T03:10:00Z. node-c stays", "completed_total failure 1",
		},
		{
			"a success", rotation.Step{Act: rotation.ActReleaseAnchor, Facts: rotation.Facts{NodeClaim: "a", Outcome: rotation.Success, Mode: rotation.ModeSurge, SurgeNode: "node-b", SurgePath: "absorbed", SurgeWait: 40 * time.Second, Drain: 3 * time.Minute}},
			`"rotation complete" "nodeclaim"="a" "mode"="surge" "drain"="3m0s" "surgeNode"="node-b" "surgeWait"="40s" "surgePath"="absorbed" "total"="3m40s"`,
			"Normal RotationCompleted web: Rotated NodeClaim a (mode surge, surgePath absorbed) in 3m40s", "completed_total success 1, duration_seconds drain 180",
		},
		{
			"a success whose drain nobody can time", rotation.Step{Act: rotation.ActReleaseAnchor, Facts: rotation.Facts{NodeClaim: "a", Outcome: rotation.Success, Mode: rotation.ModeSurge}},
			`"rotation complete" "nodeclaim"="a" "mode"="surge" "drain"="0s" "surgeNode"="" "surgeWait"="0s" "surgePath"="" "total"="0s"`,
			"Normal RotationCompleted web: Rotated NodeClaim a (mode surge) in 0s", "completed_total success 1",
		},
		{
			"an expiry", rotation.Step{Act: rotation.ActReleaseAnchor, Facts: rotation.Facts{NodeClaim: "a", Outcome: rotation.Gone}},
			`"rotation expired, the NodeClaim was deleted before its surge was ready" "nodeclaim"="a"`, "", "completed_total expired 1",
		},
		{
			"a policy that went away", rotation.Step{Act: rotation.ActReleaseAnchor, Facts: rotation.Facts{NodeClaim: "a", Reason: "ungoverned"}},
			`"rotation rolled back, the pool lost its policy" "nodeclaim"="a" "reason"="ungoverned"`,
			"Warning GovernanceLost web: The rotation of NodeClaim a is rolled back, as no single RotationPolicy governs the NodePool any more (ungoverned)", "",
		},
		{"the end of a failure that is told already", rotation.Step{Act: rotation.ActReleaseAnchor, Facts: rotation.Facts{NodeClaim: "a"}}, "", "", ""},
		{
			"a missed window", rotation.Step{Act: rotation.ActMissWindow, Facts: rotation.Facts{WindowOpened: opened, Eligible: 1, InBackoff: 2}},
			`"maintenance window closed with candidates unrotated" "windowOpenedAt"="2026-03-04T00:10:00Z" "eligible"=1 "inBackoff"=2`,
			"Warning WindowMissed web: The maintenance window seen open at 2026-03-04T00:10:00Z has closed without a rotation: 1 NodeClaims are eligible, 2 in backoff", "window_missed_total 1",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, w, reg := &spoken{}, &written{}, prometheus.NewRegistry()
			a := newAnnouncer(s, newMetrics(reg))
			a.step(w.in(t.Context()), claimRef(rotation.Object{Kind: rotation.KindNodePool, Name: "web", UID: "pool"}), tt.step)
			if diff := cmp.Diff(tt.log, strings.Join(w.lines, "\n")); diff != "" {
				t.Errorf("log (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.event, strings.Join(s.events, "; ")); diff != "" {
				t.Errorf("Events (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.metric, nonZero(t, reg)); diff != "" {
				t.Errorf("metrics (-want +got):\n%s", diff)
			}
		})
	}
}

// nonZero lists what has been counted: a histogram by its sum.
func nonZero(t *testing.T, reg *prometheus.Registry) string {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, f := range families {
		for _, m := range f.GetMetric() {
			words := []string{strings.TrimPrefix(f.GetName(), "noderotation_")}
			for _, l := range m.GetLabel() {
				if l.GetName() != "nodepool" {
					words = append(words, l.GetValue())
				}
			}
			if v := m.GetCounter().GetValue() + m.GetHistogram().GetSampleSum(); v > 0 || m.GetHistogram().GetSampleCount() > 0 {
				out = append(out, fmt.Sprintf("%s %v", strings.Join(words, " "), v))
			}
		}
	}
	return strings.Join(out, ", ")
}

// Every time series of a governed pool, with its type, its label and a value of its own.
func TestEveryMetricOfAPool(t *testing.T) {
	reg := prometheus.NewRegistry()
	m := newMetrics(reg)
	d := rotation.Decision{Gauges: rotation.Gauges{
		Governed: true, InProgress: true, WindowOpen: true, DrainStuck: true, FreezeUntil: now, Retries: 3, ShortLead: 4, Period: 5 * time.Second,
		Census:     rotation.Census{rotation.Eligible: 1, rotation.Backoff: 2, rotation.NotDue: 9},
		Terms:      rotation.Terms{Threshold: 6 * time.Second, Chances: 7, TRot: 8 * time.Second},
		Throughput: rotation.Throughput{Capacity: 10, TRotEst: 11 * time.Second},
	}}
	m.set("web", d)
	m.duration.WithLabelValues("web", "drain").Observe(0.5)
	want := `# TYPE noderotation_age_threshold_seconds gauge
noderotation_age_threshold_seconds{nodepool="web"} 6
# TYPE noderotation_candidates gauge
noderotation_candidates{nodepool="web"} 1
# TYPE noderotation_completed_total counter
noderotation_completed_total{nodepool="web",outcome="expired"} 0
noderotation_completed_total{nodepool="web",outcome="failure"} 0
noderotation_completed_total{nodepool="web",outcome="success"} 0
# TYPE noderotation_drain_stuck gauge
noderotation_drain_stuck{nodepool="web"} 1
# TYPE noderotation_duration_seconds histogram
noderotation_duration_seconds_bucket{nodepool="web",phase="drain",le="1"} 1
noderotation_duration_seconds_bucket{nodepool="web",phase="drain",le="5"} 1
noderotation_duration_seconds_bucket{nodepool="web",phase="drain",le="15"} 1
noderotation_duration_seconds_bucket{nodepool="web",phase="drain",le="30"} 1
noderotation_duration_seconds_bucket{nodepool="web",phase="drain",le="60"} 1
noderotation_duration_seconds_bucket{nodepool="web",phase="drain",le="120"} 1
noderotation_duration_seconds_bucket{nodepool="web",phase="drain",le="300"} 1
noderotation_duration_seconds_bucket{nodepool="web",phase="drain",le="600"} 1
noderotation_duration_seconds_bucket{nodepool="web",phase="drain",le="900"} 1
noderotation_duration_seconds_bucket{nodepool="web",phase="drain",le="1800"} 1
noderotation_duration_seconds_bucket{nodepool="web",phase="drain",le="3600"} 1
noderotation_duration_seconds_bucket{nodepool="web",phase="drain",le="7200"} 1
noderotation_duration_seconds_bucket{nodepool="web",phase="drain",le="14400"} 1
noderotation_duration_seconds_bucket{nodepool="web",phase="drain",le="28800"} 1
noderotation_duration_seconds_bucket{nodepool="web",phase="drain",le="86400"} 1
noderotation_duration_seconds_bucket{nodepool="web",phase="drain",le="+Inf"} 1
noderotation_duration_seconds_sum{nodepool="web",phase="drain"} 0.5
noderotation_duration_seconds_count{nodepool="web",phase="drain"} 1
# TYPE noderotation_forceful_fallback_total counter
noderotation_forceful_fallback_total{nodepool="web"} 0
# TYPE noderotation_freeze_until_timestamp gauge
noderotation_freeze_until_timestamp{nodepool="web"} 1.7725902e+09
# TYPE noderotation_in_backoff gauge
noderotation_in_backoff{nodepool="web"} 2
# TYPE noderotation_in_progress gauge
noderotation_in_progress{nodepool="web"} 1
# TYPE noderotation_policy_conflict gauge
noderotation_policy_conflict{nodepool="web"} 0
# TYPE noderotation_retry_count gauge
noderotation_retry_count{nodepool="web"} 3
# TYPE noderotation_rotation_chances gauge
noderotation_rotation_chances{nodepool="web"} 7
# TYPE noderotation_short_lead_nodes gauge
noderotation_short_lead_nodes{nodepool="web"} 4
# TYPE noderotation_t_rot_bound_seconds gauge
noderotation_t_rot_bound_seconds{nodepool="web"} 8
# TYPE noderotation_t_rot_estimate_seconds gauge
noderotation_t_rot_estimate_seconds{nodepool="web"} 11
# TYPE noderotation_throughput_capacity gauge
noderotation_throughput_capacity{nodepool="web"} 10
# TYPE noderotation_window_active gauge
noderotation_window_active{nodepool="web"} 1
# TYPE noderotation_window_missed_total counter
noderotation_window_missed_total{nodepool="web"} 0
# TYPE noderotation_window_period_seconds gauge
noderotation_window_period_seconds{nodepool="web"} 5
`
	if diff := cmp.Diff(want, exposed(t, reg)); diff != "" {
		t.Errorf("metrics (-want +got):\n%s", diff)
	}

	d.Reason = rotation.ReasonInfeasible
	d.Gauges.FreezeUntil, d.Gauges.FreezeUnreadable = time.Time{}, true
	m.set("web", d)
	for name, want := range map[string]string{"rotation_chances": "0", "freeze_until_timestamp": "+Inf"} {
		if got := fmt.Sprint(testutil.ToFloat64(m.gauges[name].WithLabelValues("web"))); got != want {
			t.Errorf("%s of a policy that cannot work, under a freeze that cannot be read: %s, want %s", name, got, want)
		}
	}
	m.set("web", rotation.Decision{Gauges: rotation.Gauges{Conflict: true}})
	if n, v := testutil.CollectAndCount(m.gauges["candidates"]), testutil.ToFloat64(m.conflict.WithLabelValues("web")); n != 0 || v != 1 {
		t.Errorf("in a conflict: %d gauges, policy_conflict %v", n, v)
	}
	m.set("web", rotation.Decision{})
	if n := testutil.CollectAndCount(m.conflict); n != 0 {
		t.Errorf("policy_conflict of a pool that no policy selects: %d series, want none", n)
	}
}

// exposed is what a scrape shows, without the HELP lines.
func exposed(t *testing.T, reg *prometheus.Registry) string {
	t.Helper()
	answer := httptest.NewRecorder()
	promhttp.HandlerFor(reg, promhttp.HandlerOpts{}).ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	var b strings.Builder
	for line := range strings.Lines(answer.Body.String()) {
		if !strings.HasPrefix(line, "# HELP") {
			b.WriteString(line)
		}
	}
	return b.String()
}

// Why a pool stands still is logged when it changes, and not at every look.
func TestTheReasonForStandingStillIsLoggedOnChangeOnly(t *testing.T) {
	p, w := web(), &written{}
	p.Spec.MaintenanceWindows[0].Start, p.Spec.MaintenanceWindows[0].End = "02:00", "06:00"
	live := apiServer(interceptor.Funcs{}, p, pool(nil), claim("a", time.Hour, nil), node("a", nil))
	r := newRotator(live, live, &spoken{})
	for _, at := range []time.Duration{0, time.Minute, 4 * time.Hour, 5 * time.Hour} {
		r.Now = func() time.Time { return now.Add(at) }
		if _, err := r.Reconcile(w.in(t.Context()), reconcile.Request{NamespacedName: client.ObjectKey{Name: "web"}}); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{
		`"no rotation candidate" "reason"="noCandidate" "detail"="notDue=1"`,
		`"no rotation candidate" "reason"="outOfWindow" "detail"="the next window opens at 2026-03-05T02:00:00Z"`,
	}
	if diff := cmp.Diff(want, w.lines); diff != "" {
		t.Errorf("log (-want +got):\n%s", diff)
	}
}

// Whatever is swept is logged, on a pass as at the start.
func TestAPassLogsWhatItSweeps(t *testing.T) {
	live := apiServer(interceptor.Funcs{}, append(orphans(), web())...)
	r, s, w := newRotator(live, live, nil), &spoken{}, &written{}
	r.announce = newAnnouncer(s, newMetrics(prometheus.NewRegistry()))
	if _, err := r.Reconcile(w.in(t.Context()), reconcile.Request{NamespacedName: client.ObjectKey{Name: "web"}}); err != nil {
		t.Fatal(err)
	}
	want := []string{
		`"sweep: deleted an orphaned placeholder" "placeholder"="noderotation-surge-a" "nodeclaim"="a"`,
		`"sweep: unfroze a node" "node"="node-a" "nodeclaim"="a"`,
		`"sweep: unfroze a node" "node"="node-b" "nodeclaim"="a"`,
		`"sweep: failed an orphaned attempt" "nodeclaim"="a" "reason"="state pending without a rotation that owns it"`,
		`"sweep: cleared what an ended rotation left on the pool" "annotations"=["noderotation.io/active-rotation-state"]`,
	}
	if diff := cmp.Diff(want, w.lines); diff != "" {
		t.Errorf("log (-want +got):\n%s", diff)
	}
}

// The scheduler's word on a placeholder counts nodes of the whole cluster and changes with
// any of them. It is logged once, until its reason changes.
func TestTheSchedulersWordIsLoggedOnce(t *testing.T) {
	p := placeholderOn("")
	p.Status.Phase = corev1.PodPending
	live := apiServer(interceptor.Funcs{}, web(), pool(anchored(nil)), claim("a", 300*time.Hour, pending(time.Minute, nil)), node("a", surgeFor(map[string]string{rotation.AnnotationCordoned: "true"})), p)
	r, w := newRotator(live, live, &spoken{}), &written{}
	for _, says := range [][2]string{{"Unschedulable", "0/1 nodes"}, {"Unschedulable", "0/2 nodes"}, {"SchedulerError", "no answer"}} {
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: says[0], Message: says[1]}}
		if err := live.Status().Update(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		for range 2 { // the first cordons the node
			if _, err := r.Reconcile(w.in(t.Context()), reconcile.Request{NamespacedName: client.ObjectKey{Name: "web"}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	want := []string{
		`"surge placeholder is not schedulable" "nodeclaim"="a" "reason"="Unschedulable" "detail"="0/1 nodes"`,
		`"surge placeholder is not schedulable" "nodeclaim"="a" "reason"="SchedulerError" "detail"="no answer"`,
	}
	if diff := cmp.Diff(want, w.lines); diff != "" {
		t.Errorf("log (-want +got):\n%s", diff)
	}
}

// Every line of a pass names its pool, as what a person looks for.
func TestALineNamesItsPool(t *testing.T) {
	w := &written{}
	o := options(log.FromContext(w.in(t.Context())))
	o.LogConstructor(&reconcile.Request{NamespacedName: client.ObjectKey{Name: "web"}}).Info("hello")
	o.LogConstructor(nil).Info("hello")
	if diff := cmp.Diff([]string{`"hello" "nodepool"="web"`, `"hello"`}, w.lines); diff != "" {
		t.Errorf("log (-want +got):\n%s", diff)
	}
}

// What the surge wants moves with every pod of the candidate. That there is no room for it does
// not, and is told once.
func TestTooLittleHeadroomIsToldOnce(t *testing.T) {
	s := &spoken{}
	full := pool(nil)
	full.Spec.Limits = karpv1.Limits{"cpu": resource.MustParse("1")}
	live := apiServer(interceptor.Funcs{}, web(), full, claim("a", 300*time.Hour, nil), node("a", nil), pod("p0", "node-a", "2"))
	r := newRotator(live, live, s)
	for i := range 5 {
		pass(t, r)
		if err := live.Create(t.Context(), pod(fmt.Sprint("p", i+1), "node-a", "100m")); err != nil {
			t.Fatal(err)
		}
	}
	var told []string
	for _, e := range s.events {
		if strings.Contains(e, "InsufficientHeadroom") {
			told = append(told, e)
		}
	}
	if len(told) != 1 {
		t.Errorf("told %q, want it once", told)
	}
}
