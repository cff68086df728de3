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

func (s span) contains(u int64) bool { return s.start <= u && u < s.end }

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

// walk goes through what the rules of a schedule declare, with a clock for each.
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

// start returns the first instant after u at which the schedule, closed at u, opens; never, if
// there is none.
func (w walk) start(u int64) int64 {
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
	return start
}

// until returns the instant at which the schedule closes if it is open just before end, or one
// after limit up to which it stays open. It returns end itself if closed there.
func (w walk) until(end, limit int64) int64 {
	for grown := end <= limit; grown; {
		grown = false
		for i := range w.rules {
			for date := dateOf(end) - datesBefore; date <= dateOf(end)+datesAfter; date++ {
				o, ok := w.declared(i, date)
				if !ok || o.start > end || o.end <= end {
					continue
				}
				if end, grown = o.end, true; end > limit {
					return end
				}
			}
		}
	}
	return end
}

// since returns the instant at which the schedule, open from start on, opened, or one before
// limit since which it has been open.
func (w walk) since(start, limit int64) int64 {
	for grown := start >= limit; grown; {
		grown = false
		for i := range w.rules {
			for date := dateOf(start) + datesAfter; date >= dateOf(start)-datesBefore; date-- {
				o, ok := w.declared(i, date)
				if !ok || o.end < start || o.start >= start {
					continue
				}
				if start, grown = o.start, true; start < limit {
					return start
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
