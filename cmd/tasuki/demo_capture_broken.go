package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tasuki-io/tasuki/internal/capture"
	"github.com/tasuki-io/tasuki/internal/executor/executortest"
)

// broken lists the promises that were broken, by the numbers of the specification.
func (e *evidence) broken() (list []string) {
	say := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	e.epochs(say)
	e.releases(say)
	e.journals(say)
	e.places(say)
	return list
}

// epochs: each rises by one from 1, each was given to one holder once, and the store has the
// last (I1, I2).
func (e *evidence) epochs(say func(string, ...any)) {
	bumps := e.bumps()
	for _, key := range slices.Sorted(maps.Keys(bumps)) {
		for i, b := range bumps[key] {
			if b.epoch != uint64(i+1) {
				say("I1, I2: epoch %d of %s comes where %d was due: %v", b.epoch, key, i+1, bumps[key])
				break
			}
		}
	}
	for key, claim := range e.claims {
		list := bumps[key.String()]
		if len(list) == 0 || list[len(list)-1].epoch != uint64(claim.Epoch) || list[len(list)-1].holder != claim.Holder.String() {
			say("I1: the store has %s for %s, and its last change of holder was to %v", claim, key, list)
		}
	}
}

// releases: none took an address from the NIC of its holder (I5).
func (e *evidence) releases(say func(string, ...any)) {
	for _, c := range e.calls {
		if !strings.HasPrefix(c.Action, "Unassign") || !c.Accepted {
			continue
		}
		for key, list := range e.bumps() {
			holder := ""
			for _, b := range list {
				if !b.at.After(c.At) {
					holder = b.holder
				}
			}
			for _, a := range c.Addresses {
				if (logLine{Key: key}).address() == a.String() && nicOf(holder) == c.NIC {
					say("I5: %s was released from %s, whose node %s was its holder", a, c.NIC, holder)
				}
			}
		}
	}
}

// journals: no key has succeeded twice, what was skipped unasked was not sent, and nothing is
// left to do (I6, I7, I8).
func (e *evidence) journals(say func(string, ...any)) {
	sent := map[string]bool{}
	for _, c := range e.calls {
		sent[c.ID] = sent[c.ID] || c.Changes()
	}
	for _, node := range slices.Sorted(maps.Keys(e.rows)) {
		succeeded := map[string]int{}
		for _, event := range e.events[node] {
			if event.To == capture.Succeeded {
				if succeeded[event.ID]++; succeeded[event.ID] == 2 {
					say("I7: %s has succeeded twice at %s", event.ID, node)
				}
			}
		}
		for _, r := range e.rows[node] {
			switch {
			case r.State == capture.Skipped && r.Attempts == 0 && sent[executortest.Agent(r.ID())]:
				say("I8: %s was skipped before an attempt, and sent all the same", r.ID())
			case r.State.Open():
				say("I6: %s is left as %s at %s", r.ID(), r.State, node)
			}
		}
		for _, m := range e.marks[node] {
			say("I6: the marker %s is left at %s", m.ID(), node)
		}
	}
}

// places: each address is on the NIC of its holder and on no other, and that one alone
// forwards (I4, I9).
func (e *evidence) places(say func(string, ...any)) {
	for _, a := range slices.Sorted(maps.Keys(e.torn)) {
		say("I9: %s was on %s at once", a, e.torn[a])
	}
	holders := map[string]bool{}
	for key, claim := range e.claims {
		if !key.Address.IsValid() {
			continue
		}
		holders[claim.Holder.String()] = true
		if want := []string{nicOf(claim.Holder.String())}; !slices.Equal(e.on[key.Address], want) {
			say("I4, I9: %s is on %v, and its holder is %s", key.Address, e.on[key.Address], claim)
		}
	}
	if len(holders) == 0 {
		say("I4: nobody was ever made a holder")
	}
	for _, node := range slices.Sorted(maps.Keys(e.nics)) {
		if n := e.nics[node]; n.Forwards != holders[node] {
			say("I6: %s forwards: %t, and its node is a holder: %t", n.ID, n.Forwards, holders[node])
		}
	}
}
