package rotation

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// A claim has failed, its backoff is over, and the pool is still anchored on it: after a
// crash between two writes. A retry is a new attempt, so every gate in front of a rotation
// holds it too, and the anchor is released instead.
func TestARetryPassesEveryGate(t *testing.T) {
	annotate := func(key, value string) func(*world) {
		return func(w *world) { edit(&w.NodePool.Annotations, map[string]string{key: value}, nil) }
	}
	for _, tt := range []struct {
		gate Reason
		shut func(*world)
	}{
		{"", func(*world) {}},
		{ReasonStatic, func(w *world) { w.NodePool.Static = true }},
		{ReasonInfeasible, func(w *world) { w.NodePool.ExpireAfter = ptr(day) }},
		{ReasonOutOfWindow, func(w *world) { w.now = date(t, "2026-06-10T06:00:00Z") }},
		{ReasonFrozen, annotate(AnnotationFreeze, "2026-06-11T00:00:00Z")},
		{ReasonCooldown, annotate(AnnotationLastRotation, "2026-06-10T02:55:00Z")},
		{ReasonFailurePause, annotate(AnnotationLastFailure, "2026-06-10T02:55:00Z")},
		{ReasonDisruption, func(w *world) { w.remove("blue-c") }},
		{ReasonInsufficientHeadroom, func(w *world) { w.NodePool.Limits = list("nodes", "0") }},
		{Reason(Backoff), func(w *world) { w.now = date(t, "2026-06-10T02:44:59Z") }},
	} {
		t.Run("gate "+string(tt.gate), func(t *testing.T) {
			w := oldNode(t)
			w.join(NodeClaim{Object: Object{Name: "blue-c"}, NodeName: "node-c", Ready: true, Created: w.now, ExpireAfter: ptr(14 * day)})
			edit(&w.claim("blue-a").Annotations, map[string]string{AnnotationState: StateFailed, AnnotationFailedAt: "2026-06-10T02:15:00Z", AnnotationRetryCount: "1"}, nil)
			edit(&w.NodePool.Annotations, map[string]string{AnnotationActive: "blue-a", AnnotationWindowOpened: "2026-06-10T02:00:00Z"}, nil)
			w.now = date(t, "2026-06-10T03:00:00Z")
			tt.shut(w)
			want := "holdClaim releaseAnchor"
			if tt.gate == "" {
				want = "markPending freezeNode createPlaceholder"
			}
			if got := acts(w.decide().Plan); got != want {
				t.Errorf("%s, want %s", got, want)
			}
		})
	}
}

// The fallback is for a deadline that is nearer than one rotation of this very claim.
func TestTheFallbackGoesByTheClaimsOwnTerms(t *testing.T) {
	bound := 77 * time.Minute // readyTimeout 15m + grace period 1h + 2m
	for _, tt := range []struct {
		name     string
		left     time.Duration
		grace    *time.Duration
		allowed  bool
		fallback bool
	}{
		{"as much time as a rotation takes", bound, ptr(time.Hour), true, false},
		{"a moment less", bound - 1, ptr(time.Hour), true, true},
		{"and the policy does not allow it", bound - 1, ptr(time.Hour), false, false},
		{"a longer drain of its own", 2 * time.Hour, ptr(2 * time.Hour), true, true},
		{"a shorter one", time.Hour, ptr(time.Minute), true, false},
		{"none set counts as an hour", bound - 1, nil, true, true},
		{"past the deadline", -time.Hour, ptr(time.Hour), true, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := oldNode(t)
			w.Governance.Policy.ForcefulFallback = tt.allowed
			w.NodePool.GracePeriod = ptr(10 * time.Minute) // the template does not count
			c := w.claim("blue-a")
			c.GracePeriod = tt.grace
			c.Created = w.now.Add(tt.left - *c.ExpireAfter)
			got := acts(w.decide().Plan)
			if fell := got == "claimAnchor markDraining deleteNodeClaim"; fell != tt.fallback {
				t.Errorf("%s, want a fallback %t", got, tt.fallback)
			}
		})
	}
	w := oldNode(t)
	w.Governance.Policy.ForcefulFallback = true
	w.claim("blue-a").Created = w.now.Add(-335 * time.Hour)
	w.now = date(t, "2026-06-10T01:59:59Z")
	if d := w.decide(); d.Reason != ReasonOutOfWindow || len(d.Plan) > 0 {
		t.Errorf("before the window: %s %s", d.Reason, acts(d.Plan))
	}
	w.now = date(t, "2026-06-10T02:00:00Z")
	w.claim("blue-a").ExpireAfter = nil
	if d := w.decide(); d.Reason != ReasonNoCandidate {
		t.Errorf("a claim that never expires: %s %s", d.Reason, acts(d.Plan))
	}
}

// In which occurrence a failure happened is judged by the windows as they are now: what an
// operator has merged is one, what they have split is two.
func TestTheLadderGoesByTheScheduleOfNow(t *testing.T) {
	failed, now := date(t, "2026-06-10T02:30:00Z"), date(t, "2026-06-10T05:00:00Z")
	for windows, want := range map[string]time.Duration{
		"Wed 02:00-06:00 UTC": 2 * time.Hour,
		"Wed 02:00-03:00 UTC": 4 * time.Hour,
	} {
		p := policyOn(t, windows, "Wed 04:00-06:00 UTC")
		if got := p.backoff(failed, 4, now); got != want {
			t.Errorf("%s: %s, want %s", windows, got, want)
		}
	}
}

// Karpenter names the NodeClaim as owner of the Node a moment before the NodeClaim names its
// Node. Either is enough to tell the surge path.
func TestTheSurgeIsKnownByTheNodesOwner(t *testing.T) {
	w := pendingRotation(t)
	w.claim("blue-b").NodeName = "" // Karpenter writes it a moment after the Node's owner
	w.change("node-b", func(n *Node) { n.Claim = "blue-b" })
	w.bind("node-b", corev1.PodRunning)
	for _, st := range w.decide().Plan {
		if st.Act == ActRecordDraining && st.Set[AnnotationSurgePath] == PathProvisioned {
			return
		}
	}
	t.Errorf("the surge path is not told: %s", acts(w.decide().Plan))
}

// The transition was written on the pool, and then the surge host fell away, the attempt
// failed, and the controller died before it released the anchor. The next attempt is not begun
// under that anchor: its drain would be told as begun an hour before it did, and Karpenter's
// expiry of the node as a success.
func TestARetryDoesNotInheritTheTransitionThatFailed(t *testing.T) {
	w := pendingRotation(t)
	until := func(act Act) {
		t.Helper()
		d := w.decide()
		n := 1 + slices.IndexFunc(d.Plan, func(st Step) bool { return st.Act == act })
		if _, err := w.act(d.Plan, n); err != nil || n == 0 {
			t.Fatalf("%v; %s", err, acts(d.Plan))
		}
	}
	until(ActRecordDraining)
	w.change("node-b", func(n *Node) { n.Ready = false })
	w.now = w.now.Add(20 * time.Minute)
	for w.claim("blue-a").state() != StateFailed {
		d := w.decide()
		n := 1 + slices.IndexFunc(d.Plan, func(st Step) bool { return st.Act == ActMarkFailed })
		if n == 0 {
			n = -1
		}
		if _, err := w.act(d.Plan, n); err != nil {
			t.Fatal(err)
		}
	}
	w.finalize("blue-b")
	w.now = w.now.Add(time.Hour)
	if got, want := acts(perform(t, w).Plan), "holdClaim releaseAnchor"; got != want {
		t.Fatalf("an hour later: %s, want %s", got, want)
	}
	if got := w.NodePool.Annotations[AnnotationDrainingAt]; got != "" {
		t.Errorf("draining-at is still %s", got)
	}
}
