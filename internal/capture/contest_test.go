package capture

import (
	"testing"
	"time"
)

func bumpsOf(d Decision, k Key) (of []Bump) {
	for _, b := range d.Plan.Bumps {
		if b.Key == k {
			of = append(of, b)
		}
	}
	return of
}

// Both nodes live, and each has been told that it is the better one.
func TestAContestPausesLongerAndLonger(t *testing.T) {
	s, k, _ := known()
	s.pools[0].Members[1].Priority = 1 // as a has been told
	at := s.now
	epoch := Epoch(0)
	taken := func(by Holder) {
		epoch++
		s.view.Learn(k, Claim{epoch, by}, s.now)
	}
	taken("a")
	var pauses []time.Duration
	for range 12 {
		taken("b")
		began := s.now
		for range 10 {
			d := s.decide()
			if moved := bumpsOf(d, k); len(moved) == 1 {
				if moved[0].To.Holder != "a" {
					t.Fatalf("it gives it to %s", moved[0].To.Holder)
				}
				break
			}
			if d.Wake.IsZero() || len(d.Contests) != 1 || !d.Contests[0].Until.Equal(d.Wake) || d.Contests[0].Rival != "b" {
				t.Fatalf("it waits without saying so: wake %s, %+v", d.Wake, d.Contests)
			}
			for _, a := range d.Plan.Imports {
				if a.Verb == Assign && a.Key == k {
					t.Fatalf("it takes what it leaves to b: %+v", a)
				}
			}
			s.now = d.Wake
		}
		pauses = append(pauses, s.now.Sub(began))
		taken("a")
	}
	for i, want := range []time.Duration{0, 0, 0, 1, 2, 4, 8, 16, 32, 60, 60, 60} {
		if got := pauses[i]; got != want*time.Second {
			t.Errorf("pause %d is %s: all are %v", i, got, pauses)
		}
	}
	s.now = s.now.Add(peace + 1)
	taken("b")
	if d := s.decide(); len(bumpsOf(d, k)) != 1 || len(d.Contests) != 0 {
		t.Errorf("after %s of peace it still waits: %+v", s.now.Sub(at), d)
	}
}

func TestWhoDoesNotWaitInAContest(t *testing.T) {
	for _, tt := range []struct {
		name   string
		holder Holder
		with   func(*scene)
		bumps  int
	}{
		{"the rival lives", "b", func(*scene) {}, 0},
		{"it is dead", "b", func(s *scene) { s.dead = map[string]bool{"b": true} }, 1},
		{"it is drained", "b", func(s *scene) { s.drained["b"] = true }, 1},
		{"this node holds, and is the worse one", "a", func(s *scene) { s.pools[0].Members[0].Priority = 2 }, 0},
		{"this node holds, and is drained", "a", func(s *scene) { s.drained["a"] = true }, 1},
		{"this node holds, and nobody is to", "a", func(s *scene) { s.pools[0].Addresses[0].Owner.Site = "cloud" }, 1},
		{"a stranger holds", "x", func(*scene) {}, 0},
		{"nobody holds", None, func(*scene) {}, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, k, _ := known()
			s.pools[0].Members[1].Priority = 1
			for n := range Epoch(9) {
				s.view.Learn(k, Claim{2*n + 1, "y"}, s.now)
				s.view.Learn(k, Claim{2*n + 2, tt.holder}, s.now)
			}
			tt.with(s)
			if d := s.decide(); len(bumpsOf(d, k)) != tt.bumps {
				t.Errorf("%+v: %+v", d.Plan.Bumps, d.Contests)
			}
		})
	}
}

// One with a better right takes by itself, and when it can act; until then whoever holds keeps, if it
// still may. Nobody waits for one that has claims of its own.
func TestAHolderKeepsUntilTheBetterOneCanAct(t *testing.T) {
	for _, tt := range []struct {
		name   string
		holder Holder
		worse  string // member
		with   func(*scene, Key, Target)
		want   []Bump
	}{
		{"this node holds, and a better one is there", "a", "a", nil, nil},
		{"the better one has claims of its own", "a", "a", func(s *scene, _ Key, _ Target) { s.unheard = map[string]bool{"b": true} }, to("b")},
		{"it is drained", "a", "a", func(s *scene, _ Key, _ Target) { s.drained["a"] = true }, to("b")},
		{"this node is the better one", "b", "b", nil, to("a")},
		{"it waits for an attempt from before", "b", "b", waiting, nil},
		{"and so it does when nobody holds", None, "b", waiting, to("a")},
		{"and when the holder is dead", "b", "b", func(s *scene, k Key, nic Target) {
			waiting(s, k, nic)
			s.dead = map[string]bool{"b": true}
		}, to("a")},
		{"and when the holder is drained", "b", "b", func(s *scene, k Key, nic Target) {
			waiting(s, k, nic)
			s.drained["b"] = true
		}, to("a")},
		{"and when the address lives at the holder's site", "b", "b", func(s *scene, k Key, nic Target) {
			waiting(s, k, nic)
			s.pools[0].Members[1].Site = "home"
		}, to("a")},
		{"the attempt is over", "b", "b", func(s *scene, k Key, nic Target) {
			waiting(s, k, nic)
			s.now = s.now.Add(ExecutorTime)
		}, to("a")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, k, nic := known()
			for i := range s.pools[0].Members {
				if m := &s.pools[0].Members[i]; m.Node == tt.worse {
					m.Priority = 1
				}
			}
			s.view.Learn(k, Claim{2, tt.holder}, s.now)
			if tt.with != nil {
				tt.with(s, k, nic)
			}
			d := s.decide()
			if got := bumpsOf(d, k); len(got) != len(tt.want) || len(got) > 0 && got[0].To != tt.want[0].To {
				t.Errorf("%+v, want %+v", got, tt.want)
			}
			if tt.holder == "a" && len(tt.want) == 0 && len(d.Held)+len(d.Plan.Runs) == 0 {
				t.Error("it keeps the address, and does nothing for it")
			}
			if tt.holder == "b" && len(tt.want) == 0 && d.Wake.IsZero() {
				t.Error("it waits without end")
			}
		})
	}
}

func to(holder Holder) []Bump { return []Bump{{To: Claim{3, holder}}} }

// waiting has node a be started anew in the middle of an attempt.
func waiting(s *scene, k Key, nic Target) {
	s.view.Restore(Action{Token: Token{Assign, k, 1, "a"}, Target: nic, State: Running, Attempts: 1}, s.now)
}
