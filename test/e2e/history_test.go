package e2e

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// history holds every version of every NodePool, NodeClaim, Node and Pod, in the order in
// which the API server wrote them, kind by kind.
type history struct {
	mu       sync.Mutex
	versions []version
	err      error // the history has a gap
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
		go h.record(ctx, c, list, w)
	}
	return h, nil
}

// record takes a watch that has ended up again. What the API server cannot tell any more,
// because it was away, is a gap.
func (h *history) record(ctx context.Context, c client.WithWatch, list client.ObjectList, w watch.Interface) {
	from := &metav1.ListOptions{AllowWatchBookmarks: true}
	for ctx.Err() == nil {
		err := h.hear(w, from)
		if err == nil {
			w, err = c.Watch(ctx, list, &client.ListOptions{Raw: from})
		}
		if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
			h.broken(fmt.Errorf("the watch of %T: %w", list, err))
			from.ResourceVersion = "" // what is there now, and on from there
		}
		if err != nil {
			w = watch.NewEmptyWatch()
			time.Sleep(50 * time.Millisecond)
		}
	}
}

// hear records what a watch delivers until it ends, and moves on where it is taken up.
func (h *history) hear(w watch.Interface, from *metav1.ListOptions) error {
	defer w.Stop()
	for e := range w.ResultChan() {
		o, ok := e.Object.(client.Object)
		if !ok {
			return apierrors.FromObject(e.Object)
		}
		from.ResourceVersion = o.GetResourceVersion()
		if e.Type == watch.Bookmark {
			continue
		}
		h.mu.Lock()
		h.versions = append(h.versions, version{at: time.Now(), gone: e.Type == watch.Deleted, object: o})
		h.mu.Unlock()
	}
	return nil
}

func (h *history) broken(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.err = err
}

// excuse forgets a gap that a test has made.
func (h *history) excuse() { h.broken(nil) }

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
