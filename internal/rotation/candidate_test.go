package rotation

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/tasuki-io/tasuki/internal/window"
)

func TestR09EarliestDeadlineThenBirthThenName(t *testing.T) {
	type claim struct {
		name        string
		age, expire time.Duration
	}
	for _, tt := range []struct {
		name      string
		threshold time.Duration
		claims    []claim
		want      string
	}{
		{"the earliest deadline", 0, []claim{{"b", 8 * day, 14 * day}, {"a", 7 * day, 14 * day}, {"c", 9 * day, 14 * day}}, "c"},
		{"a younger claim with a shorter life", 0, []claim{{"old", 9 * day, 14 * day}, {"young", 4 * day, 12 * day}, {"younger", 5 * day, 9 * day}}, "younger"},
		{"the same deadline, the earlier birth", 0, []claim{{"a", 6 * day, 14 * day}, {"b", 7 * day, 15 * day}}, "b"},
		{"born together, the lesser name", 0, []claim{{"c", 7 * day, 14 * day}, {"a", 7 * day, 14 * day}, {"b", 7 * day, 14 * day}}, "a"},
		{"the deadline rules under an explicit threshold", 5 * day, []claim{{"old", 9 * day, 30 * day}, {"short", 6 * day, 14 * day}}, "short"},
		{"and its ties too", 5 * day, []claim{{"b", 9 * day, 14 * day}, {"a", 9 * day, 14 * day}}, "a"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(date(t, "2026-06-10T02:00:00Z"))
			w.Governance.Policy = policyOn(t, "Wed,Sat 02:00-06:00 UTC")
			w.Governance.Policy.AgeThreshold = tt.threshold
			w.NodePool = NodePool{Object: w.object(KindNodePool, "blue"), ExpireAfter: ptr(14 * day)}
			for _, c := range tt.claims {
				w.join(NodeClaim{
					Object: Object{Name: c.name}, NodeName: "node-" + c.name, Ready: true,
					Created: w.now.Add(-c.age), ExpireAfter: ptr(c.expire), GracePeriod: ptr(time.Hour),
				})
			}
			d := w.decide()
			if d.Active != tt.want {
				t.Errorf("chose %q, want %q: %s", d.Active, tt.want, d.Detail)
			}
		})
	}
}

func TestStanding(t *testing.T) {
	now := date(t, "2026-06-10T02:00:00Z")
	due := now.Add(-6 * day)
	annotated := func(pairs ...string) map[string]string {
		m := map[string]string{}
		for i := 0; i < len(pairs); i += 2 {
			m[pairs[i]] = pairs[i+1]
		}
		return m
	}
	threshold := 14*day - (8*day + 77*time.Minute)
	for _, tt := range []struct {
		name    string
		claim   NodeClaim
		node    func(*Node)
		want    Standing
		changes time.Time
		fails   bool
	}{
		{name: "due", claim: NodeClaim{Created: due, Ready: true}, want: Eligible},
		{name: "at its threshold it is not yet due", claim: NodeClaim{Created: now.Add(-threshold), Ready: true}, want: NotDue, changes: now.Add(1)},
		{name: "a moment later it is", claim: NodeClaim{Created: now.Add(-threshold - 1), Ready: true}, want: Eligible},
		{name: "young", claim: NodeClaim{Created: now, Ready: true}, want: NotDue, changes: now.Add(threshold + 1)},
		{name: "not Ready", claim: NodeClaim{Created: due}, want: NotReady},
		{name: "without a Node", claim: NodeClaim{Created: due, Ready: true, NodeName: "elsewhere"}, want: NotReady},
		{name: "on its way out", claim: NodeClaim{Created: due, Ready: true, Deleting: now}, want: Deleting},
		{name: "pending", claim: NodeClaim{Created: due, Ready: true, Annotations: annotated(AnnotationState, StatePending)}, want: InFlight},
		{name: "draining", claim: NodeClaim{Created: due, Ready: true, Annotations: annotated(AnnotationState, StateDraining)}, want: InFlight},
		{name: "expired is for good", claim: NodeClaim{Created: due, Ready: true, Annotations: annotated(AnnotationState, StateExpired)}, want: Expired},
		{name: "r16 opted out", claim: NodeClaim{Created: due, Ready: true}, node: func(n *Node) { n.Annotations = annotated(AnnotationDoNotDisrupt, "true") }, want: OptedOut},
		{name: "r17 exactly true counts", claim: NodeClaim{Created: due, Ready: true}, node: func(n *Node) { n.Annotations = annotated(AnnotationDoNotDisrupt, "True") }, want: Eligible},
		{name: "our own protection is no opt-out", claim: NodeClaim{Created: due, Ready: true}, node: func(n *Node) {
			n.Annotations = annotated(AnnotationDoNotDisrupt, "true", AnnotationDoNotDisruptOwned, "true")
		}, want: Eligible},
		{name: "r15 a cordon is no objection", claim: NodeClaim{Created: due, Ready: true}, node: func(n *Node) { n.Unschedulable = true }, want: Eligible},
		{name: "in backoff", claim: NodeClaim{Created: due, Ready: true, Annotations: annotated(AnnotationState, StateFailed, AnnotationFailedAt, stamp(now.Add(-29*time.Minute)), AnnotationRetryCount, "1")},
			want: Backoff, changes: now.Add(time.Minute)},
		{name: "after its backoff", claim: NodeClaim{Created: due, Ready: true, Annotations: annotated(AnnotationState, StateFailed, AnnotationFailedAt, stamp(now.Add(-30*time.Minute)), AnnotationRetryCount, "1")}, want: Eligible},
		{name: "a failure that cannot be dated", claim: NodeClaim{Created: due, Ready: true, Annotations: annotated(AnnotationState, StateFailed, AnnotationFailedAt, "x")}, want: Unreadable, fails: true},
		{name: "a state of somebody else", claim: NodeClaim{Created: due, Ready: true, Annotations: annotated(AnnotationState, "Pending")}, want: Unreadable, fails: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(now)
			c := tt.claim
			c.Name, c.ExpireAfter, c.GracePeriod = "blue-a", ptr(14*day), ptr(time.Hour)
			elsewhere := c.NodeName != ""
			if !elsewhere {
				c.NodeName = "node-a"
			}
			w.join(c)
			if elsewhere {
				delete(w.Nodes, c.NodeName)
			}
			if tt.node != nil {
				w.change("node-a", tt.node)
			}
			got, changes, err := w.standing(policyOn(t, "Wed,Sat 02:00-06:00 UTC"), w.claim("blue-a"), now)
			if got != tt.want || !changes.Equal(tt.changes) || (err != nil) != tt.fails {
				t.Errorf("%s until %s, %v; want %s until %s", got, changes, err, tt.want, tt.changes)
			}
		})
	}
	c := NodeClaim{Object: Object{Name: "x"}, Created: due}
	if got, _, _ := (&Snapshot{}).standing(policyOn(t, twiceWeekly), &c, now); got != Never {
		t.Errorf("without expireAfter: %s", got)
	}
}

func TestCensusIsOneLine(t *testing.T) {
	if got, want := (Census{NotDue: 3, Eligible: 1, Backoff: 0}).String(), "eligible=1 notDue=3"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := (Census{}).String(), "no NodeClaim"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// The ladder is 30m, 1h, 2h, 4h. The window of Wednesday is 02:00 to 06:00.
func TestR28BackoffIsClampedToItsOccurrence(t *testing.T) {
	for _, tt := range []struct {
		name     string
		failures int
		failed   string
		now      string
		want     time.Duration
	}{
		{"the first failure", 1, "2026-06-10T02:10:00Z", "2026-06-10T02:10:00Z", 30 * time.Minute},
		{"the second", 2, "2026-06-10T02:10:00Z", "2026-06-10T02:10:00Z", time.Hour},
		{"the third", 3, "2026-06-10T02:10:00Z", "2026-06-10T02:10:00Z", 2 * time.Hour},
		{"the fourth would land after the close", 4, "2026-06-10T02:10:00Z", "2026-06-10T02:10:00Z", 2 * time.Hour},
		{"the ladder ends at the fourth", 9, "2026-06-09T12:00:00Z", "2026-06-10T02:10:00Z", 4 * time.Hour},
		{"a fourth that fits is not shortened", 4, "2026-06-10T02:00:00Z", "2026-06-10T01:59:00Z", 4 * time.Hour},
		{"at the close is not inside", 4, "2026-06-10T02:00:00Z", "2026-06-10T02:00:00Z", 2 * time.Hour},
		{"several rungs down", 4, "2026-06-10T05:10:00Z", "2026-06-10T05:20:00Z", 30 * time.Minute},
		{"landing at the close exactly", 1, "2026-06-10T05:30:00Z", "2026-06-10T05:40:00Z", 30 * time.Minute},
		{"not even the first rung fits: the full wait", 3, "2026-06-10T05:31:00Z", "2026-06-10T05:40:00Z", 2 * time.Hour},
		{"failed before this occurrence", 4, "2026-06-10T01:59:59Z", "2026-06-10T02:10:00Z", 4 * time.Hour},
		{"failed in the last one", 4, "2026-06-06T05:00:00Z", "2026-06-10T02:10:00Z", 4 * time.Hour},
		{"judged out of the window", 4, "2026-06-10T02:10:00Z", "2026-06-10T06:00:00Z", 4 * time.Hour},
		{"never counted reads as once", 0, "2026-06-10T02:10:00Z", "2026-06-10T02:10:00Z", 30 * time.Minute},
		{"counted below zero reads as once", -3, "2026-06-10T02:10:00Z", "2026-06-10T02:10:00Z", 30 * time.Minute},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := policyOn(t, "Wed,Sat 02:00-06:00 UTC")
			if got := p.backoff(date(t, tt.failed), tt.failures, date(t, tt.now)); got != tt.want {
				t.Errorf("%s, want %s", got, tt.want)
			}
		})
	}
	short := policyOn(t, "Wed 02:00-03:00 UTC")
	if got := short.backoff(date(t, "2026-06-10T01:50:00Z"), 3, date(t, "2026-06-10T02:10:00Z")); got != 2*time.Hour {
		t.Errorf("failed before an occurrence that is shorter than the wait: %s", got)
	}
	always := policyOn(t, "daily 00:00-24:00 UTC")
	if got := always.backoff(date(t, "2026-06-10T02:10:00Z"), 4, date(t, "2026-06-10T02:10:00Z")); got != 4*time.Hour {
		t.Errorf("in a window that never closes: %s", got)
	}
}

func TestRetriesRead(t *testing.T) {
	for v, want := range map[string]int{"": 0, "0": 0, "3": 3, "12": 12, "-1": backoffSteps, "many": backoffSteps, "1.5": backoffSteps} {
		c := NodeClaim{Annotations: map[string]string{AnnotationRetryCount: v}}
		if got := c.retries(); got != want {
			t.Errorf("%q reads as %d, want %d", v, got, want)
		}
		if invalid := c.checkRetries() != nil; invalid != (want == backoffSteps) {
			t.Errorf("%q: %v", v, c.checkRetries())
		}
	}
}

func TestStampsAreWholeSecondsOfUTC(t *testing.T) {
	tokyo := time.FixedZone("JST", 9*60*60)
	if got, want := stamp(time.Date(2026, 6, 10, 11, 0, 0, 999, tokyo)), "2026-06-10T02:00:00Z"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	at, err := readStamp(map[string]string{"k": "2026-06-10T11:00:00+09:00"}, "k")
	if err != nil || !at.Equal(date(t, "2026-06-10T02:00:00Z")) {
		t.Errorf("%s, %v", at, err)
	}
	if at, err = readStamp(nil, "k"); err != nil || !at.IsZero() {
		t.Errorf("a missing stamp: %s, %v", at, err)
	}
	if _, err = readStamp(map[string]string{"k": ""}, "k"); err == nil {
		t.Error("an empty stamp was read")
	}
}

func TestEarliest(t *testing.T) {
	a, b := time.Unix(1, 0), time.Unix(2, 0)
	for i, got := range []time.Time{earliest(a, b), earliest(b, a), earliest(a, time.Time{}), earliest(time.Time{}, a)} {
		if !got.Equal(a) {
			t.Errorf("case %d: %s", i, got)
		}
	}
}

// Neither a shortage of headroom for one claim nor a start with it may hide the moment at which
// another one, with an earlier deadline, becomes due: a start that takes until then begins anew.
func TestWakeForTheClaimThatWouldGoFirst(t *testing.T) {
	w := newWorld(date(t, "2026-06-10T02:00:00Z"))
	w.Governance.Policy = policyOn(t, "Wed,Sat 02:00-06:00 UTC")
	w.Governance.Policy.AgeThreshold = 5 * day
	w.NodePool = NodePool{Object: w.object(KindNodePool, "blue"), ExpireAfter: ptr(14 * day), Limits: list("cpu", "1"), InUse: list("cpu", "1")}
	for i, c := range []NodeClaim{
		{Created: w.now.Add(-6 * day), ExpireAfter: ptr(20 * day)},
		{Created: w.now.Add(-5*day + time.Hour), ExpireAfter: ptr(14 * day)},
	} {
		c.Name, c.NodeName, c.Ready = fmt.Sprintf("blue-%d", i), fmt.Sprintf("node-%d", i), true
		w.join(c)
	}
	w.Pods["node-0"] = []*corev1.Pod{runningPod("web", "cpu", "1")}
	d := w.decide()
	if d.Reason != ReasonInsufficientHeadroom || !d.Wake.Equal(w.now.Add(time.Hour+1)) {
		t.Fatalf("%s, wake in %s", d.Reason, d.Wake.Sub(w.now))
	}
	w.NodePool.Limits = nil
	w.Governance.Policy.ReadyTimeout = 2 * time.Hour
	if d = w.decide(); d.Active != "blue-0" || !d.Wake.Equal(w.now.Add(time.Hour+1)) {
		t.Fatalf("%s of %s, wake in %s", d.Reason, d.Active, d.Wake.Sub(w.now))
	}
	w.now = d.Wake
	if d = w.decide(); d.Active != "blue-1" {
		t.Errorf("at the wake-up: %+v", d)
	}
}

func TestFocusIsEmptyUnlessPodsMatter(t *testing.T) {
	w := newWorld(date(t, "2026-06-10T01:59:00Z"))
	w.Governance.Policy = policyOn(t, "Wed,Sat 02:00-06:00 UTC")
	w.NodePool = NodePool{Object: w.object(KindNodePool, "blue"), ExpireAfter: ptr(14 * day), GracePeriod: ptr(time.Hour)}
	for _, name := range []string{"a", "b", "c"} {
		w.join(NodeClaim{Object: Object{Name: name}, NodeName: "node-" + name, Ready: true, Created: w.now.Add(-6 * day), ExpireAfter: ptr(14 * day)})
	}
	check := func(when string, want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, Focus(w.view(), w.now)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", when, diff)
		}
	}
	check("before the window")
	w.now = w.now.Add(time.Minute)
	w.NodePool.Annotations = map[string]string{AnnotationFreeze: stamp(w.now.Add(time.Hour))}
	check("frozen in the window")
	w.NodePool.Annotations = nil
	check("in the window", "node-a")
	if _, err := w.act(w.decide().Plan, -1); err != nil {
		t.Fatal(err)
	}
	check("anchored", "node-a")
	w.bind("node-b", corev1.PodPending)
	check("the placeholder is bound", "node-a", "node-b")
	if _, err := w.act(w.decide().Plan, -1); err != nil {
		t.Fatal(err)
	}
	w.bind("node-c", corev1.PodPending)
	check("recorded on one host, bound to another", "node-a", "node-b", "node-c")
	w.finalize("a")
	check("the claim is gone")
	w.NodePool.Annotations, w.Governance = nil, Governance{}
	check("ungoverned")
}

func TestAWindowWithoutEdgesNeverClamps(t *testing.T) {
	if got := clampToOccurrence(window.Occurrence{}, time.Unix(0, 0), time.Hour, 3, 8*time.Hour); got != 8*time.Hour {
		t.Error(got)
	}
}

// A clock was wrong, or somebody has mistyped a year. What is said to have happened in times
// to come is not built on, but by the difference that two clocks may have.
func TestAStampThatIsYetToComeIsNotBelieved(t *testing.T) {
	now := date(t, "2026-06-10T03:00:00Z")
	for ahead, believed := range map[time.Duration]bool{-time.Hour: true, 0: true, skew: true, skew + time.Second: false} {
		at, err := readPast(map[string]string{"k": stamp(now.Add(ahead))}, "k", now)
		if believed != (err == nil) || believed == at.IsZero() {
			t.Errorf("%s ahead: %s, %v", ahead, at, err)
		}
		if until := readable(err); !believed && !until.Equal(now.Add(ahead-skew)) {
			t.Errorf("%s ahead: readable at %s", ahead, until)
		}
	}
	const future = "2099-01-01T00:00:00Z"
	const doubt = `is "2099-01-01T00:00:00Z", which is yet to come`
	failed := func(w *world) {
		edit(&w.claim("blue-a").Annotations, map[string]string{AnnotationState: StateFailed, AnnotationFailedAt: future, AnnotationRetryCount: "1"}, nil)
	}
	for _, tt := range []struct {
		name  string
		world func(fatal) *world
		edit  func(*world)
		plan  string
		says  Reason
	}{
		{"failed-at keeps the claim from being chosen", oldNode, failed, "", ReasonNoCandidate},
		{"last-rotation-at keeps the gate closed", oldNode, func(w *world) {
			edit(&w.NodePool.Annotations, map[string]string{AnnotationLastRotation: future, AnnotationWindowOpened: stamp(w.now)}, nil)
		}, "", ReasonCooldown},
		{"last-failure-at does, too", oldNode, func(w *world) {
			edit(&w.NodePool.Annotations, map[string]string{AnnotationLastFailure: future, AnnotationWindowOpened: stamp(w.now)}, nil)
		}, "", ReasonFailurePause},
		{"started-at ends the attempt", pendingRotation, func(w *world) {
			edit(&w.claim("blue-a").Annotations, map[string]string{AnnotationStartedAt: future, AnnotationSurgeClaim: "blue-b"}, nil)
		}, "holdClaim deletePlaceholder releaseNode markFailed releaseAnchor", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := tt.world(t)
			tt.edit(w)
			edit(&w.NodePool.Annotations, map[string]string{AnnotationWindowOpened: stamp(w.now)}, nil)
			d := w.decide()
			if acts(d.Plan) != tt.plan || d.Reason != tt.says {
				t.Fatalf("%s: %q, want %s: %q", d.Reason, acts(d.Plan), tt.says, tt.plan)
			}
			told := ""
			for _, warning := range d.Warnings {
				told += warning.Message
			}
			for _, st := range d.Plan {
				told += st.Facts.Reason
			}
			if !strings.Contains(told, doubt) {
				t.Errorf("it says %q, and not that the annotation %s", told, doubt)
			}
		})
	}

	w := oldNode(t)
	edit(&w.NodePool.Annotations, map[string]string{AnnotationActive: "blue-a", AnnotationLastFailure: future}, nil)
	failed(w)
	perform(t, w)
	if got := w.NodePool.Annotations[AnnotationLastFailure]; got != stamp(w.now) {
		t.Errorf("released from a failed claim, the pool pauses from %s", got)
	}
	w = oldNode(t)
	edit(&w.NodePool.Annotations, map[string]string{AnnotationWindowOpened: future}, nil)
	if got := perform(t, w).Plan[0].Set[AnnotationWindowOpened]; got != stamp(w.now) {
		t.Errorf("a window that is yet to have opened is stamped %q", got)
	}
}

// A count that a person has written is raised, and does not become a negative one.
func TestTheCountOfFailuresDoesNotOverflow(t *testing.T) {
	w := pendingRotation(t)
	w.Placeholder = nil
	edit(&w.claim("blue-a").Annotations, map[string]string{AnnotationRetryCount: strconv.Itoa(math.MaxInt)}, nil)
	w.now = w.now.Add(20 * time.Minute)
	perform(t, w)
	c := w.claim("blue-a")
	if err := c.checkRetries(); err != nil || c.state() != StateFailed || c.retries() != mostRetries {
		t.Errorf("%v: %v", err, c.Annotations)
	}
}
