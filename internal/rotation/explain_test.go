package rotation

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
)

// The first thing in the way of a node, with a value that only it has, and what else is.
func TestExplainNamesWhatIsInTheWay(t *testing.T) {
	open := func(w *world) { w.now = date(t, "2026-06-13T02:00:00Z") }
	claimOf := func(pairs ...string) func(*world) {
		return func(w *world) { open(w); edit(&w.claim("old").Annotations, pair(pairs...), nil) }
	}
	ago := func(d time.Duration) string { return stamp(date(t, "2026-06-13T02:00:00Z").Add(-d)) }
	for _, tt := range []struct {
		name   string
		of     string // the NodeClaim, or the pool
		given  func(*world)
		want   string // all reasons
		detail string
		opens  string
	}{
		{"out of window", "old", func(*world) {}, "outOfWindow", "the next window opens at 2026-06-13T02:00:00Z", "2026-06-13T02:00:00Z"},
		{"out of window, of the pool", "", func(*world) {}, "outOfWindow", "the next window opens at 2026-06-13T02:00:00Z", "2026-06-13T02:00:00Z"},
		{"too young, whatever the window", "young", func(*world) {}, "notDue outOfWindow", "it is 24h0m0s old, and due past 142h43m0s", "2026-06-15T10:43:00Z"},
		{"nothing is", "old", open, "eligible", "the controller begins within a minute", ""},
		{"nothing is, of the pool", "", open, "eligible", "the controller begins within a minute", ""},
		{"another one goes first", "young", func(w *world) { open(w); w.claim("young").Created = w.now.Add(-7 * day) }, "notFirst", "NodeClaim old goes first, with the deadline 2026-06-14T12:00:00Z", ""},
		{"another one will go first", "young", func(w *world) { w.claim("young").Created = w.now.Add(-7 * day) }, "outOfWindow notFirst", "the next window opens", "2026-06-13T02:00:00Z"},
		{"r06: a freeze that is no time", "old", func(w *world) { open(w); w.annotatePool(AnnotationFreeze, "tomorrow") }, "frozen", `"tomorrow", which is not an RFC 3339 time`, ""},
		{"a freeze in a closed window", "", func(w *world) { w.annotatePool(AnnotationFreeze, "2026-06-20T00:00:00Z") }, "outOfWindow frozen", "the next window", "2026-06-13T02:00:00Z"},
		{"a cooldown", "old", func(w *world) { open(w); w.annotatePool(AnnotationLastRotation, ago(time.Minute)) }, "cooldownAfterSuccess", "10m0s after 2026-06-13T01:59:00Z", "2026-06-13T02:09:00Z"},
		{"a pause", "", func(w *world) { open(w); w.annotatePool(AnnotationLastFailure, ago(time.Minute)) }, "failurePause", "10m0s after 2026-06-13T01:59:00Z", "2026-06-13T02:09:00Z"},
		{"r07: another node is on its way out", "old", func(w *world) { open(w); w.claim("young").Deleting = w.now }, "disruptionInProgress", "NodeClaim young is being deleted since 2026-06-13T02:00:00Z", ""},
		{"r07: Karpenter is about to delete another", "", func(w *world) {
			open(w)
			w.change("node-young", func(n *Node) { n.Taints = []corev1.Taint{{Key: taintDisrupt}} })
		}, "disruptionInProgress", "Node node-young of NodeClaim young carries the taint karpenter.sh/disrupted", ""},
		{"r11: no room for cpu", "old", func(w *world) {
			open(w)
			w.NodePool.Limits, w.NodePool.InUse = list("cpu", "5"), list("cpu", "3")
			w.Pods["node-old"] = []*corev1.Pod{runningPod("web", "cpu", "3")}
		}, "insufficientHeadroom", "the surge for NodeClaim old wants 3 of cpu, of which spec.limits of NodePool blue (5) leaves 2", ""},
		{"r12: no room for a node", "", func(w *world) {
			open(w)
			w.NodePool.Limits, w.NodePool.InUse = list("nodes", "2"), list("nodes", "2")
		}, "insufficientHeadroom", "wants 1 of nodes, of which spec.limits of NodePool blue (2) leaves 0", ""},
		{"without a surge the limits do not matter", "old", func(w *world) {
			open(w)
			w.now = date(t, "2026-06-13T02:00:00Z")
			w.Governance.Policy.ForcefulFallback, w.claim("old").Created = true, w.now.Add(time.Hour-14*day)
			w.NodePool.Limits, w.NodePool.InUse = list("nodes", "2"), list("nodes", "2")
		}, "eligible", "", ""},
		{"r16: an operator protects it", "old", func(w *world) {
			open(w)
			w.change("node-old", func(n *Node) { n.Annotations = map[string]string{AnnotationDoNotDisrupt: "true"} })
		}, "optedOut", "Node node-old carries karpenter.sh/do-not-disrupt=true", ""},
		{"r22: a fixed number of nodes", "young", func(w *world) { w.NodePool.Static = true }, "static notDue outOfWindow", "spec.replicas is set", ""},
		{"r22: of the pool, too", "", func(w *world) { open(w); w.NodePool.Static = true }, "static", "spec.replicas is set", ""},
		{"r26: it never expires", "old", func(w *world) { open(w); w.claim("old").ExpireAfter = nil }, "neverExpires", "expireAfter is Never", ""},
		{"an infeasible policy", "old", func(w *world) { open(w); w.NodePool.ExpireAfter = ptr(2 * day) }, "infeasible", "ANonPositive: ", ""},
		{"an invalid one says nothing else", "young", func(w *world) { w.Governance.Policy.Invalid = "the zone is unknown" }, "policyInvalid", "the zone is unknown", ""},
		{"none at all", "old", func(w *world) { w.Governance = Governance{} }, "ungoverned", "no RotationPolicy selects this NodePool", ""},
		{"r21: two that tie", "", func(w *world) { w.Governance = Governance{Conflict: []string{"a", "b"}} }, "policyConflict", "RotationPolicies [a b]", ""},
		{"not Ready", "old", func(w *world) { open(w); w.claim("old").Ready = false }, "notReady", "left to Karpenter's repair", ""},
		{"not registered", "old", func(w *world) { open(w); w.claim("old").NodeName = "" }, "notReady", "its Node has not registered", ""},
		{"in backoff", "old", claimOf(AnnotationState, StateFailed, AnnotationFailedAt, ago(time.Minute), AnnotationRetryCount, "2"), "inBackoff",
			"attempt 2 failed at 2026-06-13T01:59:00Z, and the next one may start at 2026-06-13T02:59:00Z", "2026-06-13T02:59:00Z"},
		{"expired", "old", claimOf(AnnotationState, StateExpired), "expired", "Karpenter's expiry took it", ""},
		{"unreadable", "old", claimOf(AnnotationState, "paused"), "unreadable", `is "paused"`, ""},
		{"a state that nobody owns", "old", claimOf(AnnotationState, StatePending), "inFlight", "without a rotation that owns it", ""},
		{"on its way out", "old", func(w *world) { open(w); w.claim("old").Deleting = w.now }, "deleting disruptionInProgress", "it is being deleted since 2026-06-13T02:00:00Z", ""},
		{"no node of the pool may be chosen", "", func(w *world) { open(w); w.claim("old").Ready = false }, "noCandidate", "notDue=1 notReady=1", "2026-06-15T10:43:00Z"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := asking(t)
			tt.given(w)
			x := Explain(w.view(), tt.of, Evidence{}, w.now)
			got := x.Reason
			for _, b := range x.Also {
				got += " " + b.Reason
			}
			if got != tt.want || !strings.Contains(x.Detail, tt.detail) {
				t.Errorf("%s: %s\nwant %s: ... %s ...", got, x.Detail, tt.want, tt.detail)
			}
			if opens := x.Opens.Truncate(time.Second); stampOr(opens, "") != tt.opens {
				t.Errorf("it opens at %q, want %q", stampOr(opens, ""), tt.opens)
			}
		})
	}
}

func pair(pairs ...string) map[string]string {
	m := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = pairs[i+1]
	}
	return m
}

// The numbers of an answer are those that it was reckoned from.
func TestExplainShowsItsNumbers(t *testing.T) {
	w := asking(t)
	numbers := func(of string) string {
		var all []string
		for _, n := range Explain(w.view(), of, Evidence{}, w.now).Numbers {
			all = append(all, fmt.Sprintf("%s: %s (%s)", n.Name, n.Value, n.How))
		}
		return strings.Join(all, "\n")
	}
	expect := func(of, want string) {
		t.Helper()
		if got := numbers(of); got != want {
			t.Errorf("of %q:\n%s\nwant\n%s", of, got, want)
		}
	}
	expect("old", "next window: 2026-06-13T02:00:00Z until 2026-06-13T06:00:00Z ()")
	expect("young", `age of young: 24h0m0s ()
ageThreshold (A): 142h43m0s (E 336h0m0s - (minRotationChances 2 x P 96h0m0s + t_rot 1h17m0s))
due past: 2026-06-15T10:43:00Z ()`)
	w.now = date(t, "2026-06-13T02:00:00Z")
	w.NodePool.Limits, w.NodePool.InUse = list("nodes", "2"), list("nodes", "2")
	expect("", "resource: nodes ()\nwanted for old: 1 ()\nremaining: 0 (limit 2 - in use 2)")
	w.annotatePool(AnnotationLastRotation, stamp(w.now))
	expect("", "last-rotation-at: 2026-06-13T02:00:00Z ()\ncooldownAfter: 10m0s ()")
	w.annotatePool(AnnotationFreeze, "2026-06-14T00:00:00Z")
	expect("", "freeze: 2026-06-14T00:00:00Z ()")
}

// When it will be: what the forecast says, the windows that are left, and the deadline.
func TestExplainLooksAhead(t *testing.T) {
	for _, tt := range []struct {
		name    string
		of      string
		given   func(*world)
		who     string
		chances int
		start   string
		lost    string
	}{
		{"one window is left", "old", func(*world) {}, "old", 1, "2026-06-13T02:00:00Z", ""},
		{"the pool's next", "", func(*world) {}, "old", 1, "2026-06-13T02:00:00Z", ""},
		{"two are, when it is due", "young", func(*world) {}, "young", 2, "2026-06-17T02:00:00Z", ""},
		{"frozen through the last", "old", func(w *world) { w.annotatePool(AnnotationFreeze, "2026-06-13T06:00:00Z") }, "old", 0, "", "outOfWindow"},
		{"frozen for good, until somebody corrects it", "old", func(w *world) { w.annotatePool(AnnotationFreeze, "tomorrow") }, "old", 1, "", "outOfWindow"},
		{"always open", "old", func(w *world) { w.Governance.Policy = policyOn(t, "daily 00:00-24:00 UTC") }, "old", 2, "2026-06-14T10:41:00Z", ""},
		{"in the last window, but too late for a whole rotation", "old", func(w *world) { w.claim("old").Created = w.now.Add(3*day - 9*time.Hour - 14*day) }, "old", 0, "2026-06-13T02:00:00Z", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := asking(t)
			tt.given(w)
			o := Explain(w.view(), tt.of, Evidence{}, w.now).Outlook
			if o == nil {
				t.Fatal("there is no outlook")
			}
			if o.NodeClaim != tt.who || o.Chances != tt.chances || o.Lost != tt.lost || stampOr(o.Start.Truncate(time.Second), "") != tt.start {
				t.Errorf("NodeClaim %s has %d chances and starts at %q (lost %q), want %s, %d, %q (%q)", o.NodeClaim, o.Chances, stampOr(o.Start, ""), o.Lost, tt.who, tt.chances, tt.start, tt.lost)
			}
			if want := o.Deadline.Add(-77 * time.Minute); !o.Latest.Equal(want) {
				t.Errorf("the latest start is %s, want %s", o.Latest, want)
			}
		})
	}
}

// An explanation is no second opinion: it says what Decide says, and that nothing is in the way
// of precisely the claim with which Decide begins.
func TestExplainAgreesWithDecide(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		s := w.view()
		s.Unswept = true
		d := Decide(s, w.now)
		begins := ""
		for _, st := range d.Plan {
			if st.Act == ActClaimAnchor {
				begins = st.Facts.NodeClaim
			}
		}
		want := string(d.Reason)
		switch {
		case begins != "":
			want = string(Eligible)
		case d.Reason == "":
			want = string(ReasonFinishing)
		}
		if x := Explain(w.view(), "", Evidence{}, w.now); x.Reason != want {
			t.Fatalf("of the pool it says %s (%s), and Decide %s (%s)", x.Reason, x.Detail, want, d.Detail)
		}
		if o := Summarize(w.view(), Evidence{}, w.now); o.Reason != want {
			t.Fatalf("in one row it says %s, and Decide %s", o.Reason, want)
		}
		for i := range s.NodeClaims {
			name := s.NodeClaims[i].Name
			x := Explain(w.view(), name, Evidence{}, w.now)
			if free := x.Reason == string(Eligible); free != (name == begins) {
				t.Fatalf("of NodeClaim %s it says %s (%s), and Decide begins with %q", name, x.Reason, x.Detail, begins)
			}
			if x.Detail == "" && x.Reason != string(ReasonAwaitingDrain) {
				t.Fatalf("of NodeClaim %s it says %s, and not why", name, x.Reason)
			}
		}
	})
}

// While a surge comes up, the answer has what it waits for: the scheduler's word on the
// placeholder, and what the new NodeClaim lacks.
func TestExplainASurge(t *testing.T) {
	w := pendingRotation(t)
	w.finalize("blue-b")
	w.Placeholder = &Placeholder{
		Object: w.object(KindPlaceholder, PlaceholderName("blue-a")), SurgeFor: "blue-a", Phase: corev1.PodPending,
		Waiting: Waiting{"Unschedulable", "0/2 nodes are available"},
	}
	answer := func(of string, e Evidence) Explanation { return Explain(w.view(), of, e, w.now) }

	x := answer("blue-a", Evidence{})
	f := x.Rotation
	if x.Reason != "awaitingSurge" || f == nil || f.Phase != PhaseSurge || stamp(f.Since) != "2026-06-10T02:00:00Z" || stamp(f.Until) != "2026-06-10T02:15:00Z" {
		t.Fatalf("%s, %+v", x.Reason, f)
	}
	for _, want := range []string{"0/2 nodes are available", "Karpenter has created no NodeClaim since 2026-06-10T02:00:00Z"} {
		if !strings.Contains(x.Detail, want) {
			t.Errorf("the answer lacks %q: %s", want, x.Detail)
		}
	}

	w.join(NodeClaim{Object: Object{Name: "blue-c"}, Created: w.now, ExpireAfter: ptr(14 * day)})
	x = answer("", Evidence{Conditions: map[string][]Condition{"blue-c": {
		{Type: "Launched", Status: "Unknown", Reason: "LaunchFailed", Message: "no capacity in zone a"}, {Type: "Drifted", Status: "False"},
	}}})
	if want := "NodeClaim blue-c: Launched is not known yet, LaunchFailed: no capacity in zone a"; !strings.Contains(x.Detail, want) || strings.Contains(x.Detail, "Drifted") {
		t.Errorf("%s, want %s", x.Detail, want)
	}
	if x := answer("blue-c", Evidence{}); x.Reason != "notDue" || len(x.Also) == 0 || x.Also[0].Reason != "otherInRotation" {
		t.Errorf("the surge itself: %+v", x.Blocker)
	}
	edit(&w.NodePool.Annotations, pair(AnnotationFreeze, "2026-06-10T03:00:00Z"), nil)
	if x := answer("blue-a", Evidence{}); x.Reason != "frozen" || !strings.Contains(x.Detail, "given up at 2026-06-10T02:15:00Z") {
		t.Errorf("frozen: %+v", x.Blocker)
	}
	w.Governance = Governance{}
	if x := answer("blue-a", Evidence{}); x.Reason != "ungoverned" || x.Rotation == nil || x.Rotation.Phase != PhaseFinish {
		t.Errorf("ungoverned: %+v, %+v", x.Blocker, x.Rotation)
	}
}

// r24, r25: the budget that blocks a drain has a name, and so have the pods that are left.
func TestExplainADrainByTheNameOfItsBudget(t *testing.T) {
	held := runningPod("web-1")
	held.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	free := runningPod("free-1")
	budgets := []Budget{{Namespace: "default", Name: "web", Pods: []string{"web-1"}, Healthy: 1, Desired: 1}, {Namespace: "default", Name: "free", Pods: []string{"free-1"}, Allowed: 1}}
	for _, tt := range []struct {
		name  string
		grace *time.Duration
		until string
		stuck string
	}{
		{"r24: forced at the grace period", ptr(2 * time.Minute), "2026-06-10T02:02:40Z", "2026-06-10T02:04:40Z"},
		{"r25: by nothing", nil, "", "2026-06-10T03:02:40Z"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := draining(t, tt.grace)
			w.Pods["node-a"] = []*corev1.Pod{held, free, podWith(owned("DaemonSet"))}
			for _, after := range []time.Duration{time.Second, 2 * time.Hour} {
				w.now = date(t, "2026-06-10T02:00:40Z").Add(after)
				x := Explain(w.view(), "blue-a", Evidence{Budgets: budgets}, w.now)
				f := x.Rotation
				if x.Reason != "awaitingDrain" || f == nil || f.Phase != PhaseDrain || stamp(f.Since) != "2026-06-10T02:00:40Z" || stampOr(f.Until, "") != tt.until || stamp(f.Stuck) != tt.stuck {
					t.Fatalf("after %s: %s, %+v", after, x.Reason, f)
				}
				if len(f.Holds) != 1 || f.Holds[0].Kind != "PodDisruptionBudget" || f.Holds[0].Name != "default/web" {
					t.Errorf("after %s: held by %v, want the budget web alone", after, f.Holds)
				}
				if len(f.Pods) != 2 || !strings.Contains(x.Detail, "PodDisruptionBudget default/web: it allows no disruption (1 of 1 healthy pods that it wants), and protects default/web-1") {
					t.Errorf("after %s: %s; pods left %v", after, x.Detail, f.Pods)
				}
			}
			x := Explain(w.view(), "blue-b", Evidence{}, w.now)
			if all := x.Reason + x.Also[0].Reason; all != "notDueotherInRotation" {
				t.Errorf("the other one: %s", all)
			}
		})
	}
}

// What keeps a pod on its node, as the eviction API and Karpenter judge.
func TestWhatHoldsAPod(t *testing.T) {
	now := date(t, "2026-06-10T02:00:00Z")
	ready := func(p *corev1.Pod) {
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	}
	never := Budget{Namespace: "default", Name: "never", Pods: []string{"pod"}, Healthy: 1, Desired: 1}
	with := func(b Budget, change func(*Budget)) Budget { change(&b); return b }
	for _, tt := range []struct {
		name    string
		pod     func(*corev1.Pod)
		budgets []Budget
		want    string
	}{
		{"a budget", ready, []Budget{never}, "PodDisruptionBudget default/never: it allows no disruption (1 of 1 healthy pods that it wants), and protects default/pod"},
		{"one that allows it", ready, []Budget{with(never, func(b *Budget) { b.Allowed = 1 })}, ""},
		{"one of another namespace", ready, []Budget{with(never, func(b *Budget) { b.Namespace = "shop" })}, ""},
		{"one that does not know its pods yet", ready, []Budget{with(never, func(b *Budget) { b.Allowed, b.Stale = 1, true })}, "default/never"},
		{"an unready pod of a healthy workload", func(*corev1.Pod) {}, []Budget{never}, ""},
		{"an unready pod of an ailing one", func(*corev1.Pod) {}, []Budget{with(never, func(b *Budget) { b.Healthy = 0 })}, "default/never"},
		{"which its budget lets go", func(*corev1.Pod) {}, []Budget{with(never, func(b *Budget) { b.Healthy, b.Unhealthy = 0, true })}, ""},
		{"a pod that has not begun", func(p *corev1.Pod) { p.Status.Phase = corev1.PodPending }, []Budget{with(never, func(b *Budget) { b.Healthy = 0 })}, ""},
		{"two budgets", ready, []Budget{with(never, func(b *Budget) { b.Allowed = 1 }), with(never, func(b *Budget) { b.Name, b.Allowed = "other", 1 })},
			"Pod default/pod: PodDisruptionBudgets default/never and default/other select it"},
		{"do-not-disrupt", func(p *corev1.Pod) { p.Annotations = pair(AnnotationDoNotDisrupt, "true") }, nil, "Pod default/pod: it carries karpenter.sh/do-not-disrupt=true"},
		{"do-not-disrupt=false", func(p *corev1.Pod) { p.Annotations = pair(AnnotationDoNotDisrupt, "false") }, nil, ""},
		{"do-not-disrupt for a time", func(p *corev1.Pod) {
			p.Annotations, p.Status.StartTime = pair(AnnotationDoNotDisrupt, "1h"), &metav1.Time{Time: now.Add(-time.Hour + 1)}
		}, nil, "Pod default/pod: it carries"},
		{"which is over", func(p *corev1.Pod) {
			p.Annotations, p.Status.StartTime = pair(AnnotationDoNotDisrupt, "1h"), &metav1.Time{Time: now.Add(-time.Hour)}
		}, nil, ""},
		{"it terminates", func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: now} }, []Budget{never}, "Pod default/pod: it terminates, and has until 2026-06-10T02:00:00Z"},
		{"and a finalizer holds it", func(p *corev1.Pod) {
			p.DeletionTimestamp, p.Finalizers = &metav1.Time{Time: now}, []string{"shop/backup"}
		}, nil, "its finalizers hold it: shop/backup"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var said []string
			for _, h := range holds([]*corev1.Pod{podWith(tt.pod)}, tt.budgets, now) {
				said = append(said, h.String())
			}
			if got := strings.Join(said, "\n"); !strings.Contains(got, tt.want) || (tt.want == "") != (got == "") || len(said) > 1 {
				t.Errorf("%s\nwant %s", got, tt.want)
			}
		})
	}
}

// At the end of a drain Karpenter says itself what it waits for, and a right that is missing is
// no clean bill of health.
func TestExplainTheEndOfADrain(t *testing.T) {
	w := draining(t, nil)
	x := Explain(w.view(), "", Evidence{Unread: []string{"shop"}, Conditions: map[string][]Condition{"blue-a": {{Type: "VolumesDetached", Status: "False", Reason: "AwaitingVolumeDetachment"}, {Type: "Ready", Status: "False"}}}}, w.now)
	var said []string
	for _, h := range x.Rotation.Holds {
		said = append(said, h.String())
	}
	want := "PodDisruptionBudget shop/*: those of this namespace may not be read: they may be in the way, or not\nNodeClaim blue-a: not VolumesDetached, AwaitingVolumeDetachment"
	if got := strings.Join(said, "\n"); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	w.finalize("blue-a")
	if x := Explain(w.view(), "", Evidence{}, w.now); x.Reason != "finishing" || x.Rotation.Phase != PhaseFinish {
		t.Errorf("%+v", x.Blocker)
	}
}

// One row has the later of the last results, the window, and when to look again.
func TestSummarize(t *testing.T) {
	w := asking(t)
	o := Summarize(w.view(), Evidence{}, w.now)
	if o.WindowOpen || stamp(o.Window.Start) != "2026-06-13T02:00:00Z" || o.Last != nil || stamp(o.Wake) != "2026-06-13T02:00:00Z" || o.Census[Eligible] != 1 {
		t.Errorf("%+v", o)
	}
	w.annotatePool(AnnotationLastRotation, "2026-06-06T03:00:00Z")
	w.annotatePool(AnnotationLastFailure, "2026-06-10T03:00:00Z")
	if l := Summarize(w.view(), Evidence{}, w.now).Last; l == nil || l.Outcome != Failure || stamp(l.At) != "2026-06-10T03:00:00Z" {
		t.Errorf("last %+v", l)
	}
	w.now = date(t, "2026-06-13T02:00:00Z")
	if o := Summarize(w.view(), Evidence{}, w.now); !o.WindowOpen || stamp(o.Window.End) != "2026-06-13T06:00:00Z" || o.Reason != "eligible" {
		t.Errorf("%+v", o)
	}
	w.Governance = Governance{}
	if o := Summarize(w.view(), Evidence{}, w.now); o.Policy != "" || o.Reason != "ungoverned" || o.Census == nil {
		t.Errorf("%+v", o)
	}
}
