package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/tasuki-io/tasuki/internal/rotation"
)

var statusColumns = []string{"NODEPOOL", "POLICY", "WINDOW", "DUE", "ON THE ROTATION", "LAST", "STATE", "NEXT"}

// cells are the columns of one pool.
func cells(o rotation.Overview, now time.Time) []span {
	state := style("")
	switch rotation.Reason(o.Reason) {
	case rotation.ReasonAwaitingSurge, rotation.ReasonAwaitingDrain, rotation.ReasonFinishing, rotation.Reason(rotation.Eligible):
		state = cyan
	case rotation.ReasonFrozen, rotation.ReasonDisruption, rotation.ReasonFailurePause:
		state = yellow
	case rotation.ReasonPolicyConflict, rotation.ReasonPolicyInvalid, rotation.ReasonInfeasible, rotation.ReasonInsufficientHeadroom, rotation.ReasonStatic:
		state = red
	}
	window, colour := windowNow(o, now)
	last, how := "-", style("")
	if l := o.Last; l != nil {
		last, how = fmt.Sprintf("%s %s ago", l.Outcome, duration.HumanDuration(now.Sub(l.At))), green
		if l.Outcome == rotation.Failure {
			how = red
		}
	}
	next := "-"
	if !o.Wake.IsZero() {
		next = "in " + duration.HumanDuration(max(0, o.Wake.Sub(now)))
	}
	return []span{
		{o.NodePool, bold}, {dash(o.Policy), ""}, {window, colour}, {dueText(o.Census), ""}, {flying(o.Rotation, now), cyan},
		{last, how}, {o.Reason, state}, {next, ""},
	}
}

// windowNow is the window that is open, or the next.
func windowNow(o rotation.Overview, now time.Time) (string, style) {
	in := func(t time.Time) string { return duration.HumanDuration(t.Sub(now)) }
	switch {
	case o.Policy == "":
		return "-", ""
	case o.WindowOpen && o.Window.End.IsZero():
		return "always open", green
	case o.WindowOpen:
		return "open for " + in(o.Window.End), green
	case o.Window.Start.IsZero():
		return "none", red
	}
	return "opens in " + in(o.Window.Start), ""
}

// dueText counts what may be rotated of all NodeClaims, and what waits for another attempt.
func dueText(c rotation.Census) string {
	all := 0
	for _, n := range c {
		all += n
	}
	text := fmt.Sprintf("%d of %d", c[rotation.Eligible], all)
	if n := c[rotation.Backoff]; n > 0 {
		text += fmt.Sprintf(", %d in backoff", n)
	}
	return text
}

func flying(f *rotation.UnderWay, now time.Time) string {
	if f == nil {
		return "-"
	}
	text := fmt.Sprintf("%s %s", f.NodeClaim, f.Phase)
	if !f.Since.IsZero() {
		text += " " + duration.HumanDuration(max(0, now.Sub(f.Since)))
	}
	return text
}

// statusTable writes the pools for people.
func statusTable(out io.Writer, all []rotation.Overview, now time.Time) error {
	if len(all) == 0 {
		_, err := fmt.Fprintln(out, "There is no NodePool in this cluster.")
		return err
	}
	w := newGrid(out)
	fmt.Fprintln(w, strings.Join(statusColumns, "\t"))
	for _, o := range all {
		var texts []string
		for _, c := range cells(o, now) {
			texts = append(texts, c.text)
		}
		fmt.Fprintln(w, strings.Join(texts, "\t"))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for i, text := range details(all) {
		if i == 0 {
			fmt.Fprintln(out)
		}
		fmt.Fprintln(out, text)
	}
	return nil
}

// details are what the word in the column STATE comes to.
func details(all []rotation.Overview) []string {
	var out []string
	for _, o := range all {
		if o.Detail != "" {
			out = append(out, fmt.Sprintf("%s: %s: %s", o.NodePool, o.Reason, o.Detail))
		}
	}
	return out
}

// statusView is one frame of the status.
type statusView struct {
	pools []rotation.Overview
	read  time.Time
	fault error
	now   time.Time
}

// next is how long the frame holds, unless something happens.
func (v statusView) next(now time.Time) time.Duration {
	hold := looksAgain
	for _, o := range v.pools {
		if !o.Wake.IsZero() {
			hold = min(hold, o.Wake.Sub(now))
		}
	}
	return max(hold, settles)
}

func (v statusView) frame(width int, colour bool) []string {
	table := [][]span{nil}
	for _, name := range statusColumns {
		table[0] = append(table[0], span{name, faint})
	}
	for _, o := range v.pools {
		table = append(table, cells(o, v.now))
	}
	widths := make([]int, len(statusColumns))
	for _, row := range table {
		for i, c := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(c.text)+2)
		}
	}
	var rows []string
	for _, row := range table {
		var l line
		for i, c := range row {
			l = append(l, span{c.text, c.style}, span{strings.Repeat(" ", widths[i]-utf8.RuneCountInString(c.text)), ""})
		}
		rows = append(rows, l.render(width, colour))
	}
	for i, text := range details(v.pools) {
		if i == 0 {
			rows = append(rows, "")
		}
		rows = append(rows, line{{text, ""}}.render(width, colour))
	}
	if v.fault != nil {
		text := fmt.Sprintf("This is of %s: %v", cmp.Or(clockTime(v.read), "never"), v.fault)
		rows = append(rows, "", line{{text, red}}.render(width, colour))
	}
	return rows
}

func clockTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Local().Format(time.TimeOnly)
}

func sorted(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }
