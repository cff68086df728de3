package main

import (
	"net/netip"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tasuki-io/tasuki/internal/agent"
	"github.com/tasuki-io/tasuki/internal/capture"
	"github.com/tasuki-io/tasuki/internal/claims/etcd/etcdtest"
	"github.com/tasuki-io/tasuki/internal/executor/executortest"
)

// Case c05: the agent of a is stopped just before it assigns the address to itself with
// reassignment; its lease ends, and b seizes. When a goes on, the gate refuses what it has not sent.
func TestC05InEtcdThePausedAgentIsRefused(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	a, _ := p.handsOver()
	p.ec2.Inject(executortest.Rule{Match: assignTo("eni-a"), Fault: executortest.Throttled})
	p.drain("b", "b", true)
	p.until("a waits for seconds to seize again", func() bool {
		open, err := p.of("a").Actions(t.Context(), nil)
		return err == nil && slices.ContainsFunc(open, func(o agent.Action) bool {
			return o.Verb == capture.Assign && o.Wait == capture.WaitBackoff && o.Attempts >= 3
		})
	})
	a.signal(syscall.SIGSTOP)
	p.ec2.Heal()
	before := len(p.ec2.Calls())
	p.drain("b", "b", false)
	p.rests(4, "b", "b")
	a.signal(syscall.SIGCONT)
	p.rests(4, "b")
	a.says("action fenced")
	if calls := p.changing("a", before); slices.ContainsFunc(calls, func(id string) bool { return strings.Contains(id, "-assign-") }) {
		t.Errorf("a has asked for %v", calls)
	}
}

// Case c05, when the call is at the provider as b seizes: nothing can call it back. It lands, a
// releases what it has got too late, and b takes the address back, once.
func TestC05InEtcdALateCallIsRepaired(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	a, b := p.handsOver()
	arrived, gate := make(chan struct{}, 10), make(chan struct{})
	open := sync.OnceFunc(func() { close(gate) })
	t.Cleanup(open)
	p.ec2.Before(func(c executortest.Call) {
		if assignTo("eni-a")(c) {
			arrived <- struct{}{}
			<-gate
		}
	})
	p.drain("b", "b", true)
	<-arrived
	a.signal(syscall.SIGSTOP)
	p.drain("b", "b", false)
	p.rests(4, "b", "b")
	open()
	p.until("the call of a has landed", func() bool { return slices.Equal(p.ec2.Holders(mobile), []string{"eni-a"}) })
	landed := time.Now()
	a.signal(syscall.SIGCONT)
	p.until("a has released it", func() bool { return !slices.Contains(p.ec2.Holders(mobile), "eni-a") })
	p.until("b has it", func() bool { return slices.Equal(p.ec2.Holders(mobile), []string{"eni-b"}) })
	t.Logf("b has it again %.1f s after the late call has landed", time.Since(landed).Seconds())
	p.rests(4, "b")
	if n := b.said("repairing"); n != 1 {
		t.Errorf("b has repaired it %d times, want once", n)
	}
}

// Case c09: somebody moves the address to a foreign NIC. The holder takes it back once, at the
// epoch that it holds, and the standby does nothing.
func TestC09InEtcdTheHolderAloneTakesItBack(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	p.ec2.AddNIC(executortest.Interface{ID: "eni-x", Subnet: "s", VPC: "v", Primary: netip.MustParseAddr("10.0.1.99")})
	p.handsOver()
	before := len(p.ec2.Calls())
	p.ec2.Place("eni-x", mobile)
	p.until("b takes it back", func() bool { return slices.Equal(p.ec2.Holders(mobile), []string{"eni-b"}) })
	p.rests(2, "b")
	if calls := p.changing("b", before); len(calls) != 1 || !strings.HasSuffix(calls[0], "assign-secondary-ip-10.0.0.1-epoch-2-repair-1") {
		t.Errorf("b has asked for %v, want one repair at epoch 2", calls)
	}
	if calls := p.changing("a", before); len(calls) > 0 {
		t.Errorf("the standby has asked for %v", calls)
	}
}

// Case c17: a host that was succeeded returns as an equal, and nothing moves; with a strictly better
// priority it takes the address back, before the other lets go of it.
func TestC17InEtcdAnEqualThatReturnsTakesNothing(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	a := p.starts("a")
	p.rests(1, "a", "a")
	b := p.starts("b")
	p.rests(1, "a")
	a.kill()
	p.rests(2, "b", "b")
	a = p.starts("a")
	p.rests(2, "b")
	before := len(p.ec2.Calls())
	time.Sleep(leaseTTL)
	if calls := append(p.changing("a", before), p.changing("b", before)...); len(calls) > 0 {
		t.Errorf("an equal has returned, and %v are asked for", calls)
	}
	p.rests(2, "b")
	at := strings.LastIndex(p.text, "group: g") + len("group: g") // b's
	p.write(p.text[:at] + ", priority: 1" + p.text[at:])
	b.reloads()
	a.reloads()
	p.rests(3, "a")
	var order []string
	for _, c := range p.ec2.Calls()[before:] {
		if c.Accepted && slices.Contains(c.Addresses, mobile) {
			order = append(order, c.Action+" "+c.NIC)
		}
	}
	if order[0] != "AssignPrivateIpAddresses eni-a" {
		t.Errorf("%v: want a to take it first", order)
	}
}

// Case c24: the cluster is restored from an older snapshot, in which a holds at epoch 1, while b has
// yet to release at epoch 3. The line goes on above what journal and outbox know, with the holder
// that it had, and the release happens.
func TestC24InEtcdAnOlderSnapshotIsReseeded(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	p.starts("a")
	p.rests(1, "a", "a")
	p.cluster.Snapshot(t, p.path("snapshot.db"))
	p.starts("b")
	p.rests(1, "a")
	p.drain("a", "a", true)
	p.rests(2, "b")
	p.drain("a", "a", false)
	p.ec2.Inject(executortest.Rule{Match: executortest.Action("UnassignPrivateIpAddresses"), Fault: executortest.Throttled})
	p.drain("b", "b", true)
	p.rests(3, "a", "a")
	p.until("b cannot release it", func() bool {
		list, err := p.of("b").Explain(t.Context(), mobile.String())
		return err == nil && len(list[0].Outbox) == 1 && list[0].Epoch == 3
	})
	for _, m := range p.cluster.Members {
		m.Kill()
	}
	p.cluster.Restore(t, p.path("snapshot.db"))
	for _, m := range p.cluster.Members {
		m.Start(t)
	}
	etcdtest.Started(t, p.cluster)
	p.until("the line is above what was known", func() bool {
		list, err := p.of("b").Captures(t.Context())
		return err == nil && list[0].Epoch > 3
	})
	p.ec2.Heal()
	p.rests(4, "a")
}
