package capture

import (
	"net/netip"
	"slices"
	"time"
)

// line is a line of epochs that is being decided on.
type line struct {
	key Key
	*entry
	claim Claim     // by which actions are judged: the one that the plan bumps to, if it does
	since time.Time // when it changed
	busy  bool      // an attempt is under way
	// floor is the highest epoch of this node's actions of another key with the same IDs: those
	// of before a placement group, or a profile, was given another name.
	floor  Epoch
	orphan bool // the configuration no longer lists it

	pool   *Pool   // nil when there is none any more
	member *Member // this node's membership in it, nil when it has none
}

// place is a NIC of this node, and what the provider last showed of it.
type place struct {
	Target
	nic  NIC
	seen bool
	near int // where it showed the last address
}

func (d *deciding) place(t Target) place {
	nic, seen := d.s.NICs[t]
	return place{Target: t, nic: nic, seen: seen}
}

// shows is shows of the NIC, for whoever asks about one address after the other.
func (p *place) shows(k Key) bool {
	if !k.Address.IsValid() {
		return p.nic.Forwards
	}
	return p.nic.Addresses.has(k.Address, &p.near)
}

// lacks reports a NIC that does not show what an effect should have brought, or taken, a time
// after which it would.
func (p *place) lacks(shown bool, k Key, after Effect) bool {
	return p.seen && p.nic.At.Sub(after.At) >= p.visible() && p.shows(k) != shown
}

// visible is how long a cloud may take to show what it has done.
const visible = 30 * time.Second

// read begins with what is known of the line's key, nil for nothing.
func (d *deciding) read(l *line, e *entry) {
	if l.entry = e; e == nil {
		l.entry = &unheard
	}
	l.claim, l.since, l.busy, l.floor = l.current(), l.Since, false, 0
	for i := range l.open {
		l.busy = l.busy || l.open[i].underWay(d.now)
	}
}

// listed reports whether the configuration knows the address of the line in its domain.
func (l *line) listed() bool {
	if l.member == nil || l.member.Domain() != l.key.Domain {
		return false
	}
	_, found := l.find()
	return found
}

// find is the place of the line's address in its pool.
func (l *line) find() (int, bool) {
	return slices.BinarySearchFunc(l.pool.Addresses, l.key.Address, func(a Address, addr netip.Addr) int { return a.Addr.Compare(addr) })
}

// unheard is what is known of a key that nobody has heard of.
var unheard entry

// take decides on a line that this node is to hold.
func (d *deciding) take(l *line, at *place) {
	d.bump(l, d.self)
	d.sweep(l)
	d.acquire(l, at)
}

// give decides on a line that another is to hold.
func (d *deciding) give(l *line, holder Holder) {
	d.bump(l, holder)
	d.sweep(l)
	d.release(l)
}

// leave decides on a line of which the configuration does not say who is to hold it: this
// node does not.
func (d *deciding) leave(l *line) {
	holder := l.Claim.Holder
	if holder == d.self {
		holder = None
	}
	d.bump(l, holder)
	d.sweep(l)
	d.release(l)
}

// bump raises the epoch of a key when it comes to this node or leaves it; what moves between
// two others is theirs to write. It also does so when the store knows less than this node, or
// when this node has used up the IDs of the epoch: the line then goes on above everything that
// was ever seen.
func (d *deciding) bump(l *line, holder Holder) {
	from, cause := l.Claim, Cause("")
	switch {
	case l.behind(), from.Epoch > 0 && from.Holder == d.self && holder == d.self && from.Epoch <= l.floor:
		cause = CauseReseed
	case from.Holder == holder || from.Holder != d.self && holder != d.self:
		return
	case from.Epoch < l.floor:
		cause = CauseReseed
	case from.Epoch == 0:
		cause = CauseFirst
	default:
		cause = CauseHolder
	}
	l.claim, l.since = Claim{Epoch: max(from.Epoch, l.Known.Epoch, l.floor) + 1, Holder: holder}, d.now
	d.bumps.add(Bump{Key: l.key, From: from, To: l.claim, Why: cause})
}

// sweep asks the gate about every open action and every marker (§4).
func (d *deciding) sweep(l *line) {
	for i := range l.open {
		a := &l.open[i]
		stale := Gate(l.claim, a.Token)
		switch {
		case stale == "":
			d.offer(l, a)
		case a.underWay(d.now):
			d.until(a.Deadline) // it cannot be called back: its outcome is recorded
		default:
			d.plan.Skips = append(d.plan.Skips, Skip{*a, stale})
		}
	}
	for i := range l.markers {
		m := &l.markers[i]
		stale := Gate(l.claim, m.Token)
		done := slices.ContainsFunc(l.Left, func(e Effect) bool {
			return e.Epoch == m.Epoch && e.Target == m.Target && e.Repair >= m.Repair
		})
		if stale != "" || done {
			d.plan.Drops = append(d.plan.Drops, Drop{*m, stale})
		}
	}
}

// acquire plans what this node is to hold and has no action for. An assignment takes the
// address from whoever has it, except the first one of all: what nobody that we know of has
// ever held is not ours to take.
func (d *deciding) acquire(l *line, at *place) {
	repair := 0
	if got := &l.Acquired; got.Epoch == l.claim.Epoch {
		if got.Target == at.Target && d.waitsToRepair(l, at) {
			return
		}
		repair = got.Repair + 1 // on another NIC it may have been before, at this epoch
	}
	verb, own := acquiring(l.key), Trace{l.claim.Epoch, at.Target, repair, false}
	if l.opened(verb, own) {
		return
	}
	a := d.action(verb, l, own)
	a.Reassign = verb == Assign && (own.Epoch > 1 || repair > 0)
	d.imports = append(d.imports, a)
	d.offer(l, a)
}

// waitsToRepair reports what this node has acquired and need not acquire again now, and takes note
// of what has drifted. A LAN is this host's own, and is repaired at once.
func (d *deciding) waitsToRepair(l *line, at *place) bool {
	kind, on, seen := d.drift(l, at)
	if kind == "" {
		return true
	}
	due := l.Acquired.again()
	if at.Provider == Linux {
		due = l.Acquired.At
	}
	d.drifts = append(d.drifts, Drift{Key: l.key, Epoch: l.claim.Epoch, Target: at.Target, Kind: kind, On: on, Seen: seen, Due: due})
	if d.now.Before(due) {
		d.until(due)
		return true
	}
	return false
}

// release projects what has to be released: what was placed, less what is to be held, at the
// current epoch (§3).
func (d *deciding) release(l *line) {
	if l.claim.Epoch == 0 { // nobody knows the epoch: nothing passes
		return
	}
	if l.claim.Holder == l.taker && l.taker != None { // it is held by this very journal, under its old name
		return
	}
	for i, t := range l.Placed {
		if !on(l.Placed[:i], t.Target) && !d.anew(l, t.Target) {
			d.let(l, t.Target, 0)
		}
	}
	for _, e := range l.Left {
		if !on(l.Placed, e.Target) && on(l.Doubtful, e.Target) && d.back(l.key, e) {
			d.let(l, e.Target, e.Repair+1)
		}
	}
}

// anew reports an address that this node is to hold on the same NIC under another key, since a
// pool or a placement group has another name: to release it would strip that one.
func (d *deciding) anew(l *line, t Target) bool {
	if !l.orphan {
		return false
	}
	for i, m := range d.members {
		if m == nil || d.s.target(m) != t {
			continue
		}
		other := line{key: Key{d.s.Pools[i].Name, l.key.Address, m.Domain()}, pool: &d.s.Pools[i], member: m}
		at, listed := other.find()
		if !listed {
			continue
		}
		home := d.s.home(other.pool, &other.pool.Addresses[at])
		d.read(&other, d.s.find(other.key))
		if home != "" && d.desired(&other, home, rank(other.pool, other.key.Domain, d.s.Absent).choose) == d.self {
			return true
		}
	}
	return false
}

// back reports an address that the provider shows again where it was released. Only an
// attempt of ours that was never answered explains that; otherwise a person has put it there.
func (d *deciding) back(k Key, left Effect) bool {
	at := d.place(left.Target)
	return at.lacks(false, k, left)
}

// let plans one release, and makes its intent durable first.
func (d *deciding) let(l *line, t Target, repair int) {
	verb, own := releasing(l.key), Trace{l.claim.Epoch, t, repair, false}
	marked, opened := l.marked(own), l.opened(verb, own)
	if marked && opened {
		return
	}
	a := d.action(verb, l, own)
	if !marked {
		d.marks = append(d.marks, a)
	} else {
		d.imports = append(d.imports, a)
	}
	if !opened {
		d.offer(l, a)
	}
}

func acquiring(k Key) Verb {
	if k.Address.IsValid() {
		return Assign
	}
	return EnableForwarding
}

func releasing(k Key) Verb {
	if k.Address.IsValid() {
		return Unassign
	}
	return DisableForwarding
}

// action is a new action of this node.
func (d *deciding) action(v Verb, l *line, own Trace) *Action {
	return d.fresh.add(Action{Token: Token{v, l.key, own.Epoch, d.self}, Target: own.Target, Repair: own.Repair, State: Pending})
}
