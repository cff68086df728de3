package capture

import (
	"slices"
	"testing"
	"time"
)

// holding is a scene in which node a has held its address for a long time.
func holding() (*scene, Key, Target) {
	n, k, nic := known()
	long := n.now.Add(-time.Hour)
	for _, l := range []Key{k, nic.forwarding()} {
		n.view.Learn(l, Claim{1, "a"}, long)
		n.view.Record(Action{Token: Token{acquiring(l), l, 1, "a"}, Target: nic, State: Succeeded, Attempts: 1, Updated: long})
	}
	n.nics[nic] = shows(n.now, k.Address)
	return n, k, nic
}

// Unchanged input: nothing is written, nothing is called, and no time changes that.
func TestANodeThatHoldsWhatItShouldDoesNothing(t *testing.T) {
	n, _, _ := holding()
	if d := n.decide(); !d.Plan.Empty() || len(d.Held) > 0 || !d.Wake.IsZero() {
		t.Errorf("%+v", d)
	}
}

// A change to nobody raises the epoch like any other, and so does one from nobody.
func TestNobodyIsAHolderLikeAnyOther(t *testing.T) {
	n, k, nic := holding()
	n.drained["a"], n.drained["b"] = true, true
	want := []Bump{{k, Claim{1, "a"}, Claim{2, None}, CauseHolder}, {nic.forwarding(), Claim{1, "a"}, Claim{2, None}, CauseHolder}}
	if got := n.decide().Plan.Bumps; !slices.Equal(got, want) {
		t.Errorf("to nobody: %+v, want %+v", got, want)
	}
	n.view.Learn(k, Claim{2, None}, n.now)
	n.drained["a"] = false
	if got := n.decide().Plan.Bumps; len(got) == 0 || got[0] != (Bump{k, Claim{2, None}, Claim{3, "a"}, CauseHolder}) {
		t.Errorf("from nobody: %+v", got)
	}
}

// What moves between two others is theirs to write.
func TestOthersWriteTheirOwnHandovers(t *testing.T) {
	n, k, _ := known()
	n.view.Learn(k, Claim{1, "c"}, n.now)
	n.drained["a"] = true
	if got := n.decide().Plan.Bumps; len(got) > 0 {
		t.Errorf("%+v", got)
	}
}

// A drained node keeps the address until the next holder shows to have it; should that not
// happen, for the hold and no longer. One that is not drained waits for the hold.
func TestWhatAReleaseWaitsFor(t *testing.T) {
	for _, tt := range []struct {
		drained bool
		age     time.Duration
		want    Wait
	}{
		{true, 0, WaitTakeover},
		{true, 10 * time.Second, ""},
		{false, 0, WaitHold},
		{false, 10*time.Second - 1, WaitHold},
		{false, 10 * time.Second, ""},
	} {
		n, k, nic := holding()
		n.nics[nic] = shows(n.now.Add(time.Second), k.Address)
		n.drained["a"] = tt.drained
		if !tt.drained {
			n.homes[Home{k.Pool, k.Address}] = "cloud"
		}
		holder := Holder("b")
		if !tt.drained {
			holder = None
		}
		n.view.Learn(k, Claim{2, holder}, n.now.Add(-tt.age))
		d := n.decide()
		got := Wait("it begins")
		for _, h := range d.Held {
			if h.Action.Key == k {
				got = h.Wait
			}
		}
		for _, r := range d.Plan.Runs {
			if r.Key == k {
				got = ""
			}
		}
		if got != tt.want {
			t.Errorf("drained %t, %s after the change: waits for %q, want %q", tt.drained, tt.age, got, tt.want)
		}
	}
}

// The provider does not show the address. Before it has to, that is no loss; then its holder takes
// it back, under a name of its own, and a standby does nothing.
func TestDriftIsRepairedByTheHolderWhenItCanBeSeen(t *testing.T) {
	for _, tt := range []struct {
		seen   time.Duration // after the success
		holder Holder
		want   int
	}{
		{visible - 1, "a", 0}, {visible, "a", 1}, {visible, "b", 0},
	} {
		n, k, nic := holding()
		if tt.holder != "a" {
			n.view.Learn(k, Claim{1, tt.holder}, n.now)
		}
		n.nics[nic] = NIC{Forwards: true, At: n.now.Add(tt.seen - time.Hour)}
		var repairs []Action
		for _, a := range n.decide().Plan.Imports {
			if a.Repair > 0 {
				repairs = append(repairs, a)
			}
		}
		if len(repairs) != tt.want || tt.want > 0 && (repairs[0].ID() != "mobility:p:aws:eni-a"+assign+"1:repair:1" || !repairs[0].Reassign) {
			t.Errorf("seen after %s, held by %s: %+v", tt.seen, tt.holder, repairs)
		}
	}
}

// A NIC forwards as long as a captured address may be on it.
func TestForwardingStaysWhileAnAddressDoes(t *testing.T) {
	n, k, nic := holding()
	n.pools = nil
	for _, l := range []Key{k, nic.forwarding()} {
		n.view.Learn(l, Claim{2, None}, n.now.Add(-time.Minute))
	}
	d := n.decide()
	if len(d.Plan.Runs) != 1 || d.Plan.Runs[0].Verb != Unassign || len(d.Held) != 1 || d.Held[0].Wait != WaitCaptured {
		t.Errorf("runs %+v, held %+v", d.Plan.Runs, d.Held)
	}
	n.view.Record(Action{Token: Token{Unassign, k, 2, "a"}, Target: nic, State: Succeeded, Attempts: 1, Updated: n.now})
	if runs := n.decide().Plan.Runs; len(runs) != 1 || runs[0].Verb != DisableForwarding {
		t.Errorf("then: %+v", runs)
	}
}

// Two actions about one address wait for each other, though both are due.
func TestOneAttemptAboutAnAddressBeginsAtATime(t *testing.T) {
	n, k, nic := holding()
	n.pools = nil
	n.view.Learn(k, Claim{2, "b"}, n.now.Add(-time.Minute))
	release := Action{Token: Token{Unassign, k, 2, "a"}, Target: nic, State: Approved}
	n.view.Record(release)
	release.Undoes = "another"
	n.view.Record(release)
	d := n.decide()
	runs := 0
	for _, r := range d.Plan.Runs {
		if r.Key == k {
			runs++
		}
	}
	if runs != 1 || !slices.ContainsFunc(d.Held, func(h Held) bool { return h.Action.Key == k && h.Wait == WaitRunning }) {
		t.Errorf("runs %+v, held %+v", d.Plan.Runs, d.Held)
	}
}

// An attempt may be going on until its deadline: it is not repeated before.
func TestAnAttemptIsNotRepeatedBeforeItsDeadline(t *testing.T) {
	n, k, nic := known()
	n.view.Learn(k, Claim{1, "a"}, n.now)
	n.view.Record(Action{Token: Token{Assign, k, 1, "a"}, Target: nic, State: Running, Attempts: 1, Unanswered: 1, Deadline: n.now.Add(1)})
	d := n.decide()
	if len(d.Plan.Resumes) > 0 || !d.Wake.Equal(n.now.Add(1)) {
		t.Errorf("resumes %+v, wake %s", d.Plan.Resumes, d.Wake)
	}
}

// A stale attempt cannot be called back: it is left alone until it has ended.
func TestAStaleAttemptIsNotSkippedWhileItIsUnderWay(t *testing.T) {
	n, k, nic := known()
	n.view.Learn(k, Claim{2, "b"}, n.now)
	n.view.Record(Action{Token: Token{Assign, k, 1, "a"}, Target: nic, State: Running, Attempts: 1, Unanswered: 1, Deadline: n.now.Add(1)})
	if d := n.decide(); len(d.Plan.Skips) > 0 || !d.Wake.Equal(n.now.Add(1)) {
		t.Errorf("skips %+v, wake %s", d.Plan.Skips, d.Wake)
	}
}

// A failed release keeps its marker, and is tried again.
func TestAFailedReleaseKeepsItsMarker(t *testing.T) {
	n, k, nic := holding()
	n.view.Learn(k, Claim{2, "b"}, n.now.Add(-time.Minute))
	n.view.Mark(Marker{Token{Unassign, k, 2, "a"}, nic, 0})
	n.view.Record(Action{Token: Token{Unassign, k, 2, "a"}, Target: nic, State: Failed, Attempts: 1})
	d := n.decide()
	if len(d.Plan.Drops) > 0 || !slices.ContainsFunc(d.Plan.Runs, func(a Action) bool { return a.Key == k && a.Verb == Unassign }) {
		t.Errorf("drops %+v, runs %+v", d.Plan.Drops, d.Plan.Runs)
	}
}

// A run begins as many actions as it may; those that it has begun before count.
func TestARunBeginsAsManyActionsAsItMay(t *testing.T) {
	n, _, _ := known()
	n.policy.MaxPerRun = 2
	for begun, want := range []int{2, 1, 0, 0} {
		s := n.snapshot()
		s.Begun = begun
		d := Decide(s, n.now)
		if len(d.Plan.Runs) != want || len(d.Held) != 2-want || want < 2 && d.Held[0].Block.Rule != RuleMaxPerRun {
			t.Errorf("after %d: runs %d, held %+v", begun, len(d.Plan.Runs), d.Held)
		}
	}
}

// A provider may carry out what it has never answered, on a NIC that nobody asks for any more.
func TestANICIsInDoubtWhileACallWasNotAnswered(t *testing.T) {
	n, k, nic := known()
	a := Action{Token: Token{Assign, k, 1, "a"}, Target: nic, State: Running, Attempts: 1, Unanswered: 1}
	n.view.Record(a)
	if got := n.view.Doubtful(); !slices.Equal(got, []Target{nic}) {
		t.Errorf("while it is running: %v", got)
	}
	a.State, a.Unanswered = Succeeded, 0
	n.view.Record(a)
	if got := n.view.Doubtful(); len(got) > 0 {
		t.Errorf("when it was answered: %v", got)
	}
}

// Of the times of an earlier process none is trusted: an attempt has the whole time of an
// executor to end in.
func TestARestoredAttemptHasItsWholeTime(t *testing.T) {
	n, k, nic := known()
	n.view.Learn(k, Claim{1, "a"}, n.now)
	n.view.Restore(Action{Token: Token{Assign, k, 1, "a"}, Target: nic, State: Running, Attempts: 1, Deadline: n.now.Add(-time.Hour)}, n.now)
	if d := n.decide(); len(d.Plan.Resumes) > 0 || !d.Wake.Equal(n.now.Add(ExecutorTime)) {
		t.Errorf("resumes %+v, wake %s", d.Plan.Resumes, d.Wake)
	}
}

// The configuration knows the address no more, and nobody knows its epoch.
func TestNothingIsReleasedFromAnUnknownEpoch(t *testing.T) {
	n, k, nic := known()
	n.pools = nil
	n.view.Record(Action{Token: Token{Assign, k, 0, "a"}, Target: nic, State: Succeeded, Attempts: 1})
	if plan := n.decide().Plan; !plan.Empty() {
		t.Errorf("%+v", plan)
	}
}

// What a decision said of an action stays so while the journal moves on.
func TestADecisionIsNotChangedByWhatComesAfterIt(t *testing.T) {
	n, k, nic := known()
	waits := Action{Token: Token{Assign, k, 1, "a"}, Target: nic, State: Approved, NotBefore: n.now.Add(time.Minute)}
	other := waits
	other.Repair = 1
	n.view.Learn(k, Claim{1, "a"}, n.now)
	n.view.Record(waits)
	n.view.Record(other)
	d := n.decide()
	before := make([]Action, len(d.Held))
	for i, h := range d.Held {
		before[i] = *h.Action
	}
	waits.State = Succeeded
	n.view.Record(waits)
	if len(before) < 2 {
		t.Fatalf("held %+v", before)
	}
	for i, h := range d.Held {
		if *h.Action != before[i] {
			t.Errorf("%+v is now %+v", before[i], *h.Action)
		}
	}
}
