package agent

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/tasuki-io/tasuki/internal/capture"
	"github.com/tasuki-io/tasuki/internal/claims"
)

// simStore is a claims store: what is acknowledged is there for every later read, but Changes
// may tell of it late.
type simStore struct {
	*sim
	name    string
	claims  map[capture.Key]capture.Claim
	leases  map[capture.Home]claims.AddressLease
	drained []string
	history []simChange
	beats   map[string]time.Duration // until when each node that was ever alive is so
}

// simChange is one write.
type simChange struct {
	claims  map[capture.Key]capture.Claim
	lease   claims.AddressLease
	drained []string // all that are, after it
}

var errSim = errors.New("it does not answer")

func (st *simStore) clear() {
	st.claims, st.leases, st.drained = map[capture.Key]capture.Claim{}, map[capture.Home]claims.AddressLease{}, nil
}

func (st *simStore) revision() claims.Revision {
	return claims.Revision{Store: st.name, N: uint64(len(st.history))}
}

func (st *simStore) wrote(c simChange) {
	c.drained = st.drained
	st.history = append(st.history, c)
	st.events++
}

// restore puts a backup in the place of the store.
func (st *simStore) restore(to int) {
	st.name += "+"
	history := st.history[:to:to]
	st.clear()
	for _, c := range history {
		maps.Copy(st.claims, c.claims)
		if c.lease.Epoch > 0 {
			st.leases[c.lease.Home] = c.lease
		}
		st.drained = c.drained
	}
	st.history = history
	for _, n := range st.nodes { // a backup has the leases of its time, which begin anew or are gone
		if st.one(3) {
			delete(st.beats, n.name)
		} else if st.one(2) {
			st.beats[n.name] = st.clock + simTTL
		}
	}
	st.laws.restored()
}

func (st *simStore) drain(node string, drained bool) {
	if slices.Contains(st.drained, node) == drained {
		return
	}
	if st.drained = slices.Clone(st.drained); drained {
		st.drained = append(st.drained, node)
		slices.Sort(st.drained)
	} else {
		st.drained = slices.DeleteFunc(st.drained, func(o string) bool { return o == node })
	}
	st.wrote(simChange{})
}

func (st *simStore) own(h capture.Home, site string) {
	l := st.leases[h]
	if l.Epoch > 0 && l.Owner.Site == site {
		return
	}
	l = claims.AddressLease{Home: h, Owner: capture.Location{Site: site}, Epoch: l.Epoch + 1}
	st.leases[h] = l
	st.wrote(simChange{lease: l})
}

// simCut is how a node is cut off from the store, while others are not: nothing arrives, or
// no answer does.
type simCut int

const (
	simDeafened simCut = iota + 1
	simMuted
)

// simHandle is the store as one node reaches it.
type simHandle struct {
	*simStore
	node *simNode
}

var _ claims.Store = simHandle{}

// fails is the way to the store, there and back.
func (h simHandle) fails(at string) bool {
	if h.node.cut == simDeafened && at == "before" || h.node.cut == simMuted && at == "after" {
		h.happens("cut off " + at)
		h.note("%s: the store is cut off %s", h.node.name, at)
		return true
	}
	if h.one(40) {
		h.happens("store fails " + at)
		h.note("%s: the store does not answer %s", h.node.name, at)
		return true
	}
	return false
}

func (h simHandle) Changes(_ context.Context, since claims.Revision) (c claims.Changes, err error) {
	h.pause("changes")
	if h.fails("before") {
		return c, errSim
	}
	from, to := int(since.N), len(h.history)
	if c.Reset = since.Store != h.name || from > to; c.Reset {
		from = 0
	}
	if h.one(5) && to > from {
		h.happens("late watch")
		to = from + h.rng.IntN(to-from)
	}
	c.Revision, c.Claims = claims.Revision{Store: h.name, N: uint64(to)}, map[capture.Key]capture.Claim{}
	for _, w := range h.history[from:to] {
		maps.Copy(c.Claims, w.claims)
		if w.lease.Epoch > 0 {
			c.Leases = append(c.Leases, w.lease)
		}
	}
	if to > 0 {
		c.Drained = h.history[to-1].drained
	}
	c.Alive = h.alive()
	h.pause("changed")
	if h.fails("after") {
		return claims.Changes{}, errSim
	}
	h.node.alive = c.Alive
	return c, nil
}

func (h simHandle) Claim(ctx context.Context, k capture.Key) (capture.Claim, error) {
	p := h.current
	h.pause("claim")
	if h.fails("before") || ctx.Err() != nil {
		return capture.Claim{}, errSim
	}
	c := h.claims[k]
	h.pause("claimed")
	if h.fails("after") {
		return capture.Claim{}, errSim
	}
	if p != nil {
		p.read = &c
	}
	return c, nil
}

func (h simHandle) Bump(_ context.Context, bumps []capture.Bump) ([]bool, error) {
	h.pause("bump")
	done := make([]bool, len(bumps))
	if h.fails("before") {
		return done, errSim
	}
	change := simChange{claims: map[capture.Key]capture.Claim{}}
	for i, b := range bumps {
		if done[i] = h.claims[b.Key] == b.From; done[i] {
			h.bumped(h.node, b)
			h.claims[b.Key], change.claims[b.Key] = b.To, b.To
			h.note("%s: %s is now %s", h.node.name, b.Key, b.To)
		} else {
			h.happens("overtaken bump")
		}
	}
	if len(change.claims) > 0 {
		h.wrote(change)
	}
	h.pause("bumped")
	if h.fails("after") {
		return make([]bool, len(bumps)), errSim
	}
	return done, nil
}

func (h simHandle) Wait(context.Context, claims.Revision) error { panic("the schedule waits") }
func (h simHandle) Drain(_ context.Context, n string, drained bool) error {
	h.drain(n, drained)
	return nil
}
func (h simHandle) Own(_ context.Context, home capture.Home, owner capture.Location) (claims.AddressLease, error) {
	h.own(home, owner.Site)
	return h.leases[home], nil
}

// Renew grants a lease by the clock of the store; the node reckons from before it asked.
func (h simHandle) Renew(ctx context.Context, node string, ttl time.Duration) (time.Time, error) {
	asked, began := h.node.now(), h.clock
	h.pause("renew")
	if h.fails("before") || ctx.Err() != nil {
		return time.Time{}, errSim
	}
	if until, ever := h.beats[node]; ever && until <= h.clock {
		h.happens("revived")
	}
	h.beats[node] = h.clock + ttl
	h.pause("renewed")
	if h.fails("after") {
		return time.Time{}, errSim
	}
	h.node.until = max(h.node.until, began+ttl)
	return asked.Add(ttl), nil
}

// alive are the nodes whose lease has not ended.
func (st *simStore) alive() (nodes []string) {
	for node, until := range st.beats {
		if until > st.clock {
			nodes = append(nodes, node)
		}
	}
	slices.Sort(nodes)
	return nodes
}
func (h simHandle) Close() error { return nil }
