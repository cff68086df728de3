package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/tasuki-io/tasuki/internal/rotation"
)

// mostPods is how many pods a table names. JSON has them all.
const mostPods = 10

// explainTable writes an explanation for people, in the time zone of this machine.
func explainTable(out io.Writer, x rotation.Explanation, now time.Time) error {
	w := newGrid(out)
	policy := "which no RotationPolicy governs"
	if x.Policy != "" {
		policy = "governed by RotationPolicy " + x.Policy
	}
	of := "NodePool " + x.NodePool
	if x.NodeClaim != "" {
		of = fmt.Sprintf("NodeClaim %s of %s", x.NodeClaim, of)
	}
	fmt.Fprintf(w, "%s, %s\n\n  %s: %s\n", of, policy, x.Reason, x.Detail)
	if !x.Opens.IsZero() {
		fmt.Fprintf(w, "  until\t%s\n", away(x.Opens, now))
	}
	for _, n := range x.Numbers {
		how := ""
		if n.How != "" {
			how = " = " + n.How
		}
		fmt.Fprintf(w, "  %s\t%s%s\n", n.Name, n.Value, how)
	}
	fmt.Fprintf(w, "  see\tdocs/runbook.md#%s\n", strings.ToLower(x.Reason))
	for i, b := range x.Also {
		if i == 0 {
			fmt.Fprintf(w, "\n  Also in the way:\n")
		}
		opens := ""
		if !b.Opens.IsZero() {
			opens = ", until " + away(b.Opens, now)
		}
		fmt.Fprintf(w, "  %s\t%s%s\n", b.Reason, b.Detail, opens)
	}
	if x.Rotation != nil {
		underWay(w, x.Rotation, now)
	}
	if x.Outlook != nil {
		outlook(w, x.Outlook, now)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if len(x.Findings) == 0 {
		return nil
	}
	fmt.Fprintf(out, "\n  Findings:\n")
	for _, f := range x.Findings {
		fmt.Fprintf(out, "  %s %s: %s\n      to change that: %s\n", f.Severity, f.Code, f.Message, f.Remedy)
	}
	return nil
}

// underWay tells of a rotation.
func underWay(w io.Writer, f *rotation.UnderWay, now time.Time) {
	fmt.Fprintf(w, "\n  On the rotation: NodeClaim %s\n", f.NodeClaim)
	fmt.Fprintf(w, "  node\t%s\n  phase\t%s, mode %s\n", dash(f.Node), f.Phase, f.Mode)
	fmt.Fprintf(w, "  since\t%s\n", away(f.Since, now))
	switch {
	case !f.Until.IsZero() && f.Phase == rotation.PhaseDrain:
		fmt.Fprintf(w, "  forced\t%s\n", away(f.Until, now))
	case !f.Until.IsZero():
		fmt.Fprintf(w, "  given up\t%s\n", away(f.Until, now))
	case f.Phase == rotation.PhaseDrain && !f.Stuck.IsZero():
		fmt.Fprintf(w, "  forced\tnever: the NodeClaim has no terminationGracePeriod\n")
	}
	if !f.Stuck.IsZero() {
		fmt.Fprintf(w, "  stuck\t%s\n", away(f.Stuck, now))
	}
	fmt.Fprintf(w, "  waits for\t%s\n", f.Waits)
	for i, h := range f.Holds {
		label := ""
		if i == 0 {
			label = "held by"
		}
		fmt.Fprintf(w, "  %s\t%s\n", label, h)
	}
	if n := len(f.Pods); n > 0 {
		more := ""
		if n > mostPods {
			more = fmt.Sprintf(" and %d more", n-mostPods)
		}
		fmt.Fprintf(w, "  pods left\t%s%s\n", strings.Join(f.Pods[:min(n, mostPods)], ", "), more)
	}
}

// outlook tells what is to be expected.
func outlook(w io.Writer, o *rotation.Outlook, now time.Time) {
	fmt.Fprintf(w, "\n  When: NodeClaim %s\n", o.NodeClaim)
	switch {
	case o.Lost != "":
		fmt.Fprintf(w, "  forecast\tLOST: it expires first, and %s keeps it from rotating until then\n", o.Lost)
	case !o.Start.IsZero():
		fmt.Fprintf(w, "  forecast\tits rotation starts at %s (%s)\n", away(o.Start, now), o.Mode)
	}
	if o.Deadline.IsZero() {
		fmt.Fprintf(w, "  deadline\tnone: it never expires\n")
		return
	}
	fmt.Fprintf(w, "  due past\t%s\n", away(o.Due, now))
	fmt.Fprintf(w, "  in time\tif it starts by %s\n", away(o.Latest, now))
	fmt.Fprintf(w, "  deadline\t%s\n", away(o.Deadline, now))
	fmt.Fprintf(w, "  chances\t%d\n", o.Chances)
	for i, win := range o.Windows {
		label := ""
		if i == 0 {
			label = "windows"
		}
		fmt.Fprintf(w, "  %s\t%s\n", label, windowText(win))
	}
}

// windowText is a window, of which an edge may not be known.
func windowText(w rotation.Window) string {
	switch {
	case w.Start.IsZero() && w.End.IsZero():
		return "always open"
	case w.End.IsZero():
		return "from " + wallClock(w.Start) + " on"
	case w.Start.IsZero():
		return "until " + wallClock(w.End)
	}
	return wallClock(w.Start) + " until " + wallClock(w.End)
}
