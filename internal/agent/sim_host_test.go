package agent

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/tasuki-io/tasuki/internal/capture"
	"github.com/tasuki-io/tasuki/internal/executor"
	"github.com/tasuki-io/tasuki/internal/vrrp"
)

// simHost is a host on a LAN, which answers for addresses by proxy ARP. Its kernel and its
// keepalived outlive its agent.
type simHost struct {
	node     *simNode
	up       bool // the link
	side     int  // of a LAN that is in two parts
	answers  map[simEntry]bool
	forwards map[string]bool
	keeper   simKeeper

	// Of the agent, while there is one.
	watch     simWatch
	ups       int  // of the link, that were not heard of
	held      bool // this process was held up since the last look
	turns     int  // looks at the authority
	refused   bool // the kernel has refused a withdrawal since the last turn
	announced map[simEntry]time.Duration
}

// simEntry is a proxy neighbour entry.
type simEntry struct {
	iface string
	addr  netip.Addr
}

const (
	simSite     = "lan"
	simInstance = "VI_1"
)

var simIfaces = []string{"lan0", "lan1"}

// onLAN makes a node one on a LAN.
func (n *simNode) onLAN(priority int) {
	h := &simHost{node: n, up: true, answers: map[simEntry]bool{}, forwards: map[string]bool{}, announced: map[simEntry]time.Duration{}}
	h.keeper = simKeeper{host: h, priority: priority}
	h.keeper.starts()
	n.host, n.nic = h, simIfaces[0]
}

// sees reports whether frames go from one host to the other.
func (h *simHost) sees(o *simHost) bool { return h.side == o.side && h.up && o.up }

// started is a new process, which knows nothing.
func (h *simHost) started(a *Agent) {
	h.watch = simWatch{host: h, looked: h.node.clock}
	h.ups, h.held, h.turns, h.refused = 0, false, 0, false
	a.lan.wire, a.lan.watch, a.lan.join = h, &h.watch, h.node.join
}

// reboots loses what the kernel had.
func (h *simHost) reboots() {
	clear(h.answers)
	clear(h.forwards)
	h.keeper.starts()
}

// link takes the link down or up. The kernel forgets the entries of a link that was taken down
// by a person, and keeps those of one whose cable was pulled.
func (h *simHost) link(up bool) {
	if h.up = up; up {
		h.ups++
		return
	}
	if h.node.happens("link down"); h.node.rng.IntN(2) == 0 {
		clear(h.answers)
	}
}

// happens is what befalls a host on a LAN.
func (h *simHost) happens() {
	n, k := h.node, &h.keeper
	late := []time.Duration{0, 0, 50 * time.Millisecond, time.Second, 5 * time.Second}[n.rng.IntN(5)]
	switch n.rng.IntN(16) {
	case 0:
		if n.rng.IntN(2) == 0 && k.runs && !k.frozen {
			k.says(vrrp.Stop, 0)
		}
		k.runs, k.fifo, k.frozen = false, false, false
		n.happens("keepalived ends")
		n.note("keepalived of %s ends", n.name)
	case 1:
		k.fifo, k.written = false, nil
		n.happens("the FIFO is gone")
		n.note("the FIFO of %s is gone", n.name)
	case 2, 3:
		k.frozen = k.runs && !k.frozen
		n.note("keepalived of %s is stopped: %t", n.name, k.frozen)
	case 4:
		h.link(!h.up)
		n.note("the link of %s is up: %t", n.name, h.up)
	case 5:
		h.side = 1 - h.side
		n.note("%s is in part %d of the LAN", n.name, h.side)
	case 6:
		h.held = true
	case 7:
		clear(h.answers)
		n.happens("removed by hand")
		n.note("by hand: %s answers for nothing", n.name)
	case 8:
		k.priority = n.rng.IntN(2)
	case 9, 10:
		if !k.runs || !k.fifo {
			k.starts()
		}
	default:
		k.thinks(late)
	}
}

// Watch is not asked for: the schedule has put one in its place.
func (h *simHost) Watch([]string, func(vrrp.State)) (watch, error) { return &h.watch, nil }

// Ups is heard of in the turn.
func (h *simHost) Ups(ctx context.Context, _ string, _ func()) error { return ctx.Err() }

// Withdraw removes entries, perhaps not all.
func (h *simHost) Withdraw(iface string, addrs ...netip.Addr) error {
	n := h.node
	for _, addr := range addrs {
		if n.one(60) {
			h.refused = true
			n.happens("the kernel refuses")
			n.note("%s: the kernel removes no entry of %s", n.name, addr)
			return errors.New("device or resource busy")
		}
		if e := (simEntry{iface, addr}); h.answers[e] {
			delete(h.answers, e)
			n.events++
			if n.happens("withdrawn"); h.turns == 0 {
				n.happens("left by an earlier agent")
			}
			n.note("%s answers for %s on %s no more", n.name, addr, iface)
		}
	}
	return nil
}

// Announce tells the LAN.
func (h *simHost) Announce(iface string, addrs ...netip.Addr) error {
	if !h.authority() {
		h.node.breaks("C12: %s announces %v without authority", h.node.name, addrs)
	}
	for _, addr := range addrs {
		h.announced[simEntry{iface, addr}] = h.node.clock
	}
	h.node.happens("announced")
	return nil
}

// join lets the attempts at a LAN come to their end, as whoever withdraws waits for it.
func (n *simNode) join(*sync.WaitGroup) {
	for _, p := range slices.Clone(n.procs) {
		for p.placing {
			n.resume(p)
		}
	}
}

// onHost is an executor of the host itself. It is killed when its context ends, and with its
// agent, and nobody else carries out what it has not done.
func (n *simNode) onHost(ctx context.Context, q executor.Request) executor.Result {
	h := n.host
	if q.Verb == executor.Describe {
		return h.describe(ctx, q)
	}
	n.asked(n, q)
	if q.Verb == capture.Assign && !q.DryRun {
		p := n.current
		p.placing = true
		defer func() { p.placing = false }()
		if n.happens("law: nothing is placed without authority"); !h.authority() {
			n.breaks("C12: %s places %s without authority", n.name, q.ID)
		}
	}
	n.pause("execute")
	if ctx.Err() != nil {
		n.happens("killed before")
		return executor.Result{Outcome: executor.OutcomeUnknown, Message: "it was killed"}
	}
	if q.DryRun {
		return executor.Result{Outcome: executor.OutcomeDone}
	}
	n.clock += time.Millisecond // a look from before it is older than what it does
	n.cloud.changing++
	n.cloud.calls = append(n.cloud.calls, simCall{q, n.name})
	n.events++
	r := executor.Result{Outcome: executor.OutcomeRetry, Code: "Kernel"}
	if !n.one(16) {
		r = h.do(q)
	}
	n.happens("on a LAN " + string(r.Outcome))
	n.note("%s: %s: %s", n.name, q.ID, r.Outcome)
	n.pause("executed")
	if ctx.Err() != nil {
		n.happens("killed after")
		return executor.Result{Outcome: executor.OutcomeUnknown, Message: "it was killed"}
	}
	return r
}

func (h *simHost) do(q executor.Request) executor.Result {
	e := simEntry{q.NIC, q.Address}
	was, want := h.answers[e], q.Verb == capture.Assign
	switch {
	case q.Verb == capture.EnableForwarding:
		was, want = h.forwards[q.NIC], true
		h.forwards[q.NIC] = true
	case q.Verb == capture.DisableForwarding:
		for e := range h.answers {
			if e.iface == q.NIC {
				return executor.Result{Outcome: executor.OutcomeRetry, Code: "StillCaptured"}
			}
		}
		was, want = h.forwards[q.NIC], false
		delete(h.forwards, q.NIC)
	case want && !h.up:
		return executor.Result{Outcome: executor.OutcomeRetry, Code: "LinkDown"}
	case want && !h.forwards[q.NIC]:
		return executor.Result{Outcome: executor.OutcomeRetry, Code: "ForwardingOff"}
	case want:
		h.answers[e] = true
		h.node.happens("placed")
	default:
		delete(h.answers, e)
	}
	if was == want {
		return executor.Result{Outcome: executor.OutcomeAlready}
	}
	return executor.Result{Outcome: executor.OutcomeDone}
}

// describe shows an interface as it is.
func (h *simHost) describe(ctx context.Context, q executor.Request) executor.Result {
	n := h.node
	n.pause("describe")
	if ctx.Err() != nil || n.one(20) {
		return executor.Result{Outcome: executor.OutcomeRetry}
	}
	nic := executor.NIC{Forwards: h.forwards[q.NIC]}
	for i := range 2 {
		if h.answers[simEntry{q.NIC, simAddr(i + 1)}] {
			nic.Addresses = append(nic.Addresses, simAddr(i+1))
		}
	}
	n.pause("described")
	return executor.Result{Outcome: executor.OutcomeDone, NIC: &nic}
}
