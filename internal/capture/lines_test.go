package capture

import (
	"encoding/binary"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func nth(n int) netip.Addr {
	return netip.AddrFrom4([4]byte(binary.BigEndian.AppendUint32(nil, 10<<24+uint32(n))))
}

// In whatever order entries come and are asked for, a walk finds what a map would, and nothing
// else.
func TestAWalkFindsWhatAMapWould(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		order := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0)).Perm(rapid.IntRange(0, 6*chunk).Draw(t, "addresses"))
		switch rapid.IntRange(0, 2).Draw(t, "order") {
		case 0:
			slices.Sort(order)
		case 1:
			slices.SortFunc(order, func(a, b int) int { return b - a })
		}
		var l lines
		want := map[netip.Addr]*entry{}
		for _, n := range order {
			want[nth(2*n)] = &entry{rows: Epoch(n)} // every other one is missing
			l = l.with(nth(2*n), want[nth(2*n)])
		}
		if got := maps.Collect(l.all()); !maps.Equal(got, want) {
			t.Fatalf("they are %d, want %d", len(got), len(want))
		}
		last := netip.Addr{}
		for a := range l.all() {
			if !last.Less(a) {
				t.Fatalf("%s comes after %s", a, last)
			}
			last = a
		}
		for _, c := range l {
			if len(c) == 0 || len(c) > chunk {
				t.Fatalf("a chunk of %d", len(c))
			}
		}
		w, step := walk{lines: l}, rapid.IntRange(-3, 3).Draw(t, "step")
		for i, n := 0, rapid.IntRange(0, 12*chunk).Draw(t, "first"); i < 13*chunk && n >= 0; i, n = i+1, n+step {
			if got := w.entry(nth(n)); got != want[nth(n)] {
				t.Fatalf("at %s: %+v, want %+v", nth(n), got, want[nth(n)])
			}
		}
	})
}

func TestASetOfAddressesIsAskedInAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		members := rapid.SliceOfN(rapid.IntRange(0, 20), 0, 20).Draw(t, "members")
		var list []netip.Addr
		for _, n := range members {
			list = append(list, nth(n))
		}
		set, near := NewAddresses(list...), 0
		for _, n := range rapid.SliceOfN(rapid.IntRange(0, 20), 0, 30).Draw(t, "asked for") {
			want := slices.Contains(members, n)
			if set.Has(nth(n)) != want || set.has(nth(n), &near) != want {
				t.Fatalf("%s in %v: want %t", nth(n), set, want)
			}
		}
	})
}
