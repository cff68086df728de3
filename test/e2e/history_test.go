package e2e

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// history holds every version of every NodePool, NodeClaim, Node and Pod, in the order in
// which the API server wrote them, kind by kind.
type history struct {
	mu       sync.Mutex
	versions []version
	err      error // a watch has ended: the history has a gap
}

type version struct {
	at     time.Time // when it was heard of
	gone   bool      // the object was deleted; this is how it last was
	object client.Object
}

// follow watches from now on until ctx ends.
func follow(ctx context.Context, c client.WithWatch) (*history, error) {
	h := &history{}
	for _, list := range []client.ObjectList{&karpv1.NodePoolList{}, &karpv1.NodeClaimList{}, &corev1.NodeList{}, &corev1.PodList{}} {
		w, err := c.Watch(ctx, list)
		if err != nil {
			return nil, fmt.Errorf("watch for the history: %w", err)
		}
		go h.record(ctx, fmt.Sprintf("%T", list), w)
	}
	return h, nil
}

func (h *history) record(ctx context.Context, what string, w watch.Interface) {
	defer w.Stop()
	for e := range w.ResultChan() {
		o, ok := e.Object.(client.Object)
		if !ok {
			h.broken(fmt.Errorf("the watch of %s: %v", what, e.Object))
			return
		}
		h.mu.Lock()
		h.versions = append(h.versions, version{at: time.Now(), gone: e.Type == watch.Deleted, object: o})
		h.mu.Unlock()
	}
	if ctx.Err() == nil {
		h.broken(fmt.Errorf("the watch of %s has ended", what))
	}
}

func (h *history) broken(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.err = err
}

func (h *history) gap() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.err
}

// walk calls f for every version of the objects of one kind that match, oldest first.
func walk[T client.Object](h *history, match func(T) bool, f func(v version, o T)) {
	h.mu.Lock()
	versions := h.versions[:len(h.versions):len(h.versions)]
	h.mu.Unlock()
	for _, v := range versions {
		if o, ok := v.object.(T); ok && match(o) {
			f(v, o)
		}
	}
}

// distinct keeps the first of equal values.
func distinct(values []string) []string {
	var out []string
	seen := map[string]bool{}
	for _, v := range values {
		if !seen[v] {
			seen[v] = true
			out = append(out, v)
		}
	}
	return out
}

// claimNames are the NodeClaims that the pool ever had, in the order of their creation.
func (p *pool) claimNames() []string {
	var names []string
	walk(world.history, p.owns, func(_ version, c *karpv1.NodeClaim) { names = append(names, c.Name) })
	return distinct(names)
}

// nodeNames are the Nodes that the pool ever had.
func (p *pool) nodeNames() []string {
	var names []string
	walk(world.history, func(n *corev1.Node) bool { return p.ownsNode(n) }, func(_ version, n *corev1.Node) { names = append(names, n.Name) })
	return distinct(names)
}

// placeholders are the placeholders that the pool ever had, each as it was created.
func (p *pool) placeholders() []*corev1.Pod {
	var out []*corev1.Pod
	seen := map[string]bool{}
	walk(world.history, p.ownsPlaceholder, func(_ version, pod *corev1.Pod) {
		if !seen[string(pod.UID)] {
			seen[string(pod.UID)] = true
			out = append(out, pod)
		}
	})
	return out
}

// onClaim are the values, empty ones left out, that an annotation of a NodeClaim ever had.
func (p *pool) onClaim(claim, annotation string) []string {
	var values []string
	walk(world.history, func(c *karpv1.NodeClaim) bool { return c.Name == claim }, func(_ version, c *karpv1.NodeClaim) {
		if v := c.Annotations[annotation]; v != "" {
			values = append(values, v)
		}
	})
	return distinct(values)
}

// onPool are the values, empty ones left out, that an annotation of the NodePool ever had.
func (p *pool) onPool(annotation string) []string {
	var values []string
	walk(world.history, func(np *karpv1.NodePool) bool { return np.Name == p.name }, func(_ version, np *karpv1.NodePool) {
		if v := np.Annotations[annotation]; v != "" {
			values = append(values, v)
		}
	})
	return distinct(values)
}

// onNode are the values, empty ones left out, that an annotation of a Node ever had.
func (p *pool) onNode(node, annotation string) []string {
	var values []string
	walk(world.history, func(n *corev1.Node) bool { return n.Name == node }, func(_ version, n *corev1.Node) {
		if v := n.Annotations[annotation]; v != "" {
			values = append(values, v)
		}
	})
	return distinct(values)
}

// fewestReady is the smallest number of Ready pods of the workload at any time since.
func (p *pool) fewestReady(since time.Time) int {
	ready := map[string]bool{}
	fewest := -1
	look := func() {
		n := 0
		for _, r := range ready {
			if r {
				n++
			}
		}
		if fewest < 0 || n < fewest {
			fewest = n
		}
	}
	counting := false
	walk(world.history, p.ownsPod, func(v version, pod *corev1.Pod) {
		if !counting && !v.at.Before(since) {
			counting = true
			look()
		}
		ready[string(pod.UID)] = !v.gone && isReady(pod)
		if counting {
			look()
		}
	})
	if !counting {
		look()
	}
	return fewest
}

func isReady(pod *corev1.Pod) bool {
	if pod.DeletionTimestamp != nil {
		return false
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
