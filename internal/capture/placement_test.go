package capture

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

// r is a placement among members that are given as "node priority site".
func placement(t interface{ Fatal(...any) }, absent Absent, members ...string) ranking {
	p := Pool{Name: "p"}
	for _, m := range members {
		var node, site string
		var priority int
		if _, err := fmt.Sscan(m, &node, &priority, &site); err != nil {
			t.Fatal(err)
		}
		p.Members = append(p.Members, Member{Node: node, Site: site, Group: "g", Priority: priority, Role: RoleCloud})
	}
	return rank(&p, p.Members[0].Domain(), absent)
}

func TestDesired(t *testing.T) {
	abc := []string{"a 10 east", "b 10 east", "c 20 west"}
	for _, tt := range []struct {
		name    string
		members []string
		absent  Absent
		home    string
		current Holder
		want    Holder
	}{
		{"the best, by name", abc, Absent{}, "home", None, "a"},
		{"an equal keeps it", abc, Absent{}, "home", "b", "b"},
		{"a worse one gives it back", abc, Absent{}, "home", "c", "a"},
		{"one that is no member loses it", abc, Absent{}, "home", "x", "a"},
		{"drained at run time", abc, Absent{Drained: map[string]bool{"b": true}}, "home", "b", "a"},
		{"dead", abc, Absent{Dead: map[string]bool{"a": true, "b": true}}, "home", "a", "c"},
		{"nobody is left", abc, Absent{Drained: map[string]bool{"a": true, "b": true, "c": true}}, "home", "a", None},
		{"it lives where the best are", abc, Absent{}, "east", "a", "c"},
		{"it lives with all of them", []string{"a 1 east", "b 2 east"}, Absent{}, "east", "a", None},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := placement(t, tt.absent, tt.members...).desired(tt.home, tt.current); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

// Of two equals each keeps what it holds, whichever was asked about first.
func TestEqualsKeepWhatTheyHold(t *testing.T) {
	choose := placement(t, Absent{}, "a 10 east", "b 10 east").remembering()
	for _, holder := range []Holder{"a", "b", "a"} {
		if got := choose("home", holder); got != (choice{holder, true}) {
			t.Errorf("what %s holds goes to %+v", holder, got)
		}
	}
}

// A member without a group holds on its own, drained or not.
func TestAMemberWithoutAGroupIsAlwaysActive(t *testing.T) {
	p := Pool{Members: []Member{{Node: "a", Site: "east", Role: RoleCloud, Drain: true}}}
	absent := Absent{Drained: map[string]bool{"a": true}, Dead: map[string]bool{"a": true}}
	if got := rank(&p, p.Members[0].Domain(), absent).desired("home", None); got != "a" {
		t.Errorf("got %s", got)
	}
}

// Against the rule as it is written: of those that may, the best priority; of these the one
// that holds, else the first by name.
func TestDesiredAgreesWithTheRule(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sites := rapid.SampledFrom([]string{"east", "west"})
		absent := Absent{Drained: map[string]bool{}, Dead: map[string]bool{}}
		var members []string
		priority, site := map[string]int{}, map[string]string{}
		for _, node := range []string{"d", "b", "a", "c"}[:rapid.IntRange(1, 4).Draw(t, "members")] {
			priority[node], site[node] = rapid.IntRange(0, 2).Draw(t, "priority"), sites.Draw(t, "site")
			absent.Drained[node], absent.Dead[node] = rapid.Bool().Draw(t, "drained"), rapid.Bool().Draw(t, "dead")
			members = append(members, fmt.Sprintf("%s %d %s", node, priority[node], site[node]))
		}
		choose := placement(t, absent, members...).remembering()
		for range 4 { // about four addresses
			home := sites.Draw(t, "home")
			current := rapid.SampledFrom([]string{"", "a", "b", "c", "d"}).Draw(t, "current")
			want := ""
			for _, node := range []string{"a", "b", "c", "d"} {
				if _, member := priority[node]; !member || site[node] == home || absent.Drained[node] || absent.Dead[node] {
					continue
				}
				switch {
				case want == "", priority[node] < priority[want], priority[node] == priority[want] && node == current:
					want = node
				}
			}
			_, member := priority[current]
			may := member && site[current] != home && !absent.Drained[current] && !absent.Dead[current]
			if got := choose(home, Holder(current)); got != (choice{Holder(want), may}) {
				t.Fatalf("got %+v, want %q, and %t of %q", got, want, may, current)
			}
		}
	})
}
