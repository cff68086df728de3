package e2e

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/tasuki-io/tasuki/lab"
)

const freezeUntil = "noderotation.io/freeze"

// idles fails the test if the controller touches the pool in the time in which it would
// have rotated a node of it.
func (p *pool) idles(began time.Time) {
	p.t.Helper()
	claims := p.claimNames()
	time.Sleep(20 * time.Second)
	p.untouchedSince(began)
	if all := p.spells(); len(all) > 0 {
		p.t.Errorf("a rotation began: %v", all)
	}
	if diff := cmp.Diff(claims, p.claimNames()); diff != "" {
		p.t.Errorf("NodeClaims (-before +after):\n%s", diff)
	}
}

// r06: somebody writes "tomorrow" where an RFC 3339 time belongs. The pool is frozen, it is
// told with the value, and it goes on when the value is taken away.
func TestR06UnreadableFreezeFreezes(t *testing.T) {
	needLab(t)
	t.Parallel()
	needController(t)
	p := newPool(t, "r06")
	p.deploy("web", 1, cpu("1"))
	p.awaitSettled(1, 1)
	before := p.claimNames()
	p.annotate(p.nodePool(), freezeUntil, "tomorrow")

	began := p.govern()
	if note := p.oneEvent("FreezeInvalid"); !strings.Contains(note, `"tomorrow"`) {
		t.Errorf("FreezeInvalid does not quote the value: %s", note)
	}
	p.awaitReason("frozen")
	p.idles(began)
	p.oneEvent("FreezeInvalid")
	p.measured(map[string]float64{"freeze_until_timestamp": math.Inf(1), "candidates": 1, "in_progress": 0})

	p.patch(p.nodePool(), fmt.Sprintf(`{"metadata": {"annotations": {%q: null}}}`, freezeUntil))
	p.awaitRotated()
	p.awaitSettled(1, 1)
	p.rotated(before[0], before, 1)
	p.oneEvent("FreezeInvalid")
	p.measured(map[string]float64{"freeze_until_timestamp": 0})
}

// r07: the pool may no longer launch in zone b, and Karpenter replaces the node that is
// there. It hangs on a budget. The node that is due waits until the other one is gone.
//
// It runs alone: Karpenter counts the pods that are pending in other pools into what has to
// come up before it deletes a node, and gives up if that never comes.
func TestR07WaitsForKarpentersOwnDisruption(t *testing.T) {
	needLab(t)
	needController(t)
	p := newPool(t, "r07", require(corev1.LabelTopologyZone, zoneB))
	astray := p.deploy("astray", 1, cpu("3"))
	p.budget(astray, 0)
	p.awaitSettled(1, 1)
	drifting, node := p.claimNames()[0], p.nodes()[0].Name
	p.alter(require(corev1.LabelTopologyZone, zoneA, zoneB))
	p.deploy("web", 1, cpu("3"), func(pod *corev1.PodTemplateSpec) { pod.Spec.NodeSelector[corev1.LabelTopologyZone] = zoneA })
	p.awaitSettled(2, 2)
	due := p.claimNames()[1]

	p.alter(require(corev1.LabelTopologyZone, zoneA))
	p.await("Karpenter's disruption of Node "+node, func() string {
		if !isDisrupted(p.node(node)) {
			return fmt.Sprintf("its taints are %v", p.node(node).Spec.Taints)
		}
		return ""
	})
	p.govern()
	if detail := p.awaitReason("disruptionInProgress"); !strings.Contains(detail, drifting) {
		t.Errorf("the log does not name NodeClaim %s: %s", drifting, detail)
	}
	p.awaitDrain(drifting)
	time.Sleep(20 * time.Second)
	if all := p.spells(); len(all) > 0 {
		t.Errorf("a rotation began: %v", all)
	}

	p.relax(astray)
	all := p.awaitSpells(1)
	p.awaitSettled(2, 2)
	gone := p.goneAt(drifting)
	if all[0].claim != due || gone == 0 || all[0].from < gone {
		t.Errorf("NodeClaim %s was rotated from revision %d on, and %s gone at %d: want %s, and after that", all[0].claim, all[0].from, drifting, gone, due)
	}
	if who := p.deletedBy(drifting); who != lab.Karpenter {
		t.Errorf("NodeClaim %s was deleted by %q, want Karpenter", drifting, who)
	}
	p.unmarked()
	p.complete()
}

func isDisrupted(n *corev1.Node) bool {
	return slices.ContainsFunc(n.Spec.Taints, func(taint corev1.Taint) bool { return taint.Key == disruptedTaint })
}

// r22: a NodePool of a fixed size. No surge can come up in it; that is said once in its
// life, even when the policy is written anew, and its node is left to expire.
func TestR22StaticNodePoolIsLeftAlone(t *testing.T) {
	needLab(t)
	t.Parallel()
	needController(t)
	p := newPool(t, "r22", func(np *karpv1.NodePool) {
		one := int64(1)
		np.Spec.Replicas = &one
	})
	p.awaitSettled(1, 0)
	p.deploy("web", 1, cpu("1"))
	p.awaitSettled(1, 1)

	began := p.govern()
	if note := p.oneEvent("StaticNodePool"); !strings.Contains(note, "spec.replicas") {
		t.Errorf("StaticNodePool does not name the field: %s", note)
	}
	p.awaitReason("static")
	p.idles(began)
	p.abandon()
	p.awaitReason("ungoverned")
	p.govern()
	p.idles(began)
	if warned := p.events("StaticNodePool")[0]; warned.Type != corev1.EventTypeWarning || warned.Regarding.Kind != "NodePool" {
		t.Errorf("StaticNodePool is a %s about a %s, want a Warning about the NodePool", warned.Type, warned.Regarding.Kind)
	}
	p.oneEvent("StaticNodePool")
	p.unmarked()
	p.complete()
}

// r26: nodes that never expire have no deadline. Nothing is due, and there is nothing to
// fall back from.
func TestR26NodesThatNeverExpireAreNoCandidates(t *testing.T) {
	needLab(t)
	t.Parallel()
	needController(t)
	p := newPool(t, "r26", expireAfter(karpv1.Never))
	p.deploy("web", 1, cpu("1"))
	p.awaitSettled(1, 1)

	began := p.govern(orByForce)
	if detail := p.awaitReason("noCandidate"); detail != "neverExpires=1" {
		t.Errorf("the census is %q, want one that never expires", detail)
	}
	p.idles(began)
	p.measured(map[string]float64{
		"candidates": 0, "in_backoff": 0, "in_progress": 0, "short_lead_nodes": 0, "forceful_fallback_total": 0,
		"age_threshold_seconds": 0, "rotation_chances": 0, "t_rot_bound_seconds": 0, "t_rot_estimate_seconds": 0, "throughput_capacity": 0,
		"window_active": 1, "window_period_seconds": 60,
	})
	for _, e := range p.events("") {
		if e.Type == corev1.EventTypeWarning {
			t.Errorf("Warning %s: %s", e.Reason, e.Note)
		}
	}
	p.unmarked()
	p.complete()
}
