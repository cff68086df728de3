package rotation

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"
)

// cluster is what the scheduler, the kubelet and Karpenter do next about a rotation of
// blue-a, one thing at a time. It reports whether there was anything to do.
func (w *world) cluster() bool {
	p := w.Placeholder
	switch {
	case p != nil && p.Deleting:
		w.Placeholder = nil
	case p != nil && p.NodeName == "" && w.claim("blue-b") == nil:
		w.join(NodeClaim{Object: Object{Name: "blue-b"}, Created: w.now, ExpireAfter: ptr(14 * day)})
	case p != nil && p.NodeName == "" && w.claim("blue-b").NodeName == "":
		w.register("blue-b", "node-b", true)
	case p != nil && p.NodeName == "" && w.claim("blue-b").Deleting.IsZero():
		w.bind("node-b", corev1.PodPending)
	case p != nil && p.NodeName != "" && p.Phase == corev1.PodPending:
		w.bind(p.NodeName, corev1.PodRunning)
	default:
		for _, c := range w.NodeClaims {
			if !c.Deleting.IsZero() {
				w.finalize(c.Name)
				return true
			}
		}
		return false
	}
	return true
}

// oldNode is a pool with one node that is due, in an open window.
func oldNode(t fatal) *world {
	w := newWorld(date(t, "2026-06-10T02:00:00Z"))
	w.Governance.Policy = policyOn(t, "Wed,Sat 02:00-06:00 UTC")
	w.NodePool = NodePool{Object: w.object(KindNodePool, "blue"), ExpireAfter: ptr(14 * day), GracePeriod: ptr(time.Hour)}
	w.join(NodeClaim{
		Object: Object{Name: "blue-a"}, NodeName: "node-a", Ready: true,
		Created: w.now.Add(-6 * day), ExpireAfter: ptr(14 * day), GracePeriod: ptr(time.Hour),
	})
	w.Pods["node-a"] = []*corev1.Pod{runningPod("web", "cpu", "600m")}
	return w
}

// run lets the controller and the cluster take turns until neither has anything to do.
// budget says after how many steps of each plan the controller dies; it is asked once for
// each plan, and negative means that it lives.
func (w *world) run(budget func(plan []Step) int) error {
	for range 200 {
		d := w.decide()
		_, err := w.act(d.Plan, budget(d.Plan))
		if errors.As(err, &unlawful{}) {
			return err
		}
		w.now = w.now.Add(time.Second)
		if !w.cluster() && len(w.decide().Plan) == 0 {
			return nil
		}
	}
	return fmt.Errorf("it does not come to an end: %v", w.marks())
}

// checkRotated asserts the end of a rotation of blue-a, however it was interrupted.
func checkRotated(w *world) error {
	var last, started, opened []string
	for _, st := range w.receipts {
		if v, ok := st.Set[AnnotationStartedAt]; ok {
			started = append(started, v)
		}
		if v, ok := st.Set[AnnotationLastRotation]; ok {
			last = append(last, v)
		}
		if v, ok := st.Set[AnnotationWindowOpened]; ok {
			opened = append(opened, v)
		}
	}
	switch {
	case len(last) != 1 || len(opened) != 1 || !slices.Equal(w.marks(), []string{"NodePool/blue last-rotation-at=" + last[0] + " window-opened-at=" + opened[0]}):
		return fmt.Errorf("it leaves %q", w.marks())
	case len(started) != 1:
		return fmt.Errorf("started-at was written %d times", len(started))
	case w.created != 1:
		return fmt.Errorf("%d placeholders were created", w.created)
	case w.claim("blue-a") != nil || w.claim("blue-b") == nil || len(w.NodeClaims) != 1:
		return fmt.Errorf("the claims are now %v", w.NodeClaims)
	case !slices.Equal(w.outcomes(), []Outcome{Success}):
		return fmt.Errorf("it counts as %v", w.outcomes())
	}
	return nil
}

func TestTheRotationTakesTwelveWrites(t *testing.T) {
	w := oldNode(t)
	if err := w.run(func([]Step) int { return -1 }); err != nil {
		t.Fatal(err)
	}
	if err := checkRotated(w); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"claimAnchor NodePool/blue",
		"markPending NodeClaim/blue-a",
		"freezeNode Node/node-a",
		"createPlaceholder Pod/noderotation-surge-blue-a",
		"recordSurgeClaim NodeClaim/blue-a",
		"freezeNode Node/node-b",
		"recordDraining NodePool/blue",
		"markDraining NodeClaim/blue-a",
		"deletePlaceholder Pod/noderotation-surge-blue-a",
		"deleteNodeClaim NodeClaim/blue-a",
		"releaseNode Node/node-b",
		"releaseAnchor NodePool/blue",
	}
	var got []string
	for _, st := range w.receipts {
		got = append(got, fmt.Sprintf("%s %s/%s", st.Act, st.On.Kind, st.On.Name))
	}
	w.now, w.receipts = date(t, "2026-06-10T06:00:00Z"), nil
	if err := w.run(func([]Step) int { return -1 }); err != nil {
		t.Fatal(err)
	}
	if len(w.receipts) != 1 || w.receipts[0].Act != ActSettleWindow {
		t.Errorf("after the window: %v, want one write that clears its stamp", w.receipts)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// The controller is killed after each of the twelve writes in turn, and started again.
func TestR18KilledAfterEveryWrite(t *testing.T) {
	for n := 1; n <= 12; n++ {
		t.Run(fmt.Sprintf("write %d", n), func(t *testing.T) {
			w := oldNode(t)
			killed := false
			err := w.run(func(plan []Step) int {
				left := n - len(w.receipts)
				if killed || left > len(plan) {
					return -1
				}
				killed = true
				return left
			})
			if err != nil {
				t.Fatal(err)
			}
			if !killed {
				t.Fatal("it was never killed")
			}
			if err := checkRotated(w); err != nil {
				t.Error(err)
			}
			if len(w.receipts) != 12 {
				t.Errorf("%d writes, want 12: %v", len(w.receipts), w.receipts)
			}
		})
	}
}

// The same, killed any number of times, while the cluster goes on in between.
func TestR18KilledAtRandom(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := oldNode(t)
		kills := 0
		err := w.run(func(plan []Step) int {
			if kills > 30 || len(plan) == 0 {
				return -1
			}
			n := rapid.IntRange(0, len(plan)).Draw(t, "steps")
			if n < len(plan) {
				kills++
			}
			return n
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := checkRotated(w); err != nil {
			t.Fatal(err)
		}
	})
}

// A rotation that does not end well leaves nothing behind either: it is killed at random
// while the policy goes, the pool is frozen, time runs out, the placeholder is preempted,
// or the node expires.
func TestR18KilledAtRandomInBadWeather(t *testing.T) {
	weather := map[string]func(*world){
		"nothing":            func(*world) {},
		"the policy goes":    func(w *world) { w.Governance = Governance{} },
		"the policies tie":   func(w *world) { w.Governance = Governance{Conflict: []string{"a", "b"}} },
		"time runs out":      func(w *world) { w.now = w.now.Add(16 * time.Minute) },
		"the window closes":  func(w *world) { w.now = date(t, "2026-06-10T06:00:00Z") },
		"a freeze":           func(w *world) { w.freezeUntil(w.now.Add(20 * time.Minute)) },
		"a freeze for good":  func(w *world) { w.freezeUntil(w.now.Add(9999 * time.Hour)) },
		"a freeze of doubt":  func(w *world) { edit(&w.NodePool.Annotations, map[string]string{AnnotationFreeze: "?"}, nil) },
		"a preemption":       func(w *world) { w.preempt() },
		"the node expires":   func(w *world) { w.expireClaim("blue-a") },
		"the surge expires":  func(w *world) { w.expireClaim("blue-b") },
		"the pool is static": func(w *world) { w.NodePool.Static = true },
	}
	names := make([]string, 0, len(weather))
	for name := range weather {
		names = append(names, name)
	}
	slices.Sort(names)
	rapid.Check(t, func(t *rapid.T) {
		w := oldNode(t)
		storms := 0
		err := w.run(func(plan []Step) int {
			if storms < 3 && rapid.IntRange(0, 5).Draw(t, "weather") == 0 {
				storms++
				weather[rapid.SampledFrom(names).Draw(t, "what")](w)
			}
			if rapid.IntRange(0, 3).Draw(t, "lives") > 0 {
				return -1
			}
			return rapid.IntRange(0, len(plan)).Draw(t, "steps")
		})
		if err != nil {
			t.Fatal(err)
		}
		// It may have come to rest under a freeze, within an attempt that runs out later.
		w.now = w.now.Add(time.Hour)
		if err := w.run(func([]Step) int { return -1 }); err != nil {
			t.Fatal(err)
		}
		if active := w.NodePool.Annotations[AnnotationActive]; active != "" {
			t.Fatalf("the pool is still anchored: %q", w.marks())
		}
		if left := w.cleanFor("blue-a"); left != "" {
			t.Fatal(left)
		}
		for name, n := range w.Nodes {
			if n.Unschedulable || len(n.Annotations) > 0 {
				t.Fatalf("node %s keeps %v, unschedulable %t", name, n.Annotations, n.Unschedulable)
			}
		}
		ends := w.outcomes()
		for i, o := range ends {
			if (o == Success || o == Gone) && i != len(ends)-1 {
				t.Fatalf("blue-a ends more than once: %v", ends)
			}
		}
	})
}

func (w *world) freezeUntil(at time.Time) {
	edit(&w.NodePool.Annotations, map[string]string{AnnotationFreeze: stamp(at)}, nil)
	w.touch(&w.NodePool.Object)
}

func (w *world) preempt() {
	if w.Placeholder != nil {
		w.Placeholder.Deleting = true
	}
}

func (w *world) expireClaim(name string) {
	if c := w.claim(name); c != nil && c.Deleting.IsZero() {
		w.remove(name)
	}
}

// R27: a leader sees the surge ready, writes to the pool that it is draining, and is paused.
// Its successor finds the surge lost and readyTimeout over, and gives the attempt up. That is a
// write to the claim: the other half of the transition is refused, whenever it arrives, and no
// surge is reaped under a drain.
func TestR27ALateTransitionIsRefusedOnceTheAttemptIsGivenUp(t *testing.T) {
	w := pendingRotation(t)
	transition := w.decide().Plan
	late := slices.IndexFunc(transition, func(st Step) bool { return st.Act == ActMarkDraining })
	if late < 0 {
		t.Fatalf("there is no transition in %q", acts(transition))
	}
	if _, err := w.act(transition, late); err != nil {
		t.Fatal(err)
	}
	w.change("node-b", func(n *Node) { n.Ready = false })
	w.now = w.now.Add(17 * time.Minute)
	rollback := w.decide().Plan
	if _, err := w.act(rollback, 1); err != nil {
		t.Fatal(err)
	}
	if _, err := w.act(transition[late:], 1); !errors.Is(err, errRefused) {
		t.Errorf("%v after %q, want it refused", err, acts(rollback[:1]))
	}
	// Too late, both: it is decided.
	w.change("node-b", func(n *Node) { n.Ready = true })
	w.Governance.Policy.ReadyTimeout = time.Hour
	if err := w.run(func([]Step) int { return -1 }); err != nil {
		t.Fatal(err)
	}
	if got := w.outcomes(); !slices.Equal(got, []Outcome{Failure}) || w.claim("blue-b") != nil {
		t.Errorf("it counts as %v, and the claims are %v", got, w.NodeClaims)
	}
}
