package capture

import (
	"net/netip"
	"slices"
	"testing"
	"time"
)

// shows is what the provider shows of a NIC at an instant.
func shows(at time.Time, addrs ...netip.Addr) NIC {
	return NIC{Addresses: NewAddresses(addrs...), Forwards: true, At: at}
}

// released is a node that has placed an address, and released it after an attempt that was perhaps
// never answered. The provider shows the address again.
func released(unanswered int) (n *scene, k Key, nic Target) {
	n, k, nic = known()
	long := n.now.Add(-time.Hour)
	n.view.Record(Action{Token: Token{Assign, k, 1, "a"}, Target: nic, State: Succeeded, Attempts: 2, Unanswered: unanswered, Updated: long})
	n.view.Record(Action{Token: Token{Unassign, k, 2, "a"}, Target: nic, State: Succeeded, Attempts: 1, Updated: long})
	n.view.Learn(k, Claim{2, "b"}, long)
	n.nics = map[Target]NIC{nic: shows(n.now, k.Address)}
	return n, k, nic
}

func TestWhatComesBackIsReleasedIfItMayBeOurs(t *testing.T) {
	for _, unanswered := range []int{0, 1} {
		n, _, _ := released(unanswered)
		marks := n.decide().Plan.Marks
		if len(marks) != unanswered || unanswered > 0 && marks[0].Action.ID() != "mobility:p:aws:eni-a"+unassign+"2:repair:1" {
			t.Errorf("%d attempts unanswered: %+v", unanswered, marks)
		}
		n.pools = nil
		if got := n.decide().Plan.Marks; len(got) != unanswered {
			t.Errorf("%d attempts unanswered, and no pool any more: %+v", unanswered, got)
		}
	}
}

// Two releases of one NIC are one.
func TestANICIsReleasedOnce(t *testing.T) {
	n, k, nic := released(1)
	for epoch := Epoch(3); epoch < 6; epoch += 2 {
		n.view.Record(Action{Token: Token{Assign, k, epoch, "a"}, Target: nic, State: Skipped, Attempts: 1})
	}
	n.view.Learn(k, Claim{6, "b"}, n.now)
	if marks := n.decide().Plan.Marks; len(marks) != 1 || marks[0].Action.Repair != 0 {
		t.Errorf("%+v", marks)
	}
}

// A release at an unknown epoch would never pass. What the store has lost is told to it first,
// also of an address that nothing lists any more.
func TestTheStoreIsToldOfWhatItHasLostBeforeARelease(t *testing.T) {
	n, k, nic := known()
	n.view.Record(Action{Token: Token{Assign, k, 3, "a"}, Target: nic, State: Succeeded, Attempts: 1})
	n.pools[0].Addresses = nil
	n.view.Learn(k, Claim{2, "b"}, n.now)
	if bumps := n.decide().Plan.Bumps; !slices.Equal(bumps, []Bump{{k, Claim{2, "b"}, Claim{4, "b"}, CauseReseed}}) {
		t.Errorf("%+v", bumps)
	}
	n.view.Learn(k, Claim{4, "b"}, n.now)
	if marks := n.decide().Plan.Marks; len(marks) != 1 {
		t.Errorf("when it is another's: %+v", marks)
	}
}

// The marker was lost and its row was not: the intent is made durable again, and begins once.
func TestARowWithoutItsMarkerBeginsOnce(t *testing.T) {
	n, k, nic := known()
	n.view.Record(Action{Token: Token{Assign, k, 1, "a"}, Target: nic, State: Succeeded, Attempts: 1})
	n.view.Record(Action{Token: Token{Unassign, k, 2, "a"}, Target: nic, State: Approved})
	n.view.Learn(k, Claim{2, "b"}, n.now.Add(-time.Hour))
	if d := n.decide(); len(d.Plan.Marks) != 1 || len(d.Plan.Runs) != 1 || len(d.Held) > 0 {
		t.Errorf("%d marks, runs %+v, held %+v", len(d.Plan.Marks), d.Plan.Runs, d.Held)
	}
}

// The marker of a repair is still due when only the first release has succeeded.
func TestAMarkerIsThereUntilItsOwnReleaseHasSucceeded(t *testing.T) {
	n, k, nic := released(1)
	n.view.Mark(Marker{Token{Unassign, k, 2, "a"}, nic, 1})
	if drops := n.decide().Plan.Drops; len(drops) > 0 {
		t.Errorf("dropped: %+v", drops)
	}
	n.view.Record(Action{Token: Token{Unassign, k, 2, "a"}, Target: nic, Repair: 1, State: Succeeded, Attempts: 1, Updated: n.now})
	if drops := n.decide().Plan.Drops; len(drops) != 1 || drops[0].Why != "" {
		t.Errorf("dropped: %+v", drops)
	}
}

// That the provider did not show the address before it changed hands is no proof that it has
// left since.
func TestWhatWasSeenBeforeAReleaseDoesNotEndItsWait(t *testing.T) {
	n, k, nic := known()
	n.view.Record(Action{Token: Token{Assign, k, 1, "a"}, Target: nic, State: Succeeded, Attempts: 1})
	n.view.Learn(k, Claim{2, "b"}, n.now)
	for after, wait := range map[time.Duration]Wait{-1: WaitHold, 0: WaitHold, 1: ""} {
		n.nics = map[Target]NIC{nic: shows(n.now.Add(after))}
		d := n.decide()
		if got := len(d.Held) == 0; got != (wait == "") || !got && d.Held[0].Wait != wait {
			t.Errorf("seen %s after the change: held %+v", after, d.Held)
		}
	}
}

// An attempt under way holds up what else is asked about its address, and no other address.
func TestAnAttemptUnderWayHoldsUpItsAddressAlone(t *testing.T) {
	n, k, nic := known()
	other := k.Address.Next()
	n.pools[0].Addresses = append(n.pools[0].Addresses, Address{other, Location{Site: "home"}})
	n.view.Record(Action{Token: Token{Assign, k, 1, "a"}, Target: nic, State: Running, Attempts: 1, Deadline: n.now.Add(time.Second)})
	for _, l := range []Key{k, {k.Pool, other, k.Domain}} {
		n.view.Learn(l, Claim{3, "a"}, n.now)
	}
	d := n.decide()
	begun := map[netip.Addr]bool{}
	for _, a := range d.Plan.Runs {
		begun[a.Key.Address] = true
	}
	if begun[k.Address] || !begun[other] || !d.Wake.Equal(n.now.Add(time.Second)) {
		t.Errorf("runs %+v, wake %s", d.Plan.Runs, d.Wake)
	}
}

// A row of an address that is held in another way now is swept like any other.
func TestARowOfAnotherMethodIsSwept(t *testing.T) {
	n, k, nic := known()
	n.view.Record(Action{Token: Token{Assign, k, 1, "a"}, Target: nic, State: Approved})
	n.view.Learn(k, Claim{2, "a"}, n.now)
	n.pools[0].Members[0].Capture.Method = ProxyARP
	if skips := n.decide().Plan.Skips; len(skips) != 1 {
		t.Errorf("skips %+v", skips)
	}
}

// An attempt whose time is over has ended, whatever came of it: it is repeated at once.
func TestAnAttemptPastItsDeadlineIsRepeated(t *testing.T) {
	n, k, nic := known()
	n.view.Learn(k, Claim{1, "a"}, n.now)
	n.view.Record(Action{Token: Token{Assign, k, 1, "a"}, Target: nic, State: Running, Attempts: 1, Unanswered: 1, Deadline: n.now})
	plan := n.decide().Plan
	if len(plan.Resumes) != 1 || plan.Resumes[0].State != Running {
		t.Errorf("resumes %+v", plan.Resumes)
	}
	if i := len(plan.Runs) - 1; i < 0 || plan.Runs[i].Key != k || plan.Runs[i].State != Approved {
		t.Errorf("runs %+v", plan.Runs)
	}
}

// A drain that leaves nobody to take the address waits for nobody.
func TestADrainOfAllWaitsForNobody(t *testing.T) {
	n, k, nic := known()
	n.view.Learn(k, Claim{1, "a"}, n.now)
	n.view.Record(Action{Token: Token{Assign, k, 1, "a"}, Target: nic, State: Succeeded, Attempts: 1})
	n.drained["a"], n.drained["b"] = true, true
	if d := n.decide(); len(d.Held) > 0 || len(d.Plan.Runs) != 1 || d.Plan.Runs[0].Verb != Unassign {
		t.Errorf("runs %+v, held %+v", d.Plan.Runs, d.Held)
	}
}

// c24: the store was restored from an older copy. The line goes on above all that this node
// has seen, for whoever is to hold it.
func TestC24AStoreThatKnowsLessIsReseeded(t *testing.T) {
	n, k, nic := known()
	n.view.Record(Action{Token: Token{Assign, k, 7, "a"}, Target: nic, State: Succeeded, Attempts: 1})
	n.view.Mark(Marker{Token{Unassign, k, 8, "a"}, nic, 0})
	n.view.Learn(k, Claim{5, "b"}, n.now)
	bumps := n.decide().Plan.Bumps
	if want := (Bump{k, Claim{5, "b"}, Claim{9, "b"}, CauseReseed}); len(bumps) != 1 || bumps[0] != want {
		t.Errorf("got %+v, want %+v", bumps, want)
	}
}

// The group of a node has a new name, and with it the domain. What it held in the old one is
// given up.
func TestWhatIsHeldInAnotherDomainIsGivenUp(t *testing.T) {
	n, k, _ := known()
	k.Domain = "provider:cloud-a:placement:old"
	n.view.Learn(k, Claim{1, "a"}, n.now)
	for _, b := range n.decide().Plan.Bumps {
		if b.Key == k && b.To == (Claim{2, None}) {
			return
		}
	}
	t.Errorf("bumps %+v", n.decide().Plan.Bumps)
}

// Nobody that we know of has ever held the address: what is on it is not ours to take.
func TestTheFirstAssignmentTakesNothingFromAnybody(t *testing.T) {
	for epoch, reassigns := range map[Epoch]bool{0: false, 1: true} {
		n, k, _ := known()
		if epoch > 0 {
			n.view.Learn(k, Claim{epoch, None}, n.now)
		}
		imports := n.decide().Plan.Imports
		if len(imports) != 2 || imports[0].Key != k || imports[0].Epoch != epoch+1 || imports[0].Reassign != reassigns {
			t.Errorf("after epoch %d: %+v", epoch, imports)
		}
	}
}

// The node has another NIC now. What it acquired on the old one has to be acquired on the new,
// and on the old one again when that is back, at the same epoch.
func TestAnotherNICIsAnotherAssignment(t *testing.T) {
	n, k, nic := known()
	n.view.Learn(k, Claim{1, "a"}, n.now)
	for i, move := range []struct{ nic, id string }{
		{"eni-new", "mobility:p:aws:eni-new" + assign + "1:repair:1"},
		{"eni-a", "mobility:p:aws:eni-a" + assign + "1:repair:2"},
	} {
		n.view.Record(Action{Token: Token{Assign, k, 1, "a"}, Target: nic, Repair: i, State: Succeeded, Attempts: 1, Updated: n.now})
		nic.NIC, n.pools[0].Members[0].Capture.NIC = move.nic, move.nic
		imports := n.decide().Plan.Imports
		if len(imports) == 0 || imports[0].ID() != move.id || !imports[0].Reassign {
			t.Errorf("to %s: %+v", move.nic, imports)
		}
	}
}

// The agent of a host is started under a name that the pools do not know. The claims say that the
// old one holds: what is on the NIC is the holder's, and stays.
func TestAnotherNameOfANodeReleasesNothing(t *testing.T) {
	n, k, nic := known()
	n.view.Learn(k, Claim{1, "a-before"}, n.now)
	n.view.Record(Action{Token: Token{Assign, k, 1, "a-before"}, Target: nic, State: Succeeded, Attempts: 1, Updated: n.now})
	n.pools[0].Members = n.pools[0].Members[1:]
	n.now = n.now.Add(time.Hour)
	if plan := n.decide().Plan; !plan.Empty() {
		t.Errorf("%+v", plan)
	}
	n.view.Learn(k, Claim{2, "b"}, n.now) // then it is not the holder any more
	if plan := n.decide().Plan; len(plan.Marks) != 1 {
		t.Errorf("%+v", plan)
	}
}

func TestAnAddressThatLivesNowhereIsCapturedNowhere(t *testing.T) {
	n, k, _ := known()
	n.homes[Home{k.Pool, k.Address}] = ""
	if plan := n.decide().Plan; !plan.Empty() {
		t.Errorf("%+v", plan)
	}
}

// A row of a verb that this version does not know is blocked by the policy, and harms nothing.
func TestARowOfAnUnknownVerbIsHeld(t *testing.T) {
	n, k, nic := known()
	n.view.Learn(k, Claim{2, "b"}, n.now)
	n.view.Record(Action{Token: Token{"paint-it-blue", k, 2, "a"}, Target: nic, State: Approved})
	if d := n.decide(); len(d.Held) != 1 || d.Held[0].Block.Rule != RuleVerbs {
		t.Errorf("runs %+v, held %+v", d.Plan.Runs, d.Held)
	}
}

// A placement group has a new name, so the address has a new key. Its epochs go on above those
// whose IDs are used up, and the old key releases nothing, as the NIC is the same one.
func TestANewNameGoesOnAboveTheOldOne(t *testing.T) {
	n, k, nic := known()
	n.view.Learn(k, Claim{3, "a"}, n.now)
	n.view.Record(Action{Token: Token{Assign, k, 3, "a"}, Target: nic, State: Succeeded, Attempts: 1, Updated: n.now})
	n.pools[0].Members[0].Group, n.pools[0].Members[1].Group = "h", "h"
	n.now = n.now.Add(time.Hour)
	plan := n.decide().Plan
	anew := Key{k.Pool, k.Address, n.pools[0].Members[0].Domain()}
	if b := plan.Bumps[0]; b.Key != anew || b.To != (Claim{4, "a"}) || b.Why != CauseReseed {
		t.Errorf("bump %+v", b)
	}
	if len(plan.Marks) > 0 {
		t.Errorf("it releases %+v", plan.Marks)
	}
	n.view.Learn(anew, Claim{2, "a"}, n.now) // somebody else has given it away
	if b := n.decide().Plan.Bumps[0]; b.Key != anew || b.To != (Claim{4, "a"}) {
		t.Errorf("bump %+v", b)
	}
}
