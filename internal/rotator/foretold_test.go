package rotator

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/tasuki-io/tasuki/api/v1alpha1"
	"github.com/tasuki-io/tasuki/internal/rotation"
)

// The controller runs for some days, and some of what Karpenter launches for it never comes up.
// At any moment, be it between two writes, somebody makes a plan; from then on Karpenter is in
// time. What the controller then does is what the plan says: it rotates the same nodes in the
// same windows, to the nanosecond, and loses the same ones. A thousand
// fleets take ten seconds.
func TestThePlanIsWhatTheControllerDoes(t *testing.T) {
	seen := map[string]int{}
	rounds := 10 // of a hundred
	if testing.Short() {
		rounds = 1
	}
	for range rounds {
		rapid.Check(t, func(t *rapid.T) { planAndRun(t, seen) })
	}
	t.Log(seen)
	for _, want := range []string{"at rest", "anchored pending", "anchored draining", "lost outOfWindow", "lost insufficientHeadroom", "lost frozen", "rotated surge", "rotated forceful-fallback"} {
		if seen[want] == 0 && !testing.Short() {
			t.Errorf("no fleet was %s: they are too tame", want)
		}
	}
}

func planAndRun(t *rapid.T, seen map[string]int) {
	f := drawForetold(t)
	f.writes = rapid.IntRange(-1, 40).Draw(t, "writes")
	if f.run(t, f.api.now.Add(time.Duration(96-rapid.IntRange(0, 96).Draw(t, "hours"))*time.Hour)) {
		for range rapid.IntRange(0, 20).Draw(t, "minutes away") {
			f.api.now = f.api.now.Add(time.Minute)
			f.karpenter()
		}
	}
	f.writes = -1

	now := f.api.now
	f.to = now.AddDate(0, 0, rapid.IntRange(1, 12).Draw(t, "days"))
	plans, then := f.photo().Plans(now, f.to), f.String()
	for _, o := range f.api.objects[simPools] {
		phase := "at rest"
		if name := o.GetAnnotations()[rotation.AnnotationActive]; name != "" {
			phase = "anchored"
			if c := f.api.get(simClaims, name); c != nil {
				phase += " " + c.GetAnnotations()[rotation.AnnotationState]
			} else {
				phase += " gone"
			}
		}
		seen[phase]++
	}
	f.settle(plans)
	f.run(t, f.to)
	for _, p := range plans {
		var want, got []rotation.Turn
		for _, turn := range p.Turns {
			if turn.Lost != "" {
				seen["lost "+turn.Lost]++
				turn.Lost = "lost"
			} else {
				seen["rotated "+turn.Mode]++
			}
			want = append(want, turn)
		}
		got = f.turns[p.NodePool]
		if p.Policy == nil {
			if slices.ContainsFunc(got, func(turn rotation.Turn) bool { return turn.Lost == "" }) {
				t.Fatalf("NodePool %s, which nobody governs, is rotated: %+v", p.NodePool, got)
			}
			continue
		}
		slices.SortStableFunc(got, func(a, b rotation.Turn) int {
			return cmp.Or(a.Start.Compare(b.Start), cmp.Compare(a.NodeClaim, b.NodeClaim))
		})
		if diff := gocmp.Diff(want, got); diff != "" {
			t.Fatalf("NodePool %s, from %s until %s (-plan +controller):\n%s\nof\n%s", p.NodePool, now, f.to, diff, then)
		}
	}
}

var everyWeekday = []v1alpha1.Weekday{"Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"}

// foretoldWindows are of both hemispheres, across midnight, and of days on which the clocks change.
var foretoldWindows = [][]v1alpha1.MaintenanceWindow{
	{{Timezone: "UTC", Days: everyWeekday, Start: "00:00", End: "24:00"}},
	{{Timezone: "UTC", Days: everyWeekday, Start: "02:00", End: "06:00"}},
	{{Timezone: "Asia/Tokyo", Days: []v1alpha1.Weekday{"Wed", "Sat"}, Start: "02:00", End: "06:00"}},
	{{Timezone: "Europe/Berlin", Days: everyWeekday, Start: "23:00", End: "02:30"}},
	{{Timezone: "Australia/Sydney", Days: []v1alpha1.Weekday{"Sun", "Mon"}, Start: "02:30", End: "03:00"}, {Timezone: "UTC", Days: []v1alpha1.Weekday{"Thu"}, Start: "12:00", End: "13:00"}},
}

// drawForetold draws pools of all kinds, at rest but for what happens to their nodes.
func drawForetold(t *rapid.T) *fleet {
	near := rapid.SampledFrom([]string{"2026-03-28T00:00:00Z", "2026-04-03T12:00:00Z", "2026-06-10T00:00:00Z", "2026-10-24T00:00:00Z"}).Draw(t, "near")
	start, err := time.Parse(time.RFC3339, near)
	if err != nil {
		t.Fatal(err)
	}
	minutes := func(most int, what string) time.Duration {
		return time.Duration(rapid.IntRange(0, most).Draw(t, what)) * time.Minute
	}
	start = start.Add(minutes(24*60, "start") + time.Duration(rapid.SampledFrom([]int{0, 1, 999_999_999}).Draw(t, "ns")))
	f := &fleet{api: &simServer{now: start}, writes: -1, started: map[string]time.Time{}, turns: map[string][]rotation.Turn{}, heirs: map[string]string{}}
	f.duds = rapid.SliceOfN(rapid.Bool(), 0, 4).Draw(t, "duds")
	of := func(values ...string) karpv1.NillableDuration {
		return karpv1.MustParseNillableDuration(rapid.SampledFrom(values).Draw(t, "life"))
	}
	grace := func() *metav1.Duration {
		d := rapid.SampledFrom([]time.Duration{time.Hour, time.Hour, 0, 24 * time.Hour, -1}).Draw(t, "grace")
		if d < 0 {
			return nil
		}
		return &metav1.Duration{Duration: d}
	}
	for _, name := range []string{"blue", "green", "red"}[:rapid.IntRange(1, 3).Draw(t, "pools")] {
		x := policy(name, map[string]string{"pool": name})
		x.UID = ""
		x.Spec.MaintenanceWindows = rapid.SampledFrom(foretoldWindows).Draw(t, "windows")
		x.Spec.AgeThreshold = rapid.SampledFrom([]string{"auto", "auto", "24h", "100h"}).Draw(t, "age")
		x.Spec.MinRotationChances = int32(rapid.IntRange(1, 2).Draw(t, "chances"))
		x.Spec.Surge.CooldownAfter.Duration = rapid.SampledFrom([]time.Duration{10 * time.Minute, 0, 3 * time.Hour}).Draw(t, "cooldown")
		x.Spec.Surge.RetryBackoff.Duration = rapid.SampledFrom([]time.Duration{30 * time.Minute, 2 * time.Hour}).Draw(t, "backoff")
		x.Spec.Surge.FailurePause = rapid.SampledFrom([]*metav1.Duration{nil, {Duration: time.Hour}}).Draw(t, "pause")
		x.Spec.Surge.DrainEstimate = rapid.SampledFrom([]*metav1.Duration{nil, {}, {Duration: 3 * time.Hour}}).Draw(t, "drain")
		x.Spec.Surge.ForcefulFallback.Enabled = rapid.Bool().Draw(t, "fallback")
		x.Spec.Surge.WholeNodeReservation.Enabled = rapid.Bool().Draw(t, "whole")
		switch rapid.IntRange(0, 9).Draw(t, "governed") {
		case 0: // by nobody
		case 1: // by two
			rival := x.DeepCopy()
			rival.Name = "rival-" + name
			_ = f.api.create("person", simPolicies, rival)
			fallthrough
		default:
			_ = f.api.create("person", simPolicies, x)
		}
		p := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"pool": name}}}
		p.Spec.Template.Spec.ExpireAfter, p.Spec.Template.Spec.TerminationGracePeriod = of("240h", "240h", "72h", "Never"), grace()
		if rapid.IntRange(0, 14).Draw(t, "static") == 0 {
			p.Spec.Replicas = new(int64(3))
		}
		switch rapid.IntRange(0, 4).Draw(t, "limits") {
		case 0:
			p.Spec.Limits, p.Status.Resources = karpv1.Limits(resources("nodes", "4")), resources("nodes", "4")
		case 1: // room for the pods of some
			p.Spec.Limits, p.Status.Resources = karpv1.Limits(resources("cpu", "6")), resources("cpu", "4")
		}
		switch rapid.IntRange(0, 7).Draw(t, "freeze") {
		case 0:
			p.Annotations = map[string]string{rotation.AnnotationFreeze: start.Add(minutes(5*24*60, "until")).Format(time.RFC3339)}
		case 1:
			p.Annotations = map[string]string{rotation.AnnotationFreeze: "friday"}
		}
		_ = f.api.create("person", simPools, p)
		for i := range rapid.IntRange(0, 5).Draw(t, "claims") {
			f.api.now = start.Add(-minutes(10*24*60, "age"))
			if rapid.Bool().Draw(t, "old") { // small numbers are drawn more often
				f.api.now = start.Add(-10*24*time.Hour + start.Sub(f.api.now)/2)
			}
			c := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{
				Name: fmt.Sprintf("%s-%c", name, 'a'+i), Labels: map[string]string{karpv1.NodePoolLabelKey: name}, Finalizers: []string{"karpenter.sh/termination"},
			}}
			c.Spec.ExpireAfter, c.Spec.TerminationGracePeriod = of("240h", "300h", "240h", "72h", "20h", "Never"), grace()
			c.Status.Allocatable = resources("cpu", "4")
			_ = f.api.create("karpenter", simClaims, c)
			if rapid.IntRange(0, 9).Draw(t, "up") == 0 {
				continue
			}
			f.register(c.Name)
			n := f.api.get(simNodes, c.Name)
			switch rapid.IntRange(0, 9).Draw(t, "node") {
			case 0:
				f.api.change("person", simNodes, n, func(o client.Object) {
					o.SetAnnotations(map[string]string{rotation.AnnotationDoNotDisrupt: "true"})
				})
			case 1:
				f.api.change("karpenter", simNodes, n, func(o client.Object) { o.(*corev1.Node).Status.Conditions = nil })
				f.api.change("karpenter", simClaims, f.api.get(simClaims, c.Name), func(o client.Object) { o.(*karpv1.NodeClaim).Status.Conditions = nil })
			}
			for j := range rapid.IntRange(0, 2).Draw(t, "pods") {
				w := pod(fmt.Sprintf("web-%s-%d", c.Name, j), c.Name, "1500m")
				_ = f.api.create("workload", simPods, w)
				f.api.change("kubelet", simPods, w, func(o client.Object) { o.(*corev1.Pod).Status.Phase = corev1.PodRunning })
			}
		}
	}
	f.api.now = start
	f.api.observe = f.heard
	return f
}

func resources(name corev1.ResourceName, quantity string) corev1.ResourceList {
	return corev1.ResourceList{name: resource.MustParse(quantity)}
}
