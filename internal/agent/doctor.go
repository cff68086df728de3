package agent

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tasuki-io/tasuki/internal/capture"
)

// Ailment is something that is wrong, what will be done about it, and by whom.
type Ailment struct {
	Kind AilmentKind `json:"kind"`
	// About is an address, a NIC, a node, or the agent itself ("").
	About string `json:"about,omitempty"`
	// What is wrong, and what will be done about it.
	What string `json:"what"`
	Will string `json:"will"`
	// By is a node, or "you".
	By    string    `json:"by"`
	Until time.Time `json:"until,omitzero"` // before which it will not be done
}

// AilmentKind sorts ailments. That of a drift is the drift's.
type AilmentKind string

// The kinds of ailments.
const (
	AilmentPass     AilmentKind = "passFails"
	AilmentConfig   AilmentKind = "configRefused"
	AilmentLease    AilmentKind = "noLease"
	AilmentDead     AilmentKind = "memberWithoutLease"
	AilmentEpoch    AilmentKind = "epochUnknown"
	AilmentRelease  AilmentKind = "releaseFails"
	AilmentAction   AilmentKind = "actionFails"
	AilmentApproval AilmentKind = "awaitsApproval"
	AilmentPolicy   AilmentKind = "policyForbids"
	AilmentNIC      AilmentKind = "nicNotSeen"
	AilmentStale    AilmentKind = "lookStale"
	AilmentContest  AilmentKind = "contested"
)

// byPerson is who does what no agent does.
const byPerson = "you"

// stale is how old the last look at a NIC may be: several have been missed then.
const stale = 3 * lookRarely

// doctor lists what is wrong as far as this agent knows, what concerns the agent as a whole first.
func (a *Agent) doctor() []Ailment {
	problems := a.tell.problems()
	a.mu.RLock()
	defer a.mu.RUnlock()
	now, list := a.now(), []Ailment{}
	add := func(kind AilmentKind, about, by string, until time.Time, will, what string, args ...any) {
		list = append(list, Ailment{kind, about, fmt.Sprintf(what, args...), will, by, until.Round(0)})
	}
	if a.failure != nil {
		add(AilmentPass, "", a.node, time.Time{}, "tries again, and begins nothing until a pass succeeds", "the last pass failed: %v", a.failure)
	}
	for _, p := range problems {
		add(AilmentConfig, "", byPerson, time.Time{}, "correct the files; the configuration of before is in force until then", "%s", p)
	}
	if !a.lease.holds(now) {
		add(AilmentLease, a.node, a.node, time.Time{}, "begins nothing until it is renewed, and others take its addresses", "the lease of this node may have ended")
	}
	dead, _ := a.dead(now)
	for _, node := range a.rivals() {
		if dead[node] {
			add(AilmentDead, node, a.node, time.Time{}, "each address goes to the next member that may hold it: start the agent of "+node+" to have it back", "its lease is gone")
		}
	}
	for k := range a.served() {
		if a.view.Current(k).Epoch == 0 {
			add(AilmentEpoch, k.Address.String(), a.node, time.Time{}, "raises the epoch above all that this node has seen, once a pass succeeds", "the epoch of %s is not known: nothing passes the gate", k)
		}
	}
	for _, t := range a.targets() {
		l, nic := a.looks[t], a.nics[t]
		switch {
		case l.err != nil:
			add(AilmentNIC, t.NIC, a.node, l.began.Add(lookRarely), "looks again", "%v", l.err)
		case !l.began.IsZero() && now.Sub(nic.At) > stale && now.Sub(l.began) > stale:
			add(AilmentStale, t.NIC, a.node, time.Time{}, "looks again with the next pass that succeeds", "it was last looked at %s", nic.At.UTC().Format(time.RFC3339))
		}
	}
	for i := range a.config.Pools {
		for j := range a.config.Pools[i].Members {
			m := &a.config.Pools[i].Members[j]
			if t := a.config.target(m); m.Node == a.node && !a.config.Policy.Reads(t) {
				add(AilmentNIC, t.NIC, byPerson, time.Time{}, "enable the policy, with its provider and profile", "the policy does not allow to look at it: drift is not seen")
			}
		}
	}
	for i := range a.last.Drifts {
		d := &a.last.Drifts[i]
		add(AilmentKind(d.Kind), about(d.Key, d.Target), a.node, d.Due, "repairs it at epoch "+fmt.Sprint(d.Epoch)+" on "+d.Target.NIC+", taking it from whoever has it", "%s", drifts[d.Kind]+on(d.On))
	}
	for i := range a.last.Contests {
		c := &a.last.Contests[i]
		add(AilmentContest, about(c.Key, capture.Target{}), byPerson, c.Until, "give both nodes the same configuration; until then they take turns, at most once a minute",
			"%s and %s have taken it from each other %d times: they have been told different things", a.node, c.Rival, c.Turns)
	}
	held := a.held()
	rows := a.view.Open()
	for i := range rows {
		row := &rows[i]
		h := held[row.ID()]
		subject, what := about(row.Key, row.Target), fmt.Sprintf("%s on %s at epoch %d", row.Verb, row.NIC, row.Epoch)
		switch {
		case h.Block.Rule != "" && h.Block.Rule != capture.RuleMaxPerRun && h.Block.Rule != capture.RuleWindow:
			kind := AilmentPolicy
			var changes []string
			for _, m := range missing(a.config.Policy, *row, now) {
				changes = append(changes, m.Change)
			}
			if len(changes) == 1 && h.Block.Rule == capture.RuleRequireApproval {
				kind = AilmentApproval
			}
			add(kind, subject, byPerson, h.Until, strings.Join(changes, "; "), "%s: %s", what, h.Block.Detail)
		case row.State == capture.Failed && row.Verb.Acquires():
			add(AilmentAction, subject, a.node, row.NotBefore, "tries again", "%s: %s", what, row.Reason)
		case row.State == capture.Failed:
			add(AilmentRelease, subject, a.node, row.NotBefore, "tries again, without end: the release stays in the outbox", "%s: %s", what, row.Reason)
		}
	}
	slices.SortStableFunc(list, func(x, y Ailment) int { return cmp.Compare(min(1, len(x.About)), min(1, len(y.About))) })
	return list
}

// about is what a key is about, for people.
func about(k capture.Key, t capture.Target) string {
	if k.Address.IsValid() {
		return k.Address.String()
	}
	return t.NIC
}

func on(nics []string) string {
	if len(nics) == 0 {
		return ""
	}
	return ": " + strings.Join(nics, ", ")
}

// drifts say what a drift is.
var drifts = map[capture.DriftKind]string{
	capture.DriftNoNIC:     "no NIC of its subnet has it",
	capture.DriftForeign:   "a NIC of no member has it",
	capture.DriftMember:    "the NIC of another member has it",
	capture.DriftTwo:       "this node's NIC has it, and another one too",
	capture.DriftNotShown:  "this node's NIC does not have it, and it is not known where it is",
	capture.DriftForwarded: "it does not forward",
}
