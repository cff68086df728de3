package agent

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/tasuki-io/tasuki/internal/capture"
)

// minds is what lan.run does, under the schedule: it judges the authority whenever time has gone
// by, as often as a real one would have had to.
func (n *simNode) minds(a *Agent) {
	h := n.host
	for {
		h.refused = false
		rival := h.watch.look()
		for ; h.ups > 0; h.ups-- {
			n.happens("link up")
			for _, iface := range simIfaces {
				a.lan.up(iface)
			}
		}
		a.lan.judge()
		a.lan.announceAll()
		n.turned(a, rival)
		h.turns++
		n.current.nap = n.clock + 1
		n.pause("mind")
	}
}

// authority says by itself whether the host may answer: it is proven to be MASTER, and its lease
// has not ended.
func (h *simHost) authority() bool {
	return h.watch.State(simInstance).Proven && h.node.clock < h.node.until
}

// Whoever has judged its authority answers for nothing without one (C12, C10), for nothing that
// its process has not placed, and for nothing that its configuration does not list.
func (n *simNode) turned(a *Agent, rival bool) {
	h := n.host
	if h.refused {
		return // it is tried again
	}
	proven, lease := h.watch.State(simInstance).Proven, n.clock < n.until
	for e := range h.answers {
		listed := slices.Contains(a.config.seats(n.name)[seat{e.iface, simInstance}], e.addr)
		switch {
		case !listed && a.doubt: // the journal tells of it, and was not read yet
		case !listed:
			n.breaks("C12: %s answers for %s on %s, which is not listed", n.name, e.addr, e.iface)
		case !proven:
			n.breaks("C12: %s answers for %s, and %s", n.name, e.addr, h.watch.state.Reason)
		case !lease:
			n.breaks("C10: %s answers for %s, and its lease may have ended", n.name, e.addr)
		case h.turns == 0:
			n.breaks("C12: %s answers for %s, which an earlier agent has placed", n.name, e.addr)
		}
	}
	n.happens("law: silent without authority")
	if proven && !lease {
		n.happens("law: silent without a lease")
	}
	if !rival || !proven || !lease {
		return
	}
	s := seat{n.nic, simInstance}
	for _, addr := range a.holdsAt(s) {
		if e := (simEntry{n.nic, addr}); a.lan.seats[s] != nil && a.lan.seats[s].placed[addr] {
			n.happens("law: a rival is answered")
			if at, ever := h.announced[e]; !ever || at != n.clock {
				n.breaks("C12: %s has heard a rival, and does not announce %s", n.name, addr)
			}
		}
	}
}

// oneAnswers says that of the hosts that see each other one answers, when all has been well for
// a while (I9).
func (s *sim) oneAnswers() {
	for i := range 4 {
		side, addr := i/2, simAddr(1+i%2)
		var who []string
		for _, n := range s.nodes {
			if n.host == nil || !n.host.up || n.host.side != side {
				continue
			}
			for _, iface := range simIfaces {
				if n.host.answers[simEntry{iface, addr}] {
					who = append(who, n.name+" on "+iface)
				}
			}
		}
		if len(who) > 0 {
			s.happens("law: one answers")
		}
		if len(who) > 1 {
			s.breaks("I9: %v answer for %s", who, addr)
		}
	}
}

// answersAs says of the hosts of a domain that the holder answers for an address, and nobody
// else does.
func (s *sim) answersAs(domain capture.Domain, a netip.Addr, holder string) {
	for _, n := range s.nodes {
		if n.host == nil || n.domain() != domain {
			continue
		}
		for _, iface := range simIfaces {
			if got, want := n.host.answers[simEntry{iface, a}], n.name == holder && iface == n.nic; got != want {
				s.breaks("I4: %s answers for %s on %s: %t", n.name, a, iface, got)
			}
		}
	}
}

// flaps has the link of the MASTER go down and come up again, with the loss of all entries. It
// is soon as it was.
func (s *sim) flaps() {
	n := s.master()
	if n == nil || len(n.host.answers) == 0 {
		return
	}
	want := len(n.host.answers)
	clear(n.host.answers)
	n.host.ups++
	s.note("the link of %s flaps", n.name)
	for until := s.clock + 5*time.Second; s.broken == ""; s.clock = min(s.clock, until) {
		for _, n := range s.nodes {
			s.goOn(n, 1000)
		}
		if s.clock >= until {
			break
		}
		s.tick()
	}
	if s.happens("law: asserted again"); len(n.host.answers) != want {
		s.breaks("C12: the link of %s is up again, and it answers for %d of %d addresses", n.name, len(n.host.answers), want)
	}
}

// split says so when two answer who do not see each other, which nobody can prevent.
func (s *sim) split() {
	n := 0
	for _, o := range s.nodes {
		if o.host != nil && o.host.answers[simEntry{o.nic, simAddr(1)}] {
			n++
		}
	}
	if n > 1 {
		s.happens("two answer")
	}
}

// domains are those of all nodes.
func (s *sim) domains() (all []capture.Domain) {
	for _, n := range s.nodes {
		if d := n.domain(); !slices.Contains(all, d) {
			all = append(all, d)
		}
	}
	return all
}

func (n *simNode) site() string {
	if n.host == nil {
		return "cloud"
	}
	return simSite
}

// elsewhere reports an action that takes on an interface that is not this host's in the pool any
// more. It waits for that to forward, at the epoch that it was planned for.
func (n *simNode) elsewhere(a capture.Action) bool {
	return n.host != nil && takes(a.Verb) && a.NIC != n.nic
}

// nics are all that a node may ever have used.
func (n *simNode) nics() []string {
	if n.host == nil {
		return []string{n.nic}
	}
	return simIfaces
}

func (n *simNode) forwards(nic string) bool {
	if n.host == nil {
		return n.cloud.forwards[nic]
	}
	return n.host.forwards[nic]
}

func (n *simNode) domain() capture.Domain {
	if n.host == nil {
		return simDomain
	}
	if n.sim.config.group == "" {
		return capture.Domain(fmt.Sprintf("onprem:%s:node:%s", simSite, n.name))
	}
	return capture.Domain(fmt.Sprintf("onprem:%s:placement:%s", simSite, n.sim.config.group))
}
