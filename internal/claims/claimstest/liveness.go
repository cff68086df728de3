package claimstest

import (
	"slices"
	"testing"
	"time"

	"github.com/tasuki-io/tasuki/internal/claims"
)

// renew keeps a node alive, and checks that its lease is not thought to last longer than it
// does. It returns how long it is thought to last.
func renew(t *testing.T, s Subject, store claims.Store, node string) time.Time {
	t.Helper()
	before := s.Now()
	end, err := store.Renew(t.Context(), node, s.TTL)
	if err != nil {
		t.Fatal(err)
	}
	if after := s.Now(); end.Before(before.Add(s.TTL)) || end.After(after.Add(s.TTL)) {
		t.Errorf("a lease of %s that is renewed between %s and %s is thought to last until %s", s.TTL, before, after, end)
	}
	return end
}

func alive(t *testing.T, store claims.Store) []string {
	t.Helper()
	return changes(t, store, claims.Revision{}).Alive
}

func lease(t *testing.T, s Subject) {
	one, other := s.Open(t), s.Open(t)
	ends := map[string]time.Time{"b": renew(t, s, one, "b"), "a": renew(t, s, one, "a")}
	lives := func() {
		t.Helper()
		for _, h := range []claims.Store{one, other} {
			got := alive(t, h)
			if len(got) > len(ends) {
				t.Errorf("alive: %v", got)
			}
			for node, end := range ends { // a machine that has paused for so long proves nothing
				if !slices.Contains(got, node) && s.Now().Before(end) {
					t.Errorf("%s is dead before its lease ends: alive are %v", node, got)
				}
			}
		}
	}
	lives()
	s.Pass(s.TTL / 2)
	ends["a"] = renew(t, s, one, "a")
	s.Pass(s.TTL / 4)
	lives()
	s.Pass(s.TTL / 2)
	for _, h := range []claims.Store{one, other} {
		eventually(t, "b being dead", func() bool { return !slices.Contains(alive(t, h), "b") })
	}
	s.Pass(s.TTL)
	for _, h := range []claims.Store{one, other} {
		eventually(t, "a being dead", func() bool { return len(alive(t, h)) == 0 })
	}
	ends = map[string]time.Time{"b": renew(t, s, other, "b")} // a dead node comes back
	lives()
}

// Nobody who renews in time is ever thought dead, and it is no change that others wake for.
func renews(t *testing.T, s Subject) {
	one, other := s.Open(t), s.Open(t)
	end := renew(t, s, one, "a")
	at := changes(t, other, claims.Revision{}).Revision
	for range 6 {
		s.Pass(s.TTL / 3)
		late := end
		if end = renew(t, s, one, "a"); !s.Now().Before(late) { // the machine has paused
			at = changes(t, other, claims.Revision{}).Revision
			continue
		}
		got := changes(t, other, at)
		says(t, got, claims.Changes{Alive: []string{"a"}})
		if got.Revision != at {
			t.Errorf("a renewal takes the revision from %v to %v", at, got.Revision)
		}
	}
}

func waitsForDeath(t *testing.T, s Subject) {
	one, other := s.Open(t), s.Open(t)
	returned := waiting(t, other, changes(t, other, claims.Revision{}).Revision)
	renew(t, s, one, "a")
	if err := <-returned; err != nil {
		t.Fatalf("the birth: %v", err)
	}
	at := changes(t, other, claims.Revision{})
	if !slices.Equal(at.Alive, []string{"a"}) {
		t.Fatalf("alive: %v", at.Alive)
	}
	returned = waiting(t, other, at.Revision)
	s.Pass(2 * s.TTL)
	if err := <-returned; err != nil {
		t.Fatalf("the death: %v", err)
	}
	if got := alive(t, other); len(got) > 0 {
		t.Errorf("alive: %v", got)
	}
}

func noTTL(t *testing.T, s Subject) {
	store := s.Open(t)
	if _, err := store.Renew(t.Context(), "a", 0); err == nil {
		t.Error("a lease of no time is not refused")
	}
	if got := alive(t, store); len(got) > 0 {
		t.Errorf("alive: %v", got)
	}
}
