package capture

import (
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func sameAddr(a, b netip.Addr) bool { return a == b }

// An undo is a row of its own at the current epoch, with a name of its own.
func TestAnUndoIsARowOfItsOwn(t *testing.T) {
	k := Key{"p", addr(1), "provider:cloud-a:placement:g"}
	nic := Target{"aws", "cloud-a", "eni-a"}
	for verb, want := range map[Verb]Action{
		Unassign:          {Token: Token{Assign, k, 3, "a"}, Reassign: true},
		Assign:            {Token: Token{Unassign, k, 3, "a"}},
		EnableForwarding:  {Token: Token{DisableForwarding, k, 3, "a"}},
		DisableForwarding: {Token: Token{EnableForwarding, k, 3, "a"}},
	} {
		done := Action{Token: Token{verb, k, 2, "a"}, Target: nic, Repair: 1, State: Succeeded, Attempts: 2}
		got := done.Undo(Claim{3, "a"})
		want.Target, want.Repair, want.Undoes, want.State = nic, 1, done.ID(), Pending
		if diff := cmp.Diff(want, got, cmp.Comparer(sameAddr)); diff != "" {
			t.Errorf("undo of %s (-want +got):\n%s", verb, diff)
		}
		if id := want.IdempotencyKey("aws", "eni-a") + ":repair:1:undo"; got.ID() != id {
			t.Errorf("it is called %s, want %s", got.ID(), id)
		}
	}
}

// The gate asks nothing else of an undo than of any other row: what the holder acquired cannot
// be taken from it, and what it released comes back to nobody but the holder.
func TestAnUndoPassesTheSameGate(t *testing.T) {
	k := Key{"p", addr(1), "d"}
	for _, tt := range []struct {
		verb    Verb
		current Claim
		passes  bool
	}{
		{Assign, Claim{2, "a"}, false},
		{Assign, Claim{2, "b"}, true},
		{Assign, Claim{2, None}, true},
		{Unassign, Claim{3, "a"}, true},
		{Unassign, Claim{3, "b"}, false},
		{Unassign, Claim{}, false},
	} {
		done := Action{Token: Token{tt.verb, k, 1, "a"}, State: Succeeded}
		if stale := Gate(tt.current, done.Undo(tt.current).Token); (stale == "") != tt.passes {
			t.Errorf("undo of %s while it is %s: %q", tt.verb, tt.current, stale)
		}
	}
}

// A row that was rolled back tells nothing but its epoch, and what the provider may still do.
func TestWhatWasRolledBackTellsNothing(t *testing.T) {
	k, nic := Key{"p", addr(1), "d"}, Target{"aws", "cloud-a", "eni-a"}
	for _, verb := range []Verb{Assign, Unassign} {
		v := NewView()
		v.Record(Action{Token: Token{verb, k, 2, "a"}, Target: nic, State: RolledBack, Attempts: 1})
		want := Line{Known: Claim{2, "a"}}
		if verb == Unassign {
			want.Known.Holder = Unknown
		}
		if diff := cmp.Diff(want, v.Line(k), cmp.Comparer(sameAddr)); diff != "" || len(v.Open()) > 0 {
			t.Errorf("%s (-want +got):\n%s\nopen %v", verb, diff, v.Open())
		}
	}
}

// Repairs go on counting after an undo at the same epoch: what has succeeded never runs again.
func TestRepairsCountOnAfterAnUndo(t *testing.T) {
	k, nic := Key{"p", addr(1), "d"}, Target{"aws", "cloud-a", "eni-a"}
	for _, verb := range []Verb{Assign, Unassign} {
		v := NewView()
		done := Action{Token: Token{verb, k, 2, "a"}, Target: nic, State: Succeeded, Attempts: 1}
		for _, a := range []Action{{Repair: 1}, {Undoes: "x"}} {
			done.Repair, done.Undoes = a.Repair, a.Undoes
			v.Record(done)
		}
		got := v.Line(k).Acquired
		if verb == Unassign {
			got = v.Line(k).Left[0]
		}
		if got.Repair != 1 {
			t.Errorf("after %s, repair 1 and an undo: %+v", verb, got)
		}
	}
}

// NotBefore holds an action back in whatever state it is. A throttled one is approved still:
// nobody is asked again, and nothing has failed.
func TestNothingRunsBeforeItsBackoffIsOver(t *testing.T) {
	for _, state := range []State{Pending, Approved, Failed} {
		w, k, nic := known()
		w.view.Learn(k, Claim{1, "a"}, w.now)
		row := Action{Token: Token{Assign, k, 1, "a"}, Target: nic, State: state, Attempts: 1, NotBefore: w.now.Add(7 * time.Second)}
		w.view.Record(row)
		id := row.ID()
		for wait, at := range map[Wait]time.Time{WaitBackoff: row.NotBefore.Add(-time.Nanosecond), "": row.NotBefore} {
			w.policy.RequireApproval = state != Pending
			d := Decide(w.snapshot(), at)
			runs := 0
			for _, r := range d.Plan.Runs {
				if r.ID() == id {
					runs++
				}
			}
			var held []Held
			for _, h := range d.Held {
				if h.Action.ID() == id {
					held = append(held, h)
				}
			}
			switch {
			case wait == "" && (runs != 1 || len(held) > 0):
				t.Errorf("%s: when it is over, %d runs, held %+v", state, runs, held)
			case wait != "" && (runs > 0 || len(held) != 1 || held[0].Wait != wait || !held[0].Until.Equal(row.NotBefore) || !d.Wake.Equal(row.NotBefore)):
				t.Errorf("%s: before, %d runs, held %+v, wake %s", state, runs, held, d.Wake)
			}
			for _, admitted := range d.Plan.Admits {
				if admitted.ID() == id && state != Pending {
					t.Errorf("%s: it is approved again", state)
				}
			}
		}
	}
}
