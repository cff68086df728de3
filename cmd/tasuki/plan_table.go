package main

import (
	"fmt"
	"io"
	"time"

	"github.com/tasuki-io/tasuki/internal/rotator"
)

// How much of what repeats a table shows. JSON has it all.
const (
	mostWindows  = 5
	mostFindings = 5 // of one code
	mostTurns    = 50
)

// planTable writes plans from one instant until another for people.
func planTable(out io.Writer, plans []rotator.Plan, from, to time.Time) error {
	for i, p := range plans {
		if i > 0 {
			fmt.Fprintln(out)
		}
		fmt.Fprintf(out, "NodePool %s\n", p.NodePool)
		fmt.Fprintf(out, "  Policy: %s\n", p.Chosen())
		if p.Policy == nil {
			planFindings(out, p)
			continue
		}
		c := calendarOf(p.Zone, from, lastOf(p, to))
		fmt.Fprintf(out, "  Times are those of %s\n", c)
		w := newGrid(out)
		for _, s := range p.Arithmetic {
			how := ""
			if s.How != "" {
				how = "\t= " + s.How
			}
			fmt.Fprintf(w, "  %s\t%s%s\n", s.Name, s.Value, how)
		}
		if err := w.Flush(); err != nil {
			return err
		}
		planFindings(out, p)
		planWindows(out, p, c)
		if err := planForecast(out, p, c); err != nil {
			return err
		}
	}
	return nil
}

func planFindings(out io.Writer, p rotator.Plan) {
	if len(p.Findings) == 0 {
		fmt.Fprintf(out, "\n  No findings.\n")
		return
	}
	fmt.Fprintf(out, "\n  Findings:\n")
	told := map[string]int{}
	for _, f := range p.Findings {
		if told[f.Code]++; told[f.Code] <= mostFindings {
			fmt.Fprintf(out, "  %s %s: %s\n      to change that: %s\n", f.Severity, f.Code, f.Message, f.Remedy)
		}
	}
	for _, f := range p.Findings {
		if n := told[f.Code]; n > mostFindings {
			fmt.Fprintf(out, "  %s %s: %d more; -o json has them all\n", f.Severity, f.Code, n-mostFindings)
			delete(told, f.Code)
		}
	}
}

func planWindows(out io.Writer, p rotator.Plan, c calendar) {
	if len(p.Occurrences) == 0 {
		fmt.Fprintf(out, "\n  No window opens in this time.\n")
		return
	}
	fmt.Fprintf(out, "\n  Windows (%d in this time):\n", len(p.Occurrences))
	for i, o := range p.Occurrences {
		if i == mostWindows {
			fmt.Fprintf(out, "  and %d more: -o json has them all, --days plans for fewer days or for more\n", len(p.Occurrences)-mostWindows)
			break
		}
		fmt.Fprintf(out, "  %s until %s\n", c.of(o.Start), c.of(o.End))
	}
}

func planForecast(out io.Writer, p rotator.Plan, c calendar) error {
	lost := 0
	for _, t := range p.Turns {
		if t.Lost != "" {
			lost++
		}
	}
	quiet := ""
	if n := len(p.Lives) - len(p.Turns); n > 0 {
		quiet = fmt.Sprintf("; %d not in this time", n)
	}
	fmt.Fprintf(out, "\n  Forecast: %d rotated, %d lost%s\n", len(p.Turns)-lost, lost, quiet)
	if len(p.Turns) == 0 {
		return nil
	}
	w := newGrid(out)
	fmt.Fprintln(w, "  NODECLAIM\tSTART\tDEADLINE\tMARGIN\tHOW")
	left := 0
	for i, t := range p.Turns {
		if i >= mostTurns && t.Lost == "" {
			left++
			continue
		}
		how, start := t.Mode, c.of(t.Start)
		if t.Lost != "" {
			how, start = "LOST: "+t.Lost, "-"
		}
		fmt.Fprintf(w, "  %s\t%s\t%s\t%s\t%s\n", t.NodeClaim, start, c.of(t.Deadline), t.Margin().Round(time.Second), how)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if left > 0 {
		fmt.Fprintf(out, "  and %d more that are rotated; -o json has them all\n", left)
	}
	return nil
}

// lastOf is the last instant that the table of a plan until to shows.
func lastOf(p rotator.Plan, to time.Time) time.Time {
	for _, t := range p.Turns {
		if t.Deadline.After(to) {
			to = t.Deadline
		}
	}
	return to
}

// wallClock is an instant to the minute, in the time zone of this machine.
func wallClock(t time.Time) string { return t.Local().Format("2006-01-02 15:04 MST") }
