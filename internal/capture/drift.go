package capture

import (
	"strings"
	"time"
)

// Drift is something that this node has placed, as its holder, and that is not as it left it. The
// holder alone repairs it, at the current epoch.
type Drift struct {
	Key    Key
	Epoch  Epoch
	Target Target
	Kind   DriftKind
	On     []string  // the other NICs that have the address, as far as that is known
	Seen   time.Time // when the provider was asked
	// Due is when the repair may be planned: see again.
	Due time.Time
}

// DriftKind is what has become of it.
type DriftKind string

// The kinds of drift (spec C11).
const (
	DriftNoNIC     DriftKind = "onNoNIC"      // no NIC of the subnet shows the address
	DriftForeign   DriftKind = "onForeignNIC" // one that is no member's has it
	DriftMember    DriftKind = "onMemberNIC"  // another member's has it, as after a late call of a former holder
	DriftTwo       DriftKind = "onTwoNICs"    // ours has it, and another one too
	DriftNotShown  DriftKind = "notShown"     // ours does not show it, and nobody knows where it is
	DriftForwarded DriftKind = "notForwarding"
)

// drift says what is wrong with what a NIC of this node should have, "" for nothing.
func (d *deciding) drift(l *line, at *place) (kind DriftKind, on []string, seen time.Time) {
	got := l.Acquired
	located := at.seen && at.nic.Located.Sub(got.At) >= at.visible()
	places, asked := at.nic.Places[l.key.Address]
	for _, nic := range places {
		if !sameNIC(nic, at.NIC) {
			on = append(on, nic)
		}
	}
	switch lacks := at.lacks(true, l.key, got); {
	case lacks && !l.key.Address.IsValid():
		return DriftForwarded, nil, at.nic.At
	case lacks && !(located && asked):
		return DriftNotShown, nil, at.nic.At
	case lacks && len(on) == 0:
		return DriftNoNIC, nil, at.nic.At
	case lacks && l.owns(d.s, on):
		return DriftMember, on, at.nic.Located
	case lacks:
		return DriftForeign, on, at.nic.Located
	case located && at.shows(l.key) && len(on) > 0:
		return DriftTwo, on, at.nic.Located
	}
	return "", nil, time.Time{}
}

// owns reports that each of some NICs is one of a member of the line's pool.
func (l *line) owns(s *Snapshot, nics []string) bool {
	for _, nic := range nics {
		found := false
		for i := range l.pool.Members {
			found = found || sameNIC(nic, s.target(&l.pool.Members[i]).NIC)
		}
		if !found {
			return false
		}
	}
	return true
}

// sameNIC reports two names of one NIC. Azure minds no case, and has a short name and a whole one.
func sameNIC(a, b string) bool {
	a, b = strings.ToLower(a), strings.ToLower(b)
	return a == b || strings.HasSuffix(a, "/"+b) || strings.HasSuffix(b, "/"+a)
}

// watch takes note of a NIC that may yet lose an address which another held before. No gate stops a
// call that was sent before the epoch moved on: it can land as long as its executor may run, and a
// while later it shows. A host that was paused as a whole sends it when it goes on.
func (d *deciding) watch(l *line, t Target) {
	from := l.since
	if d.s.Returned.After(from) {
		from = d.s.Returned
	}
	if until := from.Add(ExecutorTime + visible); l.claim.Epoch > 1 && t.Provider != Linux && d.now.Before(until) && until.After(d.late[t]) {
		d.late[t] = until
	}
}

// Repairs that follow each other are ever rarer: whoever else moves an address as often as it is
// repaired is no fault that ends by itself, and each repair of an address interrupts it. After the
// first one, which is not delayed, the next wait for a minute, two, four and so on.
const (
	firstRepair   = time.Minute
	longestRepair = 15 * time.Minute
	// calm is how long a repair has to hold to be counted for nothing.
	calm = 2 * longestRepair
)

// again is when what has drifted may be repaired.
func (e *Effect) again() time.Time {
	if e.Streak == 0 {
		return e.At
	}
	return e.At.Add(min(firstRepair<<min(e.Streak-1, 10), longestRepair))
}

// streak is how many repairs have followed each other, now that one has succeeded.
func (e *Effect) streak(before Effect) int {
	switch held := e.At.Sub(before.At); {
	case e.Repair <= before.Repair: // it is none
		return before.Streak
	case held < visible: // nothing can have drifted meanwhile: it is being read from the journal
		return before.Streak
	case held < calm:
		return before.Streak + 1
	}
	return 1
}
