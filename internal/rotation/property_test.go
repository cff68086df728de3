package rotation

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"
)

// drawWorld draws a pool in any state, reached or unreachable: what a person with kubectl,
// a crash, and Karpenter could leave behind between them.
func drawWorld(t *rapid.T) *world {
	w := newWorld(time.Date(2026, 6, 10, 0, 0, 0, 0, time.UTC).
		Add(time.Duration(rapid.IntRange(0, 5*24*60).Draw(t, "minute"))*time.Minute + time.Duration(rapid.SampledFrom([]int{0, 1, 999_999_999}).Draw(t, "ns"))))
	w.Governance = drawGovernance(t)
	w.NodePool = NodePool{
		Object: w.object(KindNodePool, "blue"), GracePeriod: ptr(time.Hour), ExpireAfter: ptr(14 * day),
		Static: rapid.IntRange(0, 9).Draw(t, "static") == 0,
		Limits: list("cpu", "4"), InUse: list("cpu", rapid.SampledFrom([]string{"0", "3500m"}).Draw(t, "in use")),
		Annotations: drawStamps(t, w.now, AnnotationFreeze, AnnotationLastRotation, AnnotationLastFailure, AnnotationWindowOpened),
	}
	names := []string{"blue-a", "blue-b", "blue-c"}
	for _, name := range names[:rapid.IntRange(1, 3).Draw(t, "claims")] {
		drawClaim(t, w, name, names)
	}
	if rapid.Bool().Draw(t, "anchored") {
		drawAnchor(t, w)
	}
	return w
}

func drawGovernance(t *rapid.T) Governance {
	switch rapid.IntRange(0, 9).Draw(t, "governance") {
	case 0:
		return Governance{}
	case 1:
		return Governance{Conflict: []string{"a", "b"}}
	}
	entry := rapid.SampledFrom([]string{"Wed,Sat 02:00-06:00 UTC", "daily 00:00-24:00 UTC", "daily 22:00-02:00 Asia/Tokyo", "Thu 09:00-10:00 UTC"}).Draw(t, "windows")
	p, err := testPolicy(time.Date(2026, 6, 8, 0, 0, 0, 0, time.UTC), entry)
	if err != nil {
		t.Fatal(err)
	}
	p.Chances = rapid.IntRange(1, 2).Draw(t, "K")
	p.AgeThreshold = rapid.SampledFrom([]time.Duration{0, 0, 5 * day}).Draw(t, "ageThreshold")
	p.ReadyTimeout = rapid.SampledFrom([]time.Duration{time.Minute, 15 * time.Minute}).Draw(t, "readyTimeout")
	p.CooldownAfter = rapid.SampledFrom([]time.Duration{0, 10 * time.Minute}).Draw(t, "cooldownAfter")
	p.ForcefulFallback = rapid.IntRange(0, 3).Draw(t, "fallback") == 0
	if rapid.IntRange(0, 19).Draw(t, "valid") == 0 {
		p.Invalid = "the zone is unknown"
	}
	return Governance{Policy: p}
}

// drawStamps annotates some of the keys with an instant near now, or with nonsense.
func drawStamps(t *rapid.T, now time.Time, keys ...string) map[string]string {
	a := map[string]string{}
	for _, k := range keys {
		switch rapid.IntRange(0, 6).Draw(t, short(k)) {
		case 0, 1:
			a[k] = stamp(now.Add(time.Duration(rapid.IntRange(-300, 60).Draw(t, short(k)+" minutes")) * time.Minute))
		case 2:
			a[k] = rapid.SampledFrom([]string{"", "noon", "2026-06-10"}).Draw(t, short(k)+" nonsense")
		}
	}
	return a
}

func drawClaim(t *rapid.T, w *world, name string, names []string) {
	c := NodeClaim{
		Object: Object{Name: name}, GracePeriod: ptr(time.Hour), Ready: rapid.IntRange(0, 4).Draw(t, "ready") > 0,
		Created:     w.now.Add(-time.Duration(rapid.IntRange(0, 15*24).Draw(t, "age")) * time.Hour).Truncate(time.Second),
		ExpireAfter: rapid.SampledFrom([]*time.Duration{ptr(14 * day), ptr(14 * day), ptr(12 * day), nil}).Draw(t, "expireAfter"),
		Annotations: drawStamps(t, w.now, AnnotationStartedAt, AnnotationFailedAt),
	}
	if rapid.IntRange(0, 9).Draw(t, "deleting") == 0 {
		c.Deleting = w.now.Add(-time.Minute)
	}
	if s := rapid.SampledFrom([]string{"", "", "", StatePending, StatePending, StateDraining, StateFailed, StateExpired, "paused"}).Draw(t, "state"); s != "" {
		c.Annotations[AnnotationState] = s
	}
	if r := rapid.SampledFrom([]string{"", "1", "4", "many", strconv.Itoa(1 << 62)}).Draw(t, "retries"); r != "" {
		c.Annotations[AnnotationRetryCount] = r
	}
	if rapid.IntRange(0, 3).Draw(t, "surge claim") == 0 {
		c.Annotations[AnnotationSurgeClaim] = rapid.SampledFrom(append(names, "gone")).Draw(t, "surge claim")
	}
	if rapid.IntRange(0, 5).Draw(t, "registered") > 0 {
		c.NodeName = "node-" + name
	}
	w.join(c)
	if c.NodeName == "" {
		return
	}
	w.change(c.NodeName, func(n *Node) {
		n.Ready = rapid.IntRange(0, 5).Draw(t, "node ready") > 0
		n.Deleting = rapid.IntRange(0, 9).Draw(t, "node deleting") == 0
		n.Unschedulable = rapid.IntRange(0, 3).Draw(t, "cordoned") == 0
		if rapid.IntRange(0, 9).Draw(t, "disrupted") == 0 {
			n.Taints = []corev1.Taint{{Key: taintDisrupt}}
		}
		n.Annotations = drawMarkers(t, names)
	})
	for i := range rapid.IntRange(0, 2).Draw(t, "pods") {
		w.Pods[c.NodeName] = append(w.Pods[c.NodeName], runningPod(fmt.Sprintf("%s-%d", name, i), "cpu", "600m"))
	}
}

func drawMarkers(t *rapid.T, names []string) map[string]string {
	a := map[string]string{"example.com/rack": "7"}
	for _, m := range []struct {
		key    string
		values []string
	}{
		{AnnotationDoNotDisrupt, []string{"true", "true", "false"}}, {AnnotationDoNotDisruptOwned, []string{"true", "true", "yes"}},
		{AnnotationCordoned, []string{"true", "true", "yes"}}, {AnnotationSurgeFor, names},
	} {
		if rapid.IntRange(0, 2).Draw(t, short(m.key)) == 0 {
			a[m.key] = rapid.SampledFrom(m.values).Draw(t, short(m.key)+" value")
		}
	}
	return a
}

func drawAnchor(t *rapid.T, w *world) {
	active := rapid.SampledFrom([]string{"blue-a", "blue-a", "blue-a", "blue-b", "gone"}).Draw(t, "active")
	edit(&w.NodePool.Annotations, map[string]string{AnnotationActive: active}, nil)
	if rapid.IntRange(0, 3).Draw(t, "mirror") == 0 {
		edit(&w.NodePool.Annotations, map[string]string{
			AnnotationActiveState: StateDraining, AnnotationDrainingAt: stamp(w.now.Add(-time.Minute)), AnnotationSurgeWait: "40s", AnnotationSurgePath: PathAbsorbed,
		}, nil)
	}
	if rapid.IntRange(0, 2).Draw(t, "placeholder") == 0 {
		return
	}
	w.Placeholder = &Placeholder{
		Object: w.object(KindPlaceholder, PlaceholderName(active)), SurgeFor: active,
		NodeName: rapid.SampledFrom([]string{"", "node-blue-a", "node-blue-b", "node-blue-b", "green-1"}).Draw(t, "bound to"),
		Phase:    rapid.SampledFrom([]corev1.PodPhase{corev1.PodPending, corev1.PodRunning, corev1.PodRunning, corev1.PodFailed}).Draw(t, "phase"),
		Deleting: rapid.IntRange(0, 5).Draw(t, "preempted") == 0,
	}
}

func TestDecideIsAFunctionOfItsArguments(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		s := w.view()
		first := Decide(s, w.now)
		focus := Focus(s, w.now)
		if !reflect.DeepEqual(s, w.view()) {
			t.Fatal("the snapshot has changed")
		}
		for range 3 {
			if again := Decide(w.view(), w.now); !reflect.DeepEqual(first, again) {
				t.Fatalf("it decides otherwise:\n%s", cmp.Diff(say(first), say(again)))
			}
			if again := Focus(w.view(), w.now); !reflect.DeepEqual(focus, again) {
				t.Fatalf("it looks elsewhere: %v, then %v", focus, again)
			}
		}
	})
}

// say is a decision without its gauges, in words.
func say(d Decision) []string {
	lines := []string{d.Active, string(d.Reason), d.Detail}
	for _, st := range d.Plan {
		lines = append(lines, st.String())
	}
	return lines
}

// A plan that has been carried out leaves nothing to do at the same instant, unless it has
// released the pool to its next rotation, or a window that waited for it to be judged, or marks on
// the Node of its NodeClaim that were not its own.
func TestAPlanIsCarriedOutOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		first := w.decide()
		if first.Reason == ReasonSweeping { // what is left over goes before anything is decided
			if _, err := w.act(first.Plan, -1); err != nil {
				t.Fatal(err)
			}
			if first = w.decide(); first.Reason == ReasonSweeping {
				t.Fatalf("it sweeps again: %q", acts(first.Plan))
			}
		}
		plan := first.Plan
		if _, err := w.act(plan, -1); err != nil {
			t.Fatal(err)
		}
		next := w.decide().Plan
		for _, follows := range [][]Act{{ActReleaseNode}, {ActClaimAnchor, ActStampWindow, ActSettleWindow, ActMissWindow}} {
			if len(plan) > 0 && plan[len(plan)-1].Act == ActReleaseAnchor && len(next) > 0 && slices.Contains(follows, next[0].Act) {
				if _, err := w.act(next, -1); err != nil {
					t.Fatal(err)
				}
				next = w.decide().Plan
			}
		}
		if len(next) > 0 {
			t.Fatalf("after %q it would still %q", acts(plan), acts(next))
		}
	})
}

// Killed anywhere in a plan, the controller is led to where the whole plan leads: the same
// marks, when no time has passed.
func TestAPlanResumesWhereItWasInterrupted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		plan := w.decide().Plan
		if last, _ := readStamp(w.NodePool.Annotations, AnnotationLastFailure); len(plan) == 0 || last.After(w.now) {
			return // a failure of the future is overwritten by one of now, and kept by a resumed one
		}
		whole := &world{Snapshot: w.view(), now: w.now, versions: w.versions}
		if err := whole.run1(-1); err != nil {
			t.Fatal(err)
		}
		for range 20 {
			if err := w.run1(rapid.IntRange(0, 3).Draw(t, "steps")); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.run1(-1); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(whole.marks(), w.marks()); diff != "" {
			t.Fatalf("%s (-whole +interrupted):\n%s", acts(plan), diff)
		}
	})
}

// run1 acts on what is decided now until nothing is; n limits the steps of one plan.
func (w *world) run1(n int) error {
	_, err := w.act(w.decide().Plan, n)
	for i := 0; n < 0 && err == nil && i < 5; i++ {
		_, err = w.act(w.decide().Plan, n)
	}
	return err
}

// Until its wake-up an answer holds, as long as nothing happens; and no wake-up has passed.
func TestTheAnswerHoldsUntilItsWakeUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		d := w.decide()
		if !d.Wake.IsZero() && !d.Wake.After(w.now) {
			t.Fatalf("wake at %s, and it is %s", d.Wake, w.now)
		}
		if len(d.Plan) > 0 {
			return
		}
		left := 300 * day
		if !d.Wake.IsZero() {
			left = d.Wake.Sub(w.now)
		}
		for _, later := range []time.Duration{left - 1, time.Duration(rapid.Int64Range(0, int64(left)-1).Draw(t, "later"))} {
			if again := Decide(w.view(), w.now.Add(later)); !reflect.DeepEqual(say(d), say(again)) {
				t.Fatalf("%s later, before its wake-up after %s:\n%s", later, left, cmp.Diff(say(d), say(again)))
			}
		}
	})
}

func TestReleaseNeverTakesWhatIsNotOurs(t *testing.T) {
	names := []string{"blue-a", "blue-b"}
	rapid.Check(t, func(t *rapid.T) {
		n := nodeWith(rapid.Bool().Draw(t, "cordoned"))
		n.Annotations = drawMarkers(t, names)
		st := release(n, "blue-a")
		if st.Unschedulable != nil && n.Annotations[AnnotationCordoned] != "true" {
			t.Fatal("it undoes an operator's cordon")
		}
		if len(st.Set) > 0 || n.Unschedulable && st.Unschedulable != nil && *st.Unschedulable {
			t.Fatal("it puts something on the node")
		}
		for _, k := range st.Clear {
			if k == AnnotationDoNotDisrupt && n.Annotations[AnnotationDoNotDisruptOwned] == "true" {
				continue
			}
			if k != AnnotationSurgeFor && k != AnnotationDoNotDisruptOwned && k != AnnotationCordoned {
				t.Fatalf("it removes %s", k)
			}
		}
	})
}

// What an operator has put on a node survives a rotation, and nothing of ours does.
func TestAFrozenNodeIsReleasedAsItWas(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(time.Now())
		n := nodeWith(rapid.Bool().Draw(t, "cordoned"), "example.com/rack", "7")
		if v := rapid.SampledFrom([]string{"", "true", "false", "TRUE"}).Draw(t, "do-not-disrupt"); v != "" {
			n.Annotations[AnnotationDoNotDisrupt] = v
		}
		w.Nodes["node-a"] = n
		want := maps.Clone(n.Annotations)
		if want[AnnotationDoNotDisrupt] != "true" {
			delete(want, AnnotationDoNotDisrupt) // it protected nothing, and was taken over
		}
		for range rapid.IntRange(1, 3).Draw(t, "passes") {
			if st, missing := freeze(w.Nodes["node-a"], "blue-a", rapid.Bool().Draw(t, "candidate")); missing {
				if _, err := w.patch(st); err != nil {
					t.Fatal(err)
				}
			}
		}
		if _, err := w.patch(release(w.Nodes["node-a"], "blue-a")); err != nil {
			t.Fatal(err)
		}
		got := w.Nodes["node-a"]
		if diff := cmp.Diff(want, got.Annotations); diff != "" || got.Unschedulable != n.Unschedulable {
			t.Fatalf("unschedulable %t, was %t; annotations (-want +got):\n%s", got.Unschedulable, n.Unschedulable, diff)
		}
	})
}

// Whatever stands in an annotation, a decision is made, and it breaks no law.
func FuzzAnnotations(f *testing.F) {
	f.Add("tomorrow", "2026-06-10T01:00:00Z", "x", "blue-a", "draining", "2026-06-10T02:00:00Z", "40s", "pending", "2026-06-10T02:00:00Z", "", "1", "blue-b", "true", "true", "true", "blue-a", int64(0))
	f.Add("", "", "", "gone", "", "", "", "failed", "9999-12-31T23:59:59Z", "0001-01-01T00:00:00Z", "-9223372036854775808", "blue-a", "false", "yes", "", "", int64(1)<<40)
	f.Add("0000-01-01T00:00:00Z", "", "", "", "", "", "", "draining", "", "", "9223372036854775807", "", "", "", "", "", int64(-1))
	f.Fuzz(func(t *testing.T, freeze, rotation, failure, active, mirror, drainingAt, wait, state, started, failed, retries, surge, dnd, own, cordoned, surgeFor string, later int64) {
		w := pendingRotation(t)
		put := func(to *map[string]string, pairs ...string) {
			for i := 0; i < len(pairs); i += 2 {
				if pairs[i+1] != "" {
					edit(to, map[string]string{pairs[i]: pairs[i+1]}, nil)
				}
			}
		}
		put(&w.NodePool.Annotations, AnnotationFreeze, freeze, AnnotationLastRotation, rotation, AnnotationLastFailure, failure,
			AnnotationActive, active, AnnotationActiveState, mirror, AnnotationDrainingAt, drainingAt, AnnotationSurgeWait, wait)
		put(&w.claim("blue-a").Annotations, AnnotationState, state, AnnotationStartedAt, started, AnnotationFailedAt, failed, AnnotationRetryCount, retries, AnnotationSurgeClaim, surge)
		w.change("node-a", func(n *Node) {
			put(&n.Annotations, AnnotationDoNotDisrupt, dnd, AnnotationDoNotDisruptOwned, own, AnnotationCordoned, cordoned, AnnotationSurgeFor, surgeFor)
		})
		w.now = w.now.Add(time.Duration(later))
		for range 4 {
			Focus(w.view(), w.now)
			if _, err := w.act(w.decide().Plan, -1); errors.As(err, &unlawful{}) {
				t.Fatal(err)
			}
			w.now = w.now.Add(time.Hour)
		}
	})
}
