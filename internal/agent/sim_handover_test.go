package agent

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tasuki-io/tasuki/internal/capture"
	"github.com/tasuki-io/tasuki/internal/executor"
)

// c01: a holds; a is drained, with nobody to approve the release; a is desired again. The
// release is skipped once and never sent, and nothing of it is left.
func TestC01AReleaseIsOvertakenByAReturn(t *testing.T) {
	p := newPlay(t, 2, 1)
	p.settles("a")
	p.configured(func(c *simConfig) { c.policy.approval = true })
	p.store.drain("a", true)
	p.settles()
	p.claimed(capture.Claim{Epoch: 2, Holder: "b"})
	a := p.node("a")
	pending := func() (ids []string) {
		for id, row := range a.disk.rows {
			if row.State == capture.Pending {
				ids = append(ids, id)
			}
		}
		slices.Sort(ids)
		return ids
	}
	if diff := cmp.Diff([]string{disable("a", "2"), unassign("a", "2")}, pending()); diff != "" || len(a.disk.markers) != 2 {
		t.Errorf("pending (-want +got):\n%s\nmarkers %v", diff, a.disk.markers)
	}

	p.store.drain("a", false)
	p.store.drain("b", true)
	p.configured(func(c *simConfig) { c.policy.approval = false })
	p.settles()
	p.claimed(capture.Claim{Epoch: 3, Holder: "a"})
	if left := pending(); len(left)+len(a.disk.markers) > 0 {
		t.Errorf("left: pending %v, markers %v", left, a.disk.markers)
	}
	if row := p.row("a", unassign("a", "2")); row.State != capture.Skipped || row.Attempts != 0 {
		t.Errorf("the release is %s after %d attempts, want it skipped and never sent", row.State, row.Attempts)
	}
	p.called(moves, assign("a", "1"), assign("a", "3"))
}

// c02: the address goes from a to b and back. The assignment at epoch 3 runs although the one at
// epoch 1 has succeeded.
func TestC02ThereAndBack(t *testing.T) {
	p := newPlay(t, 2, 1)
	for epoch, drained := range []string{"", "a", "b"} {
		for _, n := range p.nodes {
			p.store.drain(n.name, n.name == drained)
		}
		p.settles()
		p.claimed(capture.Claim{Epoch: capture.Epoch(epoch + 1), Holder: []capture.Holder{"a", "b", "a"}[epoch]})
	}
	p.called(assigns, assign("a", "1"), assign("b", "2"), assign("a", "3"))
	p.isOn("eni-a")
}

// c03: everybody is drained, then one is not.
func TestC03ThroughNone(t *testing.T) {
	p := newPlay(t, 2, 1)
	p.settles()
	p.store.drain("a", true)
	p.store.drain("b", true)
	p.settles()
	p.claimed(capture.Claim{Epoch: 2, Holder: capture.None})
	if len(p.cloud.on)+len(p.cloud.forwards) > 0 {
		t.Fatalf("with all drained: on %v, forwarding %v", p.cloud.on, p.cloud.forwards)
	}
	p.store.drain("a", false)
	p.settles()
	p.claimed(capture.Claim{Epoch: 3, Holder: "a"})
	p.called(moves, assign("a", "1"), unassign("a", "2"), assign("a", "3"))
}

// c04: the agent dies when the marker and its row are durable.
func TestC04TheReleaseSurvivesACrash(t *testing.T) {
	p := newPlay(t, 2, 1)
	p.settles()
	p.store.drain("a", true)
	p.store.drain("b", true)
	p.until("a", "", "begin")
	a := p.node("a")
	if len(a.disk.markers) != 2 {
		t.Fatalf("%d markers at the death", len(a.disk.markers))
	}
	a.crash()
	a.paused = false
	p.settles()
	p.called(releases, unassign("a", "2"))
	if len(a.disk.markers) > 0 || len(p.cloud.on) > 0 {
		t.Errorf("left: markers %v, addresses %v", a.disk.markers, p.cloud.on)
	}
}

// c05: the agent of a is stopped just before an assignment that takes the address from whoever
// has it; b seizes, and a goes on. Before a has read the claim, the gate refuses; after, its call
// cannot be recalled, and the holder takes the address back.
func TestC05APausedAgentTakesNothingBack(t *testing.T) {
	for at, calls := range map[string][]string{
		"claim":   {assign("a", "1"), assign("b", "2"), assign("b", "4")},
		"execute": {assign("a", "1"), assign("b", "2"), assign("b", "4"), assign("a", "3"), assign("b", "4:repair:1")},
	} {
		t.Run(at, func(t *testing.T) {
			p := newPlay(t, 2, 1)
			p.configured(func(c *simConfig) { c.priority["b"] = 1 })
			p.settles()
			p.store.drain("a", true)
			p.settles()
			p.store.drain("a", false)
			a := p.node("a")
			p.until("a", assign("a", "3"), at)
			p.store.drain("a", true)
			p.goOn(p.node("b"), 1000)
			p.isOn("eni-b")

			a.paused = false
			p.settles()
			p.claimed(capture.Claim{Epoch: 4, Holder: "b"})
			p.called(assigns, calls...)
			p.isOn("eni-b")
			if at == "claim" {
				if row := p.row("a", assign("a", "3")); row.State != capture.Skipped || row.Attempts != 0 {
					t.Errorf("the assignment is %s after %d attempts, want it skipped and never sent", row.State, row.Attempts)
				}
			}
		})
	}
}

// c05, of a host that is paused for longer than its lease: its call lands soon after b has seized, or
// when it comes back after minutes. b looks closely while that may happen, and not for longer.
func TestC05ALateCallIsTakenBackSoon(t *testing.T) {
	for name, tt := range map[string]struct{ paused, within time.Duration }{
		"soon after the takeover":      {simTTL + time.Second, settles + lookClosely},
		"at the last moment":           {simTTL + capture.ExecutorTime, settles + lookClosely},
		"when the host comes back":     {10 * time.Minute, lookClosely},
		"when it comes back after all": {24 * time.Hour, lookClosely},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlay(t, 2, 1)
			p.settles()
			p.store.drain("a", true)
			p.settles()
			p.store.drain("a", false)
			p.store.drain("b", true)
			a, b := p.node("a"), p.node("b")
			p.until("a", assign("a", "3"), "execute")
			p.store.drain("b", false)
			for until := p.clock + tt.paused; p.clock < until; p.tick() {
				p.goOn(b, 1000)
			}
			p.isOn("eni-b")
			a.paused = false
			p.goOn(a, 1000)
			landed := p.clock
			for p.cloud.on[simAddr(1)] != "eni-b" && p.clock < landed+time.Hour {
				p.goOn(b, 1000)
				p.goOn(a, 1000)
				p.tick()
			}
			if took := p.clock - landed; took > tt.within {
				t.Errorf("it was taken back after %s, want it within %s", took, tt.within)
			}
			p.settles()
			p.called(assigns, assign("a", "1"), assign("b", "2"), assign("b", "4"), assign("a", "3"), assign("b", "4:repair:1"))
			passes := p.seen["pass"]
			for until := p.clock + 30*time.Minute; p.clock < until; p.tick() {
				p.goOn(b, 1000)
				p.goOn(a, 1000)
			}
			if made := p.seen["pass"] - passes; made > 160 {
				t.Errorf("%d passes of two agents in half an hour in which nothing can land", made)
			}
		})
	}
}

// c06: an assignment took effect, and its answer was lost. It is verified by reading.
func TestC06ALostAnswerIsReadAgain(t *testing.T) {
	p := newPlay(t, 1, 1)
	p.cloud.answer = func(q executor.Request) *executor.Result {
		if q.Verb != capture.Assign || q.ReadFirst {
			return nil
		}
		p.cloud.do(q)
		return &executor.Result{Outcome: executor.OutcomeUnknown, Message: "timeout"}
	}
	p.settles()
	if row := p.row("a", assign("a", "1")); row.State != capture.Succeeded || row.Attempts != 2 || row.Unanswered != 1 {
		t.Errorf("it is %s after %d attempts, %d unanswered", row.State, row.Attempts, row.Unanswered)
	}
	if p.seen["already so"] != 1 || p.seen["done"] != 1 { // the other is forwarding
		t.Errorf("%d were so already, %d were done", p.seen["already so"], p.seen["done"])
	}
	p.isOn("eni-a")
}

// c07: the provider does not show an assignment for 20 s. It is not lost.
func TestC07AnAssignmentIsNotLostBeforeItCanShow(t *testing.T) {
	p := newPlay(t, 1, 1)
	p.cloud.lag = 20 * time.Second
	a := p.node("a")
	a.up()
	for range 5 {
		p.clock += 4 * time.Second
		p.looks("a")
		p.goOn(a, 1000)
	}
	if nic := a.loop.nics[a.loop.targets()[0]]; nic.Addresses.Has(simAddr(1)) {
		t.Fatal("the NIC shows the address: nothing is tested")
	}
	p.settles()
	p.called(assigns, assign("a", "1"))
}

// c08: the provider throttles nine calls of ten. It comes to its end, and nothing has failed.
func TestC08ThrottlingIsPatienceAndNoFailure(t *testing.T) {
	p := newPlay(t, 1, 1)
	n, last := 0, time.Duration(0)
	p.cloud.answer = func(executor.Request) *executor.Result {
		last = p.clock
		if n++; n%10 == 0 {
			return nil
		}
		return &executor.Result{Outcome: executor.OutcomeThrottled, Code: "RequestLimitExceeded"}
	}
	p.settles()
	if row := p.row("a", assign("a", "1")); row.State != capture.Succeeded || p.seen["failed"] > 0 {
		t.Errorf("it is %s, and %d attempts have failed", row.State, p.seen["failed"])
	}
	if last < 30*time.Second {
		t.Errorf("%d calls were made in %s", n, last)
	}
}

// c09: somebody moves the address to a NIC that is nobody's. Its holder takes it back once, and
// the standby does nothing.
func TestC09AnAddressTakenByHandIsTakenBackOnce(t *testing.T) {
	for _, to := range []string{"eni-x", "eni-b", ""} {
		p := newPlay(t, 2, 1)
		p.settles()
		p.cloud.move(simAddr(1), to)
		p.settles()
		p.called(assigns, assign("a", "1"), assign("a", "1:repair:1"))
		p.isOn("eni-a")
	}
}

// c10: the address was taken from the old NIC, and then the process dies.
func TestC10TheSecondPartIsDoneAfterACrash(t *testing.T) {
	p := newPlay(t, 2, 1)
	p.config.provider = "azure"
	p.write()
	p.settles()
	p.store.drain("a", true)
	b := p.node("b")
	for p.cloud.on[simAddr(1)] != "" {
		p.goOn(b, 1)
		p.goOn(p.node("a"), 1)
	}
	b.crash()
	p.settles()
	p.isOn("eni-b")
	if p.seen["two steps"] != 1 {
		t.Errorf("%d moves in two steps, want one", p.seen["two steps"])
	}
}

// Between the two parts of a move the gate is asked again.
func TestTheGateIsAskedBetweenTwoParts(t *testing.T) {
	p := newPlay(t, 2, 1)
	p.config.provider = "azure"
	p.write()
	p.settles()
	p.store.drain("a", true)
	p.node("a").paused = true
	b := p.node("b")
	for p.cloud.on[simAddr(1)] != "" {
		if p.goOn(b, 1) == 0 {
			t.Fatal("b does not take the address")
		}
	}
	p.store.drain("a", false)
	p.store.drain("b", true)
	b.paused, p.node("a").paused = true, false
	for p.store.claims[simKey(simAddr(1))].Holder != "a" { // at once: the lease of b goes on
		if p.goOn(p.node("a"), 1) == 0 {
			t.Fatal("a does not take the address back")
		}
	}
	b.paused = false
	p.settles()
	id := "mobility:p:azure:eni-b:assign-secondary-ip:10.0.0.1:epoch:2"
	n := 0
	for _, c := range p.cloud.calls {
		if c.ID == id {
			n++
		}
	}
	if row := p.row("b", id); n != 1 || row.State != capture.Skipped || row.Attempts != 1 {
		t.Errorf("b asks %d times, and the row is %s after %d attempts; want the first part alone", n, row.State, row.Attempts)
	}
	p.isOn("eni-a")
}

// c13: the NIC is full. Other addresses go on, and this one is tried again after a while.
func TestC13OneThatFailsHoldsUpNoOther(t *testing.T) {
	p := newPlay(t, 1, 2)
	full := true
	p.cloud.answer = func(q executor.Request) *executor.Result {
		if full && q.Address == simAddr(1) {
			return &executor.Result{Outcome: executor.OutcomePermanent, Code: "PrivateIpAddressLimitExceeded", Message: "eni-a is full"}
		}
		return nil
	}
	a := p.node("a")
	a.up()
	p.goOn(a, 1000)
	if p.cloud.on[simAddr(2)] != "eni-a" {
		t.Errorf("on %v, want the other address to go on", p.cloud.on)
	}
	if h := p.held("a", assign("a", "1")); h.Wait != capture.WaitBackoff || h.Action.Reason != "eni-a is full" || h.Until.Sub(a.now()) != time.Minute {
		t.Errorf("held: %+v", h)
	}
	full = false
	p.settles()
	if row := p.row("a", assign("a", "1")); row.State != capture.Succeeded || row.Attempts != 2 {
		t.Errorf("it ends %s after %d attempts", row.State, row.Attempts)
	}
}

// c14: forwarding stays while one of two addresses does.
func TestC14ForwardingStaysUntilTheLastAddressLeaves(t *testing.T) {
	p := newPlay(t, 1, 2)
	p.settles()
	for i, forwards := range []bool{true, false} {
		p.store.own(capture.Home{Pool: "p", Addr: simAddr(i + 1)}, "cloud")
		p.settles()
		if p.cloud.forwards["eni-a"] != forwards {
			t.Errorf("forwarding is %t after %d addresses have left", !forwards, i+1)
		}
	}
	if last := p.cloud.calls[len(p.cloud.calls)-1]; last.Verb != capture.DisableForwarding {
		t.Errorf("the last call is %s", last.Verb)
	}
}

// c16: the clock of the holder is set back by one hour, and on by a day. Nothing happens.
func TestC16AClockThatIsSetChangesNothing(t *testing.T) {
	p := newPlay(t, 2, 1)
	p.settles()
	for _, by := range []time.Duration{-time.Hour, 25 * time.Hour} {
		events := p.events
		p.node("a").skew += by
		p.settles()
		if p.events != events {
			t.Errorf("set by %s: %d writes and calls", by, p.events-events)
		}
	}
}

// A hold is as long as it is, whatever the clock on the wall says meanwhile.
func TestAHoldIsMeasuredByTheMonotonicClock(t *testing.T) {
	p := newPlay(t, 1, 1)
	p.settles()
	p.store.own(capture.Home{Pool: "p", Addr: simAddr(1)}, "cloud")
	a := p.node("a")
	p.goOn(a, 1000)
	a.skew += time.Hour
	a.ask(func(context.Context) {})
	p.goOn(a, 1000)
	p.called(releases)
	p.clock += simHold
	p.goOn(a, 1000)
	p.called(releases, unassign("a", "2"))
}

// c17: an equal that returns after a handover takes nothing; a strictly better one takes it back.
func TestC17AnEqualThatReturnsTakesNothing(t *testing.T) {
	p := newPlay(t, 2, 1)
	p.settles()
	p.store.drain("a", true)
	p.settles()
	p.store.drain("a", false)
	p.settles()
	p.claimed(capture.Claim{Epoch: 2, Holder: "b"})
	p.configured(func(c *simConfig) { c.priority["b"] = 1 })
	p.settles()
	p.claimed(capture.Claim{Epoch: 3, Holder: "a"})
	p.isOn("eni-a")
}

// a is preferred, and crashes in the middle of its seize; b takes over. When a is there again it has to
// wait for what it began (spec C6), and b keeps the address for so long: it is never without a NIC.
func TestC17APreferredHostTakesItBackWhenItCanAct(t *testing.T) {
	p := newPlay(t, 2, 1)
	p.configured(func(c *simConfig) { c.priority["b"] = 1 })
	p.settles()
	p.store.drain("a", true)
	p.settles()
	p.store.drain("a", false)
	a, b := p.node("a"), p.node("b")
	p.until("a", assign("a", "3"), "execute")
	a.crash()
	for len(p.cloud.late) > 0 {
		p.cloud.carryOut()
	}
	for until := p.clock + 2*simTTL; p.clock < until; p.tick() {
		p.goOn(b, 1000)
	}
	p.claimed(capture.Claim{Epoch: 4, Holder: "b"})
	p.isOn("eni-b")
	a.paused = false
	a.up()
	for until := p.clock + 2*capture.ExecutorTime; p.clock < until && p.cloud.on[simAddr(1)] != "eni-a"; p.tick() {
		p.goOn(a, 1000)
		p.goOn(b, 1000)
		if p.cloud.on[simAddr(1)] == "" {
			t.Fatal("the address is on no NIC")
		}
	}
	p.settles()
	p.claimed(capture.Claim{Epoch: 5, Holder: "a"})
	p.isOn("eni-a")
}

// A better one that has claims of its own, as without a ClaimsStore, cannot take by itself what this
// node holds: it is given up.
func TestNobodyWaitsForOneThatTheStoreHasNeverHeardOf(t *testing.T) {
	p := newPlay(t, 2, 1)
	p.settles("a")
	p.configured(func(c *simConfig) { c.priority["a"] = 1 })
	p.settles("a")
	p.claimed(capture.Claim{Epoch: 2, Holder: "b"})
	p.isOn("")
}

// c22: nothing is executed by a policy that nobody has written.
func TestC22AZeroPolicyCallsNothing(t *testing.T) {
	p := newPlay(t, 1, 1)
	p.config.policy.closed = "enabled"
	p.inForce.Policy = capture.Policy{}
	p.settles()
	h := p.held("a", assign("a", "1"))
	if p.called(nil); h.Block.Rule != capture.RuleEnabled || h.Action.State != capture.Pending || p.seen["stale describe"] > 0 {
		t.Errorf("held: %+v", h)
	}
	if looks := len(p.node("a").loop.looks); looks > 0 {
		t.Errorf("%d NICs were looked at", looks)
	}
}

// c24: the store was restored from an older copy, or is empty. Every line goes on above what the
// agents know, and the address stays where it is.
func TestC24AStoreThatHasLostEpochsIsReseeded(t *testing.T) {
	for _, to := range []int{0, 1, 2} {
		p := newPlay(t, 2, 1)
		p.settles()
		p.store.drain("a", true)
		p.settles()
		p.store.restore(to)
		p.store.drain("a", true) // it is lost with the store, and has to be said again
		p.settles()
		for _, n := range p.nodes {
			for k, c := range n.disk.known {
				if got := p.store.claims[k]; got != c {
					t.Errorf("restored to write %d: %s is %s, and %s knows %s", to, k, got, n.name, c)
				}
			}
		}
		if to == 0 {
			p.claimed(capture.Claim{Epoch: 3, Holder: "b"})
		}
		p.isOn("eni-b")
	}
}

// A drain has no gap: the address leaves when the next holder has taken it, and the provider
// shows that it has; and it does not wait for the hold then.
func TestADrainWaitsForTheNextHolder(t *testing.T) {
	p := newPlay(t, 2, 1)
	p.settles()
	p.store.drain("a", true)
	a, b := p.node("a"), p.node("b")
	p.goOn(a, 1000)
	if h := p.held("a", unassign("a", "2")); h.Wait != capture.WaitTakeover || h.Until.Sub(a.now()) != simHold {
		t.Errorf("held: %+v", h)
	}
	p.goOn(b, 1000)
	p.isOn("eni-b")
	for p.row("a", unassign("a", "2")).State != capture.Succeeded && p.clock < 10*time.Minute {
		p.tick()
		p.goOn(a, 1000)
	}
	if since := a.loop.view.Line(simKey(simAddr(1))).Since; a.now().Sub(since) > 2*lookOften {
		t.Errorf("it was released %s after the change, want soon after the next look", a.now().Sub(since))
	}
	p.called(moves, assign("a", "1"), assign("b", "2"), unassign("a", "2"))
}

// A run begins as many actions as it may, and the next run the next ones.
func TestARunHasABudget(t *testing.T) {
	p := newPlay(t, 1, 2)
	p.configured(func(c *simConfig) { c.policy.budget = 2 })
	a := p.node("a")
	a.up()
	flying := 0
	for p.goOn(a, 1) > 0 {
		flying = max(flying, len(a.flying))
	}
	if flying != 2 || len(p.cloud.calls) != 3 {
		t.Errorf("%d at once, and %d calls", flying, len(p.cloud.calls))
	}
}

// A node holds two addresses. Then the configuration changes, and it lets go of those that it is
// no longer to hold, whatever of it has gone; and of its NIC, when that was the last one.
func TestWhatTheConfigurationNoLongerKnowsIsGivenUp(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*play)
		stay   int
	}{
		"nothing has changed":     {func(*play) {}, 2},
		"one address is gone":     {func(p *play) { p.config.addresses = p.config.addresses[1:] }, 1},
		"both addresses are gone": {func(p *play) { p.config.addresses = nil }, 0},
		"the pool is gone":        {func(p *play) { p.config.pools = 0 }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlay(t, 1, 2)
			p.settles()
			p.configured(func(*simConfig) { tt.change(p) })
			p.settles()
			if a := p.node("a"); len(p.cloud.on) != tt.stay || p.cloud.forwards["eni-a"] != (tt.stay > 0) || len(a.disk.markers) > 0 {
				t.Errorf("on %v, forwarding %v, markers %v; want %d to stay", p.cloud.on, p.cloud.forwards, a.disk.markers, tt.stay)
			}
		})
	}
}
