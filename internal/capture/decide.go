package capture

import (
	"maps"
	"slices"
	"time"
)

// Decide returns what a node has to do now. It is computed from the level of things alone:
// what is desired, what is claimed, what was placed. That an action was planned earlier is
// no reason to plan it again, and that something was to be released is no reason to release
// it (ADR 0008 §3).
//
// Now and the times in the snapshot are those of one process and carry its monotonic clock;
// of the wall clock nothing is asked but whether the policy's window is open.
func Decide(s *Snapshot, now time.Time) Decision {
	d := &deciding{s: s, now: now, self: Holder(s.Node), late: map[Target]time.Time{}, keeps: map[Key]place{}, calls: map[Key]bool{}, paces: maps.Clone(s.Paces)}
	for i := range s.Pools {
		p := &s.Pools[i]
		m := s.member(p)
		d.members = append(d.members, m)
		if m != nil {
			d.pool(p, m)
		}
	}
	d.rest()
	d.forwarding()
	d.execute()
	d.write()
	return Decision{Plan: d.plan, Held: d.held, Drifts: d.drifts, Contests: d.contests, Late: d.late, Wake: d.wake}
}

// deciding is a decision in the making. It goes from line to line, and what it decides on one
// depends on no other, but for the order in which actions begin.
type deciding struct {
	s    *Snapshot
	now  time.Time
	self Holder

	plan     Plan
	held     []Held
	drifts   []Drift
	contests []Contest
	late     map[Target]time.Time
	wake     time.Time

	// What the plan is made of in the end, as it may be much.
	bumps          pile[Bump]
	fresh          pile[Action]
	marks, imports []*Action // of the fresh ones

	members []*Member // this node's in each pool, nil where it has none

	calls map[Key]bool    // lines on which the plan begins an attempt
	keeps map[Key]place   // NICs on which this node is to hold an address
	paces map[string]Pace // as they are after what the plan begins
	// Live actions, by the order of their verbs, and at last those that were throttled.
	ready [len(order) + 1]pile[attempt]

	// Of the addresses that the pools list: how many this node holds, and how many are unsettled.
	holds, unsettled int
}

// pool decides on the addresses of a pool of which this node is a member.
func (d *deciding) pool(p *Pool, m *Member) {
	l := line{key: Key{Pool: p.Name, Domain: m.Domain()}, pool: p, member: m}
	at := d.place(d.s.target(m))
	choose := rank(p, l.key.Domain, d.s.Absent).remembering()
	kept := false
	known, others := walk{lines: d.s.lines[l.key.scope()]}, d.s.siblings(l.key)
	for i := range p.Addresses {
		a := &p.Addresses[i]
		l.key.Address = a.Addr
		d.read(&l, known.entry(a.Addr))
		for i := range others {
			l.floor = max(l.floor, others[i].entry(a.Addr).highest())
		}
		if l.Claim.Holder == d.self {
			d.holds++
		}
		if l.unsettled() {
			d.unsettled++
		}
		holder := None
		if home := d.s.home(p, a); home != "" { // what lives nowhere is captured nowhere
			holder = d.paced(&l, d.desired(&l, home, choose))
		}
		if holder != d.self {
			d.give(&l, holder)
			continue
		}
		d.take(&l, &at)
		d.watch(&l, at.Target)
		kept = true
	}
	if kept {
		d.keeps[d.forwardingOn(at.Target)] = at
	}
}

// desired is the holder of a line whose address lives at home: by whom the member's method
// leaves it to.
func (d *deciding) desired(l *line, home string, choose func(home string, current Holder) choice) Holder {
	if l.member.Capture.Method == ProxyARP {
		return d.local(l, home)
	}
	return d.unhurried(l, choose(home, l.Claim.Holder))
}

// rest gives up what this node holds, has placed or has begun beside what the pools list. The
// view knows how many addresses that can be, so that it need not be searched when there is none.
func (d *deciding) rest() {
	if d.holds == d.s.held[d.self] && d.unsettled == d.s.unsettled {
		return
	}
	var keys []Key
	for k, e := range d.s.all() {
		if !k.Address.IsValid() || e.Claim.Holder != d.self && !e.unsettled() {
			continue
		}
		if l := d.line(k); !l.listed() {
			keys = append(keys, k)
		}
	}
	slices.SortFunc(keys, Key.Compare)
	for _, k := range keys {
		l := d.line(k)
		d.read(&l, d.s.find(k))
		l.orphan = true
		d.leave(&l)
	}
}

// line is the line of a key, with the pool that it is in.
func (d *deciding) line(k Key) line {
	l := line{key: k}
	for i := range d.s.Pools {
		if d.s.Pools[i].Name == k.Pool {
			l.pool, l.member = &d.s.Pools[i], d.members[i]
		}
	}
	return l
}

// forwarding has the node forward on the NICs that are to hold an address, and on no other
// that it has ever forwarded on.
func (d *deciding) forwarding() {
	keys := slices.AppendSeq(slices.Collect(maps.Keys(d.s.nics)), maps.Keys(d.keeps))
	slices.SortFunc(keys, Key.Compare)
	for _, k := range slices.Compact(keys) {
		l := line{key: k}
		d.read(&l, d.s.nics[k])
		if at, kept := d.keeps[k]; kept {
			for other, e := range d.s.nics {
				if other != k && other.onNIC(at.NIC) {
					l.floor = max(l.floor, e.rows)
				}
			}
			d.take(&l, &at)
		} else {
			d.leave(&l)
		}
	}
}

// write fills the plan with what was collected for it.
func (d *deciding) write() {
	d.plan.Bumps = d.bumps.list()
	d.plan.Marks = make([]Mark, 0, len(d.marks))
	for _, a := range d.marks {
		d.plan.Marks = append(d.plan.Marks, Mark{Marker{a.Token, a.Target, a.Repair}, *a})
	}
	d.plan.Imports = make([]Action, 0, len(d.imports))
	for _, a := range d.imports {
		d.plan.Imports = append(d.plan.Imports, *a)
	}
}

func (d *deciding) until(t time.Time) {
	if d.wake.IsZero() || t.Before(d.wake) {
		d.wake = t
	}
}

func sortedKeys[V any](m map[Key]V) []Key {
	return slices.SortedFunc(maps.Keys(m), Key.Compare)
}
