package claimstest

import (
	"context"
	"errors"
	"net/netip"
	"testing"

	"github.com/tasuki-io/tasuki/internal/capture"
	"github.com/tasuki-io/tasuki/internal/claims"
)

func incremental(t *testing.T, s Subject) {
	one, other := s.Open(t), s.Open(t)
	start := changes(t, other, claims.Revision{})
	does(t, one, []bool{true, true}, bump(key(1), capture.Claim{}, claim(1, "a")), bump(key(2), capture.Claim{}, claim(1, "a")))
	first := changes(t, other, start.Revision)
	says(t, first, claims.Changes{Claims: map[capture.Key]capture.Claim{key(1): claim(1, "a"), key(2): claim(1, "a")}})

	does(t, one, []bool{true}, bump(key(2), claim(1, "a"), claim(2, "b")))
	home := capture.Home{Pool: "blue", Addr: key(3).Address}
	lease, err := one.Own(t.Context(), home, capture.Location{Node: "n", Site: "tokyo"})
	if err != nil {
		t.Fatal(err)
	}
	second := changes(t, other, first.Revision)
	says(t, second, claims.Changes{Claims: map[capture.Key]capture.Claim{key(2): claim(2, "b")}, Leases: []claims.AddressLease{lease}})

	// What changes nothing is no change.
	does(t, one, []bool{false}, bump(key(2), claim(1, "a"), claim(2, "c")))
	third := changes(t, other, second.Revision)
	says(t, third, claims.Changes{})
	if third.Revision != second.Revision {
		t.Errorf("nothing has changed, and the revision goes from %v to %v", second.Revision, third.Revision)
	}
	// Revisions are those of the store, not of a handle.
	says(t, changes(t, one, first.Revision), claims.Changes{Claims: map[capture.Key]capture.Claim{key(2): claim(2, "b")}, Leases: []claims.AddressLease{lease}})
}

func reset(t *testing.T, s Subject) {
	store := s.Open(t)
	does(t, store, []bool{true}, bump(key(1), capture.Claim{}, claim(1, "a")))
	if err := store.Drain(t.Context(), "b", true); err != nil {
		t.Fatal(err)
	}
	everything := claims.Changes{Reset: true, Claims: map[capture.Key]capture.Claim{key(1): claim(1, "a")}, Drained: []string{"b"}}
	now := changes(t, store, claims.Revision{}).Revision
	for what, since := range map[string]claims.Revision{
		"none":             {},
		"of another store": {Store: now.Store + "x", N: now.N},
		"of none at all":   {N: now.N},
		"ahead":            {Store: now.Store, N: now.N + 1<<40}, // others may write to it meanwhile
	} {
		t.Log(what)
		says(t, changes(t, store, since), everything)
	}
	says(t, changes(t, s.Open(t), now), claims.Changes{Drained: []string{"b"}})
}

func waits(t *testing.T, s Subject) {
	one, other := s.Open(t), s.Open(t)
	for what, write := range map[string]func() error{
		"a bump": func() error {
			_, err := other.Bump(t.Context(), []capture.Bump{bump(key(1), capture.Claim{}, claim(1, "a"))})
			return err
		},
		"a drain": func() error { return other.Drain(t.Context(), "a", true) },
		"an owner": func() error {
			_, err := other.Own(t.Context(), capture.Home{Pool: "blue", Addr: netip.MustParseAddr("10.0.0.1")}, capture.Location{Site: "tokyo"})
			return err
		},
	} {
		here := waiting(t, other, changes(t, other, claims.Revision{}).Revision)
		there := waiting(t, one, changes(t, one, claims.Revision{}).Revision)
		select {
		case err := <-here:
			t.Fatalf("before %s: Wait returns %v", what, err)
		case err := <-there:
			t.Fatalf("before %s: Wait returns %v", what, err)
		default:
		}
		if err := write(); err != nil {
			t.Fatal(err)
		}
		for _, returned := range []<-chan error{here, there} {
			if err := <-returned; err != nil {
				t.Errorf("after %s: %v", what, err)
			}
		}
	}
}

func waitsNot(t *testing.T, s Subject) {
	store := s.Open(t)
	before := changes(t, store, claims.Revision{}).Revision
	does(t, store, []bool{true}, bump(key(1), capture.Claim{}, claim(1, "a")))
	for _, since := range []claims.Revision{before, {}} {
		if err := <-waiting(t, store, since); err != nil {
			t.Error(err)
		}
	}
}

func waitEnds(t *testing.T, s Subject) {
	store := s.Open(t)
	since := changes(t, store, claims.Revision{}).Revision
	ctx, cancel := context.WithCancel(t.Context())
	returned := make(chan error)
	go func() { returned <- store.Wait(ctx, since) }()
	cancel()
	if err := <-returned; !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

func drains(t *testing.T, s Subject) {
	one, other := s.Open(t), s.Open(t)
	drain := func(node string, drained bool) claims.Revision {
		if err := one.Drain(t.Context(), node, drained); err != nil {
			t.Fatal(err)
		}
		return changes(t, other, claims.Revision{}).Revision
	}
	drain("b", true)
	at := drain("a", true)
	says(t, changes(t, other, at), claims.Changes{Drained: []string{"a", "b"}})
	if again := drain("a", true); again != at {
		t.Errorf("drained already, and the revision goes from %v to %v", at, again)
	}
	at = drain("a", false)
	says(t, changes(t, other, at), claims.Changes{Drained: []string{"b"}})
	if again := drain("a", false); again != at {
		t.Errorf("let back already, and the revision goes from %v to %v", at, again)
	}
}

// The epoch of an owner is no captureEpoch: neither moves the other.
func owners(t *testing.T, s Subject) {
	one, other, k := s.Open(t), s.Open(t), key(1)
	home := capture.Home{Pool: k.Pool, Addr: k.Address}
	own := func(l capture.Location, epoch uint64) {
		t.Helper()
		want := claims.AddressLease{Home: home, Owner: l, Epoch: epoch}
		if got, err := one.Own(t.Context(), home, l); err != nil || got != want {
			t.Errorf("got %+v, %v; want %+v", got, err, want)
		}
		says(t, changes(t, other, claims.Revision{}), claims.Changes{
			Reset: true, Claims: map[capture.Key]capture.Claim{k: claim(9, "a")}, Leases: []claims.AddressLease{want},
		})
	}
	does(t, one, []bool{true}, bump(k, capture.Claim{}, claim(9, "a")))
	tokyo, osaka := capture.Location{Node: "n1", Site: "tokyo"}, capture.Location{Node: "n1", Site: "osaka"}
	own(tokyo, 1)
	at := changes(t, other, claims.Revision{}).Revision
	own(tokyo, 1)
	if again := changes(t, other, claims.Revision{}).Revision; again != at {
		t.Errorf("it lives there already, and the revision goes from %v to %v", at, again)
	}
	own(osaka, 2)
	own(tokyo, 3)
	own(capture.Location{Node: "n2", Site: "tokyo"}, 4)
	own(capture.Location{}, 5) // nowhere
	own(tokyo, 6)
}
