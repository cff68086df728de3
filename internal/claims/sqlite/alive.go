package sqlite

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/tasuki-io/tasuki/internal/sqlitefile"
)

// Renew counts the beat of a node up. It is no change of the store: of the nodes that look,
// each finds out for itself whether it has taken the node for dead meanwhile.
func (s *Store) Renew(ctx context.Context, node string, ttl time.Duration) (time.Time, error) {
	if ttl <= 0 {
		return time.Time{}, fmt.Errorf("the lease of %s cannot last %s: give it a leaseTTL above zero", node, ttl)
	}
	begun := s.now()
	err := s.use(ctx, func(f *sqlitefile.File) error {
		return f.Write(ctx, func(tx *sqlitefile.Tx) error {
			_, err := tx.Exec(`INSERT INTO leases (node, ttl, beat) VALUES (?, ?, 1)
				ON CONFLICT DO UPDATE SET ttl = excluded.ttl, beat = beat + 1`, node, int64(ttl))
			return err
		})
	})
	if err != nil {
		return time.Time{}, err
	}
	s.writes.tell()
	return begun.Add(ttl), nil // nobody has seen the beat before, so nobody ends it earlier
}

// pulse is what this process has seen of the leases. A node is alive until its TTL has gone
// by since this process first saw its beat; to a process that has just started, all are.
type pulse struct {
	mu   sync.Mutex
	id   string // of the store that it has looked at
	seen map[string]beat
	told []string // the nodes that the last Changes called alive
}

type beat struct {
	n     int64
	ttl   time.Duration
	since time.Time
}

// look reads the leases in a transaction, and returns the nodes that are alive, in order.
// Only one looks at a time, so that no beat is taken for a newer one.
func (p *pulse) look(tx *sqlitefile.Tx, id string, now func() time.Time) ([]string, error) {
	if p.id != id {
		p.id, p.seen = id, map[string]beat{}
	}
	beats := map[string]beat{}
	err := tx.Rows(`SELECT node, ttl, beat FROM leases`, nil, func(scan sqlitefile.Scan) error {
		var node string
		var b beat
		if err := scan(&node, &b.ttl, &b.n); err != nil {
			return err
		}
		beats[node] = b
		return nil
	})
	if err != nil {
		return nil, err
	}
	at := now()
	maps.DeleteFunc(beats, func(node string, b beat) bool {
		known, ok := p.seen[node]
		if !ok || known.n != b.n || known.ttl != b.ttl {
			known = beat{b.n, b.ttl, at}
			p.seen[node] = known
		}
		return at.Sub(known.since) >= known.ttl
	})
	return slices.Sorted(maps.Keys(beats)), nil
}
