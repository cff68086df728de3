package agent

import (
	"slices"
	"testing"
	"time"

	"github.com/tasuki-io/tasuki/internal/capture"
	"github.com/tasuki-io/tasuki/internal/vrrp"
)

// newLANPlay is a world of hosts on a LAN; the first is the best of them.
func newLANPlay(t *testing.T, nodes, addresses int) *play {
	p := newPlay(t, nodes, addresses)
	for i, n := range p.nodes {
		n.onLAN(nodes - i)
	}
	p.write()
	p.elect()
	return p
}

// answer compares the hosts that answer for the first address.
func (p *play) answer(want ...string) {
	p.t.Helper()
	var got []string
	for _, n := range p.nodes {
		if n.host.answers[simEntry{n.nic, simAddr(1)}] {
			got = append(got, n.name)
		}
	}
	if !slices.Equal(got, want) {
		p.t.Errorf("%v answer, want %v", got, want)
	}
}

// key is that of the first address.
func (n *simNode) key() capture.Key {
	return capture.Key{Pool: "p", Address: simAddr(1), Domain: n.domain()}
}

// thinks has every keepalived hear the others, and the agents what it says.
func (p *play) thinks() {
	p.t.Helper()
	for _, n := range p.nodes {
		n.host.keeper.thinks(0)
	}
	p.settles()
}

// Two hosts do not see each other, and both are MASTER: they take the address from each other,
// no sooner than a leaseTTL later. They see each other again: the better one has it.
func TestOneAnswersWhenHostsSeeEachOtherAgain(t *testing.T) {
	p := newLANPlay(t, 2, 1)
	p.settles()
	p.answer("a")
	b := p.node("b")
	b.host.side = 1
	b.host.keeper.thinks(0)
	before := p.store.claims[p.node("a").key()].Epoch
	for until := p.clock + 10*simTTL; p.clock < until; p.tick() {
		for _, n := range p.nodes {
			p.goOn(n, 1000)
		}
	}
	if rose := p.store.claims[b.key()].Epoch - before; rose < 2 || rose > 12 {
		t.Errorf("in ten leaseTTL the address has changed hands %d times", rose)
	}
	b.host.side = 0
	p.thinks()
	p.answer("a")
}

// Each of these takes away the proof that a is MASTER, and b becomes it.
func TestWithoutProofTheNextOneAnswers(t *testing.T) {
	for name, loses := range map[string]func(*simHost){
		"keepalived is stopped": func(h *simHost) { h.keeper.frozen = true },
		"keepalived dies":       func(h *simHost) { h.keeper.runs, h.keeper.fifo = false, false },
		"the link is down":      func(h *simHost) { h.up = false },
	} {
		t.Run(name, func(t *testing.T) {
			p := newLANPlay(t, 2, 1)
			p.settles()
			loses(p.node("a").host)
			p.thinks()
			p.answer("b")
		})
	}
}

// The agent of the MASTER is killed. What it has left answers on, until it is started again: then
// it is withdrawn, and placed again by whoever may.
func TestWhatACrashLeavesOnALANIsWithdrawn(t *testing.T) {
	p := newLANPlay(t, 2, 1)
	p.settles()
	a := p.node("a")
	a.crash()
	p.answer("a")
	a.host.keeper.says(vrrp.Backup, 0)
	a.up()
	for range 100 {
		p.goOn(a, 1)
	}
	p.answer()
}

// The cable is pulled and put back: what the kernel has forgotten is placed again at once.
func TestALinkThatComesUpIsAssertedAgain(t *testing.T) {
	p := newLANPlay(t, 1, 2)
	p.settles()
	if p.flaps(); p.broken != "" {
		t.Error(p.broken)
	}
	p.answer("a")
}

// The claims store is out of reach for one of two hosts: it is silent before its lease can have
// ended, MASTER or not, and answers again when it has renewed it.
func TestAHostThatIsCutOffFromTheStoreIsSilent(t *testing.T) {
	p := newLANPlay(t, 2, 1)
	p.settles()
	a := p.node("a")
	a.cut = simDeafened
	for until := p.clock + simTTL + time.Second; p.clock < until; {
		p.tick()
		p.goOn(a, 1000)
	}
	p.answer()
	a.cut = 0
	p.settles()
	p.answer("a")
}

// An action was begun when the configuration lists its address no more: it places nothing, as
// nothing would withdraw it when the MASTER is lost.
func TestWhatIsListedNoMoreIsNotPlaced(t *testing.T) {
	p := newLANPlay(t, 1, 2)
	a := p.node("a")
	a.up()
	id := "mobility:p:linux:lan0:assign-secondary-ip:10.0.0.1:epoch:1"
	p.until("a", id, "claim")
	a.paused = false
	p.config.addresses = p.config.addresses[1:]
	p.write()
	a.loop.configure(p.inForce)
	a.loop.lan.judge()
	for _, n := range slices.Clone(a.procs) {
		for n.try.id == id && n.work != nil {
			p.resume(n)
		}
	}
	p.answer()
	p.settles()
	p.answer()
}
