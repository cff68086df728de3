package window

import "time"

// Tick is the period of a continuous schedule: how often a controller looks
// at it (§3.1).
const Tick = time.Minute

// Measure is the size of a schedule, exact over the occurrences that start in
// 400 days, each compared with the one that follows it (§3.1, §3.2).
type Measure struct {
	// Period is the largest distance between the starts of two consecutive
	// occurrences. Zero: the schedule never opens.
	Period time.Duration

	// ShortestOccurrence is the smallest End-Start. One that does not close
	// counts as 400 days.
	ShortestOccurrence time.Duration

	// ShortestGap is the smallest time from an End to the next Start.
	ShortestGap time.Duration

	// Continuous: the schedule is open and does not close. Period and
	// ShortestOccurrence are then one Tick, as if it reopened each time it is
	// looked at, and ShortestGap is zero.
	Continuous bool
}

// Measure sizes the schedule over the occurrences that start in the 400 days
// from from.
func (s Schedule) Measure(from time.Time) Measure {
	l := s.look()
	begin := firstSecond(from)
	o, ok := l.at(begin)
	switch {
	case ok && o.end == never:
		return Measure{Period: Tick, ShortestOccurrence: Tick, Continuous: true}
	case !ok:
		o, ok = l.after(begin)
	case o.start < begin:
		o, ok = l.after(o.end)
	}
	var m Measure
	for ok && o.start < begin+horizonSeconds {
		next, more := l.after(o.end)
		if more {
			m.Period = max(m.Period, seconds(next.start-o.start))
			m.ShortestOccurrence = shorter(m.ShortestOccurrence, seconds(o.end-o.start))
			m.ShortestGap = shorter(m.ShortestGap, seconds(next.start-o.end))
		} else { // opens for good
			m.Period = max(m.Period, Tick)
			m.ShortestOccurrence = shorter(m.ShortestOccurrence, seconds(horizonSeconds))
		}
		o, ok = next, more
	}
	return m
}

func seconds(n int64) time.Duration {
	return time.Duration(n) * time.Second
}

// shorter returns the smaller of two durations; a zero old is not yet known.
func shorter(old, d time.Duration) time.Duration {
	if old == 0 {
		return d
	}
	return min(old, d)
}
