package agent

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"time"

	"github.com/tasuki-io/tasuki/internal/capture"
	"github.com/tasuki-io/tasuki/internal/executor"
	"github.com/tasuki-io/tasuki/internal/executor/linux"
	"github.com/tasuki-io/tasuki/internal/journal"
	"github.com/tasuki-io/tasuki/internal/vrrp"
)

// seats are the places where a node captures by proxy ARP, with all addresses of its pools there.
func (c *Config) seats(node string) map[seat][]netip.Addr {
	seats := map[seat][]netip.Addr{}
	for i := range c.Pools {
		p := &c.Pools[i]
		for j := range p.Members {
			m := &p.Members[j]
			if m.Node != node || m.Capture.Method != capture.ProxyARP {
				continue
			}
			s := seatOf(m)
			addrs := seats[s]
			for k := range p.Addresses {
				addrs = append(addrs, p.Addresses[k].Addr)
			}
			seats[s] = addrs
		}
	}
	return seats
}

func seatOf(m *capture.Member) seat { return seat{m.Capture.Interface, m.Capture.Instance} }

// member is this node's in the pool of a key, nil when it has none there.
func (a *Agent) member(k capture.Key) *capture.Member {
	for i := range a.config.Pools {
		p := &a.config.Pools[i]
		for j := range p.Members {
			if m := &p.Members[j]; p.Name == k.Pool && m.Node == a.node && m.Domain() == k.Domain {
				return m
			}
		}
	}
	return nil
}

// target is the NIC with which a member captures.
func (c *Config) target(m *capture.Member) capture.Target {
	if m.Capture.Method == capture.ProxyARP {
		return capture.Target{Provider: capture.Linux, NIC: m.Capture.Interface}
	}
	profile := c.Profiles[m.Capture.ProviderRef]
	return capture.Target{Provider: profile.Provider, ProviderRef: m.Capture.ProviderRef, NIC: m.Capture.NIC}
}

// profile is where the provider of a NIC is.
func (c *Config) profile(t capture.Target) executor.Profile {
	if t.Provider == capture.Linux {
		return executor.Profile{Provider: capture.Linux}
	}
	return c.Profiles[t.ProviderRef]
}

// hearLAN takes over what the lan has seen of the interfaces since the last pass.
func (a *Agent) hearLAN() {
	seen, look := a.lan.news()
	if len(seen)+len(look) == 0 {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.nics = maps.Clone(a.nics) // a decision may still hold the old one
	for t, nic := range seen {
		if old, known := a.nics[t]; !nic.At.Before(old.At) {
			nic.Forwards = !known || old.Forwards // until it is looked at
			a.nics[t] = nic
		}
	}
	for _, t := range look {
		if !a.looks[t].under {
			delete(a.looks, t)
		}
	}
}

// holdsAt are the addresses of a seat that this node holds and has placed at the current epoch,
// and that are to be announced. It may be called by any goroutine.
func (a *Agent) holdsAt(s seat) (addrs []netip.Addr) {
	a.mu.RLock()
	defer a.mu.RUnlock()
	for i := range a.config.Pools {
		p := &a.config.Pools[i]
		for j := range p.Members {
			m := &p.Members[j]
			if m.Node != a.node || m.Capture.Method != capture.ProxyARP || !m.Capture.GratuitousARP || seatOf(m) != s {
				continue
			}
			for k := range p.Addresses {
				key := capture.Key{Pool: p.Name, Address: p.Addresses[k].Addr, Domain: m.Domain()}
				line, current := a.view.Line(key), a.view.Current(key)
				if current.Epoch > 0 && current.Holder == capture.Holder(a.node) && line.Acquired.Epoch == current.Epoch && line.Acquired.Target.NIC == s.iface {
					addrs = append(addrs, key.Address)
				}
			}
		}
	}
	return addrs
}

// post is where an attempt places something.
type post struct {
	seat
	listed bool
	silent bool
	round  int // of the seat when the attempt began
}

// postOf is the post of a row that places something on a LAN, nil for others.
func (a *Agent) postOf(row *capture.Action) *post {
	if row.Provider != capture.Linux || row.Verb != capture.Assign {
		return nil
	}
	m := a.member(row.Key)
	if m == nil || a.config.target(m) != row.Target {
		return &post{}
	}
	return &post{seat: seatOf(m), listed: true, silent: !m.Capture.GratuitousARP}
}

// ask asks the executor. What places something on a LAN begins only while this node is proven to
// be MASTER, and ends when it no longer is.
func (t *attempt) ask(ctx context.Context) (executor.Result, error) {
	if t.post == nil {
		return t.agent.execute(ctx, t.request()), nil
	}
	if !t.post.listed {
		return executor.Result{}, fmt.Errorf("no pool of this node captures %s on %s any more", t.row.Key.Address, t.row.NIC)
	}
	deadline, _ := ctx.Deadline() // every attempt has one
	at, leave, round, err := t.agent.lan.enter(t.post.seat, t.row.Key.Address, deadline)
	if err != nil {
		return executor.Result{}, err
	}
	defer leave()
	t.post.round = round
	return t.agent.execute(at, t.request()), nil
}

// ended has the lan know what an attempt has done.
func (t *attempt) ended(end journal.Ending) {
	switch {
	case t.row.Provider != capture.Linux || end.State != capture.Succeeded:
	case t.post != nil:
		t.agent.lan.placed(t.post.seat, t.row.Key.Address, t.post.round)
	case t.row.Verb == capture.Unassign:
		t.agent.lan.released(t.row.NIC, t.row.Key.Address)
	}
}

// Withdraw has a node answer for nothing that the configuration has it capture by proxy ARP, as
// when its agent has ended without doing so.
func Withdraw(c *Config, node string) error {
	var errs []error
	for s, addrs := range c.seats(node) {
		errs = append(errs, linux.Withdraw(s.iface, addrs...))
	}
	return errors.Join(errs...)
}

// VRRP is what is known of the VRRP instance that a capture hangs on.
type VRRP struct {
	Instance string    `json:"instance"`
	Word     vrrp.Word `json:"word"` // keepalived's last one that counts
	Proven   bool      `json:"proven"`
	Reason   string    `json:"reason,omitempty"` // why it is not proven to be MASTER
	Priority int       `json:"priority,omitempty"`
	Since    time.Time `json:"since,omitzero"` // of the word
}

// instances says of each VRRP instance of this node whether it is proven to be MASTER.
func (a *Agent) instances() map[string]bool {
	proven := map[string]bool{}
	for s := range a.config.seats(a.node) {
		if s.instance != "" {
			proven[s.instance] = a.lan.State(s.instance).Proven
		}
	}
	return proven
}

func (a *Agent) vrrpOf(m *capture.Member) *VRRP {
	if m.Capture.Instance == "" {
		return nil
	}
	s := a.lan.State(m.Capture.Instance)
	return &VRRP{s.Instance, s.Word, s.Proven, s.Reason, s.Priority, s.Since.Round(0)}
}
