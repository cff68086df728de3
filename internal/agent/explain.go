package agent

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/tasuki-io/tasuki/internal/capture"
)

// What the agent answers about a capture, for the CLI and for machines. Times are wall-clock
// times of this host.

// Capture is one address in one captureDomain, as this agent knows it.
type Capture struct {
	Pool    string         `json:"pool"`
	Address netip.Addr     `json:"address"`
	Domain  capture.Domain `json:"domain"`
	// Holder is the node that holds it at Epoch, "none", or "" while the epoch is unknown.
	Holder string        `json:"holder"`
	Epoch  capture.Epoch `json:"epoch"`
	// Since is when this process first saw that; it may be its start.
	Since time.Time `json:"since,omitzero"`
	State Phase     `json:"state"`
	Home  Residence `json:"home"`
	// Pending are this node's actions about the address that are not over.
	Pending []Pending `json:"pending,omitempty"`
	// NIC are this node's actions about the NIC as a whole that are not over.
	NIC []Pending `json:"nic,omitempty"`
	// Blind is why the NIC could not be looked at last.
	Blind *Blind `json:"blind,omitempty"`
}

// Blind is a look at a NIC that has shown nothing: what happens to it by other hands is not seen.
type Blind struct {
	NIC   string    `json:"nic"`
	At    time.Time `json:"at"`
	Error string    `json:"error"`
	// Seen is when it was last seen, zero when it never was.
	Seen time.Time `json:"seen,omitzero"`
}

// Phase says in one word how this node stands to an address.
type Phase string

// The phases.
const (
	PhaseHeld      Phase = "held"      // this node holds it, and the provider has confirmed it
	PhaseAcquiring Phase = "acquiring" // this node is its holder, and has it not yet
	PhaseReleasing Phase = "releasing" // this node is no longer its holder, and has it perhaps
	PhaseElsewhere Phase = "elsewhere" // another node is its holder
	PhaseNone      Phase = "none"      // nobody is
	PhaseUnknown   Phase = "unknown"   // the epoch is unknown: nothing is done
)

// Residence is where an address lives.
type Residence struct {
	Site string `json:"site"`
	Node string `json:"node,omitempty"`
	// Epoch counts the changes of the owner at run time; 0 is the configuration's word.
	Epoch uint64 `json:"epoch"`
	// State is active; holding when it lives nowhere and this node has still to release it; or
	// expired.
	State string `json:"state"`
}

// Pending is an action that is not over, and what keeps it.
type Pending struct {
	ID       string        `json:"id"`
	Handle   string        `json:"handle"`
	Verb     capture.Verb  `json:"verb"`
	Epoch    capture.Epoch `json:"epoch"`
	NIC      string        `json:"nic"`
	State    capture.State `json:"state"`
	Attempts int           `json:"attempts"`
	Code     string        `json:"code,omitempty"` // the provider's, of the last failure
	Reason   string        `json:"reason,omitempty"`
	// Wait is what it waits for in the order of things, Rule what of the policy blocks it, and
	// Until when either ends by itself.
	Wait   capture.Wait `json:"wait,omitempty"`
	Rule   capture.Rule `json:"rule,omitempty"`
	Detail string       `json:"detail,omitempty"`
	Until  time.Time    `json:"until,omitzero"`
	// Missing is all that the policy would have to allow; lists leave it out.
	Missing []Missing `json:"missing,omitempty"`

	target capture.Target
}

// Explanation is everything there is to know about a capture.
type Explanation struct {
	Capture
	// Journalled says that Since is from this node's journal, and no restart of it.
	Journalled bool `json:"journalled"`
	// Confirmed is when an action of this node about the address last succeeded at this epoch, as
	// its journal has it.
	Confirmed time.Time  `json:"confirmed,omitzero"`
	Members   []Standing `json:"members"`
	Outbox    []string   `json:"outbox,omitempty"`
	// VRRP is what a capture by proxy ARP hangs on.
	VRRP *VRRP `json:"vrrp,omitempty"`
	// Shown is what the provider last showed of this node's NIC.
	Shown *Shown `json:"shown,omitempty"`

	visible time.Duration // how long after an action a look need not show it
}

// Standing is how a member stands to an address.
type Standing struct {
	Node     string      `json:"node"`
	Site     string      `json:"site"`
	Priority int         `json:"priority"`
	Bar      capture.Bar `json:"bar,omitempty"`
}

// Shown says whether a NIC has shown an address, and that it forwards.
type Shown struct {
	NIC      string    `json:"nic"`
	Has      bool      `json:"has"`
	Forwards bool      `json:"forwards"`
	Seen     time.Time `json:"seen"`
	// Stale says that this was before Confirmed, or so soon after that it need not show yet.
	Stale bool `json:"stale,omitempty"`
}

// captures lists the addresses that this node may capture, in order.
func (a *Agent) captures() []Capture {
	a.mu.RLock()
	defer a.mu.RUnlock()
	list := []Capture{}
	open := a.open(false)
	for i := range a.config.Pools {
		p := &a.config.Pools[i]
		for j := range p.Members {
			if m := &p.Members[j]; m.Node == a.node {
				for k := range p.Addresses {
					list = append(list, a.capture(p, m, &p.Addresses[k], open))
				}
			}
		}
	}
	return list
}

// explain tells all about an address; it may be in several domains of this node's pools.
func (a *Agent) explain(addr netip.Addr) ([]Explanation, error) {
	a.mu.RLock()
	defer a.mu.RUnlock()
	var list []Explanation
	open := a.open(true)
	for i := range a.config.Pools {
		p := &a.config.Pools[i]
		at, found := slices.BinarySearchFunc(p.Addresses, addr, func(x capture.Address, addr netip.Addr) int { return x.Addr.Compare(addr) })
		for j := range p.Members {
			if m := &p.Members[j]; found && m.Node == a.node {
				list = append(list, a.explanation(p, m, &p.Addresses[at], open))
			}
		}
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("address %s is in no pool of node %s: `tasuki captures list` shows those that are", addr, a.node)
	}
	return list, nil
}

func (a *Agent) explanation(p *capture.Pool, m *capture.Member, addr *capture.Address, open opened) Explanation {
	e := Explanation{Capture: a.capture(p, m, addr, open), VRRP: a.vrrpOf(m)}
	for _, s := range capture.Standings(p, m.Domain(), e.Home.Site, capture.Absent{Drained: a.drained, Dead: a.gone}) {
		if s.Member.Node == a.node && s.Bar == "" && e.VRRP != nil && !e.VRRP.Proven {
			s.Bar = capture.BarMaster
		}
		e.Members = append(e.Members, Standing{s.Member.Node, s.Member.Site, s.Member.Priority, s.Bar})
	}
	k := capture.Key{Pool: p.Name, Address: addr.Addr, Domain: m.Domain()}
	for _, marker := range a.view.Markers() {
		if marker.Key == k {
			e.Outbox = append(e.Outbox, marker.ID())
		}
	}
	t := a.config.target(m)
	if t.Provider != capture.Linux {
		e.visible = settles
	}
	if nic, seen := a.nics[t]; seen {
		e.Shown = &Shown{NIC: t.NIC, Has: nic.Addresses.Has(addr.Addr), Forwards: nic.Forwards, Seen: nic.At.Round(0)}
	}
	return e
}

func (a *Agent) capture(p *capture.Pool, m *capture.Member, addr *capture.Address, open opened) Capture {
	k := capture.Key{Pool: p.Name, Address: addr.Addr, Domain: m.Domain()}
	line, current := a.view.Line(k), a.view.Current(k)
	c := Capture{Pool: p.Name, Address: addr.Addr, Domain: k.Domain, Epoch: current.Epoch, Pending: open.byKey[k], Since: line.Since.Round(0)}
	if current.Epoch > 0 {
		c.Holder = current.Holder.String()
	}
	switch self := capture.Holder(a.node); {
	case current.Epoch == 0:
		c.State = PhaseUnknown
	case current.Holder == self && line.Acquired.Epoch == current.Epoch && line.Acquired.Target == a.config.target(m) && !repairing(c.Pending, current.Epoch):
		c.State = PhaseHeld
	case current.Holder == self:
		c.State = PhaseAcquiring
	case len(line.Placed) > 0:
		c.State = PhaseReleasing
	case current.Holder == capture.None:
		c.State = PhaseNone
	default:
		c.State = PhaseElsewhere
	}
	c.Home = a.home(p, addr, c.State)
	t := a.config.target(m)
	c.NIC, c.Blind = open.byNIC[t], a.blind(t)
	return c
}

// blind is why a NIC could not be looked at last, nil when it could, or was not yet.
func (a *Agent) blind(t capture.Target) *Blind {
	l := a.looks[t]
	if l.err == nil {
		return nil
	}
	return &Blind{NIC: t.NIC, At: l.began.Round(0), Error: l.err.Error(), Seen: a.nics[t].At.Round(0)}
}

// repairing reports an acquisition that is not over at the current epoch: what was once confirmed
// is not so any more.
func repairing(pending []Pending, at capture.Epoch) bool {
	return slices.ContainsFunc(pending, func(p Pending) bool { return p.Verb.Acquires() && p.Epoch == at })
}

func (a *Agent) home(p *capture.Pool, addr *capture.Address, state Phase) Residence {
	owner, epoch := addr.Owner, uint64(0)
	if l, said := a.leases[capture.Home{Pool: p.Name, Addr: addr.Addr}]; said {
		owner, epoch = l.Owner, l.Epoch
	}
	r := Residence{Site: owner.Site, Node: owner.Node, Epoch: epoch, State: "active"}
	if owner.Site == "" {
		if r.State = "expired"; state == PhaseHeld || state == PhaseAcquiring || state == PhaseReleasing {
			r.State = "holding"
		}
	}
	return r
}

// opened are the actions that are not over: by key, and those about a NIC as a whole by NIC.
type opened struct {
	byKey map[capture.Key][]Pending
	byNIC map[capture.Target][]Pending
}

// open are the actions that are not over; whole is with all that a policy lacks.
func (a *Agent) open(whole bool) opened {
	byKey, byNIC := map[capture.Key][]Pending{}, map[capture.Target][]Pending{}
	held := a.held()
	rows := a.view.Open()
	for i := range rows {
		row := &rows[i]
		byKey[row.Key] = append(byKey[row.Key], a.pendingOf(row, held, whole))
	}
	for _, list := range byKey {
		slices.SortFunc(list, func(a, b Pending) int { return cmp.Or(cmp.Compare(a.Epoch, b.Epoch), cmp.Compare(a.ID, b.ID)) })
	}
	for k, list := range byKey {
		if !k.Address.IsValid() {
			byNIC[list[0].target] = list
		}
	}
	return opened{byKey, byNIC}
}

// held is what the last decision said of the actions that do not begin, by ID.
func (a *Agent) held() map[string]capture.Held {
	held := make(map[string]capture.Held, len(a.last.Held))
	for _, h := range a.last.Held {
		held[h.Action.ID()] = h
	}
	return held
}

// pendingOf tells what keeps an action.
func (a *Agent) pendingOf(row *capture.Action, held map[string]capture.Held, whole bool) Pending {
	p := Pending{ID: row.ID(), Verb: row.Verb, Epoch: row.Epoch, NIC: row.NIC, State: row.State, Attempts: row.Attempts, Reason: row.Reason, target: row.Target}
	p.Handle = Handle(p.ID)
	h, ok := held[p.ID]
	if !ok || !row.State.Open() {
		return p
	}
	p.Wait, p.Rule, p.Detail, p.Until = h.Wait, h.Block.Rule, h.Block.Detail, h.Until.Round(0)
	if whole && row.State != capture.Running {
		p.Missing = missing(a.config.Policy, *row, a.now())
	}
	return p
}
