package agent

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/tasuki-io/tasuki/internal/capture"
)

// lease is this node's own. It is renewed beside the passes, and read by whoever is about to
// begin something.
type lease struct {
	mu    sync.Mutex
	ttl   time.Duration // as it was last asked for
	until time.Time     // when it could end at the earliest
}

// asked takes note that the lease is to be one of a TTL: if that is shorter than before, nobody
// knows from now on which of the two it is.
func (l *lease) asked(ttl time.Duration, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if end := now.Add(ttl); ttl < l.ttl && end.Before(l.until) {
		l.until = end
	}
	l.ttl = ttl
}

func (l *lease) renewed(until time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if until.After(l.until) {
		l.until = until
	}
}

// holds reports whether the lease has certainly not ended.
func (l *lease) holds(now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return now.Before(l.until)
}

// ttl is how long the others take this node for alive without hearing of it: the shortest
// leaseTTL of its pools.
func (a *Agent) ttl() time.Duration {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return a.shortestTTL()
}

func (a *Agent) shortestTTL() time.Duration {
	ttl := time.Duration(0)
	for i := range a.config.Pools {
		p := &a.config.Pools[i]
		for j := range p.Members {
			if p.Members[j].Node == a.node && (ttl == 0 || p.LeaseTTL < ttl) {
				ttl = p.LeaseTTL
			}
		}
	}
	if ttl == 0 {
		return defaultTTL
	}
	return ttl
}

// renew keeps this node alive in the claims store (spec C10).
func (a *Agent) renew(ctx context.Context) error {
	ttl := a.ttl()
	ctx, cancel := context.WithTimeout(ctx, ttl)
	defer cancel()
	a.lease.asked(ttl, a.now())
	until, err := a.store.Renew(ctx, a.node, ttl)
	if err != nil {
		return fmt.Errorf("renew the lease of node %s in the claims store: %w", a.node, err)
	}
	held := a.lease.holds(a.now())
	if a.lease.renewed(until); !held {
		a.lan.judge() // what was withdrawn for want of a lease may be placed again
	}
	return nil
}

// live has the node be alive before anything is decided: whoever was taken for dead has to see
// first what became of what it held.
func (a *Agent) live(ctx context.Context) error {
	if a.lease.holds(a.now()) {
		return nil
	}
	return a.renew(ctx)
}

// keepAlive renews until ctx ends.
func (a *Agent) keepAlive(ctx context.Context) {
	for ctx.Err() == nil {
		err := a.renew(ctx)
		if ctx.Err() == nil {
			a.tell.renewed(err, a.lease.holds(a.now()))
		}
		select {
		case <-ctx.Done():
		case <-time.After(a.ttl() / 3):
		}
	}
}

// rivals are the other members of this node's pools.
func (a *Agent) rivals() []string {
	var nodes []string
	seen := map[string]bool{a.node: true}
	for i := range a.config.Pools {
		p := &a.config.Pools[i]
		for j := range p.Members {
			if node := p.Members[j].Node; !seen[node] {
				seen[node] = true
				nodes = append(nodes, node)
			}
		}
	}
	return nodes
}

// absent is who may hold nothing, and when that changes by itself.
func (a *Agent) absent(now time.Time) (capture.Absent, time.Time) {
	dead, next := a.dead(now)
	absent := capture.Absent{Drained: a.drained, Dead: dead}
	if a.config.Store.Etcd == nil {
		absent.Unheard = a.living.Unheard(a.rivals())
	}
	return absent, next
}

// dead are those that the claims store shows to be dead, and when that changes by itself. In a
// store that all nodes share, one that has not shown up within a lease after the start is dead.
func (a *Agent) dead(now time.Time) (map[string]bool, time.Time) {
	fence := time.Duration(0)
	if a.config.Store.Etcd != nil {
		fence = a.shortestTTL()
	}
	return a.living.Dead(a.rivals(), fence, now)
}
