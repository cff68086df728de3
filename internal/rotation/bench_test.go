package rotation

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// crowd is a pool of so many nodes with a window open, of which some are past their threshold
// and the first has so many pods. Nothing else is known of a cluster, however large it is.
func crowd(t fatal, nodes, due, pods int) *world {
	w := oldNode(t)
	w.NodeClaims = make([]NodeClaim, 0, nodes)
	for i := range nodes {
		c := NodeClaim{
			Object: Object{Name: fmt.Sprintf("blue-%05d", i)}, NodeName: fmt.Sprintf("node-%05d", i), Ready: true,
			Created: w.now.Add(-time.Hour), ExpireAfter: ptr(14 * day), GracePeriod: ptr(time.Hour),
		}
		if i < due {
			c.Created = w.now.Add(-8*day + time.Duration(i)*time.Second)
		}
		w.join(c)
	}
	w.Pods = map[string][]*corev1.Pod{}
	for i := range pods {
		w.Pods["node-00000"] = append(w.Pods["node-00000"], runningPod(fmt.Sprintf("web-%d", i), "cpu", "1m"))
	}
	return w
}

// attempt has the pool on the rotation of its first claim, waiting for its surge.
func (w *world) attempt() {
	edit(&w.NodePool.Annotations, map[string]string{AnnotationActive: "blue-00000"}, nil)
	edit(&w.claim("blue-00000").Annotations, map[string]string{AnnotationState: StatePending, AnnotationStartedAt: stamp(w.now)}, nil)
	w.change("node-00000", func(n *Node) {
		n.Unschedulable = true
		n.Annotations = map[string]string{
			AnnotationSurgeFor: "blue-00000", AnnotationDoNotDisrupt: "true", AnnotationDoNotDisruptOwned: "true", AnnotationCordoned: "true",
		}
	})
	w.Placeholder = &Placeholder{Object: w.object(KindPlaceholder, PlaceholderName("blue-00000")), SurgeFor: "blue-00000", NodePool: "blue", Created: w.now}
	w.now = w.now.Add(time.Minute)
}

// A rotation is mostly waiting, and then its decisions do not go through the pods of its nodes.
func TestWaitingTakesNothingPerPod(t *testing.T) {
	taken := func(pods int) float64 {
		w := crowd(t, 3, 1, pods)
		w.attempt()
		s := w.view()
		if d := Decide(s, w.now); d.Reason != ReasonAwaitingSurge || len(d.Plan) > 0 {
			t.Fatalf("%s: %s", d.Reason, acts(d.Plan))
		}
		return testing.AllocsPerRun(10, func() { Decide(s, w.now) })
	}
	if few, many := taken(10), taken(100); many > few+9 { // the race detector has some of its own
		t.Errorf("%.0f allocations with ten pods, %.0f with a hundred", few, many)
	}
}

// BenchmarkDecide is one decision for a pool of 20 nodes, as there are 500 of in a cluster of
// 10,000, and for one that has all 10,000: with nothing due; with a rotation that begins, all
// nodes due and ten pods on the first; and for an attempt that is given up.
func BenchmarkDecide(b *testing.B) {
	for _, nodes := range []int{20, 10_000} {
		decide := func(name string, want Act, s Snapshot, now time.Time) {
			b.Run(fmt.Sprintf("nodes=%d/%s", nodes, name), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if d := Decide(s, now); !strings.Contains(acts(d.Plan), string(want)) || want == "" && len(d.Plan) > 0 {
						b.Fatalf("%s: %s", d.Reason, acts(d.Plan))
					}
				}
			})
		}
		rest := crowd(b, nodes, 0, 0)
		decide("rest", "", rest.view(), rest.now)
		begin := crowd(b, nodes, nodes, 10)
		decide("begin", ActClaimAnchor, begin.view(), begin.now)
		fail := crowd(b, nodes, nodes, 10)
		fail.attempt()
		decide("fail", ActMarkFailed, fail.view(), fail.now.Add(time.Hour))
	}
}
