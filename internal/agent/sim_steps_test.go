package agent

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/tasuki-io/tasuki/internal/capture"
)

// simulate runs one schedule, or those steps of it that are given. Every step draws from
// random numbers of its own, so that one can be left out and the others stay what they are.
func simulate(st *simStage, seed uint64, steps []int, read bool) *sim {
	draw := func(s *sim, step int) { s.pcg.Seed(seed, uint64(step)); s.step = step }
	s := newSim(2, 1)
	draw(s, 0)
	addresses, provider := 1+s.rng.IntN(2), []string{"aws", "aws", "azure"}[s.rng.IntN(3)]
	s = newSim(2+s.rng.IntN(3), addresses)
	s.seed, s.read, s.config.provider = seed, read, provider
	s.closely = (seed+seed/8)%32 == 0 // of every kind of world some
	s.rechecks = read || s.closely
	draw(s, 1)
	for _, n := range s.nodes {
		s.config.priority[n.name] = s.rng.IntN(2)
		n.boot, n.skew = time.Duration(s.rng.IntN(1000))*time.Hour, time.Duration(s.rng.IntN(3)-1)*time.Minute
	}
	s.config.policy.budget = []int{1, 2, 100}[s.rng.IntN(3)]
	for i, n := range s.nodes {
		if seed%8 == 4 || seed%8 == 6 && i%2 == 1 { // a LAN, and one beside a cloud
			n.onLAN(s.rng.IntN(2))
		}
	}
	s.cloud.apart = seed%8 == 3
	if seed%16 == 12 {
		s.config.group = ""
	}
	s.write()
	st.enter(s)
	defer s.leave()
	defer func() {
		if r := recover(); r != nil {
			panic(fmt.Sprintf("seed %d: %v", seed, r))
		}
	}()
	if steps == nil {
		steps = simSchedule
	}
	for _, step := range steps {
		draw(s, step)
		if s.happen(); s.broken != "" {
			return s
		}
	}
	draw(s, len(simSchedule)+2)
	s.settle()
	return s
}

// simSchedule are the steps of a schedule; 0 and 1 make the world.
var simSchedule = func() (steps []int) {
	for i := range 250 {
		steps = append(steps, i+2)
	}
	return steps
}()

// happen is one step: mostly, somebody goes on; seldom, something happens to the world.
func (s *sim) happen() {
	n := s.nodes[s.rng.IntN(len(s.nodes))]
	switch s.rng.IntN(64) {
	case 0:
		n.crash()
		s.happens("crash")
		if s.rng.IntN(2) == 0 {
			n.boot -= time.Duration(s.rng.Int64N(int64(time.Hour))) // the machine as well
			if s.happens("reboot"); n.host != nil {
				n.host.reboots()
			}
		}
	case 1, 2:
		if n.host != nil {
			n.host.held = true
		}
		if n.paused = !n.paused; n.paused {
			s.happens("pause")
			s.note("%s is paused", n.name)
		}
	case 3:
		n.skew += []time.Duration{-time.Hour, time.Hour, -24 * time.Hour, 30 * time.Minute, time.Second}[s.rng.IntN(5)]
		s.happens("clock set")
		s.note("the clock of %s is off by %s", n.name, n.skew)
	case 4, 5:
		drained := !slices.Contains(s.store.drained, n.name)
		s.store.drain(n.name, drained)
		s.happens(map[bool]string{true: "drain", false: "undrain"}[drained])
		s.note("%s drained: %t", n.name, drained)
	case 6:
		a := s.anyAddress()
		site := []string{"home", n.site(), "home", ""}[s.rng.IntN(4)]
		s.store.own(capture.Home{Pool: "p", Addr: a}, site)
		s.happens("owned")
		s.note("%s lives at %q", a, site)
	case 7, 8:
		s.reconfigure()
	case 9:
		n.approve()
	case 10:
		if row, ok := n.anyRow(capture.Pending, capture.Approved, capture.Failed); ok && n.loop != nil {
			n.rehearse(row)
		}
		n.hasten()
	case 11:
		if row, ok := n.anyRow(capture.Succeeded); ok {
			n.undo(row.ID())
		}
	case 12:
		s.takeByHand(s.anyAddress())
	case 13, 14, 15:
		s.cloud.carryOut()
	case 16:
		if s.seed%5 == 0 && len(s.store.history) > 0 {
			most := len(s.store.history) + 1
			if s.rng.IntN(2) == 0 {
				most = min(4, most)
			}
			s.store.restore(len(s.store.history) - s.rng.IntN(most))
			s.happens("store restored")
			s.note("the store is restored as of %d writes", len(s.store.history))
		}
	case 17, 18:
		n.reload()
	case 19, 20, 21, 22:
		by := []time.Duration{time.Second, simHold, 35 * time.Second, 2 * time.Minute, 6 * time.Minute}[s.rng.IntN(5)]
		if n.host != nil && by > simHold {
			by /= 35
		}
		s.clock += by
	case 23, 24, 25, 26:
		if n.waiting && !n.next.IsZero() { // until its timer
			s.clock = max(s.clock, n.alarm-n.boot)
		}
	case 27:
		if n.cut = []simCut{0, 0, simDeafened, simMuted}[s.rng.IntN(4)]; n.cut == 0 {
			break
		}
		s.happens("cut off")
		s.note("%s does not reach the store", n.name)
	case 28, 29, 30, 31:
		if n.host != nil {
			n.host.happens()
			break
		}
		fallthrough
	default:
		if n.up(); n.host != nil {
			n.host.keeper.thinks(0)
			s.split()
		}
		if n.cut != 0 && s.rng.IntN(12) == 0 {
			n.cut = 0
			s.note("%s reaches the store again", n.name)
		}
		if s.goOn(n, 1<<s.rng.IntN(6)) == 0 {
			s.clock += time.Second
		}
	}
}

// goOn lets a node make so many steps from one point to the next, at most.
func (s *sim) goOn(n *simNode, most int) (made int) {
	for made < most && s.broken == "" {
		var able [8]*simProc
		k := 0
		for _, p := range n.procs {
			if k < len(able) && n.runnable(p) {
				able[k] = p
				k++
			}
		}
		if k == 0 {
			return made
		}
		s.resume(able[s.rng.IntN(k)])
		made++
	}
	return made
}

func (n *simNode) anyRow(states ...capture.State) (capture.Action, bool) {
	var rows []capture.Action
	for _, id := range n.disk.order {
		if row := n.disk.rows[id]; slices.Contains(states, row.State) {
			rows = append(rows, row)
		}
	}
	if len(rows) == 0 {
		return capture.Action{}, false
	}
	return rows[n.rng.IntN(len(rows))], true
}

// reconfigure is a person who edits the files. Some nodes take them into use at once.
func (s *sim) reconfigure() {
	n := s.nodes[s.rng.IntN(len(s.nodes))]
	switch s.rng.IntN(6) {
	case 0:
		if n.host != nil {
			s.config.iface = simIfaces[s.rng.IntN(2)]
			s.happens("interface")
			break
		}
		s.config.priority[n.name] = s.rng.IntN(2)
		s.happens("priority")
	case 1:
		s.config.drain[n.name] = !s.config.drain[n.name]
		s.happens("configured drain")
	case 2:
		a := s.anyAddress()
		if i := slices.Index(s.config.addresses, a); i >= 0 {
			s.config.addresses = slices.Delete(slices.Clone(s.config.addresses), i, i+1)
			s.happens("address removed")
		} else {
			s.config.addresses = append(slices.Clone(s.config.addresses), a)
			slices.SortFunc(s.config.addresses, func(a, b netip.Addr) int { return a.Compare(b) })
			s.happens("address added")
		}
	case 3:
		s.config.pools = 1 - s.config.pools
		s.happens("pool removed or added")
	default:
		s.config.policy = simPolicy{closed: simClosed[s.rng.IntN(len(simClosed))], approval: s.rng.IntN(4) == 0, budget: []int{0, 1, 2, 100}[s.rng.IntN(4)]}
		s.happens("policy " + s.config.policy.closed)
	}
	s.write()
	s.note("configured: %s", &s.config)
	for _, n := range s.nodes {
		if s.rng.IntN(4) > 0 {
			n.reload()
		}
	}
}

// takeByHand is a person at the provider's console. An address that was never captured is left
// alone: the first assignment takes nothing from anybody, and fails for good.
func (s *sim) takeByHand(a netip.Addr) {
	if !s.everCaptured(a) {
		return
	}
	nic := []string{"eni-x", "eni-a", "eni-b", ""}[s.rng.IntN(4)]
	s.cloud.move(a, nic)
	s.happens("taken by hand")
	s.note("by hand: %s is on %q", a, nic)
}

// everCaptured reports whether taking the address is allowed to whoever takes it next.
func (s *sim) everCaptured(a netip.Addr) bool {
	if s.store.claims[simKey(a)].Epoch > 1 {
		return true
	}
	for _, n := range s.nodes {
		for _, row := range n.disk.rows {
			if row.Key == simKey(a) && row.Verb == capture.Assign && row.State == capture.Succeeded {
				return true
			}
		}
	}
	return false
}
