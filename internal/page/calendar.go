package page

import (
	"fmt"
	"strings"
	"time"

	"github.com/tasuki-io/tasuki/internal/rotator"
)

// month is one page of a calendar, in the zone of the windows.
type month struct {
	Name  string
	Weeks [][7]day // from Monday on; a day without a number is of another month
}

// day is one of a calendar.
type day struct {
	Number    int
	Outside   bool     // of the time that is planned
	Open      []string // when windows are open, such as 02:00-06:00
	Rotations int      // that start
	Lost      int
}

// monthsOf is the calendar of a plan.
func monthsOf(p rotator.Plan, from, to time.Time) []month {
	if p.Policy == nil {
		return nil
	}
	from, to = from.In(p.Zone), to.In(p.Zone)
	rotations, lost := map[string]int{}, map[string]int{}
	for _, t := range p.Turns {
		if day := t.Start.In(p.Zone).Format(time.DateOnly); t.Lost == "" {
			rotations[day]++
		} else {
			lost[day]++
		}
	}
	var out []month
	left := p.Occurrences
	for first := date(from.Year(), from.Month(), 1, p.Zone); first.Before(to); first = date(first.Year(), first.Month()+1, 1, p.Zone) {
		m := month{Name: first.Format("January 2006"), Weeks: make([][7]day, 1)}
		column := (int(first.Weekday()) + 6) % 7
		for n := 1; ; n++ {
			start, end := date(first.Year(), first.Month(), n, p.Zone), date(first.Year(), first.Month(), n+1, p.Zone)
			if start.Month() != first.Month() {
				break
			}
			if column == 7 {
				m.Weeks, column = append(m.Weeks, [7]day{}), 0
			}
			key := start.Format(time.DateOnly)
			d := day{Number: n, Outside: !end.After(from) || !start.Before(to), Rotations: rotations[key], Lost: lost[key]}
			for len(left) > 0 && !left[0].End.After(start) {
				left = left[1:]
			}
			for _, o := range left {
				if !o.Start.Before(end) {
					break
				}
				d.Open = append(d.Open, within(o, start, end, p.Zone))
			}
			m.Weeks[len(m.Weeks)-1][column] = d
			column++
		}
		out = append(out, m)
	}
	return out
}

func date(y int, m time.Month, d int, zone *time.Location) time.Time {
	return time.Date(y, m, d, 0, 0, 0, 0, zone)
}

// within is the part of an occurrence that is on a day.
func within(o rotator.PlanOccurrence, start, end time.Time, zone *time.Location) string {
	const clock = "15:04"
	from, to := "00:00", "24:00"
	if o.Start.After(start) {
		from = o.Start.In(zone).Format(clock)
	}
	if o.End.Before(end) {
		to = o.End.In(zone).Format(clock)
	}
	return from + "-" + to
}

// Starts is the first window of a day, as short as it can be said.
func (d day) Starts() string {
	if len(d.Open) == 0 {
		return ""
	}
	return strings.SplitN(d.Open[0], "-", 2)[0]
}

// Says is a day in words.
func (d day) Says() string {
	var parts []string
	if len(d.Open) > 0 {
		parts = append(parts, "open "+strings.Join(d.Open, ", "))
	}
	if d.Rotations > 0 {
		parts = append(parts, fmt.Sprintf("%d rotated", d.Rotations))
	}
	if d.Lost > 0 {
		parts = append(parts, fmt.Sprintf("%d lost", d.Lost))
	}
	return strings.Join(parts, "; ")
}
