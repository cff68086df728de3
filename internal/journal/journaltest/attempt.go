package journaltest

import (
	"errors"
	"sync"
	"time"

	"github.com/tasuki-io/tasuki/internal/capture"
	"github.com/tasuki-io/tasuki/internal/journal"
)

func counted(s *scene) {
	s.note(key, claim(1, "a"))
	a := action(capture.Assign, key, 1)
	got := s.begin(s.approved(a))
	s.same("first attempt", with(a, capture.Running, attempts(1, 1)), got)
	if want := s.now.Add(capture.ExecutorTime); got.Deadline != want || got.Updated != s.now {
		s.Errorf("deadline %v, updated %v; want %v, %v, with the clock of this process", got.Deadline, got.Updated, want, s.now)
	}
	later := s.now.Add(time.Hour)
	failed := s.end(got, journal.Ending{State: capture.Failed, Reason: "limit", NotBefore: later, Answered: true})
	s.same("it fails", with(a, capture.Failed, attempts(1, 0), because("limit")), failed)
	if failed.NotBefore != later || !failed.Deadline.IsZero() {
		s.Errorf("not before %v, deadline %v", failed.NotBefore, failed.Deadline)
	}
	got = s.begin(a) // when it may begin again is the plan's business
	if !got.NotBefore.IsZero() || got.Attempts != 2 || got.Unanswered != 1 {
		s.Errorf("second attempt: %+v", got)
	}
}

// Whoever is not startable stays as it is, and the caller is told.
func startable(s *scene) {
	if _, _, err := s.Begin(s.Context(), "nothing", s.now, s.tick()); !errors.Is(err, journal.ErrNoAction) {
		s.Errorf("what is not there: %v", err)
	}
	s.note(key, claim(1, "a"))
	a := action(capture.Assign, key, 1)
	refused := func(in capture.State) {
		s.Helper()
		before := s.load().Actions[0]
		got, stale, err := s.Begin(s.Context(), a.ID(), s.tick(), s.now)
		if !errors.Is(err, journal.ErrNotStartable) || stale != "" || got.State != in {
			s.Errorf("%s: begins as %s, %q, %v", in, got.State, stale, err)
		}
		s.has(before)
	}
	s.apply(capture.Plan{Imports: []capture.Action{a}})
	refused(capture.Pending)
	s.apply(capture.Plan{Admits: []capture.Action{a}})
	if _, _, err := s.Begin(s.Context(), a.ID(), s.now, time.Time{}); err == nil {
		s.Error("an attempt without a deadline is not refused")
	}
	s.has(with(a, capture.Approved))
	begun := s.begin(a)
	refused(capture.Running)
	s.end(begun, journal.Ending{State: capture.Succeeded, Answered: true})
	refused(capture.Succeeded)
}

func staleBegin(s *scene) {
	for _, after := range []capture.Claim{claim(2, "b"), claim(4, "a"), claim(6, capture.None)} {
		now := claim(after.Epoch-1, "a")
		s.note(key, now)
		a := action(capture.Assign, key, now.Epoch)
		s.approved(a)
		s.note(key, after)
		got, stale, err := s.Begin(s.Context(), a.ID(), s.tick(), s.now.Add(time.Minute))
		if err != nil || stale == "" {
			s.Errorf("at %s: stale %q, %v", after, stale, err)
		}
		s.same("what is stale", with(a, capture.Skipped, because(string(stale))), got)
	}
	// One that has failed before is asked like any other.
	s.note(other, claim(1, "a"))
	a := action(capture.Assign, other, 1)
	s.end(s.begin(s.approved(a)), journal.Ending{State: capture.Failed, NotBefore: s.now})
	s.note(other, claim(2, "b"))
	if got, stale, err := s.Begin(s.Context(), a.ID(), s.tick(), s.now); got.State != capture.Skipped || stale == "" || err != nil || !got.NotBefore.IsZero() {
		s.Errorf("stale after a failure: %+v, %q, %v", got, stale, err)
	}
}

func ends(s *scene) {
	later := s.now.Add(time.Hour)
	for i, c := range []struct {
		what string
		end  journal.Ending
		want func(capture.Action) capture.Action
	}{
		{"it is done", journal.Ending{State: capture.Succeeded, Answered: true}, func(a capture.Action) capture.Action {
			return with(a, capture.Succeeded, attempts(1, 0))
		}},
		{"it fails", journal.Ending{State: capture.Failed, Code: "Limit", Reason: "full", NotBefore: later, Answered: true}, func(a capture.Action) capture.Action {
			return with(a, capture.Failed, attempts(1, 0), because("full"))
		}},
		{"the provider does not answer", journal.Ending{State: capture.Failed, Reason: "timeout", NotBefore: later}, func(a capture.Action) capture.Action {
			return with(a, capture.Failed, attempts(1, 1), because("timeout"))
		}},
		{"it is throttled", journal.Ending{State: capture.Approved, NotBefore: later, Answered: true}, func(a capture.Action) capture.Action {
			return with(a, capture.Approved, attempts(1, 0))
		}},
		{"the gate refuses before the call", journal.Ending{State: capture.Skipped, Reason: "stale", Unasked: true}, func(a capture.Action) capture.Action {
			return with(a, capture.Skipped, attempts(0, 0), because("stale"))
		}},
		{"the executor does not start", journal.Ending{State: capture.Approved, NotBefore: later, Unasked: true, Answered: true}, func(a capture.Action) capture.Action {
			return with(a, capture.Approved, attempts(0, 0))
		}},
	} {
		a := action(capture.Assign, key, 1)
		a.Key.Address = a.Key.Address.Next()
		for range i {
			a.Key.Address = a.Key.Address.Next()
		}
		s.note(a.Key, claim(1, "a"))
		got := s.end(s.begin(s.approved(a)), c.end)
		s.same(c.what, c.want(a), got)
		open := got.State == capture.Failed || got.State == capture.Approved
		if open && got.NotBefore != later || !open && !got.NotBefore.IsZero() || !got.Deadline.IsZero() || got.Updated != s.now {
			s.Errorf("%s: not before %v, deadline %v, updated %v", c.what, got.NotBefore, got.Deadline, got.Updated)
		}
		rows := s.load().Actions
		s.same(c.what+", as it is loaded", c.want(a), rows[len(rows)-1])
		if !rows[len(rows)-1].NotBefore.Equal(got.NotBefore) {
			s.Errorf("%s: loaded with not before %v", c.what, rows[len(rows)-1].NotBefore)
		}
	}
	a := action(capture.Assign, key, 1)
	s.note(key, claim(1, "a"))
	begun := s.begin(s.approved(a))
	for _, state := range []capture.State{capture.Pending, capture.Running, capture.RolledBack, ""} {
		if got, err := s.End(s.Context(), begun, journal.Ending{State: state}, s.now); err == nil {
			s.Errorf("it ends as %q: %+v", state, got)
		}
	}
	if _, err := s.End(s.Context(), action(capture.Assign, other, 9), journal.Ending{State: capture.Failed}, s.now); !errors.Is(err, journal.ErrNoAction) {
		s.Errorf("what is not there ends: %v", err)
	}
}

// An agent gives an attempt up, begins another, and then the first one comes back.
func givenUp(s *scene) {
	s.note(key, claim(1, "a"))
	a := action(capture.Assign, key, 1)
	first := s.begin(s.approved(a))
	late := func(in capture.State) {
		s.Helper()
		before := s.load().Actions[0]
		got, err := s.End(s.Context(), first, journal.Ending{State: capture.Succeeded, Answered: true}, s.tick())
		if !errors.Is(err, journal.ErrGivenUp) || got.State != in {
			s.Errorf("the attempt that was given up ends: %+v, %v", got, err)
		}
		s.has(before)
	}
	s.apply(capture.Plan{Resumes: []capture.Action{first}})
	late(capture.Approved)
	second := s.begin(a)
	late(capture.Running)
	s.end(second, journal.Ending{State: capture.Failed, Answered: true})
	late(capture.Failed)
	s.note(key, claim(2, "b"))
	s.apply(capture.Plan{Skips: []capture.Skip{{Action: s.load().Actions[0], Why: "stale"}}})
	late(capture.Skipped)
}

// Whatever a plan says, what has succeeded or was skipped never runs again (I7).
func over(s *scene) {
	s.note(key, claim(1, "a"))
	s.note(other, claim(1, "a"))
	done, skipped := action(capture.Assign, key, 1), action(capture.Assign, other, 1)
	begun := s.begin(s.approved(done))
	s.end(begun, journal.Ending{State: capture.Succeeded, Answered: true})
	s.apply(capture.Plan{Imports: []capture.Action{skipped}})
	s.apply(capture.Plan{Skips: []capture.Skip{{Action: skipped, Why: "stale"}}})
	rows := s.load().Actions
	for _, a := range []capture.Action{done, skipped} {
		for _, state := range []capture.State{capture.Pending, capture.Approved, capture.Running, capture.Failed} {
			for n := range 2 {
				seen := with(a, state, attempts(n, n))
				p := capture.Plan{Skips: []capture.Skip{{Action: seen, Why: "stale"}}, Admits: []capture.Action{seen}, Resumes: []capture.Action{seen}}
				if n == 0 {
					p.Imports = []capture.Action{with(a, capture.Pending)}
				}
				s.same("receipt", journal.Receipt{}, s.apply(p))
			}
		}
		if _, _, err := s.Begin(s.Context(), a.ID(), s.now, s.tick()); !errors.Is(err, journal.ErrNotStartable) {
			s.Errorf("%s begins: %v", a.ID(), err)
		}
	}
	if _, err := s.End(s.Context(), begun, journal.Ending{State: capture.Failed}, s.now); !errors.Is(err, journal.ErrGivenUp) {
		s.Errorf("what has succeeded ends: %v", err)
	}
	s.has(rows...)
}

func undo(s *scene) {
	s.note(key, claim(2, "b"))
	release := action(capture.Unassign, key, 2)
	s.end(s.begin(s.approved(release)), journal.Ending{State: capture.Succeeded, Answered: true})
	s.note(key, claim(3, "a"))
	back := action(capture.Assign, key, 3)
	back.Undoes = release.ID()
	begun := s.begin(s.approved(back))
	s.end(begun, journal.Ending{State: capture.Failed, Answered: true})
	s.has(with(release, capture.Succeeded, attempts(1, 0)), with(back, capture.Failed, attempts(1, 0)))
	s.end(s.begin(back), journal.Ending{State: capture.Succeeded, Answered: true})
	s.has(with(release, capture.RolledBack, attempts(1, 0)), with(back, capture.Succeeded, attempts(2, 0)))
	if _, _, err := s.Begin(s.Context(), release.ID(), s.now, s.tick()); !errors.Is(err, journal.ErrNotStartable) {
		s.Errorf("what was rolled back begins: %v", err)
	}
}

// The gate is asked in the transaction that begins an attempt: one that begins after a newer
// epoch was noted does not run.
func fence(s *scene) {
	s.note(key, claim(1, "a"))
	const rounds = 20
	for epoch := capture.Epoch(1); epoch <= rounds; epoch++ {
		a := action(capture.Assign, key, epoch)
		s.approved(a)
		var wg sync.WaitGroup
		noted := make(chan struct{})
		wg.Go(func() {
			if err := s.Note(s.Context(), map[capture.Key]capture.Claim{key: claim(epoch+1, "a")}); err != nil {
				s.Error(err)
			}
			close(noted)
		})
		for range 4 {
			wg.Go(func() {
				after := false
				select {
				case <-noted:
					after = true
				default:
				}
				got, stale, err := s.Begin(s.Context(), a.ID(), s.now, s.now.Add(time.Minute))
				switch {
				case err != nil && !errors.Is(err, journal.ErrNotStartable):
					s.Error(err)
				case err == nil && (stale == "") != (got.State == capture.Running):
					s.Errorf("it begins as %s, %q", got.State, stale)
				case err == nil && stale == "" && after:
					s.Errorf("epoch %d was noted, and an attempt begins at %d", epoch+1, epoch)
				}
			})
		}
		wg.Wait()
		// Whoever comes now finds it running, from before, or skipped.
		if got, _, err := s.Begin(s.Context(), a.ID(), s.tick(), s.now); err == nil && got.State != capture.Skipped {
			s.Errorf("after all that: %+v", got)
		}
	}
}
