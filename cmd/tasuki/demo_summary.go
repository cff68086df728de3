package main

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/tasuki-io/tasuki/lab/trial"
)

// summary prints the account of a rotation; every writes asks for the list of API writes
// even when they are as few as promised.
func summary(out io.Writer, a trial.Account, writes bool) {
	fmt.Fprintln(out)
	if a.Started.IsZero() {
		fmt.Fprintln(out, "No rotation was seen.")
		return
	}
	row := func(name, format string, args ...any) {
		fmt.Fprintf(out, "%s %s\n", name+":", fmt.Sprintf(format, args...))
	}
	if a.Outcome == trial.Success {
		row("Node replaced", "%s", a.OldNode)
		row("           by", "%s", a.NewNode)
	} else {
		row("Node not replaced", "%s (%s)", a.OldNode, cmp.Or(string(a.Outcome), "not finished"))
	}
	row("Surge path", "%s", cmp.Or(a.SurgePath, "unknown"))
	row("Time", "surge wait %s, drain %s, total %s", lasted(a.SurgeWait), lasted(a.Drain), lasted(a.Total))
	row("NodeClaims created", "%d", len(a.ClaimsCreated))
	if a.PlaceholdersLost > 0 {
		row("Placeholders lost and made anew", "%d", a.PlaceholdersLost)
	}
	row("Pods evicted", "%d", a.Evicted)
	row("Most pods not Ready at once", "%d of %d", a.MostNotReady, a.Replicas)
	row("Longest Pending, creation to bound", "%s", lasted(a.LongestPending))
	row("API writes by the controller", "%d (at most %d; Events, leases and policy status apart)", len(a.Writes), trial.MostWrites)
	if writes || len(a.Writes) > trial.MostWrites {
		for _, w := range a.Writes {
			fmt.Fprintf(out, "  %s\n", strings.Replace(w.String(), w.User+" ", "", 1))
		}
	}
	if !a.Ended.IsZero() {
		row("Marks left behind", "%d", len(a.Residue))
	}
}

// lasted is a measured duration; zero is one that was not seen to its end.
func lasted(d time.Duration) string {
	switch {
	case d == 0:
		return "-"
	case d < time.Second:
		return fmt.Sprintf("%dms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1fs", d.Seconds())
	}
	return d.Round(time.Second).String()
}
