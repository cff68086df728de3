package e2e

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tasuki-io/tasuki/api/v1alpha1"
)

// r08: the policy is deleted while a node drains, and written anew a second later. The pool
// has lost its anchor, but not the drain: no second one begins before the first is over.
func TestR08PolicyIsReplacedMidDrain(t *testing.T) {
	needLab(t)
	t.Parallel()
	needController(t)
	p := newPool(t, "r08")
	first := p.deploy("first", 1, cpu("3"))
	p.budget(first, 0)
	p.awaitSettled(1, 1)
	p.deploy("second", 1, cpu("3"))
	p.awaitSettled(2, 2)
	before := p.claimNames()

	p.govern()
	p.awaitDrain(before[0])
	p.abandon()
	if note := p.oneEvent("GovernanceLost"); !strings.Contains(note, before[0]) {
		t.Errorf("GovernanceLost does not name NodeClaim %s: %s", before[0], note)
	}
	time.Sleep(time.Second)
	p.govern()
	if detail := p.awaitReason("disruptionInProgress"); !strings.Contains(detail, before[0]) {
		t.Errorf("the log does not name NodeClaim %s: %s", before[0], detail)
	}
	time.Sleep(20 * time.Second)
	if n := len(p.spells()); n != 1 {
		t.Errorf("%d rotations began, want 1: %v", n, p.spells())
	}

	p.relax(first)
	all := p.awaitSpells(2)
	p.awaitSettled(2, 2)
	if all[1].claim != before[1] || all[1].from < p.goneAt(before[0]) {
		t.Errorf("NodeClaim %s was rotated from revision %d on, and %s gone at %d: want %s, and after that", all[1].claim, all[1].from, before[0], p.goneAt(before[0]), before[1])
	}
	if got := len(p.claimNames()); got != 4 {
		t.Errorf("NodeClaims ever %v: want one more for each of two", p.claimNames())
	}
	p.oneEvent("GovernanceLost")
	p.unmarked()
	p.complete()
}

// rival selects the pool by another selector with as many constraints as the one of govern.
func rival(p *pool) func(*v1alpha1.RotationPolicy) {
	return func(rp *v1alpha1.RotationPolicy) {
		rp.Name += "-rival"
		rp.Spec.NodePoolSelector = v1alpha1.NodePoolSelector{MatchExpressions: []v1alpha1.NodePoolSelectorRequirement{
			{Key: poolLabel, Operator: metav1.LabelSelectorOpIn, Values: []v1alpha1.LabelValue{v1alpha1.LabelValue(p.name)}},
		}}
	}
}

// r21: two policies select the pool, and neither is the more specific. Neither rules, both
// say so, and the pool rotates as soon as one of them is gone.
func TestR21PoliciesThatTieRotateNothing(t *testing.T) {
	needLab(t)
	t.Parallel()
	needController(t)
	p := newPool(t, "r21")
	began := p.govern()
	p.govern(rival(p))
	if note := p.oneEvent("PolicyConflict"); !strings.Contains(note, "r21 r21-rival") {
		t.Errorf("PolicyConflict does not name the policies: %s", note)
	}
	p.deploy("web", 1, cpu("1"))
	p.awaitSettled(1, 1)
	before := p.claimNames()

	p.idles(began)
	p.oneEvent("PolicyConflict")
	p.measured(map[string]float64{"policy_conflict": 1})
	if v, there := p.metrics()["candidates"]; there {
		t.Errorf("candidates is %v for a pool that no single policy governs", v)
	}
	for _, name := range []string{"r21", "r21-rival"} {
		rp := &v1alpha1.RotationPolicy{}
		p.get(name, rp)
		ready := meta.FindStatusCondition(rp.Status.Conditions, "Ready")
		if ready == nil || ready.Status != metav1.ConditionFalse || ready.Reason != "Conflict" {
			t.Errorf("RotationPolicy %s has the condition %+v, want Ready=False for a Conflict", name, ready)
		}
	}

	p.abandon()
	p.awaitRotated()
	p.awaitSettled(1, 1)
	p.rotated(before[0], before, 1)
	p.measured(map[string]float64{"policy_conflict": 0})
}

// r21: a second policy comes up while a rotation waits for its surge. The rotation is
// rolled back, which is nobody's failure and is told once.
func TestR21ConflictMidRotationRollsBack(t *testing.T) {
	needLab(t)
	t.Parallel()
	needController(t)
	p, claim, node := stalled(t, "r21-late")

	began := p.govern()
	placeholder := p.awaitPending(claim, node)
	p.govern(rival(p))
	p.awaitSpells(1)
	if note := p.oneEvent("GovernanceLost"); !strings.Contains(note, claim) || !strings.Contains(note, "policyConflict") {
		t.Errorf("GovernanceLost does not name NodeClaim %s and the reason: %s", claim, note)
	}
	time.Sleep(20 * time.Second)

	p.oneEvent("GovernanceLost")
	p.oneEvent("PolicyConflict")
	if p.getPlaceholder(placeholder) {
		t.Errorf("placeholder %s is still there", placeholder.Name)
	}
	if n := len(p.spells()); n != 1 {
		t.Errorf("%d rotations began, want 1: %v", n, p.spells())
	}
	p.unmarked()
	if fewest := p.fewestReady(began); fewest != 1 {
		t.Errorf("the pod was away")
	}
	if failures := p.onPool(lastFailureAt); len(failures) > 0 || len(p.onClaim(claim, retryCount)) > 0 {
		t.Errorf("the rollback counts as a failure: %v", failures)
	}
	p.measured(map[string]float64{"policy_conflict": 1, `completed_total{outcome="failure"}`: 0, `completed_total{outcome="success"}`: 0})
	p.complete()
}
