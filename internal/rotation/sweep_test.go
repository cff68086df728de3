package rotation

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// blue-a is on a rotation. Whatever else says that it is, is not.
func TestTheSweepTakesOnlyWhatNoAnchorOwns(t *testing.T) {
	pairs := func(kv ...string) map[string]string {
		m := map[string]string{}
		for i := 0; i < len(kv); i += 2 {
			m[kv[i]] = kv[i+1]
		}
		return m
	}
	of := func(kind Kind, name string) Object { return Object{Kind: kind, Name: name} }
	node := func(claim string, cordoned bool, kv ...string) Remains {
		return Remains{Nodes: []Node{{Object: of(KindNode, "n"), Claim: claim, Unschedulable: cordoned, Annotations: pairs(kv...)}}}
	}
	claim := func(name string, kv ...string) Remains {
		return Remains{NodeClaims: []NodeClaim{{Object: of(KindNodeClaim, name), Annotations: pairs(kv...)}}}
	}
	pool := func(kv ...string) Remains {
		return Remains{NodePools: []NodePool{{Object: of(KindNodePool, "p"), Annotations: pairs(kv...)}}}
	}
	placeholder := func(for_ string) Remains {
		return Remains{Placeholders: []Placeholder{{Object: of(KindPlaceholder, "s"), SurgeFor: for_}}}
	}
	leaving := claim("blue-z", AnnotationState, StateDraining)
	leaving.NodeClaims[0].Deleting = date(t, "2026-06-10T01:00:00Z")
	for _, tt := range []struct {
		name string
		left Remains
		want string
	}{
		{"a placeholder of the rotation", placeholder("blue-a"), ""},
		{"a placeholder of another claim", placeholder("blue-z"), "deletePlaceholder Pod/s"},
		{"a placeholder of nobody", placeholder(""), "deletePlaceholder Pod/s"},

		{"a node of the rotation", node("blue-b", false, AnnotationSurgeFor, "blue-a", AnnotationDoNotDisrupt, "true", AnnotationDoNotDisruptOwned, "true"), ""},
		{"a frozen node of another claim", node("blue-z", true, AnnotationSurgeFor, "blue-z", AnnotationDoNotDisrupt, "true", AnnotationDoNotDisruptOwned, "true", AnnotationCordoned, "true"),
			"releaseNode Node/n -surge-for -do-not-disrupt-owned -cordoned -karpenter.sh/do-not-disrupt unschedulable=false"},
		{"a cordon of ours alone", node("", true, AnnotationCordoned, "true"), "releaseNode Node/n -cordoned unschedulable=false"},
		{"r15: an operator's cordon", node("", true), ""},
		{"r16: an operator's do-not-disrupt", node("", false, AnnotationDoNotDisrupt, "true"), ""},
		{"an operator's do-not-disrupt beside our mark", node("", false, AnnotationDoNotDisrupt, "true", AnnotationSurgeFor, "blue-z"), "releaseNode Node/n -surge-for"},
		{"a protection of ours alone", node("", false, AnnotationDoNotDisrupt, "true", AnnotationDoNotDisruptOwned, "true"), "releaseNode Node/n -do-not-disrupt-owned -karpenter.sh/do-not-disrupt"},
		{"the candidate's node, its pairing taken off", node("blue-a", true, AnnotationCordoned, "true"), ""},

		{"the claim of the rotation", claim("blue-a", AnnotationState, StatePending), ""},
		{"a pending claim", claim("blue-z", AnnotationState, StatePending, AnnotationStartedAt, "x", AnnotationSurgeClaim, "y", AnnotationRetryCount, "2", AnnotationRequested, "now"),
			"failOrphan NodeClaim/blue-z failed-at=2026-06-10T02:00:00Z state=failed -started-at -surge-claim -rotate-requested"},
		{"a draining claim", claim("blue-z", AnnotationState, StateDraining), "failOrphan NodeClaim/blue-z failed-at=2026-06-10T02:00:00Z state=failed"},
		{"a draining claim on its way out", leaving, ""},
		{"a failed claim", claim("blue-z", AnnotationState, StateFailed, AnnotationFailedAt, "x", AnnotationRetryCount, "2"), ""},
		{"an expired claim", claim("blue-z", AnnotationState, StateExpired), ""},
		{"a claim never touched", claim("blue-z"), ""},

		{"an anchored pool", pool(AnnotationActive, "blue-a", AnnotationActiveState, StateDraining), ""},
		{"a mirror without an anchor", pool(AnnotationActiveState, StateDraining, AnnotationDrainingAt, "x", AnnotationLastRotation, "x"), "clearOrphan NodePool/p -active-rotation-state -draining-at"},
		{"a pool at rest", pool(AnnotationLastRotation, "x", AnnotationLastFailure, "x", AnnotationFreeze, "x", AnnotationWindowOpened, "x"), ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			anchors := AnchorsOf([]NodePool{{Annotations: pairs(AnnotationActive, "blue-a")}, {Annotations: pairs(AnnotationActive, "")}, {}})
			var got string
			for _, st := range Sweep(anchors, tt.left, date(t, "2026-06-10T02:00:00Z")) {
				got += st.String()
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// A leader that was paused creates a placeholder for a rotation that has ended meanwhile.
func TestAStrayPlaceholderGoesBeforeAnythingIsDecided(t *testing.T) {
	w := newWorld(time.Now())
	w.NodePool.Name = "blue"
	stray := Placeholder{Object: Object{Kind: KindPlaceholder, Name: "noderotation-surge-old", UID: "u"}, SurgeFor: "old"}
	s := w.view()
	s.Strays = []Placeholder{stray}
	d := Decide(s, w.now)
	if d.Reason != ReasonSweeping || acts(d.Plan) != string(ActDeletePlaceholder) || d.Plan[0].On != stray.Object {
		t.Errorf("%s: %q, want the stray deleted", d.Reason, acts(d.Plan))
	}
	s.Strays[0].Deleting = true
	if d := Decide(s, w.now); d.Reason == ReasonSweeping {
		t.Errorf("it waits for a stray that somebody's finalizer holds: %q", acts(d.Plan))
	}
}

// A webhook does not let the pool's own leftovers go. A rotation that starts all the same does
// not take them for its own: the mirror of an earlier drain would make a success of its end.
func TestAnAnchorInheritsNothing(t *testing.T) {
	for _, fallback := range []bool{false, true} {
		w := oldNode(t)
		w.Governance.Policy.ForcefulFallback = fallback
		if fallback {
			w.claim("blue-a").Created = w.now.Add(time.Hour - 14*day)
		}
		left := map[string]string{AnnotationActiveState: StateDraining, AnnotationDrainingAt: "2026-06-01T00:00:00Z", AnnotationSurgePath: PathAbsorbed, AnnotationMode: ModeFallback}
		edit(&w.NodePool.Annotations, left, nil)
		if d := w.decide(); d.Reason != ReasonSweeping {
			t.Fatalf("%s, want the leftovers swept", d.Reason)
		}
		w.Unswept = true
		if _, err := w.act(w.decide().Plan, 1); err != nil {
			t.Fatal(err)
		}
		want := map[string]string{AnnotationActive: "blue-a", AnnotationWindowOpened: stamp(w.now)}
		if fallback {
			want[AnnotationMode], want[AnnotationActiveState], want[AnnotationDrainingAt] = ModeFallback, StateDraining, stamp(w.now)
		}
		if diff := cmp.Diff(want, w.NodePool.Annotations); diff != "" {
			t.Errorf("fallback %t (-want +got):\n%s", fallback, diff)
		}
	}
}
