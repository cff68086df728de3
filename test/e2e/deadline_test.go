package e2e

import (
	"slices"
	"strings"
	"testing"
	"time"

	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/tasuki-io/tasuki/lab"
	"github.com/tasuki-io/tasuki/lab/trial"
)

// shortLived is a pool of one node whose own life ends soon. Its successors live for two
// hours, so that the policy is a sane one.
func shortLived(t *testing.T, name string, life time.Duration, changes ...func(*karpv1.NodePool)) (p *pool, deadline time.Time) {
	t.Helper()
	p = newPool(t, name, append(changes, undisrupted, expireAfter(life.String()))...)
	p.deploy("web", 1, cpu("1"))
	p.awaitSettled(1, 1)
	p.alter(expireAfter("2h"))
	return p, p.claims()[0].CreationTimestamp.Add(life)
}

// There is no time left to wait for a surge and to drain before the node expires. It is
// drained at once, inside the window, and not by Karpenter at the deadline.
func TestNodeTooCloseToItsDeadlineIsDrainedByForce(t *testing.T) {
	needLab(t)
	t.Parallel()
	needController(t)
	const timeout, grace, buffer = 30 * time.Second, time.Minute, 2 * time.Minute
	p, deadline := shortLived(t, "forced", timeout+grace+buffer+30*time.Second, gracePeriod(grace))
	before := p.claimNames()
	time.Sleep(time.Until(deadline.Add(-timeout - grace - buffer + time.Second)))

	p.govern(readyWithin(timeout), orByForce)
	all := p.awaitSpells(1)
	p.awaitRotated()
	p.awaitSettled(1, 1)

	p.rotated(before[0], before, 1)
	if !all[0].ended.Before(deadline) {
		t.Errorf("the rotation ended at %s, want it before the deadline %s", clock(all[0].ended), clock(deadline))
	}
	if who := p.deletedBy(before[0]); who != trial.User {
		t.Errorf("NodeClaim %s was deleted by %q, want the controller", before[0], who)
	}
	if n := len(p.placeholders()); n > 0 {
		t.Errorf("%d placeholders were created, want none", n)
	}
	if modes := p.onPool(rotMode); !slices.Equal(modes, []string{"forceful-fallback"}) {
		t.Errorf("modes %v, want forceful-fallback", modes)
	}
	for _, reason := range []string{"RotationStarted", "ForcefulFallback"} {
		if note := p.oneEvent(reason); !strings.Contains(note, before[0]) || !strings.Contains(note, deadline.UTC().Format(time.RFC3339)) {
			t.Errorf("%s does not name NodeClaim %s and its deadline %s: %s", reason, before[0], clock(deadline), note)
		}
	}
	if note := p.oneEvent("RotationCompleted"); !strings.Contains(note, "mode forceful-fallback") {
		t.Errorf("RotationCompleted does not tell the mode: %s", note)
	}
	p.measured(map[string]float64{
		"forceful_fallback_total": 1, `completed_total{outcome="success"}`: 1, `completed_total{outcome="expired"}`: 0,
		`duration_seconds_count{phase="drain"}`: 1,
	})
	if n, there := p.metrics()[`duration_seconds_count{phase="surge_wait"}`]; there {
		t.Errorf("a surge was waited for %v times, want none", n)
	}
}

// The node expires while the rotation still waits for its surge. Karpenter has deleted it,
// and the rotation ends as that: neither a success nor a failure.
func TestNodeThatExpiresWhilePendingEndsAsExpired(t *testing.T) {
	needLab(t)
	t.Parallel()
	needController(t)
	p, deadline := shortLived(t, "expired", 75*time.Second, ownNodeClass(t, "expired"))
	claim, node := p.claimNames()[0], p.nodes()[0].Name
	stall(t, "expired")

	p.govern()
	placeholder := p.awaitPending(claim, node)
	all := p.awaitSpells(1)
	p.await("the end of NodeClaim "+claim, func() string {
		if p.goneAt(claim) == 0 {
			return "it is still there"
		}
		return ""
	})

	if who := p.deletedBy(claim); who != lab.Karpenter {
		t.Errorf("NodeClaim %s was deleted by %q, want Karpenter", claim, who)
	}
	if all[0].claim != claim || all[0].ended.Before(deadline) {
		t.Errorf("the rotation of NodeClaim %s ended at %s, want the one of %s to last until %s", all[0].claim, clock(all[0].ended), claim, clock(deadline))
	}
	if p.getPlaceholder(placeholder) {
		t.Errorf("placeholder %s is still there", placeholder.Name)
	}
	for _, key := range []string{lastRotationAt, lastFailureAt} {
		if values := p.onPool(key); len(values) > 0 {
			t.Errorf("the NodePool has %s=%v, want none", key, values)
		}
	}
	for _, reason := range []string{"RotationCompleted", "RotationFailed"} {
		if es := p.events(reason); len(es) > 0 {
			t.Errorf("%s: %s", reason, es[0].Note)
		}
	}
	p.measured(map[string]float64{
		`completed_total{outcome="expired"}`: 1, `completed_total{outcome="success"}`: 0, `completed_total{outcome="failure"}`: 0,
		"forceful_fallback_total": 0, "in_progress": 0,
	})
	p.unmarked()
	p.complete()
}
