package e2e

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/tasuki-io/tasuki/lab/trial"
)

const (
	activeState = "noderotation.io/active-rotation-state"
	drainingAt  = "noderotation.io/draining-at"
	rotMode     = "noderotation.io/rotation-mode"

	placeholderLabel = "noderotation.io/placeholder"
	placeholderClass = "noderotation-placeholder"
)

// Somebody takes every annotation off the NodePool while its rotation is pending. What the
// rotation has put on other objects goes, and only then does the next one begin, on the
// node that has not failed.
func TestALostAnchorIsSweptNotDoubled(t *testing.T) {
	needLab(t)
	t.Parallel()
	needController(t)
	p := newPool(t, "lost-anchor", ownNodeClass(t, "lost-anchor"))
	p.deploy("first", 1, cpu("3"))
	p.awaitSettled(1, 1)
	node := p.nodes()[0].Name
	p.deploy("second", 1, cpu("3"))
	p.awaitSettled(2, 2)
	before := p.claimNames()
	stall(t, "lost-anchor")

	began := p.govern()
	placeholder := p.awaitPending(before[0], node)
	np := p.nodePool()
	p.patch(np, fmt.Sprintf(`{"metadata": {"annotations": {%s}}}`, nulls(np.Annotations)))
	lost := revision(t, np)

	p.awaitWithin(30*time.Second, "the sweep of what the lost anchor owned", func() string {
		return p.remains(before[0], node, placeholder, 0)
	})
	if claim := p.claim(before[0]); claim.Annotations[failedAt] == "" || claim.Annotations[startedAt] != "" {
		t.Errorf("NodeClaim %s carries %v: want a failure with its time and no attempt", claim.Name, ourMarks(claim.Annotations))
	}
	if note := p.oneEvent("RotationFailed"); !strings.Contains(note, "without a rotation that owns it") {
		t.Errorf("RotationFailed does not tell why: %s", note)
	}

	var next int64
	p.await("the next rotation", func() string {
		walk(world.history, p.isNodePool, func(_ version, np *karpv1.NodePool) {
			if at := revision(t, np); next == 0 && at > lost && np.Annotations[activeRotation] != "" {
				next = at
			}
		})
		if next == 0 {
			return "no anchor yet"
		}
		return ""
	})
	if left := p.remains(before[0], node, placeholder, next); left != "" {
		t.Errorf("the next rotation began over the first: %s", left)
	}
	if diff := cmp.Diff(before, p.onPool(activeRotation)); diff != "" {
		t.Errorf("anchors over time (-want +got):\n%s", diff)
	}
	if fewest := p.fewestReady(began); fewest != 2 {
		t.Errorf("at one time only %d of 2 pods were Ready", fewest)
	}
	p.complete()
}

// The companions of an anchor stand on a NodePool that has none, as if a drain without a
// surge had begun long ago. The rotation that follows has nothing to do with them.
func TestCompanionsWithoutAnAnchorAreNotInherited(t *testing.T) {
	needLab(t)
	t.Parallel()
	needController(t)
	p := newPool(t, "companions")
	p.deploy("web", 1, cpu("1"))
	p.awaitSettled(1, 1)
	before := p.claimNames()
	const longAgo = "2026-01-01T00:00:00Z"
	p.patch(p.nodePool(), fmt.Sprintf(`{"metadata": {"annotations": {%q: "forceful-fallback", %q: "draining", %q: %q}}}`,
		rotMode, activeState, drainingAt, longAgo))

	p.govern()
	p.awaitRotated()
	p.awaitSettled(1, 1)

	p.rotated(before[0], before, 1)
	p.surgedBeforeDeletion(before[0])
	walk(world.history, p.isNodePool, func(_ version, np *karpv1.NodePool) {
		a := np.Annotations
		if a[activeRotation] != "" && (a[rotMode] != "" || a[drainingAt] == longAgo) {
			t.Errorf("a rotation took over what it had not written: %v", ourMarks(a))
		}
	})
	note := p.oneEvent("RotationCompleted")
	if !strings.Contains(note, "mode surge") {
		t.Errorf("RotationCompleted does not tell mode surge: %s", note)
	}
	took, err := time.ParseDuration(note[strings.LastIndex(note, " ")+1:])
	if err != nil || took >= time.Hour {
		t.Errorf("RotationCompleted tells of a drain that was not its own: %s", note)
	}
	if es := p.events("ForcefulFallback"); len(es) > 0 {
		t.Errorf("a surge was reported as none: %s", es[0].Note)
	}
}

// Placeholders that belong to no rotation stand in a pool that rests, one of them under the
// name that the next rotation will want. Neither stays, and nothing rotates for them.
func TestAStrayPlaceholderIsDeleted(t *testing.T) {
	needLab(t)
	t.Parallel()
	needController(t)
	p := newPool(t, "stray")
	p.deploy("web", 1, cpu("1"))
	p.awaitSettled(1, 1)
	before := p.claimNames()
	p.govern()
	p.awaitRotated()
	p.awaitSettled(1, 1)
	resting := p.claims()[0].Name
	anchors := p.onPool(activeRotation)

	strays := map[string]*corev1.Pod{
		"of a claim": p.placeholderPod("noderotation-surge-"+resting, map[string]string{surgeFor: resting}),
		"of nothing": p.placeholderPod("noderotation-surge-"+p.name, nil),
	}
	for _, pod := range strays {
		p.create(pod)
	}
	p.awaitWithin(30*time.Second, "the end of the strays", func() string {
		for what, pod := range strays {
			if p.getPlaceholder(pod) {
				return "the one " + what + " is still there"
			}
		}
		return ""
	})

	time.Sleep(15 * time.Second) // Karpenter may have launched a node for them, and the controller may misread it
	if diff := cmp.Diff(anchors, p.onPool(activeRotation)); diff != "" {
		t.Errorf("anchors over time (-want +got):\n%s", diff)
	}
	for _, claim := range p.claimNames() {
		if states := p.onClaim(claim, claimState); claim != before[0] && len(states) > 0 {
			t.Errorf("NodeClaim %s was %v", claim, states)
		}
	}
	if c := p.claim(resting); c.DeletionTimestamp != nil {
		t.Errorf("NodeClaim %s is being deleted", resting)
	}
	p.unmarked()
	p.complete()
}

// The NodePool is deleted while its rotation is pending. Nobody makes a pass over it any
// more: the placeholder goes with the NodeClaim that it stands for.
func TestTheNodePoolIsDeletedMidRotation(t *testing.T) {
	needLab(t)
	t.Parallel()
	needController(t)
	p, claim, node := stalled(t, "pool-deleted")

	p.govern()
	placeholder := p.awaitPending(claim, node)
	owner := []metav1.OwnerReference{{APIVersion: "karpenter.sh/v1", Kind: "NodeClaim", Name: claim, UID: p.claim(claim).UID}}
	if diff := cmp.Diff(owner, placeholder.OwnerReferences); diff != "" {
		t.Errorf("owner of the placeholder (-want +got):\n%s", diff)
	}
	if err := world.client.Delete(world.ctx, p.nodePool(), client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
		t.Fatal(err)
	}

	deleted := time.Now()
	p.awaitWithin(time.Minute, "the end of the placeholder", func() string {
		if p.getPlaceholder(placeholder) {
			return "it is still there"
		}
		return ""
	})
	t.Logf("the placeholder was gone after %s", time.Since(deleted).Round(time.Second))
	p.await("the end of the NodePool's nodes", func() string {
		if claims, nodes := p.claims(), p.nodes(); len(claims)+len(nodes) > 0 {
			return fmt.Sprintf("%d NodeClaims, %d Nodes", len(claims), len(nodes))
		}
		return ""
	})
	p.reserved(1)
	p.noPlaceholder()
	p.complete()
}

// awaitPending waits until an attempt on the claim holds all that it can hold while its
// surge does not come, a launched NodeClaim included, and returns its placeholder.
func (p *pool) awaitPending(claim, node string) *corev1.Pod {
	p.t.Helper()
	had := len(p.claims())
	p.await("a pending rotation of NodeClaim "+claim, func() string {
		n := p.node(node)
		switch {
		case p.nodePool().Annotations[activeRotation] != claim:
			return "the NodePool is not anchored on it"
		case p.claim(claim).Annotations[claimState] != "pending":
			return "the claim is not pending"
		case n.Annotations[surgeFor] != claim || n.Annotations[doNotDisrupt] != "true" || !n.Spec.Unschedulable:
			return "the Node is not frozen"
		case len(p.placeholders()) == 0:
			return "there is no placeholder"
		case len(p.claims()) == had && len(p.claimNames()) == had:
			return "no surge was launched"
		}
		return ""
	})
	return p.placeholders()[0]
}

// remains tells what was left of the attempt on a claim at a revision of the lab's store,
// or is left now if that is 0; "" when it is on record as failed and nothing else is.
func (p *pool) remains(claim, node string, placeholder *corev1.Pod, at int64) string {
	p.t.Helper()
	c, n, pod := &karpv1.NodeClaim{}, &corev1.Node{}, false
	if at == 0 {
		c, n, pod = p.claim(claim), p.node(node), p.getPlaceholder(placeholder)
	} else {
		before := func(v version) bool { return revision(p.t, v.object) < at }
		walk(world.history, func(o *karpv1.NodeClaim) bool { return o.Name == claim }, func(v version, o *karpv1.NodeClaim) {
			if before(v) {
				c = o
			}
		})
		walk(world.history, func(o *corev1.Node) bool { return o.Name == node }, func(v version, o *corev1.Node) {
			if before(v) {
				n = o
			}
		})
		walk(world.history, func(o *corev1.Pod) bool { return o.UID == placeholder.UID }, func(v version, _ *corev1.Pod) {
			if before(v) {
				pod = !v.gone
			}
		})
	}
	switch {
	case c.Annotations[claimState] != "failed":
		return fmt.Sprintf("NodeClaim %s carries %v", claim, ourMarks(c.Annotations))
	case len(ourMarks(n.Annotations)) > 0 || n.Spec.Unschedulable:
		return fmt.Sprintf("Node %s carries %v, unschedulable=%t", node, ourMarks(n.Annotations), n.Spec.Unschedulable)
	case pod:
		return fmt.Sprintf("placeholder %s is still there", placeholder.Name)
	}
	return ""
}

// surgedBeforeDeletion checks that a placeholder and a NodeClaim for it came into being
// before the candidate was deleted.
func (p *pool) surgedBeforeDeletion(candidate string) {
	p.t.Helper()
	var surge, deleted, reserved int64
	first := func(at *int64, o client.Object) {
		if *at == 0 {
			*at = revision(p.t, o)
		}
	}
	walk(world.history, p.owns, func(_ version, c *karpv1.NodeClaim) {
		switch {
		case c.Name != candidate:
			first(&surge, c)
		case c.DeletionTimestamp != nil:
			first(&deleted, c)
		}
	})
	walk(world.history, p.ownsPlaceholder, func(_ version, pod *corev1.Pod) { first(&reserved, pod) })
	if reserved == 0 || surge == 0 || deleted == 0 || reserved > deleted || surge > deleted {
		p.t.Errorf("placeholder created at revision %d, NodeClaim at %d, candidate deleted at %d: want the candidate last", reserved, surge, deleted)
	}
}

// placeholderPod is a placeholder for this pool as no rotation of it made it. It fits on
// no node that has a pod.
func (p *pool) placeholderPod(name string, annotations map[string]string) *corev1.Pod {
	yes, no, nobody, atOnce := true, false, int64(65535), int64(0)
	never := corev1.PreemptNever
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: trial.Namespace, Name: name, Annotations: annotations,
			Labels: map[string]string{placeholderLabel: "true"},
		},
		Spec: corev1.PodSpec{
			PriorityClassName:             placeholderClass,
			PreemptionPolicy:              &never,
			NodeSelector:                  map[string]string{karpv1.NodePoolLabelKey: p.name},
			TerminationGracePeriodSeconds: &atOnce,
			AutomountServiceAccountToken:  &no,
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot: &yes, RunAsUser: &nobody,
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			Containers: []corev1.Container{{
				Name: "pause", Image: "example.com/pause",
				Resources: corev1.ResourceRequirements{Requests: cpu("3500m")},
				SecurityContext: &corev1.SecurityContext{
					AllowPrivilegeEscalation: &no,
					Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
				},
			}},
		},
	}
}

// getPlaceholder tells whether this very pod is still there.
func (p *pool) getPlaceholder(pod *corev1.Pod) bool {
	p.t.Helper()
	var l corev1.PodList
	p.list(&l, client.InNamespace(trial.Namespace))
	for i := range l.Items {
		if l.Items[i].UID == pod.UID {
			return true
		}
	}
	return false
}

func (p *pool) isNodePool(np *karpv1.NodePool) bool { return np.Name == p.name }

// nulls are the members of a merge patch that remove all annotations of ours.
func nulls(annotations map[string]string) string {
	var members []string
	for key := range ourMarks(annotations) {
		members = append(members, fmt.Sprintf("%q: null", key))
	}
	return strings.Join(members, ", ")
}

// revision is where in the order of all writes to the lab's store an object's version is.
func revision(t *testing.T, o client.Object) int64 {
	t.Helper()
	n, err := strconv.ParseInt(o.GetResourceVersion(), 10, 64)
	if err != nil {
		t.Fatalf("%T %s: resource version: %v", o, o.GetName(), err)
	}
	return n
}
