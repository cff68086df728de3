package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/tasuki-io/tasuki/lab/trial"
)

// held is for how long, at least, Karpenter has to leave a node alone that it would like to
// disrupt. It looks for such nodes every 10 s, and validates its choice after 15 s more.
const held = 45 * time.Second

// thrifty lets Karpenter consolidate nodes of the pool, into smaller ones too, and as many
// at once as it likes: no budget stands in for the protection.
func thrifty(np *karpv1.NodePool) {
	require(corev1.LabelInstanceTypeStable, fourCPU, "c-2x-amd64-linux")(np)
	np.Spec.Disruption.ConsolidationPolicy = karpv1.ConsolidationPolicyWhenEmptyOrUnderutilized
	np.Spec.Disruption.ConsolidateAfter = karpv1.MustParseNillableDuration("1s")
	np.Spec.Disruption.Budgets = []karpv1.Budget{{Nodes: "100%"}}
}

// awaitWanted waits until Karpenter says, by a condition of the claim, that it would like to
// disrupt it, and returns when that was seen.
func (p *pool) awaitWanted(claim, condition string) time.Time {
	p.t.Helper()
	p.await(condition+" of NodeClaim "+claim, func() string {
		if c := p.claim(claim).StatusConditions().Get(condition); !c.IsTrue() {
			return fmt.Sprintf("it is %v", c)
		}
		return ""
	})
	return time.Now()
}

// movedAt is the revision at which Karpenter began to disrupt a node, 0 if it never did.
func (p *pool) movedAt(claim, node string) int64 {
	tainted := firstOf(p.t, node, func(_ version, n *corev1.Node) bool { return isDisrupted(n) })
	deleted := firstOf(p.t, claim, func(_ version, c *karpv1.NodeClaim) bool { return c.DeletionTimestamp != nil })
	if tainted == 0 || deleted != 0 && deleted < tainted {
		return deleted
	}
	return tainted
}

// awaitMove waits until Karpenter disrupts a node that a rotation had frozen, and fails the
// test if it did so before the rotation let go of it.
func (p *pool) awaitMove(claim, node string) {
	p.t.Helper()
	var moved int64
	p.await("Karpenter's disruption of Node "+node, func() string {
		if moved = p.movedAt(claim, node); moved == 0 {
			return "none, although nothing holds it any more"
		}
		return ""
	})
	frozen := false
	thawed := firstOf(p.t, node, func(_ version, n *corev1.Node) bool {
		marked := n.Annotations[surgeFor] != ""
		frozen = frozen || marked
		return frozen && !marked
	})
	if thawed == 0 || moved < thawed {
		p.t.Errorf("Karpenter disrupted Node %s at revision %d, and the rotation let go of it at %d", node, moved, thawed)
	}
}

// A rotation waits for its surge, which does not come. Meanwhile its candidate has drifted,
// or would fit on a cheaper node. Karpenter leaves it alone until the rotation has let go,
// and no longer.
func TestKarpenterLeavesTheCandidateAlone(t *testing.T) {
	needLab(t)
	t.Parallel()
	needController(t)
	for why, c := range map[string]struct {
		condition string
		tempt     func(p *pool, web *appsv1.Deployment)
	}{
		"drift": {karpv1.ConditionTypeDrifted, func(p *pool, _ *appsv1.Deployment) { p.alter(drifts) }},
		"consolidation": {karpv1.ConditionTypeConsolidatable, func(p *pool, web *appsv1.Deployment) {
			p.patch(web, `{"spec": {"replicas": 1}}`)
			p.awaitPods(1)
		}},
	} {
		t.Run(why, func(t *testing.T) {
			t.Parallel()
			name := "candidate-" + why
			p := newPool(t, name, ownNodeClass(t, name), thrifty)
			web := p.deploy("web", 3, cpu("1"))
			p.awaitSettled(1, 3)
			claim, node := p.claimNames()[0], p.nodes()[0].Name
			stall(t, name)

			p.govern(readyWithin(90 * time.Second))
			p.awaitPending(claim, node)
			c.tempt(p, web)
			since := p.awaitWanted(claim, c.condition)
			freed := p.awaitSpells(1)[0]
			if waited := freed.ended.Sub(since); waited < held {
				t.Fatalf("Karpenter was held for %s, less than %s: nothing was shown", waited, held)
			}
			applyNodeClass(t, name, 0)
			p.awaitMove(claim, node)
			p.complete()
		})
	}
}

// A rotation drains its candidate, which a budget holds up. The surge node is empty, and
// may have drifted as well. Karpenter leaves it alone until the rotation is over.
func TestKarpenterLeavesTheSurgeNodeAlone(t *testing.T) {
	needLab(t)
	t.Parallel()
	needController(t)
	for why, c := range map[string]struct {
		condition     string
		before, after func(p *pool, web *appsv1.Deployment) // the rotation is over
	}{
		"drift": {karpv1.ConditionTypeDrifted, func(p *pool, _ *appsv1.Deployment) { p.alter(drifts) }, nil},
		"emptiness": {karpv1.ConditionTypeConsolidatable, nil, func(p *pool, web *appsv1.Deployment) {
			p.patch(web, `{"spec": {"replicas": 0}}`)
		}},
	} {
		t.Run(why, func(t *testing.T) {
			t.Parallel()
			p := newPool(t, "surge-"+why, thrifty)
			web := p.deploy("web", 1, cpu("1"))
			p.budget(web, 0)
			p.awaitSettled(1, 1)
			candidate := p.claimNames()[0]

			p.govern()
			p.awaitDrain(candidate)
			surge := p.claims()[1]
			if c.before != nil {
				c.before(p, web)
			}
			p.awaitWanted(surge.Name, c.condition)
			time.Sleep(held)
			if moved := p.movedAt(surge.Name, surge.Status.NodeName); moved != 0 {
				t.Errorf("Karpenter disrupted Node %s at revision %d, in the middle of the rotation", surge.Status.NodeName, moved)
			}
			if p.goneAt(candidate) != 0 {
				t.Fatalf("NodeClaim %s is gone, and the rotation over: nothing was shown", candidate)
			}

			p.relax(web)
			p.awaitSpells(1)
			p.awaitRotated()
			if c.after != nil {
				c.after(p, web)
			}
			p.awaitMove(surge.Name, surge.Status.NodeName)
			p.complete()
		})
	}
}

// awaitPods waits until this many pods of the workload are left.
func (p *pool) awaitPods(n int) {
	p.t.Helper()
	p.await(fmt.Sprintf("%d pods", n), func() string {
		var l corev1.PodList
		p.list(&l, client.InNamespace(workloads), client.MatchingLabels{poolLabel: p.name})
		if len(l.Items) != n {
			return fmt.Sprintf("there are %d", len(l.Items))
		}
		return ""
	})
}

// awaitDrain waits until the claim is being deleted.
func (p *pool) awaitDrain(claim string) {
	p.t.Helper()
	p.await("the drain of NodeClaim "+claim, func() string {
		if p.claim(claim).DeletionTimestamp == nil {
			return "it is not being deleted"
		}
		return ""
	})
}

// preempted is a pool whose rotation of its first claim had found room on the second node,
// which an operator has cordoned, when the scheduler gave that room to a pod of higher
// priority. No other node comes up.
func preempted(t *testing.T, name string, timeout time.Duration) (p *pool, claim, room string, vip *corev1.Pod) {
	t.Helper()
	p = newPool(t, name, ownNodeClass(t, name))
	p.deploy("stays", 1, cpu("2"))
	p.awaitSettled(1, 1)
	guest := p.deploy("guest", 1, cpu("3"))
	p.awaitSettled(2, 2)
	p.patch(guest, `{"spec": {"replicas": 0}}`)
	p.awaitSettled(2, 1)
	claim = p.claimNames()[0]
	node := p.claim(claim).Status.NodeName
	room = p.claim(p.claimNames()[1]).Status.NodeName
	p.cordon(room)
	stall(t, name)

	p.govern(readyWithin(timeout))
	first := p.awaitPending(claim, node)
	p.bind(first, room) // the scheduler binds nothing to a node that is cordoned
	p.await("the placeholder on Node "+room, func() string {
		pod := p.placeholderNow()
		if pod == nil || pod.UID != first.UID || pod.Status.Phase != corev1.PodRunning {
			return "it does not run"
		}
		return ""
	})

	p.create(&schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: 1000})
	template := p.template(cpu("3"), notWorkload, func(pod *corev1.PodTemplateSpec) {
		pod.Spec.PriorityClassName = name
		pod.Spec.NodeSelector[corev1.LabelHostname] = p.node(room).Labels[corev1.LabelHostname]
		pod.Spec.Tolerations = []corev1.Toleration{{Key: corev1.TaintNodeUnschedulable, Operator: corev1.TolerationOpExists}}
	})
	vip = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: workloads, Name: name + "-vip", Labels: template.Labels}, Spec: template.Spec}
	p.create(vip)
	p.await("another placeholder", func() string {
		if pod := p.placeholderNow(); pod == nil || pod.UID == first.UID {
			return "there is none"
		}
		return ""
	})
	if !slices.Contains(p.endsOfPlaceholder(first), corev1.PodReasonPreemptionByScheduler) {
		t.Errorf("placeholder %s was not preempted: %v", first.UID, p.endsOfPlaceholder(first))
	}
	return p, claim, room, vip
}

// placeholderNow is the pool's placeholder as it is now, nil if there is none.
func (p *pool) placeholderNow() *corev1.Pod {
	p.t.Helper()
	var l corev1.PodList
	p.list(&l, client.InNamespace(trial.Namespace))
	for i := range l.Items {
		if p.ownsPlaceholder(&l.Items[i]) {
			return &l.Items[i]
		}
	}
	return nil
}

// endsOfPlaceholder are the reasons why it was to be disrupted.
func (p *pool) endsOfPlaceholder(pod *corev1.Pod) []string {
	var why []string
	walk(world.history, func(o *corev1.Pod) bool { return o.UID == pod.UID }, func(_ version, o *corev1.Pod) {
		for _, c := range o.Status.Conditions {
			if c.Type == corev1.DisruptionTarget {
				why = append(why, c.Reason)
			}
		}
	})
	return distinct(why)
}

// r23: the placeholder loses its room to a pod of higher priority while the rotation is
// pending. It is made anew, in the same attempt, and succeeds when there is room again.
func TestR23PreemptedPlaceholderIsMadeAnew(t *testing.T) {
	needLab(t)
	t.Parallel()
	needController(t)
	p, claim, room, vip := preempted(t, "r23", 5*time.Minute)
	before := p.claimNames() // with the surge that will never come up

	if err := world.client.Delete(world.ctx, vip); err != nil {
		t.Fatal(err)
	}
	p.patch(p.node(room), `{"spec": {"unschedulable": false}}`)
	p.awaitRotated()

	p.rotated(claim, before, 0)
	p.oneAttempt(claim, "")
	p.reserved(2)
	if got := p.onPool(surgePath); !slices.Equal(got, []string{"absorbed"}) {
		t.Errorf("surgePath %v, want absorbed", got)
	}
	p.oneEvent("RotationStarted")
}

// r23: as before, and there is never room again. The attempt ends at readyTimeout, counted
// from its start and not from the preemption. The node that was there before stays.
func TestR23PreemptionDoesNotProlongTheAttempt(t *testing.T) {
	needLab(t)
	t.Parallel()
	needController(t)
	const timeout = 45 * time.Second
	p, claim, room, _ := preempted(t, "r23-timeout", timeout)
	p.awaitFailed(claim)

	p.oneAttempt(claim, "")
	started, failed := instant(t, p.onClaim(claim, startedAt)[0]), instant(t, p.claim(claim).Annotations[failedAt])
	if took := failed.Sub(started); took < timeout || took > timeout+20*time.Second {
		t.Errorf("the attempt failed after %s, want %s", took, timeout)
	}
	p.reserved(2)
	if !strings.Contains(p.oneEvent("RotationFailed"), "is not scheduled") {
		t.Errorf("RotationFailed does not say that the placeholder was not scheduled: %s", p.oneEvent("RotationFailed"))
	}
	if n := p.node(room); n.DeletionTimestamp != nil || !n.Spec.Unschedulable || len(ourMarks(n.Annotations)) > 0 {
		t.Errorf("Node %s is not as the operator had left it: unschedulable=%t %v", room, n.Spec.Unschedulable, ourMarks(n.Annotations))
	}
	p.noPlaceholder()
	p.complete()
}
