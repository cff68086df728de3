package sqlite

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/tasuki-io/tasuki/internal/capture"
	"github.com/tasuki-io/tasuki/internal/claims"
	"github.com/tasuki-io/tasuki/internal/sqlitefile"
)

// Changes returns what has changed since a revision.
func (s *Store) Changes(ctx context.Context, since claims.Revision) (c claims.Changes, err error) {
	s.pulse.mu.Lock()
	defer s.pulse.mu.Unlock()
	err = s.read(ctx, func(tx *sqlitefile.Tx) error {
		c = claims.Changes{Revision: claims.Revision{Store: s.id}, Claims: map[capture.Key]capture.Claim{}}
		if err := tx.Row(`SELECT revision FROM meta`, nil, &c.Revision.N); err != nil {
			return err
		}
		c.Reset = since.Store != s.id || since.N > c.Revision.N
		from := since.N
		if c.Reset {
			from = 0
		}
		if from < c.Revision.N {
			if err := news(tx, from, &c); err != nil {
				return err
			}
		}
		var err error
		if c.Drained, err = drained(tx); err != nil {
			return err
		}
		c.Alive, err = s.pulse.look(tx, s.id, s.now)
		return err
	})
	if err == nil {
		s.pulse.told = c.Alive
	}
	return c, err
}

// news reads the rows that were written after a revision.
func news(tx *sqlitefile.Tx, since uint64, c *claims.Changes) error {
	err := tx.Rows(`SELECT pool, address, domain, epoch, holder FROM epochs WHERE rev > ?`, []any{since}, func(scan sqlitefile.Scan) error {
		var k capture.Key
		var claim capture.Claim
		var addr string
		err := scan(&k.Pool, &addr, &k.Domain, &claim.Epoch, &claim.Holder)
		if err == nil {
			k.Address, err = parseAddress(addr)
		}
		sqlitefile.Share(&k.Pool)
		sqlitefile.Share(&k.Domain)
		sqlitefile.Share(&claim.Holder)
		c.Claims[k] = claim
		return err
	})
	if err != nil {
		return err
	}
	return tx.Rows(`SELECT pool, address, node, site, epoch FROM homes WHERE rev > ? ORDER BY pool, address`, []any{since}, func(scan sqlitefile.Scan) error {
		var l claims.AddressLease
		var addr string
		err := scan(&l.Pool, &addr, &l.Owner.Node, &l.Owner.Site, &l.Epoch)
		if err == nil {
			l.Addr, err = parseAddress(addr)
		}
		c.Leases = append(c.Leases, l)
		return err
	})
}

func drained(tx *sqlitefile.Tx) (nodes []string, err error) {
	err = tx.Rows(`SELECT node FROM drains ORDER BY node`, nil, func(scan sqlitefile.Scan) error {
		var node string
		err := scan(&node)
		nodes = append(nodes, node)
		return err
	})
	return nodes, err
}

// every is how often Wait looks for what other processes have written. To look takes two
// short reads of pages that are in memory, so it costs nothing; and unlike a watch on the
// files it also finds leases that end and files that are replaced, and misses nothing.
const every = 100 * time.Millisecond

// Wait returns as soon as the store has changed since a revision. It looks at once after what
// this process has written, and a little later after what others have.
func (s *Store) Wait(ctx context.Context, since claims.Revision) error {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		written := s.writes.next()
		if changed, err := s.changed(ctx, since); err != nil || changed {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-written:
		case <-ticker.C:
		}
	}
}

// changed reports whether Changes would say something new.
func (s *Store) changed(ctx context.Context, since claims.Revision) (changed bool, err error) {
	s.pulse.mu.Lock()
	defer s.pulse.mu.Unlock()
	err = s.read(ctx, func(tx *sqlitefile.Tx) error {
		now := claims.Revision{Store: s.id}
		if err := tx.Row(`SELECT revision FROM meta`, nil, &now.N); err != nil {
			return err
		}
		alive, err := s.pulse.look(tx, s.id, s.now)
		changed = now != since || !slices.Equal(alive, s.pulse.told)
		return err
	})
	return changed, err
}

// notice wakes whoever waits in this process.
type notice struct {
	mu sync.Mutex
	c  chan struct{}
}

// next is closed when something is told.
func (n *notice) next() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.c == nil {
		n.c = make(chan struct{})
	}
	return n.c
}

func (n *notice) tell() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.c != nil {
		close(n.c)
		n.c = nil
	}
}
