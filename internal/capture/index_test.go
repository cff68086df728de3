package capture

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// facts are what a view was told, in the order in which it was.
type facts struct {
	rows    []Action // by their last commit
	markers []Marker
	known   map[Key]Claim
}

// view is one that was told the facts alone, and the claims as another has them.
func (f *facts) view(of *View) *View {
	v := NewView()
	for k, c := range f.known {
		v.Note(k, c)
	}
	for _, a := range f.rows {
		v.Record(a)
	}
	for _, m := range f.markers {
		v.Mark(m)
	}
	for k, e := range of.all() {
		v.Learn(k, e.Claim, e.Since)
	}
	return v
}

// recount is the index of a view as its lines alone have it.
func recount(v *View) index {
	x := newIndex()
	for k, e := range v.all() {
		x.count(k, e, 1)
	}
	return x
}

// indexes checks what a view derives from its lines against the lines.
func indexes(v *View) error {
	want := recount(v)
	for h, n := range v.held {
		if n == 0 {
			want.held[h] = 0
		}
	}
	for t, n := range v.placed {
		if n == 0 {
			want.placed[t] = 0
		}
	}
	for t, n := range v.doubtful {
		if n == 0 {
			want.doubtful[t] = 0
		}
	}
	if !reflect.DeepEqual(want, v.index) {
		return fmt.Errorf("the index says %+v, and the lines %+v", v.index, want)
	}
	return nil
}

// decidesAlike decides on what a view knows in three ways: as it is; without the counts that
// spare it the search for what no pool lists; and built anew from the facts.
func decidesAlike(s *Snapshot, f *facts, now time.Time) error {
	if err := indexes(s.View); err != nil {
		return err
	}
	want := Decide(s, now)
	searching, anew := *s, *s
	searching.View = &View{lines: s.lines, index: s.index}
	searching.index.unsettled = -1
	if got := Decide(&searching, now); !reflect.DeepEqual(want, got) {
		return fmt.Errorf("a search decides %+v, and the counts %+v", got, want)
	}
	anew.View = f.view(s.View)
	if got := Decide(&anew, now); !reflect.DeepEqual(want, got) {
		return fmt.Errorf("a view built anew decides %+v, and one that was kept up to date %+v", got, want)
	}
	return nil
}

// Whatever a view was told and whatever is configured now, its index changes no decision.
func TestTheIndexChangesNoDecision(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := time.Date(2026, 3, 4, 2, 0, 0, 0, time.UTC)
		s := drawSnapshot(t, now)
		f := &facts{known: map[Key]Claim{}}
		for range rapid.IntRange(0, 12).Draw(t, "facts") {
			tell(t, s.View, f, now)
			if err := decidesAlike(s, f, now); err != nil {
				t.Fatal(err)
			}
		}
	})
}

var (
	someDomains = map[string]Domain{ // by pool; what is configured is of group g
		"p": "provider:cloud-a:placement:g", "q": "provider:cloud-a:placement:g", "r": "provider:cloud-a:placement:h",
	}
	someNodes   = []string{"a", "b"}
	someTargets = []Target{{"aws", providerRef, "eni-a"}, {"aws", providerRef, "eni-b"}}
)

// drawSnapshot is a node that knows nothing yet, and a configuration that lists some of the
// addresses, for some of the nodes.
func drawSnapshot(t *rapid.T, now time.Time) *Snapshot {
	w := newScene()
	for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom(slices.Sorted(maps.Keys(someDomains))), 0, 3, rapid.ID[string]).Draw(t, "pools") {
		p := w.pool(name, 0, someNodes[:rapid.IntRange(1, 2).Draw(t, "members")]...)
		for n := byte(1); n <= 2; n++ {
			if rapid.Bool().Draw(t, "listed") {
				p.Addresses = append(p.Addresses, Address{addr(n), Location{Site: rapid.SampledFrom([]string{"home", "cloud", ""}).Draw(t, "site")}})
			}
		}
		for i := range p.Members {
			c := &p.Members[i].Capture
			c.Method = rapid.SampledFrom([]Method{SecondaryIP, SecondaryIP, ProxyARP}).Draw(t, "method")
			c.NIC = rapid.SampledFrom(someTargets).Draw(t, "NIC").NIC
			w.drained[p.Members[i].Node] = rapid.Bool().Draw(t, "drained")
		}
	}
	w.policy.MaxPerRun = rapid.IntRange(0, 3).Draw(t, "budget")
	for _, target := range someTargets {
		w.nics[target] = NIC{
			Addresses: rapid.SliceOfN(rapid.Just(addr(1)), 0, 1).Draw(t, "shown"), Forwards: rapid.Bool().Draw(t, "forwards"),
			At: now.Add(-rapid.SampledFrom([]time.Duration{0, time.Minute}).Draw(t, "seen")),
		}
	}
	return w.snapshot()
}

// tell gives a view one more fact, and takes note of it.
func tell(t *rapid.T, v *View, f *facts, now time.Time) {
	target := rapid.SampledFrom(someTargets).Draw(t, "target")
	k := target.forwarding()
	if rapid.IntRange(0, 3).Draw(t, "key") > 0 {
		pool := rapid.SampledFrom(slices.Sorted(maps.Keys(someDomains))).Draw(t, "pool")
		k = Key{pool, addr(byte(rapid.IntRange(1, 2).Draw(t, "address"))), someDomains[pool]}
	}
	claim := Claim{Epoch(rapid.IntRange(1, 3).Draw(t, "epoch")), Holder(rapid.SampledFrom(someNodes).Draw(t, "holder"))}
	at := now.Add(-time.Duration(rapid.IntRange(0, 90).Draw(t, "age")) * time.Second)
	token := Token{releasing(k), k, claim.Epoch, "a"}
	switch rapid.IntRange(0, 5).Draw(t, "fact") {
	case 0:
		v.Learn(k, claim, at)
	case 1:
		m := Marker{token, target, rapid.IntRange(0, 1).Draw(t, "repair")}
		v.Mark(m)
		f.markers = append(f.markers, m)
	case 2:
		if len(f.markers) > 0 {
			v.Unmark(f.markers[0])
			id := f.markers[0].ID()
			f.markers = without(f.markers, id)
		}
	default:
		if rapid.Bool().Draw(t, "acquires") {
			token.Verb = acquiring(k)
		}
		a := Action{
			Token: token, Target: target, Repair: rapid.IntRange(0, 1).Draw(t, "repair"), Updated: at, Attempts: rapid.IntRange(0, 1).Draw(t, "attempts"),
			State: rapid.SampledFrom([]State{Pending, Approved, Running, Failed, Skipped, Succeeded}).Draw(t, "state"), Deadline: at.Add(ExecutorTime),
		}
		a.Unanswered = rapid.IntRange(0, a.Attempts).Draw(t, "unanswered")
		for _, row := range f.rows {
			if row.ID() == a.ID() && !row.State.Open() {
				return // it is over
			}
		}
		v.Record(a)
		f.rows = append(without(f.rows, a.ID()), a)
	}
	f.known[k] = v.Line(k).Known
}

func without[T interface{ ID() string }](list []T, id string) []T {
	var others []T
	for _, x := range list {
		if x.ID() != id {
			others = append(others, x)
		}
	}
	return others
}
