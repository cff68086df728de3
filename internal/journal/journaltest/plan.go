package journaltest

import (
	"github.com/tasuki-io/tasuki/internal/capture"
	"github.com/tasuki-io/tasuki/internal/journal"
)

func empty(s *scene) {
	s.same("contents", journal.Contents{}, s.load())
	s.same("receipt of no plan", journal.Receipt{}, s.apply(capture.Plan{}))
}

func known(s *scene) {
	for _, step := range []struct{ note, want capture.Claim }{
		{claim(0, ""), claim(0, "")},
		{claim(2, "?"), claim(2, "?")},
		{claim(2, "?"), claim(2, "?")},
		{claim(1, "b"), claim(2, "?")},
		{claim(2, "b"), claim(2, "b")}, // who it was turns out later
		{claim(2, "?"), claim(2, "b")},
		{claim(2, "c"), claim(2, "b")}, // one epoch, one holder (I2)
		{claim(5, "?"), claim(5, "?")},
		{claim(5, ""), claim(5, "")}, // none is a holder like any other
		{claim(3, "a"), claim(5, "")},
		{claim(6, "a"), claim(6, "a")},
	} {
		s.note(key, step.note)
		if got := s.load().Known[key]; got != step.want {
			s.Errorf("after noting %s: %s is known; want %s", step.note, got, step.want)
		}
	}
	s.note(nic, claim(1, "a"))
	s.same("known", map[capture.Key]capture.Claim{key: claim(6, "a"), nic: claim(1, "a")}, s.load().Known)
}

// A journal that knows no epoch guesses none (c23).
func closed(s *scene) {
	a, release := action(capture.Assign, key, 1), action(capture.Unassign, other, 1)
	r := s.apply(capture.Plan{Imports: []capture.Action{a}, Marks: []capture.Mark{mark(release)}})
	if len(r.Fenced) != 2 || len(r.Actions)+len(r.Marked) > 0 {
		s.Errorf("receipt: %+v", r)
	}
	s.has()
	s.marked()
}

// The gate lets in what is of the current epoch, and takes for its holder or gives from
// somebody else.
func imports(s *scene) {
	s.note(key, claim(2, "a"))
	s.note(other, claim(2, "b"))
	good := []capture.Action{action(capture.Assign, key, 2), action(capture.Unassign, other, 2)}
	bad := []capture.Action{
		action(capture.Assign, key, 1), action(capture.Assign, key, 3), action(capture.Unassign, key, 2), action(capture.Assign, other, 2),
		action(capture.EnableForwarding, nic, 1),
	}
	r := s.apply(capture.Plan{Imports: append(append([]capture.Action{}, bad...), good...)})
	s.same("imported", good, r.Actions)
	for i, f := range r.Fenced {
		s.same("fenced", bad[i], f.Action)
		if f.Why == "" {
			s.Errorf("no reason why %s is fenced", f.Action.ID())
		}
	}
	if len(r.Fenced) != len(bad) {
		s.Errorf("fenced: %v", r.Fenced)
	}
	for _, a := range r.Actions {
		if !a.Updated.Equal(s.now) {
			s.Errorf("updated at %s; want %s", a.Updated, s.now)
		}
	}
	s.has(good...)
}

func once(s *scene) {
	s.note(key, claim(1, "a"))
	a := action(capture.Assign, key, 1)
	s.begin(s.approved(a))
	s.same("importing it again", journal.Receipt{}, s.apply(capture.Plan{Imports: []capture.Action{a}}))
	s.has(with(a, capture.Running, attempts(1, 1)))
	// A repair is an action of its own.
	repair := with(a, capture.Pending, func(a *capture.Action) { a.Repair, a.Reassign = 1, true })
	s.apply(capture.Plan{Imports: []capture.Action{repair}})
	s.has(with(a, capture.Running, attempts(1, 1)), repair)
}

func begins(s *scene) {
	s.note(key, claim(1, "a"))
	fine := action(capture.Assign, key, 1)
	s.note(other, claim(1, "a"))
	for _, a := range []capture.Action{with(action(capture.Assign, other, 1), capture.Approved), with(action(capture.Assign, other, 1), capture.Pending, attempts(1, 0))} {
		if r, err := s.Apply(s.Context(), &capture.Plan{Imports: []capture.Action{fine, a}}, s.tick()); err == nil {
			s.Errorf("imported as %s with %d attempts: %+v", a.State, a.Attempts, r)
		}
	}
	s.has() // nothing of such a plan is written
}

// The marker and the row of a release are there together, whatever of them was there before.
func marks(s *scene) {
	s.note(key, claim(2, "b"))
	release := action(capture.Unassign, key, 2)
	m := mark(release)
	r := s.apply(capture.Plan{Marks: []capture.Mark{m}})
	s.same("receipt", journal.Receipt{Actions: []capture.Action{release}, Marked: []capture.Marker{m.Marker}}, r)
	s.has(release)
	s.marked(m.Marker)
	s.same("receipt of the same again", journal.Receipt{}, s.apply(capture.Plan{Marks: []capture.Mark{m}}))

	s.apply(capture.Plan{Drops: []capture.Drop{{Marker: m.Marker}}})
	s.same("receipt without the marker", journal.Receipt{Marked: []capture.Marker{m.Marker}}, s.apply(capture.Plan{Marks: []capture.Mark{m}}))
	s.has(release)
	s.marked(m.Marker)

	wrong := mark(action(capture.Unassign, key, 2))
	wrong.Action.Repair = 1
	if _, err := s.Apply(s.Context(), &capture.Plan{Marks: []capture.Mark{wrong}}, s.now); err == nil {
		s.Error("a marker for another action is not refused")
	}
	s.has(release)
}

func staleMarks(s *scene) {
	s.note(key, claim(3, "a"))
	var plan capture.Plan
	for _, release := range []capture.Action{action(capture.Unassign, key, 2), action(capture.Unassign, key, 3), action(capture.DisableForwarding, nic, 1)} {
		plan.Marks = append(plan.Marks, mark(release))
	}
	if r := s.apply(plan); len(r.Fenced) != 3 || len(r.Marked)+len(r.Actions) > 0 {
		s.Errorf("receipt: %+v", r)
	}
	s.has()
	s.marked()
}

func drops(s *scene) {
	s.note(key, claim(2, "b"))
	s.note(other, claim(2, "b"))
	one, two := mark(action(capture.Unassign, key, 2)), mark(action(capture.Unassign, other, 2))
	s.apply(capture.Plan{Marks: []capture.Mark{one, two}})
	drop := capture.Plan{Drops: []capture.Drop{{Marker: one.Marker, Why: "stale"}}}
	s.same("receipt", journal.Receipt{Unmarked: []capture.Marker{one.Marker}}, s.apply(drop))
	s.same("receipt of the same again", journal.Receipt{}, s.apply(drop))
	s.marked(two.Marker)
	s.has(one.Action, two.Action)
}

func skips(s *scene) {
	s.note(key, claim(1, "a"))
	a := action(capture.Assign, key, 1)
	skip := func(a capture.Action) journal.Receipt {
		return s.apply(capture.Plan{Skips: []capture.Skip{{Action: a, Why: "stale"}}})
	}
	s.same("receipt of what is not there", journal.Receipt{}, skip(a))
	running := s.begin(s.approved(a))
	s.same("receipt of what is not pending any more", journal.Receipt{}, skip(a))
	s.same("receipt of another attempt", journal.Receipt{}, skip(with(running, capture.Running, attempts(2, 1))))
	s.has(with(a, capture.Running, attempts(1, 1)))
	want := with(a, capture.Skipped, attempts(1, 1), because("stale"))
	r := skip(running)
	s.same("receipt", journal.Receipt{Actions: []capture.Action{want}}, r)
	if got := r.Actions[0]; !got.Deadline.IsZero() || !got.Updated.Equal(s.now) {
		s.Errorf("deadline %s, updated %s", got.Deadline, got.Updated)
	}
	s.has(want)
	s.same("receipt of what is over", journal.Receipt{}, skip(want))
}

// The plan has bumped a key and ends what is stale after that; but the bump was not done.
func lostBump(s *scene) {
	s.note(key, claim(2, "b"))
	release := action(capture.Unassign, key, 2)
	m := mark(release)
	s.apply(capture.Plan{Marks: []capture.Mark{m}})
	again := action(capture.Assign, key, 3)
	plan := capture.Plan{
		Bumps:   []capture.Bump{{Key: key, From: claim(2, "b"), To: claim(3, "a"), Why: capture.CauseHolder}},
		Skips:   []capture.Skip{{Action: release, Why: "it is of epoch 2, and the current one is 3"}},
		Drops:   []capture.Drop{{Marker: m.Marker, Why: "it is of epoch 2, and the current one is 3"}},
		Imports: []capture.Action{again},
	}
	if r := s.apply(plan); len(r.Fenced) != 1 || len(r.Actions)+len(r.Unmarked) > 0 {
		s.Errorf("receipt: %+v", r)
	}
	s.has(release)
	s.marked(m.Marker)

	s.note(key, claim(3, "a"))
	if r := s.apply(plan); len(r.Fenced) > 0 || len(r.Actions) != 2 || len(r.Unmarked) != 1 {
		s.Errorf("receipt: %+v", r)
	}
	s.has(with(release, capture.Skipped, because("it is of epoch 2, and the current one is 3")), again)
	s.marked()
}

// What is written first is there for what follows.
func order(s *scene) {
	s.note(key, claim(2, "b"))
	s.note(other, claim(1, "a"))
	old := action(capture.Assign, other, 1)
	s.apply(capture.Plan{Imports: []capture.Action{old}})
	release := action(capture.Unassign, key, 2)
	r := s.apply(capture.Plan{
		Skips:  []capture.Skip{{Action: old, Why: "stale"}},
		Marks:  []capture.Mark{mark(release)},
		Admits: []capture.Action{old, release},
	})
	want := []capture.Action{with(old, capture.Skipped, because("stale")), release, with(release, capture.Approved)}
	s.same("rows in the order of the writes", want, r.Actions)
	s.has(want[0], want[2])
}

func admits(s *scene) {
	s.note(key, claim(1, "a"))
	a := action(capture.Assign, key, 1)
	s.same("receipt of what is not there", journal.Receipt{}, s.apply(capture.Plan{Admits: []capture.Action{a}}))
	s.begin(s.approved(a))
	s.same("receipt of what is running", journal.Receipt{}, s.apply(capture.Plan{Admits: []capture.Action{a}}))
	s.has(with(a, capture.Running, attempts(1, 1)))
}

func resumes(s *scene) {
	s.note(key, claim(1, "a"))
	a := action(capture.Assign, key, 1)
	first := s.begin(s.approved(a))
	resume := capture.Plan{Resumes: []capture.Action{first}}
	r := s.apply(resume)
	s.same("receipt", journal.Receipt{Actions: []capture.Action{with(a, capture.Approved, attempts(1, 1))}}, r)
	if got := r.Actions[0]; !got.Deadline.IsZero() || !got.NotBefore.IsZero() {
		s.Errorf("deadline %s, not before %s", got.Deadline, got.NotBefore)
	}
	s.same("receipt of what is approved", journal.Receipt{}, s.apply(resume))
	s.begin(first)
	s.same("receipt of an older attempt", journal.Receipt{}, s.apply(resume))
	s.has(with(a, capture.Running, attempts(2, 2)))
}

func written(s *scene) {
	s.note(key, claim(1, "a"))
	s.note(other, claim(1, "a"))
	one, two := action(capture.Assign, key, 1), action(capture.Assign, other, 1)
	s.approved(one)
	s.approved(two)
	s.has(with(one, capture.Approved), with(two, capture.Approved))
	s.begin(one)
	s.has(with(two, capture.Approved), with(one, capture.Running, attempts(1, 1)))
	if got := s.load().Actions[1]; !got.Updated.Equal(s.now) || !got.Deadline.Equal(s.now.Add(capture.ExecutorTime)) {
		s.Errorf("updated %s, deadline %s", got.Updated, got.Deadline)
	}
}
