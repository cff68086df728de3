package journal_test

import (
	"errors"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tasuki-io/tasuki/internal/capture"
	"github.com/tasuki-io/tasuki/internal/journal"
)

var (
	start  = time.Date(2026, 3, 4, 2, 0, 0, 0, time.UTC)
	key    = capture.Key{Pool: "blue", Address: netip.MustParseAddr("10.0.0.1"), Domain: "provider:c:placement:g"}
	other  = capture.Key{Pool: "red", Address: netip.MustParseAddr("10.0.0.2"), Domain: "provider:c:placement:g"}
	target = capture.Target{Provider: "aws", ProviderRef: "c", NIC: "eni-a"}
)

// desk is a journal that a person looks at.
type desk struct {
	*testing.T
	*journal.Journal
	now time.Time
}

func newDesk(t *testing.T) *desk {
	return &desk{t, opened(t, filepath.Join(t.TempDir(), "journal.db")), start}
}

func (d *desk) tick() time.Time { d.now = d.now.Add(time.Second); return d.now }

func (d *desk) note(k capture.Key, e capture.Epoch, h capture.Holder) {
	d.Helper()
	d.must(d.Note(d.Context(), map[capture.Key]capture.Claim{k: {Epoch: e, Holder: h}}))
}

func (d *desk) must(err error) {
	d.Helper()
	if err != nil {
		d.Fatal(err)
	}
}

func action(v capture.Verb, k capture.Key, e capture.Epoch) capture.Action {
	return capture.Action{Token: capture.Token{Verb: v, Key: k, Epoch: e, Holder: "a"}, Target: target, State: capture.Pending}
}

// planned imports an action.
func (d *desk) planned(a capture.Action) string {
	d.Helper()
	_, err := d.Apply(d.Context(), &capture.Plan{Imports: []capture.Action{a}}, d.tick())
	d.must(err)
	return a.ID()
}

// ended imports, approves and begins an action, and ends it.
func (d *desk) ended(a capture.Action, e journal.Ending) string {
	d.Helper()
	id := d.planned(a)
	_, err := d.Approve(d.Context(), []string{id}, "ann", d.tick())
	d.must(err)
	begun, stale, err := d.Begin(d.Context(), id, d.tick(), d.now.Add(time.Minute))
	if d.must(err); stale != "" {
		d.Fatal(stale)
	}
	_, err = d.End(d.Context(), begun, e, d.tick())
	d.must(err)
	return id
}

var done = journal.Ending{State: capture.Succeeded, Answered: true}

func (d *desk) row(id string) journal.Row {
	d.Helper()
	r, err := d.Row(d.Context(), id)
	d.must(err)
	return r
}

// An action that fails, is hastened by a person, and succeeds too late: everything of it is
// there to be read.
func TestTheLifeOfAnActionIsToldInItsEvents(t *testing.T) {
	d := newDesk(t)
	d.note(key, 1, "a")
	id := d.ended(action(capture.Assign, key, 1), journal.Ending{State: capture.Failed, Code: "Limit", Reason: "the NIC is full", NotBefore: start.Add(time.Hour), Answered: true})
	if r := d.row(id); r.Code != "Limit" || r.Reason != "the NIC is full" || r.Approver != "ann" || !r.Created.Equal(start.Add(time.Second)) {
		t.Errorf("after the failure: %+v", r)
	}
	hastened, err := d.Hasten(t.Context(), []string{id}, d.tick())
	if d.must(err); len(hastened) != 1 || !hastened[0].NotBefore.IsZero() || !d.row(id).NotBefore.IsZero() {
		t.Errorf("hastened: %+v", hastened)
	}
	if again, err := d.Hasten(t.Context(), []string{id}, d.tick()); err != nil || len(again) > 0 {
		t.Errorf("hastened again: %+v, %v", again, err)
	}
	begun, _, err := d.Begin(t.Context(), id, d.tick(), d.now.Add(time.Minute))
	d.must(err)
	d.note(key, 2, "b")
	_, err = d.End(t.Context(), begun, done, d.tick())
	d.must(err)
	if r := d.row(id); !r.Superseded || r.State != capture.Succeeded || r.Reason != "" || r.Code != "" {
		t.Errorf("after a success that came too late: %+v", r)
	}
	type line struct {
		from, to capture.State
		attempt  int
		detail   string
	}
	want := []line{
		{"", capture.Pending, 0, ""},
		{capture.Pending, capture.Approved, 0, "approved by ann"},
		{capture.Approved, capture.Running, 1, ""},
		{capture.Running, capture.Failed, 1, "Limit the NIC is full"},
		{capture.Failed, capture.Failed, 1, "its backoff was ended"},
		{capture.Failed, capture.Running, 2, ""},
		{capture.Running, capture.Succeeded, 2, "superseded: the current epoch is 2"},
	}
	events, err := d.Events(t.Context(), id, 0)
	d.must(err)
	var got []line
	for i, e := range events {
		got = append(got, line{e.From, e.To, e.Attempt, e.Detail})
		if e.ID != id || i > 0 && !e.At.After(events[i-1].At) {
			t.Errorf("event %+v", e)
		}
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(line{})); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	d.planned(action(capture.Unassign, key, 2))
	if last, err := d.Events(t.Context(), "", 2); err != nil || len(last) != 2 || last[0].To != capture.Succeeded || last[1].To != capture.Pending {
		t.Errorf("the last two of all: %+v, %v", last, err)
	}
}

func TestOnlyThePendingIsApproved(t *testing.T) {
	d := newDesk(t)
	d.note(key, 1, "a")
	d.note(other, 1, "a")
	one, two := d.planned(action(capture.Assign, key, 1)), d.ended(action(capture.Assign, other, 1), done)
	if _, err := d.Approve(t.Context(), []string{one, "nothing"}, "ann", d.tick()); !errors.Is(err, journal.ErrNoAction) || d.row(one).State != capture.Pending {
		t.Errorf("with one that is not there: %v, %s", err, d.row(one).State)
	}
	if _, err := d.Approve(t.Context(), []string{one}, "", d.tick()); err == nil {
		t.Error("nobody approves, and it is not refused")
	}
	approved, err := d.Approve(t.Context(), []string{one, two}, "ann", d.tick())
	if d.must(err); len(approved) != 1 || approved[0].ID() != one || approved[0].State != capture.Approved {
		t.Errorf("approved: %+v", approved)
	}
	if again, err := d.Approve(t.Context(), []string{one}, "bob", d.tick()); err != nil || len(again) > 0 || d.row(one).Approver != "ann" {
		t.Errorf("approved again: %+v, %v", again, err)
	}
	if _, err := d.Hasten(t.Context(), []string{"nothing"}, d.tick()); !errors.Is(err, journal.ErrNoAction) {
		t.Errorf("hastening what is not there: %v", err)
	}
	if hastened, err := d.Hasten(t.Context(), []string{one, two}, d.tick()); err != nil || len(hastened) > 0 {
		t.Errorf("hastened although nothing waits: %+v, %v", hastened, err)
	}
}

func TestRowsAreSelected(t *testing.T) {
	d := newDesk(t)
	d.note(key, 1, "a")
	d.note(other, 1, "a")
	nic := capture.Key{Domain: "provider:c:nic:eni-a"}
	d.note(nic, 1, "a")
	forwarding := d.ended(action(capture.EnableForwarding, nic, 1), done)
	one, two := d.planned(action(capture.Assign, key, 1)), d.ended(action(capture.Assign, other, 1), done)
	for what, c := range map[string]struct {
		filter journal.Filter
		want   []string
	}{
		"all":             {journal.Filter{}, []string{two, one, forwarding}},
		"the last":        {journal.Filter{Limit: 1}, []string{two}},
		"by state":        {journal.Filter{States: []capture.State{capture.Succeeded}}, []string{two, forwarding}},
		"by two states":   {journal.Filter{States: []capture.State{capture.Succeeded, capture.Pending}}, []string{two, one, forwarding}},
		"by pool":         {journal.Filter{Pool: "blue"}, []string{one}},
		"by address":      {journal.Filter{Address: other.Address}, []string{two}},
		"by all of these": {journal.Filter{States: []capture.State{capture.Pending}, Pool: "blue", Address: key.Address, Limit: 5}, []string{one}},
		"none":            {journal.Filter{Pool: "blue", Address: other.Address}, nil},
	} {
		rows, err := d.Rows(t.Context(), c.filter)
		d.must(err)
		var got []string
		for _, r := range rows {
			got = append(got, r.ID())
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v; want %v", what, got, c.want)
		}
	}
	if _, err := d.Row(t.Context(), "nothing"); !errors.Is(err, journal.ErrNoAction) {
		t.Errorf("what is not there: %v", err)
	}
}

// An undo is stamped with the epoch of today and asked for by the same gate as all others.
func TestAnUndoIsAnActionOfItsOwn(t *testing.T) {
	d := newDesk(t)
	d.note(key, 1, "a")
	assigned := d.ended(action(capture.Assign, key, 1), done)
	if undo, stale, err := d.Undo(t.Context(), assigned, "ann", d.tick()); err != nil || !strings.Contains(string(stale), "releases from a, which is the holder") {
		t.Errorf("an undo that takes the address from its holder: %+v, %q, %v", undo, stale, err)
	}
	if rows, err := d.Rows(t.Context(), journal.Filter{}); err != nil || len(rows) != 1 {
		t.Errorf("a refused undo leaves %d rows, %v", len(rows), err)
	}

	d.note(key, 5, "b")
	undo, stale, err := d.Undo(t.Context(), assigned, "ann", d.tick())
	d.must(err)
	want := action(capture.Unassign, key, 5)
	want.Undoes, want.Updated = assigned, d.now
	if diff := cmp.Diff(want, undo, cmpopts.EquateComparable(capture.Key{})); diff != "" || stale != "" {
		t.Errorf("undo %q (-want +got):\n%s", stale, diff)
	}
	if undo.ID() != "mobility:blue:aws:eni-a:unassign-secondary-ip:10.0.0.1:epoch:5:undo" {
		t.Errorf("its name is %s", undo.ID())
	}
	if _, _, err := d.Undo(t.Context(), assigned, "bob", d.tick()); err == nil || !strings.Contains(err.Error(), "is planned already") {
		t.Errorf("undone again: %v", err)
	}
	_, err = d.Approve(t.Context(), []string{undo.ID()}, "ann", d.tick())
	d.must(err)
	begun, _, err := d.Begin(t.Context(), undo.ID(), d.tick(), d.now.Add(time.Minute))
	d.must(err)
	_, err = d.End(t.Context(), begun, done, d.tick())
	d.must(err)
	if r := d.row(assigned); r.State != capture.RolledBack {
		t.Errorf("what was undone is %s", r.State)
	}
	for _, id := range []string{assigned, undo.ID()} {
		if _, _, err := d.Undo(t.Context(), id, "ann", d.tick()); err == nil {
			t.Errorf("the undo of %s is not refused", id)
		}
	}
	events, err := d.Events(t.Context(), assigned, 1)
	if d.must(err); events[0].Detail != "undone by "+undo.ID() {
		t.Errorf("the last event: %+v", events[0])
	}
}

// The undo of a release takes the address back from whoever has it; that of forwarding does
// not need to.
func TestAnUndoIsTheInverse(t *testing.T) {
	d := newDesk(t)
	nic := capture.Key{Domain: "provider:c:nic:eni-a"}
	for _, c := range []struct {
		verb    capture.Verb
		key     capture.Key
		then    capture.Holder
		inverse capture.Verb
		takes   bool
	}{
		{capture.Unassign, key, "a", capture.Assign, true},
		{capture.EnableForwarding, nic, capture.None, capture.DisableForwarding, false},
	} {
		d.note(c.key, 2, "b")
		if c.verb.Acquires() {
			d.note(c.key, 3, "a")
		}
		current := capture.Epoch(2)
		if c.verb.Acquires() {
			current = 3
		}
		id := d.ended(action(c.verb, c.key, current), done)
		d.note(c.key, 4, c.then)
		undo, stale, err := d.Undo(t.Context(), id, "ann", d.tick())
		if err != nil || stale != "" || undo.Verb != c.inverse || undo.Reassign != c.takes || undo.Holder != "a" || undo.Epoch != 4 {
			t.Errorf("undo of %s: %+v, %q, %v", c.verb, undo, stale, err)
		}
	}
	pending := d.planned(action(capture.DisableForwarding, nic, 4))
	if _, _, err := d.Undo(t.Context(), pending, "ann", d.tick()); err == nil || !strings.Contains(err.Error(), "only what has succeeded is undone") {
		t.Errorf("the undo of what is pending: %v", err)
	}
	if _, _, err := d.Undo(t.Context(), pending, "", d.tick()); err == nil {
		t.Error("nobody asks for an undo, and it is not refused")
	}
}

// One of the actions is not there: nothing is done, and nothing is told as if it were.
func TestWhatIsRefusedChangesNothing(t *testing.T) {
	d := newDesk(t)
	d.note(key, 1, "a")
	id := d.planned(action(capture.Assign, key, 1))
	if rows, err := d.Approve(t.Context(), []string{id, "nothing"}, "ann", d.tick()); err == nil || len(rows) > 0 || d.row(id).State != capture.Pending {
		t.Errorf("approved %+v (%v), and it is %s", rows, err, d.row(id).State)
	}
	failed := d.ended(action(capture.Assign, key, 1), journal.Ending{State: capture.Failed, NotBefore: start.Add(time.Hour), Answered: true})
	if rows, err := d.Hasten(t.Context(), []string{failed, "nothing"}, d.tick()); err == nil || len(rows) > 0 || d.row(failed).NotBefore.IsZero() {
		t.Errorf("hastened %+v (%v), and it waits until %s", rows, err, d.row(failed).NotBefore)
	}
}
