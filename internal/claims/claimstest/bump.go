package claimstest

import (
	"math"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/tasuki-io/tasuki/internal/capture"
	"github.com/tasuki-io/tasuki/internal/claims"
)

func neverClaimed(t *testing.T, s Subject) {
	store := s.Open(t)
	holds(t, store, key(1), capture.Claim{})
	says(t, changes(t, store, claims.Revision{}), claims.Changes{Reset: true})
}

// A -> B -> A is 1, 2, 3 (case c02); none is a holder like any other (c03).
func comparison(t *testing.T, s Subject) {
	store, k := s.Open(t), key(1)
	does(t, store, []bool{true}, bump(k, capture.Claim{}, claim(1, "a")))
	does(t, store, []bool{false}, bump(k, capture.Claim{}, claim(1, "b"))) // somebody was first
	does(t, store, []bool{true}, bump(k, claim(1, "a"), claim(2, "b")))
	does(t, store, []bool{false}, bump(k, claim(1, "a"), claim(2, "c"))) // another epoch
	does(t, store, []bool{false}, bump(k, claim(2, "a"), claim(3, "c"))) // another holder
	holds(t, store, k, claim(2, "b"))
	does(t, store, []bool{true}, bump(k, claim(2, "b"), claim(3, capture.None)))
	does(t, store, []bool{true}, bump(k, claim(3, capture.None), claim(4, "a")))
	// A line goes on above everything that was ever seen.
	does(t, store, []bool{true}, bump(k, claim(4, "a"), claim(9, "a")))
	holds(t, store, k, claim(9, "a"))
	does(t, store, []bool{false}, bump(key(2), claim(1, "a"), claim(2, "b"))) // never claimed
	holds(t, store, key(2), capture.Claim{})
}

func themselves(t *testing.T, s Subject) {
	store := s.Open(t)
	does(t, store, []bool{true}, bump(key(2), capture.Claim{}, claim(1, "z")))
	does(t, store, []bool{true, false, true},
		bump(key(1), capture.Claim{}, claim(1, "a")), bump(key(2), capture.Claim{}, claim(1, "a")), bump(key(3), capture.Claim{}, claim(5, "a")))
	holds(t, store, key(1), claim(1, "a"))
	holds(t, store, key(2), claim(1, "z"))
	holds(t, store, key(3), claim(5, "a"))
	does(t, store, []bool{})
}

// What would lower an epoch is an error, and stops nobody else.
func rises(t *testing.T, s Subject) {
	store := s.Open(t)
	does(t, store, []bool{true}, bump(key(1), capture.Claim{}, claim(7, "a")))
	for _, to := range []capture.Claim{claim(7, "b"), claim(6, "b"), claim(0, capture.None)} {
		other := key(int(to.Epoch) + 10)
		done, err := store.Bump(t.Context(), []capture.Bump{bump(key(1), claim(7, "a"), to), bump(other, capture.Claim{}, claim(1, "a"))})
		if err == nil || !slices.Equal(done, []bool{false, true}) {
			t.Errorf("from epoch 7 to %s: done %v, %v", to, done, err)
		}
		holds(t, store, other, claim(1, "a"))
	}
	holds(t, store, key(1), claim(7, "a"))

	const most = math.MaxInt64
	does(t, store, []bool{true}, bump(key(2), capture.Claim{}, claim(most, "a")))
	holds(t, store, key(2), claim(most, "a"))
	// Beyond that a store may count on or say that it cannot; it never begins again.
	done, err := store.Bump(t.Context(), []capture.Bump{bump(key(2), claim(most, "a"), claim(most+1, "b"))})
	want := claim(most+1, "b")
	if err != nil {
		want = claim(most, "a")
	}
	if slices.Equal(done, []bool{true}) != (err == nil) {
		t.Errorf("done %v, %v", done, err)
	}
	holds(t, store, key(2), want)
}

func thousand(t *testing.T, s Subject) {
	store := s.Open(t)
	var bumps []capture.Bump
	for i := range 1000 {
		bumps = append(bumps, bump(key(i), capture.Claim{}, claim(1, name(i%3))))
	}
	does(t, store, slices.Repeat([]bool{true}, len(bumps)), bumps...)
	if got := changes(t, s.Open(t), claims.Revision{}); len(got.Claims) != len(bumps) {
		t.Errorf("of 1000 claims, %d are there", len(got.Claims))
	}
}

// Four processes with eight hands each want an address at the same epoch.
func race(t *testing.T, s Subject) {
	handles := []claims.Store{s.Open(t), s.Open(t), s.Open(t), s.Open(t)}
	k, from := key(1), capture.Claim{}
	for round := range 5 {
		var won atomic.Int64
		var winner atomic.Value
		var wg sync.WaitGroup
		for i := range 8 * len(handles) {
			wg.Go(func() {
				to := claim(from.Epoch+1, name(100*round+i))
				done, err := handles[i%len(handles)].Bump(t.Context(), []capture.Bump{bump(k, from, to)})
				if err != nil {
					t.Error(err)
				} else if done[0] {
					won.Add(1)
					winner.Store(to)
				}
			})
		}
		wg.Wait()
		if won.Load() != 1 {
			t.Fatalf("of 32 bumps from %s, %d were done", from, won.Load())
		}
		from = winner.Load().(capture.Claim)
		for _, h := range handles {
			holds(t, h, k, from)
		}
	}
}

func acknowledged(t *testing.T, s Subject) {
	one, other, k := s.Open(t), s.Open(t), key(1)
	for from := (capture.Claim{}); from.Epoch < 50; {
		to := claim(from.Epoch+1, name(int(from.Epoch)))
		does(t, one, []bool{true}, bump(k, from, to))
		holds(t, other, k, to)
		one, other, from = other, one, to
	}
}

// Keys that are alike: an address of another family, a pool whose name has the signs in it
// that join keys, the forwarding of a NIC.
func keys(t *testing.T, s Subject) {
	store := s.Open(t)
	v4 := key(1)
	all := []capture.Key{
		v4,
		{Pool: "blue", Address: netip.AddrFrom16(v4.Address.As16()), Domain: domain},
		{Pool: "blue", Address: netip.MustParseAddr("2001:db8::1"), Domain: domain},
		{Pool: "blue/", Address: v4.Address, Domain: domain},
		{Pool: "blue", Address: v4.Address, Domain: domain + "/x"},
		{Pool: "青 %'\"", Address: v4.Address, Domain: domain},
		{Domain: "provider:cloud-a:nic:eni-1"},
		{Domain: "provider:cloud-a:nic:/subscriptions/0/networkInterfaces/n1"},
	}
	want := claims.Changes{Reset: true, Claims: map[capture.Key]capture.Claim{}}
	for i, k := range all {
		want.Claims[k] = claim(capture.Epoch(i+1), name(i))
		does(t, store, []bool{true}, bump(k, capture.Claim{}, want.Claims[k]))
	}
	for k, c := range want.Claims {
		holds(t, store, k, c)
	}
	says(t, changes(t, store, claims.Revision{}), want)
}
