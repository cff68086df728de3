package main

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/tasuki-io/tasuki/internal/agent"
	"github.com/tasuki-io/tasuki/internal/capture"
)

// meanings say what an action waits for.
var meanings = map[capture.Wait]string{
	capture.WaitBackoff:  "its last attempt did not succeed, and the next one has to wait",
	capture.WaitRunning:  "an attempt about this address is under way",
	capture.WaitPace:     "the provider throttles its profile, so that one begins after the other",
	capture.WaitTakeover: "the next holder has yet to take the address, so that there is no gap",
	capture.WaitHold:     "deprovisionHoldDuration is not over",
	capture.WaitCaptured: "addresses are left on the NIC, which needs it to forward",
}

// keeps tells in a few words what keeps an action from going on.
func keeps(p agent.Pending) string {
	var words []string
	if p.State == capture.Failed {
		words = append(words, fmt.Sprintf("failed%s,", attempts(p.Attempts)))
	}
	switch {
	case p.Wait != "":
		words = append(words, string(p.Wait))
	case p.Rule != "":
		words = append(words, "blocked by "+string(p.Rule))
	}
	if !p.Until.IsZero() {
		words = append(words, "until "+stamp(p.Until))
	}
	return strings.TrimSuffix(strings.Join(words, " "), ",")
}

// troubles tells of the NIC of a capture what has failed.
func troubles(c agent.Capture) string {
	var words []string
	for _, p := range c.NIC {
		if p.State == capture.Failed {
			words = append(words, fmt.Sprintf("%s of the NIC (%s)", p.Verb, keeps(p)))
		}
	}
	if c.Blind != nil {
		words = append(words, "the NIC cannot be looked at")
	}
	return strings.Join(words, ", ")
}

// pendings tells in a few words what is pending.
func pendings(pending []agent.Pending) string {
	var words []string
	for _, p := range pending {
		words = append(words, fmt.Sprintf("%s (%s)", p.Verb, cmp.Or(keeps(p), string(p.State))))
	}
	return strings.Join(words, ", ")
}

// why tells in a few words what keeps an action, or how it ended.
func why(a agent.Action) string {
	var words []string
	add := func(s string) {
		if s != "" {
			words = append(words, s)
		}
	}
	if a.Attempts > 1 || a.Attempts > 0 && a.State.Open() {
		add(fmt.Sprintf("attempt %d", a.Attempts))
	}
	add(keeps(a.Pending))
	switch {
	case a.Superseded:
		add("superseded")
	case a.State == capture.Skipped:
		add(capture.Stale(a.Reason).Why())
	default:
		add(cmp.Or(a.Code, a.Reason))
	}
	return strings.Join(words, ", ")
}

// tell says all that is known of why an action is not over.
func tell(r *rows, p agent.Pending) {
	r.line("%s %s at epoch %d on %s: %s%s", p.Handle, p.Verb, p.Epoch, p.NIC, p.State, attempts(p.Attempts))
	if p.Reason != "" {
		r.line("  last attempt: %s", p.Reason)
	}
	if p.Wait != "" {
		until := ""
		if !p.Until.IsZero() {
			until = " until " + stamp(p.Until)
		}
		r.line("  waits: %s%s: %s", p.Wait, until, cmp.Or(meanings[p.Wait], "see docs/capture.md"))
	}
	if p.Wait == capture.WaitBackoff {
		r.line("    to try now: %s actions execute --approved %s", called, p.Handle)
	}
	if p.Rule == capture.RuleMaxPerRun && len(p.Missing) == 0 {
		r.line("  blocked by %s: %s; it goes on when one of them has ended", p.Rule, p.Detail)
	}
	lacking(r, p.Missing)
}

func attempts(n int) string {
	switch n {
	case 0:
		return ""
	case 1:
		return ", after 1 attempt"
	}
	return fmt.Sprintf(", after %d attempts", n)
}

// lacking says what a policy would have to allow.
func lacking(r *rows, missing []agent.Missing) {
	for _, m := range missing {
		r.line("  blocked by %s: %s", m.Rule, m.Detail)
		r.line("    to change that: %s", m.Change)
	}
}
