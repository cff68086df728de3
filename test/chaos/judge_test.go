package chaos

import (
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/tasuki-io/tasuki/internal/capture"
	"github.com/tasuki-io/tasuki/internal/executor/executortest"
)

// judge holds what was done against the invariants. It knows it from outside: from the calls
// that EC2 has recorded, the claims that the cluster was told, and the agents' logs.
type judge struct {
	w        *site
	lines    map[*agent]int        // that were read
	attempts map[string][]*attempt // by ID as a user agent shows it
	ofKey    map[string][]*attempt
	done     map[string]int // successes by ID
	calls    int            // that were judged
	moves    map[netip.Addr][]move
	asked    map[string]int // calls by action
	broken   []string
}

// attempt is one of an action, as the log of its agent tells.
type attempt struct {
	line
	end   time.Time // zero: not yet, or never, as the agent was killed
	again time.Time // when the next one may begin
}

// move is a change that EC2 has made.
type move struct {
	at    time.Time
	host  string // "" is on no NIC
	epoch uint64
}

func newJudge(w *site) *judge {
	return &judge{
		w: w, lines: map[*agent]int{}, attempts: map[string][]*attempt{}, ofKey: map[string][]*attempt{}, done: map[string]int{},
		moves: map[netip.Addr][]move{}, asked: map[string]int{},
	}
}

func (j *judge) breaks(format string, args ...any) {
	j.broken = append(j.broken, fmt.Sprintf(format, args...))
}

// listen reads the logs.
func (j *judge) listen() {
	for _, a := range j.w.agents {
		heard := a.heard(j.lines[a])
		j.lines[a] += len(heard)
		for _, l := range heard {
			j.hear(l)
		}
	}
}

func (j *judge) hear(l line) {
	if l.Action == "" {
		return
	}
	id := executortest.Agent(l.Action)
	switch {
	case l.Msg == "action begins":
		t := &attempt{line: l}
		j.attempts[id] = append(j.attempts[id], t)
		j.ofKey[l.Key] = append(j.ofKey[l.Key], t)
		return
	case strings.HasPrefix(l.Msg, "action succeeded"):
		if j.done[l.Action]++; j.done[l.Action] > 1 {
			j.breaks("I7: %s has succeeded %d times", l.Action, j.done[l.Action])
		}
	case l.Outcome == "" && l.Msg != "action fenced":
		return
	}
	if all := j.attempts[id]; len(all) > 0 && all[len(all)-1].end.IsZero() {
		all[len(all)-1].end, all[len(all)-1].again = l.Time, l.Again
	}
}

// judge judges what has happened since the last time. The cluster has a leader by now.
func (j *judge) judge() {
	j.listen()
	calls := j.w.ec2.Calls()
	for _, c := range calls[j.calls:] {
		if c.Accepted && c.Took.IsZero() {
			break // they take effect in their order: the next time
		}
		j.calls++
		j.asked[c.Action]++
		if c.Changes() {
			j.call(c)
		}
	}
	j.broken = append(j.broken, j.w.claims.violations()...)
	for a, on := range j.w.on() {
		if len(on) > 1 {
			j.breaks("I9: %s is on %v", a, on)
		}
	}
	for _, a := range j.w.agents {
		if !a.runs() {
			j.breaks("the agent of %s has ended by itself: see %s", a.name, j.w.path(a.name, "log"))
		}
	}
}

// call judges one that was to change something.
func (j *judge) call(c executortest.Call) {
	var t *attempt
	for _, at := range j.attempts[c.ID] {
		if !at.Time.After(c.At) {
			t = at
		}
	}
	if t == nil {
		j.breaks("I3: call %d (%s of %v on %s) is of no attempt that an agent has begun: %s", c.N, c.Action, c.Addresses, c.NIC, c.ID)
		return
	}
	is, next := j.w.claims.at(t.Key, t.Epoch)
	host := hostOf(c.NIC)
	takes := t.Verb == string(capture.Assign) || t.Verb == string(capture.EnableForwarding)
	switch {
	case is.Epoch == 0:
		j.breaks("I3: call %d is for epoch %d of %s, which nobody was given", c.N, t.Epoch, t.Key)
	case t.agent != host:
		j.breaks("call %d on %s was made by the agent of %s", c.N, c.NIC, t.agent)
	case takes != (is.Holder == host):
		j.breaks("I5: call %d (%s on %s) is for epoch %d of %s, at which %q holds", c.N, t.Verb, c.NIC, t.Epoch, t.Key, is.Holder)
	case next.Epoch > 0 && t.Time.After(next.seen):
		j.breaks("I3: call %d (%s on %s) is for epoch %d of %s: its attempt began %s after epoch %d could be read", c.N, t.Verb, c.NIC, t.Epoch, t.Key, t.Time.Sub(next.seen), next.Epoch)
	}
	if !c.Accepted {
		return
	}
	for _, a := range c.Addresses {
		m := move{at: c.Took, epoch: t.Epoch}
		if t.Verb == string(capture.Assign) {
			m.host = host
		}
		j.moves[a] = append(j.moves[a], m)
	}
}

// stayed is when an address has come to be where it is, under the claim that is current.
func (j *judge) stayed(a netip.Addr, c claim) time.Time {
	at := c.seen
	if all := j.moves[a]; len(all) > 0 && all[len(all)-1].at.After(at) {
		at = all[len(all)-1].at
	}
	return at
}

// excused is until when an address may wait although nothing is wrong any more: an attempt of
// its holder that began before has its whole time, and its backoff, to end in (C6).
func (j *judge) excused(key, holder string, over time.Time) time.Time {
	until := over
	for _, t := range j.ofKey[key] {
		if t.agent != holder || t.Time.After(over) {
			continue
		}
		end := t.end
		if end.IsZero() {
			end = t.Time.Add(capture.ExecutorTime)
		}
		for _, at := range []time.Time{end, t.again} {
			if at.After(until) {
				until = at
			}
		}
	}
	return until
}

// open reports attempts that are under way.
func (j *judge) open() bool {
	j.listen()
	for _, all := range j.attempts {
		if t := all[len(all)-1]; t.end.IsZero() && time.Since(t.Time) < capture.ExecutorTime {
			return true
		}
	}
	return false
}
