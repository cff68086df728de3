package capture

import (
	"slices"
	"time"
)

// order is the order in which actions begin: what takes comes before what gives, and
// forwarding before the address.
var order = [...]Verb{EnableForwarding, Assign, Unassign, DisableForwarding}

// attempt is a live action, and what it waits for.
type attempt struct {
	action *Action
	wait   Wait
	until  time.Time
}

// offer takes up an action that is not stale.
func (d *deciding) offer(l *line, a *Action) {
	throttled := a.throttled()
	if a.State == Running && !a.underWay(d.now) {
		d.plan.Resumes = append(d.plan.Resumes, *a)
		resumed := *a
		resumed.State, a = Approved, &resumed
	}
	wait, until := d.waits(l, a)
	at := 0
	for at < len(order)-1 && order[at] != a.Verb { // a verb of another version is last
		at++
	}
	if throttled {
		at = len(order)
	}
	d.ready[at].add(attempt{a, wait, until})
}

// execute says of every live action whether it may begin now, and if not, why.
func (d *deciding) execute() {
	n := 0
	for i := range d.ready {
		n += d.ready[i].n
	}
	d.held = make([]Held, 0, n)
	closed := d.s.Policy.closed(d.now)
	for i := range order {
		for t := range d.ready[i].all() {
			d.begin(t, closed)
		}
	}
	for _, t := range slices.SortedStableFunc(d.ready[len(order)].all(), byTurn) {
		d.begin(t, closed)
	}
}

// byTurn is the order of what was throttled: whoever was refused last is last, so that one that is
// always refused is in nobody's way.
func byTurn(a, b *attempt) int { return a.action.NotBefore.Compare(b.action.NotBefore) }

func (d *deciding) begin(t *attempt, closed Block) {
	until, block := t.until, d.s.Policy.permits(t.action, closed)
	pace, paced := d.paces[t.action.ProviderRef]
	switch {
	case t.wait != "":
	case d.calls[t.action.Key]:
		t.wait = WaitRunning
	case t.action.Provider == Linux && t.action.Verb == Assign && !d.forwards(t.action.Target):
		t.wait = WaitForwards
	}
	switch {
	case t.wait != "":
	case block != (Block{}):
		until = block.Until
	case d.now.Before(pace.Next):
		t.wait, until = WaitPace, pace.Next
	case d.s.Begun+len(d.plan.Runs) >= d.s.Policy.MaxPerRun:
		block = Block{Rule: RuleMaxPerRun, Detail: "this run has begun as many actions as it may"}
	default:
		if t.action.State == Pending {
			d.plan.Admits = append(d.plan.Admits, *t.action)
		}
		d.plan.Runs = append(d.plan.Runs, *t.action)
		d.calls[t.action.Key] = true
		if paced {
			pace.Next = d.now.Add(pace.Gap)
			d.paces[t.action.ProviderRef] = pace
		}
		return
	}
	d.held = append(d.held, Held{Action: t.action, Wait: t.wait, Block: block, Until: until})
	if until.After(d.now) {
		d.until(until)
	}
}

// waits says what an action waits for in the order of things, whoever permits it. Two calls
// about one address could be carried out in either order: the one waits for the other, even
// for one that is stale.
func (d *deciding) waits(l *line, a *Action) (wait Wait, until time.Time) {
	switch {
	case a.State == Running:
		return WaitRunning, a.Deadline
	case d.now.Before(a.NotBefore):
		return WaitBackoff, a.NotBefore
	case a.Verb == Unassign && d.anew(l, a.Target):
		wait = WaitAnew
	case a.Verb == Unassign:
		wait, until = d.waitsToRelease(l, a)
	case a.Verb == DisableForwarding && d.s.placed[a.Target] > 0:
		wait = WaitCaptured
	}
	if wait == "" && l.busy {
		wait = WaitRunning
	}
	return wait, until
}

// waitsToRelease lets an address go when the provider no longer shows it here, or when its
// hold is over. A drain does not wait for the hold, but for the next holder to take the
// address, so that there is no gap; should that not happen within the hold, it goes anyway.
func (d *deciding) waitsToRelease(l *line, a *Action) (Wait, time.Time) {
	if l.pool == nil || a.Provider == Linux {
		return "", time.Time{} // nothing says how long to hold, or it has to stop now
	}
	nic, seen := d.s.NICs[a.Target]
	if seen && nic.At.After(l.since) && !nic.shows(l.key) {
		return "", time.Time{}
	}
	until := l.since.Add(l.pool.Hold)
	if !d.now.Before(until) {
		return "", time.Time{}
	}
	if l.member != nil && l.member.drained(d.s.Absent) {
		if l.claim.Holder == None {
			return "", time.Time{}
		}
		return WaitTakeover, until
	}
	return WaitHold, until
}
