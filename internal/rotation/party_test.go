package rotation

import (
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"
)

// forget makes of a pool what a cache could show that has not heard of everything.
func forget(t *rapid.T, w *world) Snapshot {
	old := w.view()
	old.NodeClaims = slices.DeleteFunc(old.NodeClaims, func(NodeClaim) bool { return rapid.IntRange(0, 9).Draw(t, "claim unheard of") == 0 })
	for i := range old.NodeClaims {
		switch c := &old.NodeClaims[i]; rapid.IntRange(0, 5).Draw(t, "claim") {
		case 0:
			c.Annotations = nil
		case 1:
			c.NodeName = ""
		case 2:
			c.Deleting = time.Time{}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(old.Nodes)) {
		n := old.Nodes[name]
		switch rapid.IntRange(0, 5).Draw(t, "node") {
		case 0:
			delete(old.Nodes, name)
			continue
		case 1:
			n.Annotations, n.Unschedulable = nil, false
		case 2:
			n.Ready, n.Deleting = !n.Ready, false
		case 3:
			n.Claim = "" // which Karpenter writes before the NodeClaim tells its Node, or after
		}
		old.Nodes[name] = n
	}
	if old.Placeholder != nil && rapid.IntRange(0, 3).Draw(t, "placeholder") == 0 {
		old.Placeholder.NodeName, old.Placeholder.Phase = "", corev1.PodPending
	}
	old.Pods = nil
	return old
}

// drawRotation draws a rotation of blue-a, interrupted anywhere, in a pool of more nodes.
func drawRotation(t *rapid.T) *world {
	w := oldNode(t)
	w.join(NodeClaim{Object: Object{Name: "blue-c"}, NodeName: "node-c", Ready: true, Created: w.now.Add(-day), ExpireAfter: ptr(14 * day)})
	for range rapid.IntRange(1, 30).Draw(t, "turns") {
		if rapid.Bool().Draw(t, "the controller's") {
			if _, err := w.act(w.decide().Plan, rapid.IntRange(-1, 3).Draw(t, "steps")); errors.As(err, &unlawful{}) {
				t.Fatal(err)
			}
		} else {
			w.cluster()
		}
		w.now = w.now.Add(time.Second)
	}
	if c := w.claim("blue-b"); c != nil && rapid.IntRange(0, 3).Draw(t, "somebody deletes the surge") == 0 {
		c.Deleting = w.now
	}
	return w
}

// refresh makes what was seen of these objects, of the NodePool and the placeholder what they are.
func refresh(old, live Snapshot, party Party) Snapshot {
	old.NodePool, old.Placeholder = live.NodePool, live.Placeholder
	old.NodeClaims = slices.DeleteFunc(old.NodeClaims, func(c NodeClaim) bool { return slices.Contains(party.NodeClaims, c.Name) })
	for _, name := range party.NodeClaims {
		if c := live.claim(name); c != nil {
			old.NodeClaims = append(old.NodeClaims, *c)
		}
	}
	for _, name := range party.Nodes {
		delete(old.Nodes, name)
		if n, ok := live.Nodes[name]; ok {
			old.Nodes[name] = n
		}
	}
	return old
}

// What carries a rotation on is the same on a cache that lags, of which the party alone was read
// anew. Only a sweep and a window come before it, and a Node that the cache does not know to be
// frozen is left to the next sweep.
func TestWhatCarriesARotationOnIsDecidedOnItsParty(t *testing.T) {
	carried, ended := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		for range 20 {
			w := rapid.SampledFrom([]func(*rapid.T) *world{drawWorld, drawRotation}).Draw(t, "pool")(t)
			old := forget(t, w)
			party := old.Party()
			mixed := refresh(old, w.view(), party)
			d := Decide(mixed, w.now)
			live := w.decide()
			if !party.Covers(mixed.Party()) || !mixed.CarriesOn(d) || live.Reason == ReasonSweeping {
				continue
			}
			carried++
			want := slices.DeleteFunc(live.Plan, func(st Step) bool {
				return st.Act == ActStampWindow || st.Act == ActSettleWindow || st.Act == ActMissWindow ||
					st.Act == ActReleaseNode && !slices.Contains(party.Nodes, st.On.Name)
			})
			if last := len(want) - 1; last >= 0 && want[last].Act == ActReleaseAnchor {
				ended++
				want[last].Facts.SurgeNode = d.Plan[len(d.Plan)-1].Facts.SurgeNode // one of them
			}
			if diff := cmp.Diff(want, d.Plan); diff != "" {
				t.Fatalf("the plan is another one than on what is true (-want +got):\n%s", diff)
			}
		}
	})
	if carried == 0 || ended == 0 {
		t.Errorf("of the pools drawn %d were carried on and %d ended: nothing is shown", carried, ended)
	}
}

// What else a decision can be is not made on the party alone.
func TestWhatDoesNotCarryARotationOn(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*world)
		want   bool
	}{
		{"it is handed over", func(*world) {}, true},
		{"there is a stray", func(w *world) { w.Strays = []Placeholder{{Object: Object{Name: "x"}, SurgeFor: "x"}} }, false},
		{"nobody governs", func(w *world) { w.Governance = Governance{} }, false},
		{"it is gone", func(w *world) { w.drained("blue-a") }, true},
		{"it is gone, and what its surge is on does not show", func(w *world) {
			w.drained("blue-a")
			w.change("node-b", func(n *Node) { n.Annotations = nil })
		}, false},
		{"it is gone, and its own node alone shows", func(w *world) {
			node := w.Nodes["node-a"]
			w.drained("blue-a")
			w.change("node-b", func(n *Node) { n.Annotations = nil })
			node.Claim = "blue-a"
			w.Nodes["node-a"] = node
		}, false},
		{"its time is up", func(w *world) { w.bind("node-b", corev1.PodPending); w.now = w.now.Add(time.Hour) }, false},
		{"whose the Node of its surge is, is not known", func(w *world) {
			w.NodeClaims = slices.DeleteFunc(w.NodeClaims, func(c NodeClaim) bool { return c.Name == "blue-b" })
		}, false},
		{"its placeholder goes", func(w *world) {
			if _, err := w.act(w.decide().Plan, 3); err != nil {
				t.Fatal(err)
			}
			w.Placeholder.Deleting = true
		}, true},
		{"its placeholder goes for hours", func(w *world) {
			if _, err := w.act(w.decide().Plan, 3); err != nil {
				t.Fatal(err)
			}
			w.Placeholder.Deleting = true
			w.now = w.now.Add(2 * time.Hour)
		}, false},
		{"its placeholder is gone, and it is still to be drained", func(w *world) {
			plan := w.decide().Plan
			if _, err := w.act(plan, len(plan)-1); err != nil {
				t.Fatal(err)
			}
		}, false},
		{"its placeholder is gone", func(w *world) { w.Placeholder = nil }, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := readyRotation(t)
			tt.change(w)
			s := w.view()
			if d := Decide(s, w.now); s.CarriesOn(d) != tt.want {
				t.Errorf("it carries the rotation on: %t, want %t (%s: %s)", !tt.want, tt.want, d.Reason, acts(d.Plan))
			}
		})
	}
	if s := oldNode(t).view(); s.CarriesOn(Decide(s, date(t, "2026-06-10T02:00:00Z"))) {
		t.Error("a rotation that begins is carried on")
	}
}

// The objects that are read anew, and no others.
func TestThePartyOfARotation(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*world)
		want   Party
	}{
		{"its surge is up", func(*world) {}, Party{[]string{"blue-a", "blue-b"}, []string{"node-a", "node-b"}}},
		{"its placeholder is bound nowhere", func(w *world) { w.bind("", corev1.PodPending) }, Party{[]string{"blue-a"}, []string{"node-a"}}},
		{"it is gone", func(w *world) { w.drained("blue-a") }, Party{[]string{"blue-a"}, []string{"node-b"}}},
		{"its own node alone is known, and not frozen", func(w *world) {
			w.Placeholder = nil
			w.change("node-a", func(n *Node) { n.Annotations = nil })
		}, Party{[]string{"blue-a"}, []string{"node-a"}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := readyRotation(t)
			tt.change(w)
			got := w.Party()
			slices.Sort(got.Nodes)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
	whole := Party{[]string{"a", "b"}, []string{"n", "m"}}
	for _, p := range []Party{{[]string{"a"}, whole.Nodes}, {whole.NodeClaims, []string{"m"}}} {
		if p.Covers(whole) || !whole.Covers(p) {
			t.Errorf("%v covers %v: %t, and the other way round: %t", p, whole, p.Covers(whole), whole.Covers(p))
		}
	}
}

// readyRotation is a rotation of blue-a whose placeholder runs on node-b.
func readyRotation(t *testing.T) *world {
	w := oldNode(t)
	for range 6 {
		if _, err := w.act(w.decide().Plan, -1); err != nil {
			t.Fatal(err)
		}
		w.cluster()
		if w.Placeholder != nil && w.Placeholder.Phase == corev1.PodRunning {
			return w
		}
	}
	t.Fatal("the placeholder does not run")
	return nil
}

// drained lets the rotation of a claim be carried to its drain, and the claim go.
func (w *world) drained(claim string) {
	for w.claim(claim) != nil {
		if _, err := w.act(w.decide().Plan, -1); err != nil {
			panic(err)
		}
		w.cluster()
	}
}
