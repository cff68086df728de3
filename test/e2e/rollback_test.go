package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// surgeTimeout leaves Karpenter the time to launch the surge, which then never registers.
const surgeTimeout = 20 * time.Second

// stalled is a pool of one node and one pod, whose next node will not come up in time.
func stalled(t *testing.T, name string) (p *pool, claim, node string) {
	t.Helper()
	p = newPool(t, name, ownNodeClass(t, name))
	p.deploy("web", 1, cpu("1"))
	p.awaitSettled(1, 1)
	stall(t, name)
	return p, p.claimNames()[0], p.nodes()[0].Name
}

// rolledBack checks what holds after every rollback: the surge is gone, the candidate and
// its pod were not disturbed, and the failure is on record.
func (p *pool) rolledBack(claim string, began time.Time) {
	p.t.Helper()
	p.await("the reaping of the surge", func() string {
		for _, c := range p.claims() {
			if c.Name != claim {
				return "NodeClaim " + c.Name + " is still there"
			}
		}
		return ""
	})
	if n := len(p.claimNames()); n != 2 {
		p.t.Errorf("NodeClaims ever %v: want the candidate and one surge", p.claimNames())
	}
	p.noPlaceholder()
	if fewest := p.fewestReady(began); fewest != 1 {
		p.t.Errorf("the pod was away")
	}
	a := ourMarks(p.claim(claim).Annotations)
	failed, err := time.Parse(time.RFC3339, a[failedAt])
	if err != nil {
		p.t.Fatalf("NodeClaim %s: %s: %v", claim, failedAt, err)
	}
	want := map[string]string{claimState: "failed", retryCount: "1", failedAt: a[failedAt]}
	if diff := cmp.Diff(want, a); diff != "" {
		p.t.Errorf("annotations of NodeClaim %s (-want +got):\n%s", claim, diff)
	}
	if at := p.nodePool().Annotations[lastFailureAt]; at != a[failedAt] {
		p.t.Errorf("%s on the NodePool is %q, want %q", lastFailureAt, at, a[failedAt])
	}
	next := failed.Add(30 * time.Minute).UTC().Format(time.RFC3339)
	for _, e := range p.events("RotationFailed") {
		if !strings.Contains(e.Note, next) {
			p.t.Errorf("RotationFailed does not name the next attempt, %s: %s", next, e.Note)
		}
	}
	if done := p.events("RotationCompleted"); len(done) > 0 {
		p.t.Errorf("a failure was reported as complete: %s", done[0].Note)
	}
	p.complete()
}

// r14: the surge node does not come up within readyTimeout.
func TestR14SurgeThatNeverComesIsRolledBack(t *testing.T) {
	needLab(t)
	t.Parallel()
	needController(t)
	p, claim, node := stalled(t, "r14")

	began := p.govern(readyWithin(surgeTimeout))
	p.awaitFailed(claim)

	if note := p.oneEvent("RotationFailed"); !strings.Contains(note, "is not scheduled") {
		t.Errorf("RotationFailed does not say what was missing, a place for the placeholder: %s", note)
	}
	p.rolledBack(claim, began)
	n := p.node(node)
	if m := ourMarks(n.Annotations); len(m) > 0 || n.Spec.Unschedulable {
		t.Errorf("Node %s was not given back: unschedulable=%t %v", node, n.Spec.Unschedulable, m)
	}
	if on := p.onNode(node, cordonedByUs); len(on) == 0 {
		t.Errorf("the candidate's Node was never cordoned")
	}
}

// r15: as r14, but the operator's cordon was there first. It outlives the rollback.
func TestR15OperatorsCordonSurvivesTheRollback(t *testing.T) {
	needLab(t)
	t.Parallel()
	needController(t)
	p, claim, node := stalled(t, "r15-rollback")
	p.cordon(node)

	began := p.govern(readyWithin(surgeTimeout))
	p.awaitFailed(claim)

	p.oneEvent("RotationFailed")
	p.rolledBack(claim, began)
	n := p.node(node)
	if m := ourMarks(n.Annotations); len(m) > 0 || !n.Spec.Unschedulable {
		t.Errorf("Node %s is unschedulable=%t %v: want the operator's cordon and nothing else", node, n.Spec.Unschedulable, m)
	}
	if on := p.onNode(node, cordonedByUs); len(on) > 0 {
		t.Errorf("the operator's cordon was marked as ours: %v", on)
	}
}

// r17: as r14, on a node with do-not-disrupt="false". The rollback takes back what it
// wrote over it.
func TestR17OverwrittenProtectionIsTakenBack(t *testing.T) {
	needLab(t)
	t.Parallel()
	needController(t)
	p, claim, node := stalled(t, "r17-rollback")
	p.annotate(p.node(node), doNotDisrupt, "false")

	began := p.govern(readyWithin(surgeTimeout))
	p.awaitFailed(claim)

	p.oneEvent("RotationFailed")
	p.rolledBack(claim, began)
	if diff := cmp.Diff([]string{"false", "true"}, p.onNode(node, doNotDisrupt)); diff != "" {
		t.Errorf("%s over time (-want +got):\n%s", doNotDisrupt, diff)
	}
	n := p.node(node)
	if m := ourMarks(n.Annotations); len(m) > 0 || n.Spec.Unschedulable {
		t.Errorf("Node %s was not given back: unschedulable=%t %v", node, n.Spec.Unschedulable, m)
	}
}
