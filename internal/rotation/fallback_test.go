package rotation

import (
	"testing"
	"time"
)

// A rotation with a surge may take 77 minutes. A node that has as long to live gets one; a
// moment later it is drained without.
func TestTheFallbackWaitsUntilNoTimeIsLeft(t *testing.T) {
	w := oldNode(t)
	w.Governance.Policy.ForcefulFallback = true
	w.claim("blue-a").Created = w.now.Add(77*time.Minute - 14*day)
	if d := w.decide(); d.Reason != ReasonAwaitingSurge {
		t.Errorf("with 77 minutes left: %s", acts(d.Plan))
	}
	w.claim("blue-a").Created = w.now.Add(77*time.Minute - 14*day - 1)
	if got, want := acts(w.decide().Plan), "claimAnchor markDraining deleteNodeClaim"; got != want {
		t.Errorf("a moment later: %s, want %s", got, want)
	}
}

// The controller died after the anchor of a fallback, and Karpenter expired the node before
// the next one came.
func TestAFallbackThatKarpenterOvertakesDeletesNothing(t *testing.T) {
	w := oldNode(t)
	w.Governance.Policy.ForcefulFallback = true
	w.claim("blue-a").Created = w.now.Add(time.Hour - 14*day)
	if _, err := w.act(w.decide().Plan, 1); err != nil {
		t.Fatal(err)
	}
	w.remove("blue-a")
	if got, want := acts(perform(t, w).Plan), string(ActMarkDraining); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// There is no room for a surge, and in 20 seconds there will be no time for one either. The
// pool wakes for that.
func TestTheWaitForHeadroomEndsWithTheFallback(t *testing.T) {
	w := oldNode(t)
	w.Governance.Policy.ForcefulFallback = true
	w.NodePool.Limits = list("nodes", "0")
	w.NodePool.Annotations = map[string]string{AnnotationWindowOpened: stamp(w.now)}
	w.claim("blue-a").Created = w.now.Add(77*time.Minute + 20*time.Second - 14*day)
	d := w.decide()
	if turns := w.now.Add(20*time.Second + 1); d.Reason != ReasonInsufficientHeadroom || !d.Wake.Equal(turns) {
		t.Fatalf("%s, wakes at %s; want insufficientHeadroom until %s", d.Reason, d.Wake, turns)
	}
	w.now = d.Wake
	if got, want := acts(w.decide().Plan), "claimAnchor markDraining deleteNodeClaim"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	w.now = w.now.Add(-1)
	w.Governance.Policy.ForcefulFallback = false
	if d := w.decide(); d.Wake.Sub(w.now) < time.Hour {
		t.Errorf("without a fallback it wakes at %s, for nothing", d.Wake)
	}
}
