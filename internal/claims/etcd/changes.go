package etcd

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"unique"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/tasuki-io/tasuki/internal/capture"
	"github.com/tasuki-io/tasuki/internal/claims"
)

type header = etcdserverpb.ResponseHeader

// told is what the last Changes has said, by which the next one sees that nothing is new.
type told struct {
	revision       claims.Revision
	until          int64 // nothing has changed up to here, whatever else the cluster holds
	cluster        uint64
	kept           int64 // claims and owners; nobody should ever delete one
	drained, alive []string
}

// state is what has to be remembered of the time before a read.
func (s *Store) state() (told, uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.told, s.breaks
}

// identity names a history: that of a cluster, for as long as it is certainly the same one.
func identity(cluster, breaks uint64) string {
	id := fmt.Sprintf("%x", cluster)
	if breaks > 0 {
		id += fmt.Sprintf("+%d", breaks)
	}
	return id
}

// Changes returns what has changed since a revision. The answer is that of a majority of the
// cluster, asked after the call has begun.
func (s *Store) Changes(ctx context.Context, since claims.Revision) (claims.Changes, error) {
	ctx, cancel := s.within(ctx)
	defer cancel()
	if t, breaks := s.state(); t.until > 0 && since == t.revision && since.Store == identity(t.cluster, breaks) {
		_, h, err := s.get(ctx, s.prefix)
		if err != nil {
			return claims.Changes{}, err
		}
		if _, now := s.state(); h.ClusterId == t.cluster && h.Revision == t.until && now == breaks {
			return claims.Changes{Revision: since, Drained: slices.Clone(t.drained), Alive: slices.Clone(t.alive)}, nil
		}
	}
	if since.Store == "" {
		since.N = 0
	}
	return s.changes(ctx, since)
}

// changes reads what has changed since a revision, or everything if it cannot.
func (s *Store) changes(ctx context.Context, since claims.Revision) (claims.Changes, error) {
	t, breaks := s.state()
	r, err := s.look(ctx, since.N)
	if err != nil {
		return claims.Changes{}, err
	}
	if t.until > 0 && (r.head.ClusterId != t.cluster || r.head.Revision < t.until || r.lost(t, since)) {
		s.broken()
		return s.changes(ctx, claims.Revision{})
	}
	id := identity(r.head.ClusterId, breaks)
	reset := since.Store != id || since.N > uint64(r.head.Revision)
	if reset && since.N > 0 {
		return s.changes(ctx, claims.Revision{})
	}
	c := claims.Changes{Reset: reset, Claims: map[capture.Key]capture.Claim{}}
	if err := s.understand(r, &c); err != nil {
		return claims.Changes{}, err
	}
	c.Revision = claims.Revision{Store: id, N: uint64(r.head.Revision)}
	if t.revision.Store == id && r.newest <= int64(t.revision.N) && r.kept == t.kept &&
		slices.Equal(c.Drained, t.drained) && slices.Equal(c.Alive, t.alive) {
		c.Revision = t.revision // what has changed since is not ours
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.breaks == breaks && s.told.until <= r.head.Revision {
		s.told = told{c.Revision, r.head.Revision, r.head.ClusterId, r.kept, slices.Clone(c.Drained), slices.Clone(c.Alive)}
	}
	return c, nil
}

// reading is what one look at the cluster has shown.
type reading struct {
	head                          *header
	claims, homes, drained, alive []*mvccpb.KeyValue
	kept                          int64 // claims and owners that are there, whenever written
	newest                        int64 // revision of what was written last, but for who is alive
}

// look reads the claims and owners that were written after a revision, and who is drained and
// alive, all at one moment.
func (s *Store) look(ctx context.Context, since uint64) (*reading, error) {
	var got *clientv3.TxnResponse
	after := clientv3.WithMinModRev(int64(since) + 1)
	err := s.ask(ctx, "read "+s.prefix, func(ctx context.Context, c *clientv3.Client) (err error) {
		got, err = c.Txn(ctx).Then(
			clientv3.OpGet(s.prefix+claimKeys, clientv3.WithPrefix(), after),
			clientv3.OpGet(s.prefix+homeKeys, clientv3.WithPrefix(), after),
			clientv3.OpGet(s.prefix+drainKeys, clientv3.WithPrefix(), clientv3.WithKeysOnly()),
			clientv3.OpGet(s.prefix+aliveKeys, clientv3.WithPrefix(), clientv3.WithKeysOnly()),
		).Commit()
		return err
	})
	if err != nil {
		return nil, err
	}
	r := &reading{head: got.Header}
	for i, into := range []*[]*mvccpb.KeyValue{&r.claims, &r.homes, &r.drained, &r.alive} {
		part := got.Responses[i].GetResponseRange()
		*into = part.Kvs
		if i < 2 {
			r.kept += part.Count
		}
		for _, kv := range part.Kvs {
			if into != &r.alive { // whose leases may be others now
				r.newest = max(r.newest, kv.ModRevision)
			}
		}
	}
	return r, nil
}

// lost reports that a claim or an owner is gone that the last Changes knew. It can be told
// only when that is the one from which it goes on.
func (r *reading) lost(t told, since claims.Revision) bool {
	if since != t.revision {
		return false
	}
	made := int64(0)
	for _, kv := range slices.Concat(r.claims, r.homes) {
		if kv.CreateRevision > int64(since.N) {
			made++
		}
	}
	return r.kept != t.kept+made
}

// understand says what a reading means.
func (s *Store) understand(r *reading, c *claims.Changes) error {
	for _, kv := range r.claims {
		p, err := s.parts(claimKeys, kv, 3)
		if err != nil {
			return err
		}
		addr, err := parseAddress(p[1])
		if err != nil {
			return damaged(kv, err)
		}
		held, err := claim(kv)
		if err != nil {
			return err
		}
		// Names that many claims have are in memory once.
		k := capture.Key{Pool: unique.Make(p[0]).Value(), Address: addr, Domain: capture.Domain(unique.Make(p[2]).Value())}
		held.Holder = unique.Make(held.Holder).Value()
		c.Claims[k] = held
	}
	for _, kv := range r.homes {
		p, err := s.parts(homeKeys, kv, 2)
		if err != nil {
			return err
		}
		addr, err := netip.ParseAddr(p[1])
		if err != nil {
			return damaged(kv, err)
		}
		lease, err := home(capture.Home{Pool: p[0], Addr: addr}, kv)
		if err != nil {
			return err
		}
		c.Leases = append(c.Leases, lease)
	}
	var err error
	if c.Drained, err = s.nodes(drainKeys, r.drained); err != nil {
		return err
	}
	c.Alive, err = s.nodes(aliveKeys, r.alive)
	return err
}

// nodes are the names that keys of a kind are of, in order.
func (s *Store) nodes(kind string, kvs []*mvccpb.KeyValue) (nodes []string, err error) {
	for _, kv := range kvs {
		p, err := s.parts(kind, kv, 1)
		if err != nil {
			return nil, err
		}
		nodes = append(nodes, p[0])
	}
	slices.Sort(nodes) // escaped, they may come in another order
	return nodes, nil
}
