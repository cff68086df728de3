package rotator

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tasuki-io/tasuki/internal/rotation"
)

// A move is one line of a schedule: who, does what, to what, with what.
//
//	c1 reconcile blue                  a pass begins, and runs up to its first API call
//	c1 go blue                         its call is answered, and it runs up to the next
//	c1 go blue lost                    ... refused, lost (applied, no answer), killed (applied, and dies)
//	c1 hear NodeClaim 2                two writes of the kind arrive in its cache
//	c1 kill
//	c1 notice                          it learns that it leads no more
//	lease take 3                       another incarnation leads; its lists miss the last three writes
//	lease take 1 NodePool              ... of this kind only
//	api down
//	clock +30s
//	karpenter register blue-7
//	person cordon n-blue-7
type move [4]string

func moveOf(words []string) (m move) {
	copy(m[:], words)
	return m
}

func (m move) String() string { return strings.TrimRight(strings.Join(m[:], " "), " ") }

// adder takes a move that is possible from an instant on, and how likely it is next to others.
type adder func(due time.Time, weight int, words ...string)

type choice struct {
	move
	weight int
}

// random makes up a schedule as it goes.
type random struct {
	*rand.Rand
	stalled [simKinds]bool // watches that deliver nothing for now
	choices []choice
}

// next picks a move. When nothing can happen now, time goes on to whatever is next.
func (r *random) next(s *sim) move {
	r.choices = r.choices[:0]
	total := 0
	var soon time.Time
	add := func(due time.Time, weight int, words ...string) {
		if due.After(s.api.now) {
			if soon.IsZero() || due.Before(soon) {
				soon = due
			}
			return
		}
		if weight > 1 { // 1 is rare
			weight *= 8
		}
		total += weight
		r.choices = append(r.choices, choice{moveOf(words), weight})
	}
	if s.weather && r.IntN(60) == 0 {
		k := r.IntN(int(simKinds))
		r.stalled[k] = !r.stalled[k]
	}
	if !s.weather {
		r.stalled = [simKinds]bool{}
	}
	r.controllers(s, add)
	if !s.outage {
		s.karpenter(add)
		s.cluster(add)
		if s.weather && r.IntN(15) == 0 {
			s.people(add)
		}
	}
	if s.weather {
		r.time(s, add, soon)
	} else if total == 0 {
		return move{"clock", "+" + soon.Sub(s.api.now).String()}
	}
	n := r.IntN(total)
	for _, c := range r.choices {
		if n -= c.weight; n < 0 {
			return c.move
		}
	}
	panic("unreachable")
}

// controllers are what the incarnations may do, and what may happen to them.
func (r *random) controllers(s *sim, add adder) {
	now := s.api.now
	if s.leader == nil || s.leader.dead {
		r.lease(add, now, 40)
	} else {
		i := s.leader
		for _, pool := range simPoolNames {
			if due, ok := i.queue[pool]; ok && i.swept && i.passes[pool] == nil {
				add(due, 25, i.name, "reconcile", pool)
			}
		}
		r.calls(s, i, add, 60)
		for k := range i.caches {
			if n := i.caches[k].behind(s.api); n > 0 && !r.stalled[k] && !s.outage {
				add(now, 25, i.name, "hear", simKind(k).String(), strconv.Itoa(n))
				if s.weather && n > 1 {
					add(now, 15, i.name, "hear", simKind(k).String(), "1")
				}
			}
		}
		if s.weather && r.IntN(40) == 0 {
			add(now, 10, i.name, "kill")
			r.lease(add, now, 10)
		}
	}
	for _, i := range s.old {
		r.calls(s, i, add, 6)
		add(now, 1, i.name, "notice")
		add(now, 1, i.name, "kill")
	}
	if s.weather && s.outage {
		add(now, 4, "api", "up")
	} else if s.weather && r.IntN(100) == 0 {
		add(now, 20, "api", "down")
	}
}

func (r *random) lease(add adder, now time.Time, weight int) {
	missing := strconv.Itoa(r.IntN(4) * r.IntN(8))
	add(now, weight, "lease", "take", missing)
	add(now, weight, "lease", "take", missing, simKindNames[r.IntN(int(simKinds))])
}

func (r *random) calls(s *sim, i *incarnation, add adder, weight int) {
	for _, pool := range append([]string{""}, simPoolNames...) {
		p := i.passes[pool]
		if p == nil {
			continue
		}
		if pool == "" {
			pool = "sweep"
		}
		if !s.outage {
			add(s.api.now, weight, i.name, "go", pool)
		}
		if s.weather && (s.outage || r.IntN(6) == 0) {
			add(s.api.now, weight/6, i.name, "go", pool, string(refused))
			if p.call.write {
				add(s.api.now, weight/6, i.name, "go", pool, string(lost))
				if i == s.leader {
					add(s.api.now, weight/6, i.name, "go", pool, string(killed))
				}
			}
		}
	}
}

func (r *random) time(s *sim, add adder, soon time.Time) {
	for _, step := range []struct {
		d      time.Duration
		weight int
	}{{100 * time.Millisecond, 12}, {time.Second, 8}, {15 * time.Second, 3}, {time.Minute, 1}} {
		add(s.api.now, step.weight, "clock", "+"+step.d.String())
	}
	if r.IntN(400) == 0 {
		add(s.api.now, 60, "clock", "+"+(time.Duration(5+r.IntN(60))*time.Minute).String())
	}
	if !soon.IsZero() {
		add(s.api.now, 15, "clock", "+"+soon.Sub(s.api.now).String())
	}
}

// do makes a move, if it is possible, and checks the laws. What is not possible is left out:
// so a schedule from which lines were dropped still means something.
func (s *sim) do(m move) bool {
	if !s.try(m) {
		return false
	}
	s.lines = append(s.lines, m)
	s.laws.count()
	return true
}

func (s *sim) try(m move) bool {
	actor, verb, on, with := m[0], m[1], m[2], m[3]
	switch actor {
	case "clock":
		d, err := time.ParseDuration(verb)
		if err != nil || d < 0 {
			return false
		}
		s.laws.asleep(s.api.now.Add(d))
		s.api.now = s.api.now.Add(d)
		return true
	case "people":
		s.weather, s.outage = false, false
		s.putRight()
		s.laws.disturb("")
		s.mustGo, s.fair = s.overdue(), s.api.now
		return true
	case "end":
		s.laws.end(s.mustGo)
		return true
	case "api":
		s.outage = verb == "down"
		s.saw("outage")
		s.laws.disturb("")
		return true
	case "lease":
		n, _ := strconv.Atoi(on)
		if s.leader != nil && !s.leader.dead {
			s.saw("leader changes")
		}
		s.laws.disturb("")
		s.lead(n, with)
		return true
	case "karpenter":
		if verb == "disrupt" || verb == "expire" || verb == "giveup" || verb == "delete" || with == "dud" {
			s.laws.disturb("")
		}
		if verb == "expire" || verb == "disrupt" {
			s.saw("karpenter " + verb)
		}
		return !s.outage && s.karpenterDoes(verb, on, with)
	case "scheduler", "kubelet":
		if verb == "preempt" || verb == "unready" || verb == "fail" {
			s.laws.disturb("")
		}
		return !s.outage && s.clusterDoes(verb, on, with)
	case "person":
		s.saw("person " + verb)
		s.laws.disturb("")
		return !s.outage && s.personDoes(verb, on, with)
	}
	return s.controllerDoes(actor, verb, on, with)
}

func (s *sim) controllerDoes(name, verb, on, with string) bool {
	i := s.leader
	if i == nil || i.name != name {
		at := slices.IndexFunc(s.old, func(o *incarnation) bool { return o.name == name })
		if at < 0 {
			return false
		}
		i = s.old[at]
		defer func() {
			s.old = slices.DeleteFunc(s.old, func(o *incarnation) bool { return o.dead || len(o.passes) == 0 })
		}()
	}
	if i.dead {
		return false
	}
	switch verb {
	case "reconcile":
		if due, ok := i.queue[on]; !ok || due.After(s.api.now) || i.passes[on] != nil || !i.swept || i.lost {
			return false
		}
		i.reconcile(on)
		return true
	case "go":
		if on == "sweep" {
			on = ""
		}
		p := i.passes[on]
		if p == nil || s.outage && with == "" {
			return false
		}
		if with != "" {
			s.laws.disturb("")
			s.saw("calls " + with)
		}
		if i.lost && p.call.write {
			s.saw("writes of a leader that was")
		}
		p.advance(fate(with))
		return true
	case "hear":
		k := slices.Index(simKindNames[:], on)
		n, err := strconv.Atoi(with)
		if k < 0 || err != nil || i.lost || s.outage {
			return false
		}
		heard := false
		for ; n > 0 && i.caches[k].behind(s.api) > 0; n-- {
			heard = true
			for _, pool := range i.caches[k].deliver(s.api) {
				i.wake(pool, s.api.now)
			}
		}
		return heard
	case "kill":
		s.saw("kills")
		s.laws.disturb("")
		i.kill()
		return true
	case "notice":
		i.cancel()
		return true
	}
	return false
}

// run makes up n moves and then lets the weather end: with nothing in the way and time
// enough, everything has to come right.
func (r *random) run(s *sim, n int) (steps int) {
	for ; steps < n && s.laws.broken == ""; steps++ {
		s.do(r.next(s))
	}
	return steps + r.rest(s)
}

const simRest = 5 * time.Hour

func (r *random) rest(s *sim) (steps int) {
	if s.laws.broken != "" {
		return 0
	}
	s.do(move{"people", "put", "all", "right"})
	for until := s.api.now.Add(simRest); s.api.now.Before(until) && s.laws.broken == ""; steps++ {
		if steps > 40000 {
			s.laws.breaks("everything comes to rest", "it is %s, and it should be %s", s.api.now, until)
		}
		s.do(r.next(s))
	}
	if s.laws.broken == "" {
		s.do(move{"end"})
	}
	return steps
}

// overdue are the claims that have to be rotated before the rest is over.
func (s *sim) overdue() []string {
	var out []string
	for _, x := range simSpecs {
		for _, c := range s.claims(x.name) {
			if s.api.now.After(c.CreationTimestamp.Add(x.threshold())) {
				out = append(out, c.Name)
			}
		}
	}
	return out
}

func (l *simLaws) end(overdue []string) {
	for _, name := range overdue {
		if c := l.sim.api.get(simClaims, name); c != nil {
			l.breaks("what is due is rotated", "NodeClaim %s is still there: %v", name, c.GetAnnotations())
		}
	}
	for _, pool := range simPoolNames {
		p := l.sim.api.get(simPools, pool)
		if active := annotation(p, rotation.AnnotationActive); active != "" && l.sim.api.now.Sub(l.pools[pool].since) > 2*time.Hour {
			l.breaks("every anchor is released", "NodePool %s is anchored on %s since %s", pool, active, l.pools[pool].since)
		}
	}
}

// replay makes the moves of a schedule in a world of its own, and says which law they break.
func replay(world uint64, lines []move, rest bool) *sim {
	s := newSim(world, map[string]int{})
	for _, m := range lines {
		if s.laws.broken != "" {
			break
		}
		s.do(m)
	}
	if rest {
		(&random{Rand: rand.New(rand.NewPCG(world, 2))}).rest(s)
	}
	s.close()
	return s
}

// shrink drops lines for as long as the same law stays broken, and time is left.
func shrink(world uint64, lines []move, broken string, until time.Time) []move {
	law, _, _ := strings.Cut(broken, ":")
	still := func(lines []move) bool {
		got, _, _ := strings.Cut(replay(world, lines, false).laws.broken, ":")
		return got == law
	}
	if !still(lines) {
		return nil
	}
	for _, word := range append([]string{"person", "api", "lease", "kubelet unready", "karpenter disrupt", "karpenter count", "refused", "lost", "killed"}, simPoolNames...) {
		rest := slices.DeleteFunc(slices.Clone(lines), func(m move) bool { return strings.Contains(m.String(), word) })
		if still(rest) {
			lines = rest
		}
	}
	for size := len(lines) / 2; size > 0; size /= 2 {
		for at := 0; at < len(lines) && time.Now().Before(until); {
			if rest := slices.Concat(lines[:at], lines[min(len(lines), at+size):]); still(rest) {
				lines = rest
			} else {
				at += size
			}
		}
	}
	return lines
}

// parseSchedule reads a transcript: a comment that tells the incident, then "world N", then
// the moves. A last line "rest" lets the weather end as it does in a random schedule.
func parseSchedule(text string) (world uint64, lines []move, rest bool, err error) {
	for n, line := range strings.Split(text, "\n") {
		words := strings.Fields(line)
		switch {
		case len(words) == 0 || strings.HasPrefix(line, "#"):
		case words[0] == "world" && len(words) == 2:
			if world, err = strconv.ParseUint(words[1], 10, 64); err != nil {
				return 0, nil, false, fmt.Errorf("line %d: %w", n+1, err)
			}
		case line == "rest":
			rest = true
		case len(words) > 4:
			return 0, nil, false, fmt.Errorf("line %d: %q has more than four words", n+1, line)
		default:
			lines = append(lines, moveOf(words))
		}
	}
	return world, lines, rest, nil
}
