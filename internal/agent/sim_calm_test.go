package agent

import (
	"net/netip"
	"slices"
	"time"

	"github.com/tasuki-io/tasuki/internal/capture"
)

// settle stops the faults, gives everybody the same configuration with a policy that is open,
// and says what must then come to be (I4, I6, I10).
func (s *sim) settle() {
	s.calm = true
	for len(s.cloud.late) > 0 {
		s.cloud.carryOut()
	}
	s.config.policy = simPolicy{budget: 1 + s.rng.IntN(3)}
	s.write()
	for _, n := range s.nodes {
		n.paused, n.cut = false, 0
		n.up()
		n.reload()
	}
	s.elect()
	changed := s.cloud.changing
	if !s.rest() {
		return
	}
	if made := s.cloud.changing - changed; made > 24+8*len(s.nodes) {
		s.breaks("I4: it takes %d calls until it rests", made)
	}
	s.settled()
	s.flaps()
	if s.closely {
		s.quiet()
	}
}

// rest lets the world go on until nothing happens in it any more but looks. The clock goes from
// timer to timer, so what is due has to have one.
func (s *sim) rest() bool {
	began, last, events := s.clock, s.clock, s.events
	for s.broken == "" {
		for busy, rounds := true, 0; busy; rounds++ {
			if rounds == 100 {
				s.breaks("I10: they keep each other busy at one instant")
				return false
			}
			busy = false
			for _, n := range s.nodes {
				if made := s.goOn(n, 1000); made == 1000 {
					s.breaks("I10: %s does not wait for anything", n.name)
					return false
				} else if made > 0 {
					busy = true
				}
			}
		}
		if s.events > events {
			last, events = s.clock, s.events
		}
		if s.clock-began > 10*time.Second {
			s.oneAnswers()
		}
		if s.clock-last > lookRarely+2*simLag && s.waitsForNothing() {
			return s.broken == ""
		}
		if s.clock-began > 3*time.Hour {
			s.breaks("I4: it does not come to rest")
			return false
		}
		s.tick()
	}
	return false
}

// tick turns the clock on to the next timer.
func (s *sim) tick() {
	next := time.Duration(-1)
	for _, n := range s.nodes {
		if n.paused || n.loop == nil || n.next.IsZero() {
			continue
		}
		if at := n.alarm - n.boot; next < 0 || at < next {
			next = at
		}
	}
	for _, n := range s.nodes { // whoever renews, and leases that end
		for _, p := range n.procs {
			if !n.paused && p.nap > s.clock+1 && (next < 0 || p.nap < next) {
				next = p.nap
			}
		}
		if n.host != nil {
			if at := n.host.watch.next(); at > 0 && (next < 0 || at < next) {
				next = at
			}
			if n.until > s.clock && (next < 0 || n.until < next) {
				next = n.until
			}
		}
		if until := s.store.beats[n.name]; until > s.clock && (next < 0 || until < next) {
			next = until
		}
	}
	if next < 0 {
		next = s.clock + time.Minute
	}
	s.clock = max(s.clock, next)
}

func (s *sim) waitsForNothing() bool {
	for _, n := range s.nodes {
		if n.paused || n.loop == nil {
			continue
		}
		if !n.loop.last.Wake.IsZero() || len(n.flying) > 0 {
			return false
		}
	}
	return true
}

// settled compares the world with what it should be.
func (s *sim) settled() {
	forwards := map[string]bool{} // by node
	for i := range 2 {
		a := simAddr(i + 1)
		for _, domain := range s.domains() {
			holder := s.holder(domain, a)
			if holder != "" {
				forwards[holder] = true
			}
			if domain != simDomain {
				s.answersAs(domain, a, holder)
				continue
			}
			s.isOnOne(a, holder)
		}
	}
	for _, n := range s.nodes {
		for _, nic := range n.nics() {
			if got, want := n.forwards(nic), forwards[n.name] && nic == n.nic; got != want {
				s.breaks("I6: %s of %s forwards: %t", nic, n.name, got)
			}
		}
		if len(n.disk.markers) > 0 {
			s.breaks("I6: %s keeps the markers %v", n.name, n.disk.markers)
		}
		for id, row := range n.disk.rows {
			if row.State.Open() && !n.elsewhere(row) {
				s.breaks("I6: %s keeps %s, which is %s (%s)", n.name, id, row.State, row.Reason)
			}
		}
		now, _ := n.loop.snapshot()
		d := capture.Decide(now, n.now())
		d.Held = slices.DeleteFunc(d.Held, func(h capture.Held) bool { return n.elsewhere(*h.Action) })
		if !d.Plan.Empty() || len(d.Held) > 0 {
			s.breaks("I10: %s still has to do %+v", n.name, d)
		}
	}
}

// quiet is a long time in which nothing changes: nothing is written, and nobody is called but to
// look.
func (s *sim) quiet() {
	until, events, passes := s.clock+30*time.Minute, s.events, s.seen["pass"]
	for s.clock < until && s.broken == "" {
		s.tick()
		for _, n := range s.nodes {
			s.goOn(n, 1000)
		}
	}
	if s.events != events {
		s.breaks("I10: nothing has changed, and there are %d writes and calls", s.events-events)
	}
	nics := 0 // each of them is looked at
	for _, n := range s.nodes {
		nics += len(n.nics())
	}
	if made := s.seen["pass"] - passes; made > 80*nics {
		s.breaks("I10: nothing has changed, and there are %d passes in half an hour", made)
	}
	s.happens("long quiet")
}

// isOnOne says that an address is on the NIC of its holder, and on no other on which a node has
// put it (I4, I9).
func (s *sim) isOnOne(a netip.Addr, holder string) {
	if holder != "" && !s.cloud.shows(a, "eni-"+holder) {
		s.breaks("I4: %s is on %q, and %q should hold it", a, s.cloud.on[a], holder)
	}
	for _, nic := range append(slices.Clone(s.cloud.also[a]), s.cloud.on[a]) {
		if nic != "" && nic != "eni-"+holder && (s.placed(nic, a) || holder != "" && !s.cloud.apart) {
			s.breaks("I9: %s is on %q, and %q should hold it", a, nic, holder)
		}
	}
	if s.seen["on two NICs"] > 0 {
		s.happens("law: on one NIC again")
	}
}

// placed says whether a node put an address on its NIC, rather than a person.
func (s *sim) placed(nic string, a netip.Addr) bool {
	for _, c := range slices.Backward(s.cloud.calls) {
		if c.Address == a && c.NIC == nic {
			return c.Verb == capture.Assign
		}
	}
	return false
}

// holder is who should hold an address now, worked out from what was done to the world alone:
// whoever the store says, if that one may, and nobody with a better right is there.
func (s *sim) holder(domain capture.Domain, a netip.Addr) string {
	home := "home"
	if l := s.store.leases[capture.Home{Pool: "p", Addr: a}]; l.Epoch > 0 {
		home = l.Owner.Site
	}
	best := 1 << 30
	var may []string
	for _, n := range s.nodes {
		if n.domain() != domain || home == "" || home == n.site() || s.config.pools == 0 || !slices.Contains(s.config.addresses, a) {
			continue
		}
		if n.host != nil {
			if n == s.master() && !(s.config.group != "" && (slices.Contains(s.store.drained, n.name) || s.config.drain[n.name])) {
				may = append(may, n.name)
			}
			continue
		}
		if slices.Contains(s.store.drained, n.name) || s.config.drain[n.name] {
			continue
		}
		if p := s.config.priority[n.name]; p < best {
			best, may = p, nil
		}
		if s.config.priority[n.name] == best {
			may = append(may, n.name)
		}
	}
	holder := string(s.store.claims[capture.Key{Pool: "p", Address: a, Domain: domain}].Holder)
	switch {
	case len(may) == 0 && holder != "":
		s.breaks("I4: %s holds %s and may not", holder, a)
	case len(may) > 0 && !slices.Contains(may, holder):
		s.breaks("I4: %s should be held by one of %v, and is by %q", a, may, holder)
	}
	return holder
}
