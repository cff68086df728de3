package window_test

import (
	"strings"
	"testing"
	"time"

	"github.com/tasuki-io/tasuki/internal/window"
)

// entry is a rule as an operator writes it; the reference reads it anew.
type entry struct {
	zone, days, start, end string
}

func (e entry) String() string {
	return e.days + " " + e.start + "-" + e.end + " " + e.zone
}

func schedule(t testing.TB, entries ...entry) window.Schedule {
	t.Helper()
	var rules []window.Rule
	for _, e := range entries {
		rule, err := window.ParseRule(e.zone, strings.Split(e.days, ","), e.start, e.end)
		if err != nil {
			t.Fatal(err)
		}
		rules = append(rules, rule)
	}
	return window.NewSchedule(rules...)
}

// reference decides, minute by minute, whether a union of entries is open. It
// reads the wall clock of every minute of its range and looks a civil time up
// in that list: it knows nothing of offsets, stretches or merging.
type reference struct {
	from time.Time
	open []bool // open[i]: during the minute that begins i minutes after from
}

// slowReference covers [from, from+days).
func slowReference(t testing.TB, from time.Time, days int, entries ...entry) reference {
	t.Helper()
	const dayMinutes, margin = 24 * 60, 3 // days around the range from which an occurrence reaches into it
	from = from.UTC().Truncate(time.Minute)
	first := from.AddDate(0, 0, -margin)
	open := make([]bool, (days+2*margin)*dayMinutes)
	walls := make(map[string]wall)
	for _, e := range entries {
		if walls[e.zone] == nil {
			walls[e.zone] = readWall(t, e.zone, first, len(open))
		}
		w := walls[e.zone]
		start, end := clockMinutes(t, e.start), clockMinutes(t, e.end)
		if end <= start {
			end += dayMinutes
		}
		for i := -2; i < days+2*margin+2; i++ {
			date := first.Truncate(day).AddDate(0, 0, i)
			if !strings.Contains(e.days, date.Format("Mon")) {
				continue
			}
			midnight := int(date.Sub(first) / time.Minute)
			opens, closes := w.first(midnight+start), w.last(midnight+end)
			if closes == opens {
				closes = opens + end - start
			}
			for i := max(opens, 0); i < min(closes, len(open)); i++ {
				open[i] = true
			}
		}
	}
	return reference{from: from, open: open[margin*dayMinutes : (margin+days)*dayMinutes]}
}

func clockMinutes(t testing.TB, s string) int {
	t.Helper()
	d, err := time.ParseDuration(strings.Replace(s, ":", "h", 1) + "m")
	if err != nil {
		t.Fatal(err)
	}
	return int(d / time.Minute)
}

// wall[i] is what the clock of a zone shows in minute i of a range: the minute
// in which a clock on UTC shows the same.
type wall []int

func readWall(t testing.TB, zone string, first time.Time, minutes int) wall {
	t.Helper()
	location, err := time.LoadLocation(zone)
	if err != nil {
		t.Fatal(err)
	}
	w := make(wall, minutes)
	for i := range w {
		at := first.Add(time.Duration(i) * time.Minute).In(location)
		year, month, date := at.Date()
		hour, minute, _ := at.Clock()
		w[i] = int(time.Date(year, month, date, hour, minute, 0, 0, time.UTC).Sub(first) / time.Minute)
	}
	return w
}

// first returns the first minute in which the clock shows civil, or the first
// after civil was skipped. No zone is a whole day from UTC.
func (w wall) first(civil int) int {
	for i := max(civil-24*60, 0); i < len(w); i++ {
		if w[i] >= civil {
			return i
		}
	}
	return len(w)
}

// last is first, but of several minutes that show civil it returns the last.
func (w wall) last(civil int) int {
	for i := min(civil+24*60, len(w)-1); i >= max(civil-24*60, 0); i-- {
		if w[i] == civil {
			return i
		}
	}
	return w.first(civil)
}

func (r reference) at(t time.Time) bool {
	return r.open[int(t.Sub(r.from)/time.Minute)]
}

func (r reference) end() time.Time {
	return r.from.Add(time.Duration(len(r.open)) * time.Minute)
}

// between returns the merged occurrences, clipped to the range.
func (r reference) between() []window.Occurrence {
	var found []window.Occurrence
	for i, open := range r.open {
		at := r.from.Add(time.Duration(i) * time.Minute)
		if open && (i == 0 || !r.open[i-1]) {
			found = append(found, window.Occurrence{Start: at})
		}
		if open {
			found[len(found)-1].End = at.Add(time.Minute)
		}
	}
	return found
}

// clip cuts an occurrence to [from, to), so that it can be compared with what
// a reference knows.
func clip(o window.Occurrence, from, to time.Time) window.Occurrence {
	if o.Start.IsZero() || o.Start.Before(from) {
		o.Start = from
	}
	if o.End.IsZero() || o.End.After(to) {
		o.End = to
	}
	return o
}
