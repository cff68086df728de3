package agent

import (
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"time"

	"github.com/tasuki-io/tasuki/internal/capture"
	"github.com/tasuki-io/tasuki/internal/journal"
)

func (c Control) explain(r *http.Request) (any, error) {
	text := r.URL.Query().Get("address")
	addr, err := ParseAddress(text)
	if err != nil {
		return nil, fault{FaultInput, err}
	}
	list, err := c.agent.explain(addr)
	if err != nil {
		return nil, fault{FaultInput, err}
	}
	rows, err := c.audit.Rows(r.Context(), journal.Filter{Address: addr})
	if err != nil {
		return nil, err
	}
	for i := range list {
		list[i].date(rows)
	}
	return list, nil
}

// date sets since when an epoch has been there from what this node has journalled at it, which
// a restart does not forget.
func (e *Explanation) date(rows []journal.Row) {
	for i := range rows {
		if r := &rows[i]; r.Key.Pool == e.Pool && r.Key.Domain == e.Domain && r.Epoch == e.Epoch {
			e.Journalled = true
			if r.Created.Before(e.Since) {
				e.Since = r.Created
			}
			if r.State == capture.Succeeded && r.Action.Updated.After(e.Confirmed) {
				e.Confirmed = r.Action.Updated
			}
		}
	}
	if e.Shown != nil && !e.Confirmed.IsZero() {
		e.Shown.Stale = e.Shown.Seen.Before(e.Confirmed.Add(e.visible))
	}
}

// Drain takes a node out of every placement, or lets it back.
type Drain struct {
	Node    string `json:"node"`
	Drained bool   `json:"drained"`
	// Notes say, in an answer, what does not follow from it although one may think so.
	Notes []string `json:"notes,omitempty"`
	// Stranded are the addresses that the node holds and that nobody takes: they are released.
	Stranded []Stranded `json:"stranded,omitempty"`
}

// Stranded is an address that nobody is left for.
type Stranded struct {
	Pool    string     `json:"pool"`
	Address netip.Addr `json:"address"`
	Group   string     `json:"group"`
}

func (c Control) drain(r *http.Request) (any, error) {
	in, err := body[Drain](r)
	if err != nil {
		return nil, err
	}
	notes, stranded, err := c.agent.consequences(in.Node, in.Drained)
	if err != nil {
		return nil, fault{FaultInput, err}
	}
	if err := c.agent.store.Drain(r.Context(), in.Node, in.Drained); err != nil {
		return nil, err
	}
	what := "undrain"
	if in.Drained {
		what = "drain"
	}
	c.agent.tell.asked(who(r.Context()), what, "of", in.Node)
	return Drain{in.Node, in.Drained, notes, stranded}, nil
}

// consequences says what a drain, or the end of one, will not bring about.
func (a *Agent) consequences(node string, drained bool) (notes []string, stranded []Stranded, err error) {
	a.mu.RLock()
	defer a.mu.RUnlock()
	known, grouped := false, false
	for i := range a.config.Pools {
		p := &a.config.Pools[i]
		at := slices.IndexFunc(p.Members, func(m capture.Member) bool { return m.Node == node })
		if at < 0 {
			continue
		}
		m := &p.Members[at]
		known, grouped = true, grouped || m.Group != ""
		switch {
		case m.Group == "":
			notes = append(notes, fmt.Sprintf("pool %s: it has no placement group there, and captures whether it is drained or not", p.Name))
		case drained:
			stranded = append(stranded, a.stranded(p, m)...)
		case !drained && m.Drain:
			notes = append(notes, fmt.Sprintf("pool %s: it stays drained there by the configuration: set maintenance.drain: false", p.Name))
		}
	}
	switch {
	case !known:
		return nil, nil, fmt.Errorf("node %s is a member of no pool of this agent's configuration", node)
	case !grouped:
		return nil, nil, fmt.Errorf("node %s has no placement group in any pool: it captures whether it is drained or not", node)
	}
	return notes, stranded, nil
}

// stranded are the addresses of a pool that a member holds, and that nobody may hold once it is
// drained.
func (a *Agent) stranded(p *capture.Pool, m *capture.Member) (list []Stranded) {
	absent := capture.Absent{Drained: maps.Clone(a.drained), Dead: a.gone}
	absent.Drained[m.Node] = true
	takers := map[string]bool{} // by where the address lives
	for i := range p.Addresses {
		addr := &p.Addresses[i]
		if a.view.Current(capture.Key{Pool: p.Name, Address: addr.Addr, Domain: m.Domain()}).Holder != capture.Holder(m.Node) {
			continue
		}
		home := a.home(p, addr, PhaseHeld).Site
		taker, known := takers[home]
		if !known {
			taker = slices.ContainsFunc(capture.Standings(p, m.Domain(), home, absent), func(s capture.Standing) bool { return s.Bar == "" })
			takers[home] = taker
		}
		if !taker {
			list = append(list, Stranded{p.Name, addr.Addr, m.Group})
		}
	}
	return list
}

// Own says where an address lives; without a site it lives nowhere.
type Own struct {
	Address netip.Addr `json:"address"`
	Pool    string     `json:"pool,omitempty"` // of the address, to be sure
	Site    string     `json:"site"`
	Node    string     `json:"node,omitempty"`
}

func (c Control) own(r *http.Request) (any, error) {
	in, err := body[Own](r)
	if err != nil {
		return nil, err
	}
	pool, err := c.agent.poolOf(in)
	if err != nil {
		return nil, fault{FaultInput, err}
	}
	l, err := c.agent.store.Own(r.Context(), capture.Home{Pool: pool, Addr: in.Address}, capture.Location{Node: in.Node, Site: in.Site})
	if err != nil {
		return nil, err
	}
	c.agent.tell.asked(who(r.Context()), "own", "pool", pool, "address", in.Address, "site", in.Site, "of", in.Node)
	state := "active"
	if l.Owner.Site == "" {
		state = "holding"
	}
	return Residence{Site: l.Owner.Site, Node: l.Owner.Node, Epoch: l.Epoch, State: state}, nil
}

// poolOf is the pool that an address is in.
func (a *Agent) poolOf(in Own) (string, error) {
	a.mu.RLock()
	defer a.mu.RUnlock()
	for i := range a.config.Pools {
		p := &a.config.Pools[i]
		at, found := slices.BinarySearchFunc(p.Addresses, in.Address, func(x capture.Address, addr netip.Addr) int { return x.Addr.Compare(addr) })
		if !found || in.Pool != "" && p.Name != in.Pool {
			continue
		}
		known := in.Site == "" || p.Addresses[at].Owner.Site == in.Site ||
			slices.ContainsFunc(p.Members, func(m capture.Member) bool { return m.Site == in.Site })
		if !known {
			return "", fmt.Errorf("site %s is that of no member of MobilityPool %s, and not where the configuration has %s: is it spelt right?", in.Site, p.Name, in.Address)
		}
		return p.Name, nil
	}
	if in.Pool != "" {
		return "", fmt.Errorf("address %s is not in MobilityPool %s: `tasuki captures list` shows those that are", in.Address, in.Pool)
	}
	return "", fmt.Errorf("address %s is in no pool: `tasuki captures list` shows those that are", in.Address)
}

// Status is what an agent says of itself.
type Status struct {
	Node string `json:"node"`
	// Nodes are all members of the pools.
	Nodes  []string `json:"nodes"`
	Digest string   `json:"config"`
	Files  []string `json:"files"`
	// Refused are the problems of the files as they are now; the ones before are in force.
	Refused []string `json:"refused,omitempty"`
	Policy  string   `json:"policy"`
	// Drained are the nodes that are drained at run time; the configuration may drain more.
	Drained []string `json:"drained"`
	Running int      `json:"running"`
	// Outbox counts the releases that are intended and not known to be done.
	Outbox int `json:"outbox"`
	// Failed are the handles of the actions whose last attempt has failed: each is tried again.
	Failed []string `json:"failed,omitempty"`
	// Blind are the NICs that could not be looked at last.
	Blind []Blind `json:"blind,omitempty"`
	// Failure is why the last pass failed: nothing is begun until one succeeds.
	Failure string `json:"failure,omitempty"`
	// Wake is when time alone is next a reason to act.
	Wake time.Time `json:"wake,omitzero"`
}

func (a *Agent) status() Status {
	problems := a.tell.problems()
	a.mu.RLock()
	defer a.mu.RUnlock()
	s := Status{
		Node: a.node, Nodes: []string{}, Digest: a.config.Digest, Files: a.config.Files, Refused: problems, Policy: attitude(&a.config.Policy),
		Drained: slices.AppendSeq([]string{}, maps.Keys(a.drained)), Running: a.running, Outbox: len(a.view.Markers()), Wake: a.last.Wake.Round(0),
	}
	for i := range a.config.Pools {
		for j := range a.config.Pools[i].Members {
			s.Nodes = append(s.Nodes, a.config.Pools[i].Members[j].Node)
		}
	}
	slices.Sort(s.Nodes)
	s.Nodes = slices.Compact(s.Nodes)
	slices.Sort(s.Drained)
	for _, row := range a.view.Open() {
		if row.State == capture.Failed {
			s.Failed = append(s.Failed, Handle(row.ID()))
		}
	}
	for _, t := range a.targets() {
		if b := a.blind(t); b != nil {
			s.Blind = append(s.Blind, *b)
		}
	}
	if a.failure != nil {
		s.Failure = a.failure.Error()
	}
	return s
}
