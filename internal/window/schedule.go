package window

import (
	"cmp"
	"slices"
	"time"
)

// Schedule is the union of rules. The zero Schedule never opens. It is
// immutable and safe for concurrent use, except for one that remembers.
type Schedule struct {
	rules []Rule
	seen  *look // nil if it does not remember
}

// NewSchedule returns the union of rules (§3.1).
func NewSchedule(rules ...Rule) Schedule {
	return Schedule{rules: slices.Clone(rules)}
}

// Remembering returns the same schedule for one goroutine that asks often: it
// remembers what it has found, and answers sooner.
func (s Schedule) Remembering() Schedule {
	return Schedule{rules: s.rules, seen: &look{walk: newWalk(s.rules)}}
}

func (s Schedule) look() *look {
	if s.seen != nil {
		return s.seen
	}
	return &look{walk: newWalk(s.rules)}
}

// Zone is the time zone that all rules are written in; UTC if they are of several, or none.
func (s Schedule) Zone() *time.Location {
	var zone *time.Location
	for _, r := range s.rules {
		switch {
		case r.zone == nil: // never opens
		case zone == nil:
			zone = r.zone
		case zone.String() != r.zone.String():
			return time.UTC
		}
	}
	return cmp.Or(zone, time.UTC)
}

// Occurrence is one stretch [Start, End) during which a schedule is open. Its
// times are in UTC. A zero Start or End means unbounded on that side, so the
// zero Occurrence is the one occurrence of a continuous schedule.
type Occurrence struct {
	Start, End time.Time
}

// Contains reports whether Start <= t < End.
func (o Occurrence) Contains(t time.Time) bool {
	opened := o.Start.IsZero() || !t.Before(o.Start)
	closed := !o.End.IsZero() && !t.Before(o.End)
	return opened && !closed
}

// At returns the occurrence that contains t, and whether there is one.
func (s Schedule) At(t time.Time) (Occurrence, bool) {
	open, ok := s.look().at(t.Unix())
	if !ok {
		return Occurrence{}, false
	}
	return open.occurrence(), true
}

// Next returns the first occurrence with Start after t. There is none if the
// schedule has no rules, or is open at t and does not close in 400 days.
func (s Schedule) Next(t time.Time) (Occurrence, bool) {
	l, u := s.look(), t.Unix()
	if open, ok := l.at(u); ok {
		u = open.end
	}
	next, ok := l.after(u)
	if !ok {
		return Occurrence{}, false
	}
	return next.occurrence(), true
}

// Between returns, in order, the occurrences that intersect [from, to). They
// are whole: the first may start before from and the last may end after to.
func (s Schedule) Between(from, to time.Time) []Occurrence {
	if !from.Before(to) {
		return nil
	}
	var found []Occurrence
	l := s.look()
	o, ok := l.at(from.Unix())
	if !ok {
		o, ok = l.after(from.Unix())
	}
	for ; ok && o.start < firstSecond(to); o, ok = l.after(o.end) {
		found = append(found, o.occurrence())
	}
	return found
}

// firstSecond returns the first whole unix second that is not before t. Edges
// lie on whole seconds.
func firstSecond(t time.Time) int64 {
	if t.Nanosecond() > 0 {
		return t.Unix() + 1
	}
	return t.Unix()
}
