package rotation

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// Every claim of the pool has a life, and so has every turn: in the order of the turns, and each
// due when the gates say so.
func TestEveryClaimHasALife(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, now := drawFleet(t)
		turns := Forecast(s, now, now.Add(20*day))
		lives := Lives(s, turns, now)
		seen := map[string]bool{}
		for i, l := range lives {
			if seen[l.NodeClaim] {
				t.Fatalf("%s has two lives", l.NodeClaim)
			}
			seen[l.NodeClaim] = true
			if i < len(turns) {
				if l.Turn == nil || l.Turn.NodeClaim != turns[i].NodeClaim || !l.Deadline.Equal(turns[i].Deadline) {
					t.Fatalf("life %d is %+v, the turn %+v", i, l, turns[i])
				}
			} else if l.Turn != nil || l.Standing == "" {
				t.Fatalf("%+v has a turn that the forecast does not have, or no standing", l)
			}
		}
		for _, c := range s.NodeClaims {
			if !seen[c.Name] {
				t.Fatalf("%s has no life", c.Name)
			}
		}
	})
}

// The phase of a rotation and when it began are those of its annotations.
func TestFlight(t *testing.T) {
	at := time.Date(2026, 6, 10, 2, 0, 0, 0, time.UTC)
	now := at.Add(time.Hour)
	claim := func(annotations map[string]string) []NodeClaim {
		return []NodeClaim{{Object: Object{Name: "a"}, Annotations: annotations}}
	}
	anchor := map[string]string{AnnotationActive: "a"}
	for name, c := range map[string]struct {
		pool   map[string]string
		claims []NodeClaim
		want   *Flight
	}{
		"none":       {nil, claim(nil), nil},
		"pending":    {anchor, claim(map[string]string{AnnotationState: StatePending, AnnotationStartedAt: stamp(at), AnnotationSurgeClaim: "b"}), &Flight{"a", "b", ModeSurge, StatePending, at}},
		"given up":   {anchor, claim(map[string]string{AnnotationState: StatePending, AnnotationStartedAt: stamp(at.Add(-time.Hour)), AnnotationRollbackAt: stamp(at)}), &Flight{"a", "", ModeSurge, PhaseRollback, at}},
		"draining":   {map[string]string{AnnotationActive: "a", AnnotationActiveState: StateDraining, AnnotationDrainingAt: stamp(at)}, claim(nil), &Flight{"a", "", ModeSurge, StateDraining, at}},
		"by force":   {map[string]string{AnnotationActive: "a", AnnotationActiveState: StateDraining, AnnotationDrainingAt: stamp(at), AnnotationMode: ModeFallback}, claim(nil), &Flight{"a", "", ModeFallback, StateDraining, at}},
		"unreadable": {anchor, claim(map[string]string{AnnotationState: StatePending, AnnotationStartedAt: "noon"}), &Flight{"a", "", ModeSurge, StatePending, time.Time{}}},
		"gone":       {anchor, nil, &Flight{"a", "", ModeSurge, StatePending, time.Time{}}},
	} {
		t.Run(name, func(t *testing.T) {
			s := Snapshot{NodePool: NodePool{Annotations: c.pool}, NodeClaims: c.claims}
			if diff := cmp.Diff(c.want, s.Flight(now)); diff != "" {
				t.Errorf("flight (-want +got):\n%s", diff)
			}
		})
	}
}
