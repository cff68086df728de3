package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/tasuki-io/tasuki/internal/capture"
	"github.com/tasuki-io/tasuki/internal/claims/sqlite"
	"github.com/tasuki-io/tasuki/internal/executor"
	"github.com/tasuki-io/tasuki/internal/journal"
	"github.com/tasuki-io/tasuki/internal/vrrp"
)

// gateway is an agent on a LAN, whose keepalived and kernel are fakes, and whose passes and
// judgements the test makes.
type gateway struct {
	*host
	dir string

	mu     sync.Mutex
	state  vrrp.State
	seq    uint64
	told   []string // to the kernel and the LAN, in order
	on     map[netip.Addr]bool
	off    bool                  // the interface does not forward
	broken error                 // of the kernel
	before func(context.Context) // an assignment takes place
}

const lanInterface = "lan0"

// onLAN is a policy that lets everything happen.
const onLAN = `enabled: true, dryRunOnly: false, requireApproval: false, maxActionsPerRun: 10, allowUndo: true,
  allowedProviders: [linux], allowedCIDRs: [10.0.0.0/24],
  allowedActions: [assign-secondary-ip, unassign-secondary-ip, ensure-forwarding-enabled, ensure-forwarding-disabled]`

func newGateway(t *testing.T, policy string) *gateway {
	g := &gateway{dir: t.TempDir(), on: map[netip.Addr]bool{}, off: true}
	g.boot(t, g.configured(t, policy, `{type: proxy-arp, interface: lan0, gratuitousARP: true, activeWhen: {type: vrrp-master, instance: VI_1}}`))
	return g
}

// configured is a configuration with one address, which a captures in some way.
func (g *gateway) configured(t *testing.T, policy, capture string) *Config {
	t.Helper()
	path := filepath.Join(g.dir, "config.yaml")
	text := fmt.Sprintf(`apiVersion: mobility.tasuki.io/v1alpha1
kind: MobilityPool
metadata: {name: p}
spec:
  prefix: 10.0.0.0/24
  addresses: [{address: %s, owner: {site: home}}]
  members:
  - {nodeRef: a, site: tokyo, role: onprem, capture: %s}
---
apiVersion: mobility.tasuki.io/v1alpha1
kind: ProviderActionPolicy
metadata: {name: policy}
spec: {%s}
`, address, capture, policy)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := LoadConfig(path)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// boot starts an agent on what is on the disk.
func (g *gateway) boot(t *testing.T, c *Config) {
	t.Helper()
	store, err := sqlite.Open(filepath.Join(g.dir, "claims.db"))
	if err != nil {
		t.Fatal(err)
	}
	rows, err := journal.Open(filepath.Join(g.dir, "a.db"))
	if err != nil {
		t.Fatal(err)
	}
	a := newAgent("a", c, store, rows, g.execute, newAnnouncer(slog.New(slog.NewTextHandler(t.Output(), nil)), "a"))
	g.host = &host{Agent: a, t: t, journal: rows, store: store}
	t.Cleanup(g.stop)
	g.lan.wire, g.lan.watch = g, g
	if err := g.renew(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func (g *gateway) Watch([]string, func(vrrp.State)) (watch, error)   { return g, nil }
func (g *gateway) Run(ctx context.Context)                           { <-ctx.Done() }
func (g *gateway) Ups(ctx context.Context, _ string, _ func()) error { <-ctx.Done(); return nil }
func (g *gateway) Announce(iface string, addrs ...netip.Addr) error {
	return g.tells("announce", iface, addrs)
}
func (g *gateway) Withdraw(iface string, addrs ...netip.Addr) error {
	return g.tells("withdraw", iface, addrs)
}

func (g *gateway) State(string) vrrp.State {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.state
}

func (g *gateway) tells(what, iface string, addrs []netip.Addr) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.told = append(g.told, fmt.Sprint(what, " ", iface, " ", addrs))
	if g.broken != nil {
		return g.broken
	}
	for _, addr := range addrs {
		if what == "withdraw" {
			delete(g.on, addr)
		}
	}
	return nil
}

// says is a word of keepalived; judged is what the agent makes of it.
func (g *gateway) says(word vrrp.Word) {
	g.mu.Lock()
	g.seq++
	g.state = vrrp.State{Instance: "VI_1", Word: word, Proven: word == vrrp.Master, Sequence: g.seq, Reason: "keepalived says " + string(word)}
	g.mu.Unlock()
	g.lan.judge()
}

// execute is the executor for this host.
func (g *gateway) execute(ctx context.Context, q executor.Request) executor.Result {
	g.mu.Lock()
	before := g.before
	g.mu.Unlock()
	if before != nil && q.Verb == capture.Assign {
		before(ctx)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if ctx.Err() != nil {
		return executor.Result{Outcome: executor.OutcomeUnknown, Message: "it was killed"}
	}
	switch q.Verb {
	case capture.Assign:
		g.on[q.Address] = true
		g.told = append(g.told, fmt.Sprintf("assign %s %s silent %t", q.NIC, q.Address, q.Silent))
	case capture.Unassign:
		delete(g.on, q.Address)
	case capture.EnableForwarding, capture.DisableForwarding:
		g.off = q.Verb == capture.DisableForwarding
	case executor.Describe:
		nic := &executor.NIC{Forwards: !g.off}
		for addr := range g.on {
			nic.Addresses = append(nic.Addresses, addr)
		}
		return executor.Result{Outcome: executor.OutcomeDone, NIC: nic}
	}
	return executor.Result{Outcome: executor.OutcomeDone}
}

// looks has the interface looked at now.
func (g *gateway) look() {
	g.t.Helper()
	l := capture.Target{Provider: capture.Linux, NIC: lanInterface}
	nic, err := g.see(g.t.Context(), l, g.config.profile(l))
	g.looked(l, nic, err)
}

// heard is what was told since the last time.
func (g *gateway) heard(want ...string) {
	g.t.Helper()
	g.mu.Lock()
	defer g.mu.Unlock()
	if !slices.Equal(g.told, want) {
		g.t.Errorf("the host did %q, want %q", g.told, want)
	}
	g.told = nil
}

func (g *gateway) answers(want bool) {
	g.t.Helper()
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.on[netip.MustParseAddr(address)] != want {
		g.t.Errorf("the host answers: %t, want %t", !want, want)
	}
}

func (g *gateway) claims(want capture.Claim) {
	g.t.Helper()
	k := capture.Key{Pool: "p", Address: netip.MustParseAddr(address), Domain: "onprem:tokyo:node:a"}
	if got, err := g.store.Claim(g.t.Context(), k); got != want || err != nil {
		g.t.Errorf("the claim is %s (%v), want %s", got, err, want)
	}
}

const (
	withdrawsIt = "withdraw lan0 [" + address + "]"
	announcesIt = "announce lan0 [" + address + "]"
	assignsIt   = "assign lan0 " + address + " silent false"
)

// answering is a gateway that is MASTER and answers.
func answering(t *testing.T) *gateway {
	g := newGateway(t, onLAN)
	g.lan.judge()
	g.heard(withdrawsIt) // whatever an earlier process has left
	g.says(vrrp.Master)
	g.settle()
	g.answers(true)
	g.claims(capture.Claim{Epoch: 1, Holder: "a"})
	g.heard(assignsIt)
	return g
}

// The MASTER is lost: the host is silent before any pass is made, and then gives the address up.
func TestWhoIsNoMasterIsSilentAtOnce(t *testing.T) {
	g := answering(t)
	g.says(vrrp.Backup)
	g.answers(false)
	g.heard(withdrawsIt)
	g.settle()
	g.claims(capture.Claim{Epoch: 2, Holder: capture.None})
	if open := g.rows(capture.Pending, capture.Approved, capture.Failed); len(open) > 0 || !g.off {
		t.Errorf("still to do: %v; it still forwards: %t", open, !g.off)
	}
	g.lan.judge()
	g.lan.announceAll()
	g.heard()
	g.says(vrrp.Master)
	g.settle()
	g.answers(true)
	g.claims(capture.Claim{Epoch: 3, Holder: "a"})
}

// It was MASTER when the attempt began, and is not when the executor is to be asked.
func TestTheMasterIsLostBetweenBeginAndCall(t *testing.T) {
	g := newGateway(t, onLAN)
	g.says(vrrp.Master)
	g.passes() // forwarding
	begun, _, err := g.pass(t.Context())
	if err != nil || len(begun) != 1 || begun[0].row.Verb != capture.Assign {
		t.Fatalf("begun %+v, %v", begun, err)
	}
	g.mu.Lock()
	g.state.Proven, g.state.Reason = false, "keepalived is stopped" // nobody has judged it yet
	g.mu.Unlock()
	g.finishAll(begun)
	g.answers(false)
	rows, _ := g.journal.Rows(t.Context(), journal.Filter{States: []capture.State{capture.Failed}})
	if len(rows) != 1 || rows[0].Reason != "VRRP instance VI_1 is not proven to be MASTER: keepalived is stopped" {
		t.Errorf("%+v", rows)
	}
}

// passes makes one pass and ends what it begins.
func (g *gateway) passes() {
	g.t.Helper()
	begun, _, err := g.pass(g.t.Context())
	if err != nil {
		g.t.Fatal(err)
	}
	g.finishAll(begun)
}

// It is lost while the executor is at work: that is ended first, so that it places nothing after
// the withdrawal.
func TestAnAttemptEndsBeforeTheWithdrawal(t *testing.T) {
	g := newGateway(t, onLAN)
	g.says(vrrp.Master)
	g.passes()
	asked := make(chan struct{})
	g.before = func(ctx context.Context) { close(asked); <-ctx.Done() }
	begun, _, err := g.pass(t.Context())
	if err != nil || len(begun) != 1 {
		t.Fatalf("begun %+v, %v", begun, err)
	}
	end := make(chan ending)
	go func() { end <- begun[0].run(t.Context()) }()
	<-asked
	g.heard(withdrawsIt)
	g.says(vrrp.Fault)
	g.heard(withdrawsIt)
	g.answers(false)
	if err := g.finish(t.Context(), begun[0], <-end); err != nil {
		t.Fatal(err)
	}
	g.before = nil
	g.settle()
	g.claims(capture.Claim{Epoch: 2, Holder: capture.None})
	if doubtful := g.view.Doubtful(); len(doubtful) > 0 {
		t.Errorf("what was killed may yet be carried out: %v", doubtful)
	}
}

// It was placed, and withdrawn before the agent has heard that it was placed: what is not there is
// not held.
func TestWhatWasWithdrawnBeforeItsEndWasHeardIsNotThere(t *testing.T) {
	g := newGateway(t, onLAN)
	g.says(vrrp.Master)
	g.passes()
	begun, _, err := g.pass(t.Context())
	if err != nil || len(begun) != 1 {
		t.Fatalf("begun %+v, %v", begun, err)
	}
	end := begun[0].run(t.Context())
	g.says(vrrp.Backup)
	g.says(vrrp.Master)
	if err := g.finish(t.Context(), begun[0], end); err != nil {
		t.Fatal(err)
	}
	g.answers(false)
	g.lan.announceAll()
	g.heard(withdrawsIt, assignsIt, withdrawsIt)
	g.settle()
	g.answers(true)
	g.heard(assignsIt)
}

// The claims store is gone for longer than the lease: the host is silent, MASTER or not (C10).
func TestALeaseThatMayHaveEndedIsSilence(t *testing.T) {
	g := answering(t)
	g.lan.judge()
	g.heard()
	g.lease.mu.Lock()
	g.lease.until = g.now()
	g.lease.mu.Unlock()
	g.lan.judge()
	g.answers(false)
	g.heard(withdrawsIt)
	g.settle() // the store is there again
	g.lan.judge()
	g.settle()
	g.answers(true)
	g.claims(capture.Claim{Epoch: 1, Holder: "a"}) // it was MASTER all the time
}

// Somebody closes the policy: what is to be withdrawn is withdrawn all the same.
func TestAClosedPolicyWithdraws(t *testing.T) {
	g := answering(t)
	g.configure(g.configured(t, "enabled: false", `{type: proxy-arp, interface: lan0, gratuitousARP: true, activeWhen: {type: vrrp-master, instance: VI_1}}`))
	g.settle()
	g.answers(true)
	g.says(vrrp.Unknown)
	g.answers(false)
	g.says(vrrp.Master)
	g.settle()
	g.answers(false) // and nothing is placed
}

// Keepalived has heard a rival: what is held is announced, and looked at; what is not is neither.
func TestARivalIsAnsweredWithWhatIsHeld(t *testing.T) {
	g := answering(t)
	g.lan.announceAll()
	g.heard(announcesIt) // it is due, as it never was
	g.lan.announceAll()
	g.heard()
	delete(g.on, netip.MustParseAddr(address)) // by another hand
	g.looks[capture.Target{Provider: capture.Linux, NIC: lanInterface}] = look{began: g.now()}
	g.says(vrrp.Master)
	g.lan.announceAll()
	g.heard(announcesIt)
	g.settle()
	if due, _ := g.due(g.now(), capture.Decision{}); len(due) != 1 {
		t.Error("the interface is not looked at")
	}
	g.look()
	g.settle()
	g.answers(true)
	g.heard(assignsIt)

	g.says(vrrp.Backup)
	g.says(vrrp.Master)
	g.lan.announceAll()
	g.heard(withdrawsIt) // it is MASTER, and has placed nothing yet
}

// Who wants no gratuitous ARP gets none, neither from the executor nor from the agent.
func TestNothingIsAnnouncedUnlessItIsWanted(t *testing.T) {
	g := newGateway(t, onLAN)
	g.configure(g.configured(t, onLAN, `{type: proxy-arp, interface: lan0, activeWhen: {type: vrrp-master, instance: VI_1}}`))
	g.says(vrrp.Master)
	g.settle()
	g.lan.announceAll()
	g.answers(true)
	g.heard(withdrawsIt, "assign lan0 "+address+" silent true")
}

// The kernel refuses: the host may answer still, so it is tried until it does not. Until then it
// is not open.
func TestAWithdrawalThatFailsIsRepeated(t *testing.T) {
	g := answering(t)
	g.broken = errors.New("busy")
	g.says(vrrp.Backup)
	g.says(vrrp.Master)
	g.heard(withdrawsIt, withdrawsIt)
	g.broken = nil
	g.lan.judge()
	g.answers(false)
	g.settle()
	g.answers(true)
}

// The configuration names another interface, or none: nothing is left on the old one.
func TestAnInterfaceThatIsNotListedAnyMoreIsWithdrawn(t *testing.T) {
	g := answering(t)
	g.configure(g.configured(t, onLAN, `{type: proxy-arp, interface: lan1, activeWhen: {type: vrrp-master, instance: VI_1}}`))
	g.lan.judge()
	slices.Sort(g.told)
	g.told = slices.Compact(g.told)
	g.heard(withdrawsIt, "withdraw lan1 ["+address+"]")
	g.answers(false)
}

// The agent was killed, and the files have changed before it runs again: the journal knows what
// it has left.
func TestWhatAnEarlierAgentHasLeftIsWithdrawn(t *testing.T) {
	g := answering(t)
	g.stop()
	g.boot(t, g.configured(t, onLAN, `{type: proxy-arp, interface: lan1, activeWhen: {type: vrrp-master, instance: VI_1}}`))
	g.passes()
	g.lan.judge()
	slices.Sort(g.told)
	g.told = slices.Compact(g.told)
	g.heard(withdrawsIt, "withdraw lan1 ["+address+"]")
	g.answers(false)
}

// An agent is started anew while keepalived stays MASTER: what it had placed is withdrawn, and
// placed again.
func TestARestartWithdrawsAndPlacesAgain(t *testing.T) {
	g := answering(t)
	g.stop()
	g.boot(t, g.configured(t, onLAN, `{type: proxy-arp, interface: lan0, gratuitousARP: true, activeWhen: {type: vrrp-master, instance: VI_1}}`))
	g.lan.judge()
	g.settle()
	g.answers(true)
	g.heard(withdrawsIt, assignsIt)
}

// People are told why nothing is captured.
func TestExplainTellsWhatKeepalivedSays(t *testing.T) {
	g := newGateway(t, onLAN)
	g.says(vrrp.Backup)
	g.settle()
	list, err := g.explain(netip.MustParseAddr(address))
	if err != nil || len(list) != 1 {
		t.Fatalf("%+v, %v", list, err)
	}
	if v := list[0].VRRP; v == nil || v.Proven || v.Word != vrrp.Backup || v.Reason != "keepalived says BACKUP" || list[0].Members[0].Bar != capture.BarMaster {
		t.Errorf("%+v, members %+v", v, list[0].Members)
	}
	g.says(vrrp.Master)
	if list, _ := g.explain(netip.MustParseAddr(address)); !list[0].VRRP.Proven || list[0].Members[0].Bar != "" {
		t.Errorf("%+v", list[0])
	}
}

// Without a FIFO nothing is ever proven, and explain says why.
func TestWithoutAFIFONothingIsProven(t *testing.T) {
	if _, err := (machine{}).Watch([]string{"VI_1"}, nil); err == nil {
		t.Error("there is a watch of no FIFO")
	}
}

// Run does all of this by itself, and leaves nothing behind.
func TestAnAgentThatEndsAnswersForNothing(t *testing.T) {
	g := newGateway(t, onLAN)
	g.says(vrrp.Master)
	kill := g.runs()
	eventually(t, "it answers", func() bool {
		g.mu.Lock()
		defer g.mu.Unlock()
		return g.on[netip.MustParseAddr(address)]
	})
	kill()
	g.answers(false)
}
