package window

import (
	"math"
	"time"
)

// The edges of a span that is unbounded on a side.
const (
	always = math.MinInt64
	never  = math.MaxInt64
)

const (
	// horizonSeconds is how far an edge is looked for: one year of daylight
	// saving, and a month to spare.
	horizonSeconds = 400 * daySeconds

	// The civil dates, relative to the UTC date of an instant, whose occurrence
	// can contain or touch that instant. No zone is a whole day from UTC, so an
	// occurrence starts less than a day before its date begins on a clock on
	// UTC, and ends less than three days after: it may run to the end of the
	// next date.
	datesBefore = 2
	datesAfter  = 1
)

// span is an occurrence in unix seconds.
type span struct {
	start, end int64
}

func (s span) occurrence() Occurrence {
	var o Occurrence
	if s.start != always {
		o.Start = time.Unix(s.start, 0).UTC()
	}
	if s.end != never {
		o.End = time.Unix(s.end, 0).UTC()
	}
	return o
}

// walk answers one question about a schedule: the rules, and the clock of each.
type walk struct {
	rules  []Rule
	clocks []clock
}

func newWalk(rules []Rule) walk {
	w := walk{rules: rules, clocks: make([]clock, len(rules))}
	for i, rule := range rules {
		w.clocks[i].zone = rule.zone
	}
	return w
}

// at returns the merged occurrence that contains u.
func (w walk) at(u int64) (span, bool) {
	end := w.until(u)
	if end == u {
		return span{}, false
	}
	return span{start: w.since(u), end: end}, true
}

// after returns the first merged occurrence that starts after u, an instant at
// which the schedule is closed (never, if it does not close).
func (w walk) after(u int64) (span, bool) {
	if u == never {
		return span{}, false
	}
	start := int64(never)
	for i := range w.rules {
		// From the first date that can still start after u, through a week of
		// dates that cannot start before it.
		for date := dateOf(u) - 1; date <= dateOf(u)+8; date++ {
			if o, ok := w.declared(i, date); ok && o.start > u {
				start = min(start, o.start)
				break
			}
		}
	}
	if start == never {
		return span{}, false
	}
	return span{start: start, end: w.until(start)}, true
}

// until returns the instant at which the schedule, if open at u, closes. It
// returns u itself if closed at u.
func (w walk) until(u int64) int64 {
	end := u
	for grown := true; grown; {
		grown = false
		for i := range w.rules {
			for date := dateOf(end) - datesBefore; date <= dateOf(end)+datesAfter; date++ {
				o, ok := w.declared(i, date)
				if !ok || o.start > end || o.end <= end {
					continue
				}
				if end, grown = o.end, true; end > u+horizonSeconds {
					return never
				}
			}
		}
	}
	return end
}

// since returns the instant at which the schedule, open at u, opened.
func (w walk) since(u int64) int64 {
	start := u
	for grown := true; grown; {
		grown = false
		for i := range w.rules {
			for date := dateOf(start) + datesAfter; date >= dateOf(start)-datesBefore; date-- {
				o, ok := w.declared(i, date)
				if !ok || o.end < start || o.start >= start {
					continue
				}
				if start, grown = o.start, true; start < u-horizonSeconds {
					return always
				}
			}
		}
	}
	return start
}

// declared returns the occurrence of rule i that belongs to a civil date, as
// the rule alone declares it: before any merge.
func (w walk) declared(i int, date int64) (span, bool) {
	rule, clock := w.rules[i], &w.clocks[i]
	if !rule.startsOn(weekdayOf(date)) {
		return span{}, false
	}
	midnight := date * daySeconds
	start := clock.opens(midnight + rule.start*minuteSeconds)
	end := clock.closes(midnight + rule.end*minuteSeconds)
	if end <= start { // a skipped hour took all of it
		end = start + (rule.end-rule.start)*minuteSeconds
	}
	return span{start: start, end: end}, true
}

// dateOf returns the date on which a clock on UTC shows civil time w, in days
// since 1970-01-01.
func dateOf(w int64) int64 {
	date := w / daySeconds
	if w%daySeconds < 0 {
		date--
	}
	return date
}

// weekdayOf returns the weekday of a date in days since 1970-01-01, a Thursday.
func weekdayOf(date int64) time.Weekday {
	day := (date + int64(time.Thursday)) % 7
	if day < 0 {
		day += 7
	}
	return time.Weekday(day)
}
