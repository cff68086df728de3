package agent

import (
	"context"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/tasuki-io/tasuki/internal/capture"
	"github.com/tasuki-io/tasuki/internal/executor"
)

// simCloud is a provider: an address is on one NIC at most, and a NIC forwards or does not. Where
// its NICs are in networks apart, a move leaves the address on the old NIC as well.
type simCloud struct {
	*sim
	on       map[netip.Addr]string
	also     map[netip.Addr][]string // on other NICs than that
	apart    bool
	forwards map[string]bool
	history  []simMove
	late     []executor.Request // what it has yet to do, or never does
	calls    []simCall
	changing int // calls that change something, dry runs not counted

	// answer is what a test puts in the way to the provider; nil is a straight way.
	answer func(executor.Request) *executor.Result
	lag    time.Duration // of every look, in a test
}

// simMove is a change of where an address is.
type simMove struct {
	at   time.Duration
	addr netip.Addr
	from string
}

// simCall is a call of the provider.
type simCall struct {
	executor.Request
	node string
}

// simLag is how much older than the call a provider may show the world.
const simLag = 29 * time.Second

func (c *simCloud) move(a netip.Addr, nic string) {
	if c.on[a] == nic {
		return
	}
	c.history = append(c.history, simMove{c.clock, a, c.on[a]})
	c.also[a] = slices.DeleteFunc(c.also[a], func(o string) bool { return o == nic })
	if nic == "" {
		delete(c.on, a)
		return
	}
	c.on[a] = nic
}

// asOf is where the addresses were.
func (c *simCloud) asOf(at time.Duration) map[netip.Addr]string {
	on := maps.Clone(c.on)
	for _, m := range slices.Backward(c.history) {
		if m.at < at {
			break
		}
		on[m.addr] = m.from
	}
	return on
}

// do carries out a call, or the first of its two parts.
func (c *simCloud) do(q executor.Request) executor.Result {
	c.note("the provider does %s", q.ID)
	switch q.Verb {
	case capture.Assign:
		switch at := c.on[q.Address]; {
		case at != "" && at != q.NIC && !q.Reassign:
			return executor.Result{Outcome: executor.OutcomePermanent, Code: "InvalidParameterValue", Message: "assigned, but move is not allowed"}
		case at != "" && at != q.NIC && q.Profile.Provider == "azure":
			c.move(q.Address, "")
			c.happens("two steps")
			return executor.Result{Outcome: executor.OutcomeAgain}
		}
		was := c.on[q.Address]
		if c.move(q.Address, q.NIC); c.apart && was != "" && was != q.NIC && was != "eni-x" {
			c.also[q.Address] = append(c.also[q.Address], was)
			c.happens("on two NICs")
		}
	case capture.Unassign:
		c.also[q.Address] = slices.DeleteFunc(c.also[q.Address], func(o string) bool { return o == q.NIC })
		if c.on[q.Address] == q.NIC {
			c.move(q.Address, "")
		}
	case capture.EnableForwarding:
		c.forwards[q.NIC] = true
	case capture.DisableForwarding:
		delete(c.forwards, q.NIC)
	}
	return executor.Result{Outcome: executor.OutcomeDone}
}

// has reports whether it is so already.
func (c *simCloud) has(q executor.Request) bool {
	switch q.Verb {
	case capture.Assign:
		return c.shows(q.Address, q.NIC)
	case capture.Unassign:
		return !c.shows(q.Address, q.NIC)
	case capture.EnableForwarding:
		return c.forwards[q.NIC]
	}
	return !c.forwards[q.NIC]
}

// shows reports whether an address is on a NIC.
func (c *simCloud) shows(a netip.Addr, nic string) bool {
	return c.on[a] == nic || slices.Contains(c.also[a], nic)
}

// carryOut has the provider do one of the calls that it is late with, or forget it.
func (c *simCloud) carryOut() {
	if len(c.late) == 0 {
		return
	}
	i := c.rng.IntN(len(c.late))
	q := c.late[i]
	c.late = slices.Delete(c.late, i, i+1)
	if c.rng.IntN(4) > 0 {
		c.happens("late effect")
		c.do(q)
	}
}

// execute is an executor of a node: a process of its own, which is killed when its time is over.
func (n *simNode) execute(ctx context.Context, q executor.Request) executor.Result {
	if n.host != nil {
		return n.onHost(ctx, q)
	}
	s, c := n.sim, &n.cloud
	if executor.Reads(q.Verb) {
		return n.describe(ctx, q)
	}
	n.asked(n, q)
	began := n.clock
	late := func() bool { return ctx.Err() != nil || n.clock-began > capture.ExecutorTime && s.one(2) }
	n.pause("execute")
	if late() {
		return executor.Result{Outcome: executor.OutcomeRetry, Message: "it has not started"}
	}
	if q.DryRun {
		return executor.Result{Outcome: executor.OutcomeDone}
	}
	c.changing++
	s.events++
	c.calls = append(c.calls, simCall{q, n.name})
	r := executor.Result{}
	fault := 99
	if !s.calm {
		fault = s.rng.IntN(16)
	}
	var put *executor.Result
	if c.answer != nil {
		put = c.answer(q)
	}
	switch {
	case put != nil:
		r = *put
	case q.ReadFirst && q.Verb != capture.Unassign && c.has(q):
		r.Outcome = executor.OutcomeAlready
		n.happens("already so")
	case fault == 0:
		r = executor.Result{Outcome: executor.OutcomeThrottled, Code: "RequestLimitExceeded", RetryAfter: c.changing % 2 * 20}
	case fault == 1:
		r = executor.Result{Outcome: executor.OutcomeRetry, Code: "InternalError"}
	case fault == 2:
		r = executor.Result{Outcome: executor.OutcomePermanent, Code: "PrivateIpAddressLimitExceeded", Message: q.NIC + " is full"}
	case fault == 3 || fault == 4:
		c.late = append(c.late, q)
		r.Outcome = executor.OutcomeUnknown
	default:
		r = c.do(q)
	}
	n.happens(string(r.Outcome))
	n.note("%s: %s: %s", n.name, q.ID, r.Outcome)
	n.pause("executed")
	if late() || fault == 5 {
		n.happens("lost answer")
		return executor.Result{Outcome: executor.OutcomeUnknown}
	}
	return r
}

// describe shows a NIC, perhaps as it was a while ago.
func (n *simNode) describe(ctx context.Context, q executor.Request) executor.Result {
	n.pause("describe")
	if ctx.Err() != nil || n.one(20) {
		return executor.Result{Outcome: executor.OutcomeRetry}
	}
	on, nic := n.cloud.on, executor.NIC{Forwards: n.cloud.forwards[q.NIC]}
	lag := n.cloud.lag
	if n.one(3) {
		n.happens("stale describe")
		lag = time.Duration(n.rng.Int64N(int64(simLag)))
	}
	if lag > 0 {
		on = n.cloud.asOf(n.clock - lag)
	}
	for _, a := range [...]netip.Addr{simAddr(1), simAddr(2), simAddr(3)} {
		if on[a] == q.NIC || slices.Contains(n.cloud.also[a], q.NIC) {
			nic.Addresses = append(nic.Addresses, a)
		}
	}
	r := executor.Result{Outcome: executor.OutcomeDone, NIC: &nic}
	for _, a := range q.Addresses {
		p := executor.Place{Address: a}
		if on[a] != "" {
			p.NICs = []string{on[a]}
		}
		r.Places = append(r.Places, p)
	}
	n.pause("described")
	return r
}
