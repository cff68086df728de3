package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// patience is several times what anything here takes on two busy cores.
const patience = 4 * time.Minute

// await waits until look returns "", which is otherwise what is still missing.
func (p *pool) await(what string, look func() string) {
	p.t.Helper()
	p.awaitWithin(patience, what, look)
}

func (p *pool) awaitWithin(limit time.Duration, what string, look func() string) {
	p.t.Helper()
	missing := "never looked"
	err := wait.PollUntilContextTimeout(world.ctx, 250*time.Millisecond, limit, true, func(context.Context) (bool, error) {
		missing = look()
		return missing == "", nil
	})
	if err != nil {
		p.t.Fatalf("%s: not within %s: %s", what, limit, missing)
	}
}

// get reads an object of the lab; one that is not there is returned as false.
func (p *pool) get(name string, o client.Object) bool {
	p.t.Helper()
	err := world.client.Get(world.ctx, client.ObjectKey{Namespace: namespaceOf(o), Name: name}, o)
	if apierrors.IsNotFound(err) {
		return false
	}
	if err != nil {
		p.t.Fatalf("read %T %s: %v", o, name, err)
	}
	return true
}

func namespaceOf(o client.Object) string {
	switch o.(type) {
	case *karpv1.NodePool, *karpv1.NodeClaim, *corev1.Node:
		return ""
	}
	return workloads
}

func (p *pool) list(into client.ObjectList, opts ...client.ListOption) {
	p.t.Helper()
	if err := world.client.List(world.ctx, into, opts...); err != nil {
		p.t.Fatalf("list %T: %v", into, err)
	}
}

// nodePool reads the pool as it is now.
func (p *pool) nodePool() *karpv1.NodePool {
	p.t.Helper()
	np := &karpv1.NodePool{}
	if !p.get(p.name, np) {
		p.t.Fatalf("NodePool %s is gone", p.name)
	}
	return np
}

// nodes reads the pool's Nodes as they are now.
func (p *pool) nodes() []corev1.Node {
	p.t.Helper()
	var l corev1.NodeList
	p.list(&l, client.MatchingLabels{karpv1.NodePoolLabelKey: p.name})
	return l.Items
}

// claims reads the pool's NodeClaims as they are now, the oldest first.
func (p *pool) claims() []karpv1.NodeClaim {
	p.t.Helper()
	var l karpv1.NodeClaimList
	p.list(&l, client.MatchingLabels{karpv1.NodePoolLabelKey: p.name})
	slices.SortFunc(l.Items, func(a, b karpv1.NodeClaim) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	return l.Items
}

// claim reads one NodeClaim, which has to be there.
func (p *pool) claim(name string) *karpv1.NodeClaim {
	p.t.Helper()
	c := &karpv1.NodeClaim{}
	if !p.get(name, c) {
		p.t.Fatalf("NodeClaim %s is gone", name)
	}
	return c
}

// node reads one Node, which has to be there.
func (p *pool) node(name string) *corev1.Node {
	p.t.Helper()
	n := &corev1.Node{}
	if !p.get(name, n) {
		p.t.Fatalf("Node %s is gone", name)
	}
	return n
}

// awaitSettled waits until the pool has this many nodes, all of them initialized and
// counted by Karpenter, and the workload this many Ready pods and no other.
func (p *pool) awaitSettled(nodes, pods int) {
	p.t.Helper()
	p.await(fmt.Sprintf("NodePool %s with %d nodes and %d Ready pods", p.name, nodes, pods), func() string {
		claims := p.claims()
		if len(claims) != nodes || len(p.nodes()) != nodes {
			return fmt.Sprintf("%d NodeClaims, %d Nodes", len(claims), len(p.nodes()))
		}
		for i := range claims {
			if c := &claims[i]; c.Status.NodeName == "" || !c.StatusConditions().Root().IsTrue() {
				return fmt.Sprintf("NodeClaim %s is not Ready", c.Name)
			}
		}
		if counted := p.nodePool().Status.Resources["nodes"]; counted.Value() != int64(nodes) {
			return fmt.Sprintf("Karpenter counts %s nodes", counted.String())
		}
		var l corev1.PodList
		p.list(&l, client.InNamespace(workloads), client.MatchingLabels{poolLabel: p.name})
		ready := 0
		for i := range l.Items {
			if isReady(&l.Items[i]) {
				ready++
			}
		}
		if ready != pods || len(l.Items) != pods {
			return fmt.Sprintf("%d of %d pods Ready", ready, len(l.Items))
		}
		return ""
	})
}

// awaitRotated waits until a rotation of the pool has succeeded.
func (p *pool) awaitRotated() {
	p.t.Helper()
	p.await("a finished rotation of NodePool "+p.name, func() string {
		a := p.nodePool().Annotations
		if a[lastRotationAt] == "" || a[activeRotation] != "" {
			return fmt.Sprintf("annotations %v", ourMarks(a))
		}
		return ""
	})
}

// awaitFailed waits until the attempt on the NodeClaim was rolled back.
func (p *pool) awaitFailed(claim string) {
	p.t.Helper()
	p.await("the rollback of NodeClaim "+claim, func() string {
		state, a := p.claim(claim).Annotations[claimState], p.nodePool().Annotations
		if state != "failed" || a[activeRotation] != "" || a[lastFailureAt] == "" {
			return fmt.Sprintf("state %q, NodePool %v", state, ourMarks(a))
		}
		return ""
	})
}

// ourMarks are the annotations that a rotation puts on objects.
func ourMarks(annotations map[string]string) map[string]string {
	out := map[string]string{}
	for k, v := range annotations {
		if k == doNotDisrupt || strings.HasPrefix(k, "noderotation.io/") {
			out[k] = v
		}
	}
	return out
}
