package capture

import (
	"cmp"
	"iter"
	"slices"
	"strings"
	"time"
)

// View is what a node knows: the claims as it last read them, and what its journal and
// outbox prove. It is kept up to date by what was committed, in the order of the commits,
// and after a restart it is built anew from the same. Its times are those of this process,
// by its monotonic clock.
type View struct {
	lines map[scope]lines
	index
}

// scope is a pool in a domain. Lines are kept by scope, as whoever looks at one address of it
// mostly looks at all.
type scope struct {
	pool   string
	domain Domain
}

func (k *Key) scope() scope { return scope{k.Pool, k.Domain} }

// entry is a line with what is under way on it.
type entry struct {
	Line
	open    []Action // in the order of their last commits
	markers []Marker
	rows    Epoch  // the highest one of an action of this node
	taker   Holder // under whose name this node has last acquired
}

// Line is one line of epochs, as the claims store and this node's journal have it.
type Line struct {
	Claim Claim
	// Since is when this process saw the claim change. It delays releases, and nothing rests
	// on it.
	Since time.Time
	Turns int // changes of its holder that have followed each other
	// Known is the highest epoch in this node's journal, outbox and notes, and its holder.
	Known Claim

	// Acquired is how this node has last acquired with success; the zero value is never.
	Acquired Effect
	// Placed are the acquisitions that the journal cannot rule out: the one that succeeded
	// last, and those that were attempted since.
	Placed []Trace
	// Left is how it has last released, by NIC.
	Left []Effect
	// Doubtful are the acquisitions of which an attempt was never answered: the provider may
	// carry it out whenever it likes.
	Doubtful []Trace
}

// Effect is an action that has succeeded.
type Effect struct {
	Epoch  Epoch
	Target Target
	Repair int
	Streak int // repairs that have followed each other
	At     time.Time
}

// Trace tells the actions of one verb and key apart, as their IDs do.
type Trace struct {
	Epoch  Epoch
	Target Target
	Repair int
	Undo   bool
}

// NewView returns the view of a node that knows nothing.
func NewView() *View {
	return &View{lines: map[scope]lines{}, index: newIndex()}
}

// all are the entries of all keys.
func (v *View) all() iter.Seq2[Key, *entry] {
	return func(yield func(Key, *entry) bool) {
		for s, lines := range v.lines {
			for addr, e := range lines.all() {
				if !yield(Key{s.pool, addr, s.domain}, e) {
					return
				}
			}
		}
	}
}

// find is the entry of a key, nil for none.
func (v *View) find(k Key) *entry {
	w := walk{lines: v.lines[k.scope()]}
	return w.entry(k.Address)
}

// entry is the entry of a key, from now on.
func (v *View) entry(k Key) *entry {
	e := v.find(k)
	if e == nil {
		e = &entry{}
		v.lines[k.scope()] = v.lines[k.scope()].with(k.Address, e)
		v.count(k, e, 1)
	}
	return e
}

// change changes an entry, and with it what is derived from it.
func (v *View) change(k Key, by func(*entry)) {
	e := v.entry(k)
	v.count(k, e, -1)
	by(e)
	v.count(k, e, 1)
}

// Learn takes note of a claim that the store holds at this time.
func (v *View) Learn(k Key, c Claim, now time.Time) {
	if v.entry(k).Claim != c {
		v.change(k, func(e *entry) {
			if e.Claim.Holder != c.Holder {
				e.turn(now)
			}
			e.Claim, e.Since = c, now
		})
	}
	v.Note(k, c)
}

// Note takes note of an epoch that was once current.
func (v *View) Note(k Key, c Claim) { v.entry(k).note(c) }

func (l *Line) note(c Claim) {
	if c.Tells(l.Known) {
		l.Known = c
	}
}

// Restore takes note of an action that an earlier process left in the journal. Of the times
// in it none is trusted, as the clock may have been set since: an attempt that was under way
// gets the whole time of an executor to end in, counted from now.
func (v *View) Restore(a Action, now time.Time) { v.Record(a.restored(now)) }

func (a Action) restored(now time.Time) Action {
	a.Deadline, a.NotBefore, a.Updated = now.Add(ExecutorTime), now, now
	return a
}

// ExecutorTime is how long an executor may take for one action.
const ExecutorTime = 30 * time.Second

// Record takes note of an action as the journal has it now.
func (v *View) Record(a Action) { v.change(a.Key, func(e *entry) { e.record(a) }) }

func (e *entry) record(a Action) {
	acquires, holder, own := a.Verb.Acquires(), Unknown, a.trace()
	// Decisions point into the list that was.
	e.open = slices.DeleteFunc(slices.Clone(e.open), func(o Action) bool { return o.Verb == a.Verb && o.trace() == own })
	if a.State.Open() {
		e.open = append(e.open, a)
	}
	if acquires {
		holder, e.taker = a.Holder, a.Holder
	}
	e.rows = max(e.rows, a.Epoch)
	e.note(Claim{Epoch: a.Epoch, Holder: holder})
	switch {
	case a.State == RolledBack: // what undid it is a row of its own, and tells
	case acquires && a.State == Succeeded:
		e.Acquired, e.Placed = a.effect(e.Acquired), []Trace{own}
	case acquires:
		e.Placed = toggle(e.Placed, own, a.Attempts > 0)
	case a.State == Succeeded:
		e.Placed = slices.DeleteFunc(slices.Clone(e.Placed), func(t Trace) bool { return t.Target == a.Target })
		e.Left = left(e.Left, a)
	}
	e.Doubtful = toggle(e.Doubtful, own, acquires && a.Unanswered > 0)
}

// left is how a node has left each NIC, now that it has left one.
func left(list []Effect, a Action) []Effect {
	now := a.effect(Effect{})
	var others []Effect
	for _, e := range list {
		if e.Target == a.Target {
			now = a.effect(e)
		} else {
			others = append(others, e)
		}
	}
	return append(others, now)
}

// toggle is the list with or without a trace; it shares nothing with the one it is made from.
func toggle(list []Trace, t Trace, in bool) []Trace {
	switch i := slices.Index(list, t); {
	case i < 0 && in:
		return append(slices.Clone(list), t)
	case i >= 0 && !in:
		return slices.Delete(slices.Clone(list), i, i+1)
	}
	return list
}

func on(list []Trace, t Target) bool {
	return slices.ContainsFunc(list, func(trace Trace) bool { return trace.Target == t })
}

// Mark takes note of a marker in the outbox, Unmark of its removal.
func (v *View) Mark(m Marker) {
	v.change(m.Key, func(e *entry) {
		e.unmark(m)
		e.markers = append(e.markers, m)
		e.note(Claim{Epoch: m.Epoch, Holder: Unknown})
	})
}

// Unmark takes note of the removal of a marker from the outbox.
func (v *View) Unmark(m Marker) { v.change(m.Key, func(e *entry) { e.unmark(m) }) }

func (e *entry) unmark(m Marker) {
	e.markers = slices.DeleteFunc(e.markers, func(o Marker) bool { return o.trace() == m.trace() })
}

// Line is what is known of a key.
func (v *View) Line(k Key) Line {
	if e := v.find(k); e != nil {
		return e.Line
	}
	return Line{}
}

// Current is the claim by which actions are judged. It is unknown while the store holds less
// than this node has seen: nothing passes the gate then.
func (v *View) Current(k Key) Claim {
	line := v.Line(k)
	return line.current()
}

func (l *Line) current() Claim {
	if l.behind() {
		return Claim{}
	}
	return l.Claim
}

// behind reports a claim that is not the newest one that this node knows of.
func (l *Line) behind() bool {
	if l.Claim.Epoch == l.Known.Epoch {
		return l.Known.Holder != Unknown && l.Known.Holder != l.Claim.Holder
	}
	return l.Claim.Epoch < l.Known.Epoch
}

// opened reports whether an action is open, marked whether the outbox has a marker of it.
func (e *entry) opened(v Verb, t Trace) bool {
	for i := range e.open {
		if a := &e.open[i]; a.Verb == v && a.trace() == t {
			return true
		}
	}
	return false
}

func (e *entry) marked(t Trace) bool {
	for i := range e.markers {
		if e.markers[i].trace() == t {
			return true
		}
	}
	return false
}

// Doubtful lists the NICs on which a provider may yet carry out what it was once asked for, in
// the order of their names.
func (v *View) Doubtful() []Target {
	var list []Target
	for t, n := range v.doubtful {
		if n > 0 {
			list = append(list, t)
		}
	}
	slices.SortFunc(list, func(a, b Target) int {
		return cmp.Or(strings.Compare(a.Provider, b.Provider), strings.Compare(a.ProviderRef, b.ProviderRef), strings.Compare(a.NIC, b.NIC))
	})
	return list
}

// Open lists the actions that are not over, in the order of their keys.
func (v *View) Open() []Action {
	var open []Action
	for _, k := range sortedKeys(v.begun) {
		open = append(open, v.begun[k].open...)
	}
	return open
}

// Markers lists the outbox, in the order of the keys.
func (v *View) Markers() []Marker {
	var markers []Marker
	for _, k := range sortedKeys(v.begun) {
		markers = append(markers, v.begun[k].markers...)
	}
	return markers
}
