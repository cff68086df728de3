package rotation

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

// pendingRotation is a rotation of blue-a whose placeholder runs on node-b of blue-b, a
// claim that was born within the attempt. Nothing keeps it from going on.
func pendingRotation(t fatal) *world {
	t.Helper()
	w := newWorld(date(t, "2026-06-10T02:00:00Z"))
	w.Governance.Policy = policyOn(t, "Wed,Sat 02:00-06:00 UTC")
	w.NodePool = NodePool{Object: w.object(KindNodePool, "blue"), ExpireAfter: ptr(14 * day), GracePeriod: ptr(time.Hour)}
	w.join(NodeClaim{
		Object: Object{Name: "blue-a"}, NodeName: "node-a", Ready: true,
		Created: w.now.Add(-6 * day), ExpireAfter: ptr(14 * day), GracePeriod: ptr(time.Hour),
	})
	perform(t, w)
	w.now = w.now.Add(40 * time.Second)
	w.join(NodeClaim{Object: Object{Name: "blue-b"}, NodeName: "node-b", Ready: true, Created: w.now, ExpireAfter: ptr(14 * day)})
	w.bind("node-b", corev1.PodRunning)
	return w
}

// perform acts on the whole plan for the world as it is.
func perform(t fatal, w *world) Decision {
	t.Helper()
	d := w.decide()
	if _, err := w.act(d.Plan, -1); err != nil {
		t.Fatal(err)
	}
	return d
}

func acts(plan []Step) string {
	var as []string
	for _, st := range plan {
		as = append(as, string(st.Act))
	}
	return strings.Join(as, " ")
}

func TestOnlyAFitHostIsASurge(t *testing.T) {
	for _, tt := range []struct {
		name string
		edit func(*world)
		want string
	}{
		{"cordoned", func(w *world) { w.change("node-b", func(n *Node) { n.Unschedulable = true }) }, "node node-b is cordoned"},
		{"the node is being deleted", func(w *world) { w.change("node-b", func(n *Node) { n.Deleting = true }) }, "node node-b is being deleted"},
		{"the claim is being deleted", func(w *world) { w.remove("blue-b") }, "node node-b is being deleted"},
		{"disrupted", func(w *world) {
			w.change("node-b", func(n *Node) { n.Taints = []corev1.Taint{{Key: "other"}, {Key: taintDisrupt}} })
		}, "node node-b carries the taint karpenter.sh/disrupted"},
		{"not Ready", func(w *world) { w.change("node-b", func(n *Node) { n.Ready = false }) }, "node node-b is not Ready"},
		{"a node of another pool", func(w *world) { w.bind("green-1", corev1.PodRunning) }, "node green-1 is not a node of NodePool blue"},
		{"another node of the candidate", func(w *world) {
			w.Nodes["node-a2"] = Node{Object: w.object(KindNode, "node-a2"), Ready: true, Claim: "blue-a", Labels: map[string]string{labelNodePool: "blue"}}
			w.bind("node-a2", corev1.PodRunning)
		}, "placeholder noderotation-surge-blue-a is on node node-a2, which is the candidate's own, too"},
		{"the placeholder is preempted but still Running", func(w *world) { w.Placeholder.Deleting = true }, "placeholder noderotation-surge-blue-a is being deleted"},
		{"the placeholder has failed and is on its way out", func(w *world) {
			w.bind("node-b", corev1.PodFailed)
			w.Placeholder.Deleting = true
		}, "placeholder noderotation-surge-blue-a is being deleted"},
		{"the placeholder only starts", func(w *world) { w.bind("node-b", corev1.PodPending) }, "placeholder noderotation-surge-blue-a is Pending on node node-b"},
		{"the placeholder is not scheduled", func(w *world) { w.bind("", corev1.PodPending) }, "placeholder noderotation-surge-blue-a is not scheduled"},
		{"and the scheduler says why", func(w *world) {
			w.bind("", corev1.PodPending)
			w.Placeholder.Waiting = Waiting{"Unschedulable", "too small"}
		}, "placeholder noderotation-surge-blue-a is not scheduled: too small"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := pendingRotation(t)
			tt.edit(w)
			d := w.decide()
			if d.Reason != ReasonAwaitingSurge || d.Detail != tt.want {
				t.Errorf("%s: %q, want %q", d.Reason, d.Detail, tt.want)
			}
			if got := acts(d.Plan); got != "" && got != string(ActRecordSurgeClaim) {
				t.Errorf("it goes on: %s", got)
			}
		})
	}
	w := pendingRotation(t)
	w.bind("node-a", corev1.PodRunning)
	if got, want := acts(w.decide().Plan), "deletePlaceholder createPlaceholder"; got != want {
		t.Errorf("on the candidate's own node: %s, want %s", got, want)
	}
	if _, missing := w.surgeHost(w.claim("blue-a")); missing != "placeholder noderotation-surge-blue-a is on the candidate's own node node-a" {
		t.Errorf("and if the time is over, the reason is %q", missing)
	}
	w = pendingRotation(t)
	if got, want := acts(perform(t, w).Plan), "freezeNode recordDraining markDraining deletePlaceholder deleteNodeClaim"; got != want {
		t.Errorf("on a fit host: %s, want %s", got, want)
	}
	if _, missing := (&Snapshot{}).surgeHost(&NodeClaim{}); missing != "there is no placeholder" {
		t.Error(missing)
	}
}

func TestSurgePath(t *testing.T) {
	w := pendingRotation(t)
	host, start := w.Nodes["node-b"], date(t, "2026-06-10T02:00:00Z")
	for _, tt := range []struct {
		name    string
		created time.Time
		start   time.Time
		want    string
	}{
		{"born within the attempt", start.Add(40 * time.Second), start, PathProvisioned},
		{"born in its first second", start, start, PathProvisioned},
		{"there before", start.Add(-time.Second), start, PathAbsorbed},
		{"an attempt whose start is not known", start, time.Time{}, ""},
	} {
		w.claim("blue-b").Created = tt.created
		if got := w.surgePath(host, tt.start); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
	w.NodeClaims = slices.DeleteFunc(w.NodeClaims, func(c NodeClaim) bool { return c.Name == "blue-b" })
	if got := w.surgePath(host, start); got != "" {
		t.Errorf("a host without a claim: %q", got)
	}
	set := w.decide().Plan[1].Set
	if _, guessed := set[AnnotationSurgePath]; guessed || set[AnnotationSurgeWait] != "40s" {
		t.Errorf("a path that is not known is not written: %v", set)
	}
}

// unnamed is the moment in which Karpenter has registered node-b, and blue-b does not name it.
func unnamed(w *world) {
	w.claim("blue-b").NodeName = ""
	w.change("node-b", func(n *Node) { n.Claim = "blue-b" })
}

func TestFocusKnowsANodeThatItsClaimDoesNotNameYet(t *testing.T) {
	w := pendingRotation(t)
	unnamed(w)
	if diff := cmp.Diff([]string{"node-a", "node-b"}, Focus(w.view(), w.now)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// A rollback deletes a NodeClaim only if it is proven to be of its own making.
func TestReapOnlyWhatIsProvenOurs(t *testing.T) {
	record := func(w *world, name string) {
		edit(&w.claim("blue-a").Annotations, map[string]string{AnnotationSurgeClaim: name}, nil)
	}
	unregistered := func(w *world, name string, age time.Duration) {
		w.join(NodeClaim{Object: Object{Name: name}, Created: w.now.Add(-age)})
	}
	for _, tt := range []struct {
		name string
		edit func(*world)
		want string
		why  string
	}{
		{"the recorded one", func(w *world) { record(w, "blue-b"); w.Placeholder = nil }, "blue-b", ""},
		{"the one under the placeholder", func(*world) {}, "blue-b", ""},
		{"born in the second in which the attempt began", func(w *world) { w.claim("blue-b").Created = date(t, "2026-06-10T02:00:00Z") }, "blue-b", ""},
		{"there before the attempt", func(w *world) { w.claim("blue-b").Created = date(t, "2026-06-10T01:59:59Z") }, "", "was there before the attempt"},
		{"being deleted already", func(w *world) { w.remove("blue-b") }, "", ""},
		{"with a pod of somebody's", func(w *world) { w.Pods["node-b"] = []*corev1.Pod{runningPod("api")} }, "", "already runs default/api"},
		{"with a pod that is pinned to it", func(w *world) {
			w.Pods["node-b"] = []*corev1.Pod{podWith(func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{labelHostname: "node-b"} })}
		}, "", "already runs default/pod"},
		{"with what every node carries", func(w *world) {
			w.Pods["node-b"] = []*corev1.Pod{podWith(owned("DaemonSet")), podWith(owned("Node")), podWith(func(p *corev1.Pod) { p.Labels = map[string]string{LabelPlaceholder: "true"} })}
		}, "blue-b", ""},
		{"the recorded one before the one under the placeholder", func(w *world) {
			unregistered(w, "blue-c", 0)
			record(w, "blue-c")
		}, "blue-c", ""},
		{"the only one without a node, when nothing was recorded", func(w *world) {
			w.Placeholder = nil
			unregistered(w, "blue-c", time.Second)
		}, "blue-c", ""},
		{"two without a node", func(w *world) {
			w.Placeholder = nil
			unregistered(w, "blue-c", 0)
			unregistered(w, "blue-d", 0)
		}, "", "2 NodeClaims without a Node"},
		{"two without a node, one there before", func(w *world) {
			w.Placeholder = nil
			unregistered(w, "blue-c", 0)
			unregistered(w, "blue-d", time.Hour)
		}, "blue-c", ""},
		{"two without a node, one on its way out", func(w *world) {
			w.Placeholder = nil
			unregistered(w, "blue-c", 0)
			unregistered(w, "blue-d", 0)
			w.remove("blue-d")
		}, "blue-c", ""},
		{"one with a node that it does not name yet", func(w *world) { w.Placeholder = nil; unnamed(w) }, "", "its placeholder never came to node node-b"},
		{"with a pod of somebody's on a node that it does not name yet", func(w *world) {
			unnamed(w)
			w.Pods["node-b"] = []*corev1.Pod{runningPod("api")}
		}, "", "already runs default/api"},
		{"none that is proven", func(w *world) { w.Placeholder = nil }, "", "NodeClaim blue-b was created in the attempt, but its placeholder never came to node node-b: it is left to Karpenter"},
		{"none", func(w *world) { w.Placeholder = nil; w.remove("blue-b") }, "", ""},
		{"another than the recorded one, which is gone", func(w *world) {
			record(w, "blue-z")
			w.Placeholder = nil
			unregistered(w, "blue-c", 0)
		}, "", ""},
		{"the start of the attempt cannot be read", func(w *world) {
			edit(&w.claim("blue-a").Annotations, map[string]string{AnnotationStartedAt: "x"}, nil)
		}, "", "whose start cannot be read"},
		{"the only one without a node, of an attempt whose start cannot be read", func(w *world) {
			w.Placeholder = nil
			unregistered(w, "blue-c", 0)
			edit(&w.claim("blue-a").Annotations, map[string]string{AnnotationStartedAt: "x"}, nil)
		}, "", ""},
		{"the candidate recorded as its own surge", func(w *world) {
			record(w, "blue-a")
			w.Placeholder = nil
			w.claim("blue-a").Created = w.now
		}, "", ""},
		{"the candidate itself, before it has a node", func(w *world) {
			w.Placeholder = nil
			w.remove("blue-b")
			w.claim("blue-a").NodeName, w.claim("blue-a").Created = "", w.now
			delete(w.Nodes, "node-a")
		}, "", ""},
		{"the candidate under its own placeholder", func(w *world) { w.bind("node-a", corev1.PodRunning) }, "", "NodeClaim blue-b was created in the attempt, but its placeholder never came to node node-b: it is left to Karpenter"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := pendingRotation(t)
			tt.edit(w)
			got, why := w.reapable(w.claim("blue-a"), w.now)
			name := ""
			if got != nil {
				name = got.Name
			}
			if name != tt.want || (tt.why == "") != (why == "") || !strings.Contains(why, tt.why) {
				t.Errorf("%q, because %q; want %q, because %q", name, why, tt.want, tt.why)
			}
		})
	}
}

// One disruption at a time, whoever caused it, and whichever claim of the pool it is.
func TestR07AnyDisruptionClosesTheGate(t *testing.T) {
	for _, tt := range []struct {
		name string
		edit func(*world)
		want Reason
	}{
		{"none", func(*world) {}, ""},
		{"a claim is being deleted", func(w *world) { w.remove("blue-b") }, ReasonDisruption},
		{"the candidate is being deleted", func(w *world) { w.remove("blue-a") }, ReasonDisruption},
		{"a node is tainted", func(w *world) {
			w.change("node-b", func(n *Node) { n.Taints = []corev1.Taint{{Key: taintDisrupt}} })
		}, ReasonDisruption},
		{"a node has another taint", func(w *world) {
			w.change("node-b", func(n *Node) { n.Taints = []corev1.Taint{{Key: "karpenter.sh/unregistered"}} })
		}, ""},
		{"the other node of a claim is tainted", func(w *world) {
			w.Nodes["node-b2"] = Node{Object: w.object(KindNode, "node-b2"), Claim: "blue-b", Taints: []corev1.Taint{{Key: taintDisrupt}}}
		}, ReasonDisruption},
		{"a claim has no node yet", func(w *world) { w.join(NodeClaim{Object: Object{Name: "blue-c"}}) }, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := pendingRotation(t)
			tt.edit(w)
			if got := w.disruptionGate(); got.Reason != tt.want {
				t.Errorf("%q, want %q", got.Reason, tt.want)
			}
		})
	}
}

// The gates are asked in one order, so that the answer is one: the first that is closed.
func TestTheFirstClosedGateAnswers(t *testing.T) {
	w := newWorld(date(t, "2026-06-10T07:00:00Z"))
	w.NodePool = NodePool{Object: w.object(KindNodePool, "blue"), Static: true, ExpireAfter: ptr(day), GracePeriod: ptr(time.Hour), Limits: list("nodes", "0")}
	w.NodePool.Annotations = map[string]string{
		AnnotationFreeze: "2026-06-13T03:00:00Z", AnnotationLastRotation: "2026-06-13T03:00:00Z", AnnotationLastFailure: "2026-06-13T03:05:00Z",
	}
	w.join(NodeClaim{Object: Object{Name: "blue-a"}, Created: w.now, ExpireAfter: ptr(14 * day)})
	w.remove("blue-a")
	w.Governance.Policy = policyOn(t, "Wed,Sat 02:00-06:00 UTC")
	w.Governance.Policy.Invalid = "the zone is unknown"
	at := func(s string) func() { return func() { w.now = date(t, s) } }
	for _, step := range []struct {
		open  func()
		want  Reason
		opens string // by itself, and when
	}{
		{func() {}, ReasonPolicyInvalid, ""},
		{func() { w.Governance.Policy.Invalid = "" }, ReasonStatic, ""},
		{func() { w.NodePool.Static = false }, ReasonInfeasible, ""},
		{func() { w.NodePool.ExpireAfter = ptr(14 * day) }, ReasonOutOfWindow, "2026-06-13T02:00:00Z"},
		{at("2026-06-13T02:00:00Z"), ReasonFrozen, "2026-06-13T03:00:00Z"},
		{at("2026-06-13T03:00:00Z"), ReasonCooldown, "2026-06-13T03:10:00Z"},
		{at("2026-06-13T03:10:00Z"), ReasonFailurePause, "2026-06-13T03:15:00Z"},
		{at("2026-06-13T03:15:00Z"), ReasonDisruption, ""},
		{func() { w.finalize("blue-a") }, ReasonNoCandidate, ""},
		{func() {
			w.join(NodeClaim{Object: Object{Name: "blue-b"}, NodeName: "node-b", Ready: true, Created: w.now.Add(-9 * day), ExpireAfter: ptr(14 * day)})
		}, ReasonInsufficientHeadroom, ""},
		{func() { w.NodePool.Limits = nil }, ReasonAwaitingSurge, ""},
	} {
		step.open()
		d := w.decide()
		if d.Reason != step.want {
			t.Fatalf("%s: %s, want %s", w.now, d.Reason, step.want)
		}
		var opens time.Time
		if step.opens != "" {
			opens = date(t, step.opens)
		}
		if g := w.startGate(w.Governance.Policy, nil, w.now); !g.Opens.Equal(opens) {
			t.Errorf("%s opens at %s, want %s", d.Reason, g.Opens, opens)
		}
	}
}

func TestNoCooldownMeansAtOnce(t *testing.T) {
	w := pendingRotation(t)
	w.Governance.Policy.CooldownAfter = 0
	w.NodePool.Annotations = map[string]string{AnnotationLastRotation: stamp(w.now)}
	if g := w.startGate(w.Governance.Policy, nil, w.now); g.Reason != "" {
		t.Errorf("closed: %s %s", g.Reason, g.Detail)
	}
}

func TestPolicyThatIsInvalidSaysSoAlone(t *testing.T) {
	w := pendingRotation(t)
	w.Governance.Policy = policyOn(t)
	w.Governance.Policy.Invalid = "the zone Mars/Olympus is unknown"
	want := []Warning{{Code: "PolicyInvalid", Message: "the zone Mars/Olympus is unknown"}}
	if diff := cmp.Diff(want, w.decide().Warnings); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// What completion reports comes from the write that began the drain; what cannot be read
// is left out, and the outcome stands.
func TestCompletionReportsWhatItCanRead(t *testing.T) {
	w := pendingRotation(t)
	perform(t, w)
	w.finalize("blue-a")
	w.now = w.now.Add(3 * time.Minute)
	last := func() Facts { p := w.decide().Plan; return p[len(p)-1].Facts }
	want := Facts{NodeClaim: "blue-a", Outcome: Success, Mode: ModeSurge, SurgeNode: "node-b", SurgePath: PathProvisioned, SurgeWait: 40 * time.Second, Drain: 3 * time.Minute}
	if diff := cmp.Diff(want, last()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	edit(&w.NodePool.Annotations, map[string]string{AnnotationDrainingAt: "x", AnnotationSurgeWait: "y"}, []string{AnnotationSurgePath})
	if diff := cmp.Diff(Facts{NodeClaim: "blue-a", Outcome: Success, Mode: ModeSurge, SurgeNode: "node-b"}, last()); diff != "" {
		t.Errorf("unreadable (-want +got):\n%s", diff)
	}
	edit(&w.NodePool.Annotations, nil, []string{AnnotationDrainingAt})
	if got := last(); got.Drain != 0 {
		t.Errorf("without draining-at: %s", got.Drain)
	}
	w.NodePool.Annotations[AnnotationActiveState] = "Draining"
	if got := last(); got.Outcome != Gone {
		t.Errorf("a mirror that does not say draining: %s", got.Outcome)
	}
}

// The instant that a failure reports is the one at which the claim is eligible again: both
// come from the whole seconds that failed-at holds.
func TestR14TheReportedRetryIsTheRealOne(t *testing.T) {
	w := pendingRotation(t)
	w.now = date(t, "2026-06-10T02:20:00.7Z")
	plan := perform(t, w).Plan
	var until time.Time
	for _, st := range plan {
		if st.Act == ActMarkFailed {
			until = st.Facts.BackoffUntil
		}
	}
	if want := date(t, "2026-06-10T02:50:00Z"); !until.Equal(want) {
		t.Fatalf("reported %s, want %s", until, want)
	}
	w.finalize("blue-b")
	w.now = until.Add(-1)
	if d := w.decide(); d.Reason != ReasonNoCandidate || !d.Wake.Equal(until) {
		t.Errorf("a moment before: %s, wake at %s", d.Reason, d.Wake)
	}
	w.now = until
	if d := w.decide(); d.Active != "blue-a" {
		t.Errorf("at that instant: %s", d.Reason)
	}
}

func TestAFailureSaysWhyThePlaceholderCouldNotBeCreated(t *testing.T) {
	w := pendingRotation(t)
	w.Placeholder = nil
	w.now = w.now.Add(time.Hour)
	s := w.view()
	s.Trouble = "exceeded quota: pods"
	for _, st := range Decide(s, w.now).Plan {
		if st.Act == ActMarkFailed && st.Facts.Reason == s.Trouble {
			return
		}
	}
	t.Errorf("no failure for the reason %q in %q", s.Trouble, acts(Decide(s, w.now).Plan))
}

// Somebody has edited started-at off, or an older controller has left one behind: neither
// makes an attempt that has just begun run out of time.
func TestAnAttemptIsTimedByItsOwnStart(t *testing.T) {
	for name, prepare := range map[string]func() *world{
		"taken off by somebody": func() *world {
			w := pendingRotation(t)
			edit(&w.claim("blue-a").Annotations, nil, []string{AnnotationStartedAt})
			return w
		},
		"left by an ended attempt": func() *world {
			w := oldNode(t)
			edit(&w.claim("blue-a").Annotations, map[string]string{AnnotationStartedAt: stamp(w.now.Add(-day))}, nil)
			return w
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := prepare()
			d := w.decide()
			for _, st := range d.Plan {
				if st.Act == ActMarkPending && st.Set[AnnotationStartedAt] == stamp(w.now) {
					return
				}
			}
			t.Errorf("it does not begin: %s", acts(d.Plan))
		})
	}
}

// Karpenter has registered the node, which names its NodeClaim, and is about to write the
// name of the node to that.
func TestTheSurgeIsKnownByTheOwnerOfItsNode(t *testing.T) {
	w := pendingRotation(t)
	w.claim("blue-b").NodeName = ""
	w.change("node-b", func(n *Node) { n.Claim = "blue-b" })
	w.bind("node-b", corev1.PodPending)
	d := perform(t, w)
	if got := w.claim("blue-a").Annotations[AnnotationSurgeClaim]; got != "blue-b" {
		t.Errorf("it remembers %q after %q, want blue-b", got, acts(d.Plan))
	}
}

// The clock of the controller was set back meanwhile.
func TestNoSurgeTookLessThanNoTime(t *testing.T) {
	w := pendingRotation(t)
	edit(&w.claim("blue-a").Annotations, map[string]string{AnnotationStartedAt: stamp(w.now.Add(time.Minute))}, nil)
	perform(t, w)
	if got := w.NodePool.Annotations[AnnotationSurgeWait]; got != "0s" {
		t.Errorf("surge-wait is %q", got)
	}
	w.finalize("blue-a")
	w.now = w.now.Add(-time.Minute)
	edit(&w.NodePool.Annotations, map[string]string{AnnotationSurgeWait: "-1m0s"}, nil)
	d := w.decide()
	if f := d.Plan[len(d.Plan)-1].Facts; f.SurgeWait != 0 || f.Drain != 0 {
		t.Errorf("it reports a surge of %s and a drain of %s", f.SurgeWait, f.Drain)
	}
}

// Two Nodes name the surge claim as their owner, and one of them runs a pod. However the map is
// walked, both are looked at.
func TestAClaimWithTwoNodesIsLookedAtWhole(t *testing.T) {
	w := pendingRotation(t)
	unnamed(w)
	w.change("node-b", func(n *Node) { n.Ready = false })
	w.Nodes["node-b2"] = Node{Object: w.object(KindNode, "node-b2"), Ready: true, Claim: "blue-b", Labels: map[string]string{labelNodePool: "blue"}}
	edit(&w.claim("blue-a").Annotations, map[string]string{AnnotationSurgeClaim: "blue-b"}, nil)
	w.now = w.now.Add(20 * time.Minute)
	if diff := cmp.Diff([]string{"node-a", "node-b", "node-b2"}, Focus(w.view(), w.now)); diff != "" {
		t.Errorf("focus (-want +got):\n%s", diff)
	}
	plan := w.decide().Plan
	i := slices.IndexFunc(plan, func(st Step) bool { return st.Act == ActReapSurgeClaim })
	if i < 0 || !slices.Equal(plan[i].Empty, []string{"node-b", "node-b2"}) {
		t.Errorf("empty, it is not reaped as long as both are: %v", plan)
	}
	w.Pods["node-b2"] = []*corev1.Pod{runningPod("api", "cpu", "1")}
	if got := acts(w.decide().Plan); strings.Contains(got, string(ActReapSurgeClaim)) {
		t.Errorf("default/api runs on it: %s", got)
	}
}

// The clock of the controller is a minute ahead: the claim that its placeholder brought into
// being is older than started-at. And a placeholder that was preempted is younger than its node.
func TestSurgePathGoesByTheClockOfTheAPIServer(t *testing.T) {
	w := pendingRotation(t)
	edit(&w.claim("blue-a").Annotations, map[string]string{AnnotationStartedAt: stamp(w.now.Add(time.Minute))}, nil)
	if got := w.decide().Plan[1].Set[AnnotationSurgePath]; got != PathProvisioned {
		t.Errorf("with a clock ahead: %q", got)
	}
	w = pendingRotation(t)
	w.Placeholder.Created = w.now.Add(time.Minute)
	if got := w.decide().Plan[1].Set[AnnotationSurgePath]; got != PathProvisioned {
		t.Errorf("created again: %q", got)
	}
}

// The scheduler puts each placeholder on the candidate, as one would that knows no cordon.
func TestAUselessPlaceholderIsReplacedAtEase(t *testing.T) {
	w := oldNode(t)
	perform(t, w)
	start, created := w.now, 0
	for w.now.Before(start.Add(14 * time.Minute)) {
		w.now = w.now.Add(time.Second)
		if w.Placeholder.NodeName == "" {
			w.bind("node-a", corev1.PodFailed)
		}
		d := perform(t, w)
		if acts(d.Plan) == "deletePlaceholder createPlaceholder" {
			created++
		}
		switch after := w.now.Sub(start); {
		case after == time.Second && created != 1:
			t.Errorf("the first is not replaced at once")
		case len(d.Plan) == 0 && (!d.Wake.After(w.now) || d.Wake.After(w.now.Add(pace))):
			t.Fatalf("%s into the attempt it wakes at %s", after, d.Wake)
		}
	}
	if created < 25 || created > 40 {
		t.Errorf("%d placeholders in 14 minutes", created)
	}
}
