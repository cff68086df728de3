package window

import (
	"math"
	"time"
)

const (
	minuteSeconds = 60
	daySeconds    = 24 * 60 * 60

	// reachSeconds is further than any zone has been from UTC, so the instants
	// at which a wall clock shows w lie in (w-reachSeconds, w+reachSeconds).
	reachSeconds = daySeconds
)

// A civil time is written here as the unix second at which a clock on UTC
// shows it: hours and dates are then plain arithmetic, and a zone only shifts
// it.

// clock finds the instants at which the wall clock of a zone shows a civil
// time. It remembers the last stretch of constant offset, [from, until) in
// unix seconds, because neighbouring questions fall into the same one.
type clock struct {
	zone        *time.Location
	from, until int64
	offset      int64 // seconds east of UTC
}

// opens returns the first instant at which the clock shows civil time w or,
// if w is skipped, the first instant after it.
func (c *clock) opens(w int64) int64 {
	if c.settled(w) {
		return w - c.offset
	}
	for c.load(w - reachSeconds); ; c.load(c.until) {
		if first := max(c.from, w-c.offset); first < c.until {
			return first
		}
	}
}

// closes returns the last instant at which the clock shows civil time w or,
// if w is skipped, the first instant after it.
func (c *clock) closes(w int64) int64 {
	if c.settled(w) {
		return w - c.offset
	}
	last, shown := int64(0), false
	for c.load(w - reachSeconds); ; c.load(c.until) {
		if u := w - c.offset; c.from <= u && u < c.until {
			last, shown = u, true
		}
		if c.until > w+reachSeconds {
			break
		}
	}
	if !shown {
		return c.opens(w)
	}
	return last
}

// settled reports whether every instant that could show w lies in the
// remembered stretch, so that exactly one does.
func (c *clock) settled(w int64) bool {
	return c.from <= w-reachSeconds && w+reachSeconds < c.until
}

// load remembers the stretch that contains u.
func (c *clock) load(u int64) {
	t := time.Unix(u, 0).In(c.zone)
	_, offset := t.Zone()
	c.offset = int64(offset)
	c.from, c.until = math.MinInt64, math.MaxInt64
	from, until := t.ZoneBounds()
	if !from.IsZero() {
		c.from = from.Unix()
	}
	if !until.IsZero() {
		c.until = until.Unix()
	}
	// Beyond the recorded transitions ZoneBounds cuts a stretch at the UTC year,
	// and takes every year for 365 days: asked on the last day of a leap year,
	// it names an end that has passed. The offset holds to the end of that year.
	if c.until <= u {
		c.until = time.Date(t.UTC().Year()+1, time.January, 1, 0, 0, 0, 0, time.UTC).Unix()
	}
}
