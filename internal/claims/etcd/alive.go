package etcd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/tasuki-io/tasuki/internal/claims"
)

// aliveValue is the key of a node that is alive.
type aliveValue struct {
	TTL string `json:"ttl"` // as it was asked for
	// Term is one that had a leader before the lease was granted: no leader of an earlier term
	// has ever had the lease to look after.
	Term  uint64 `json:"term"`
	Agent string `json:"agent,omitempty"` // who renews
}

// Renew keeps a node alive for a TTL, rounded up to whole seconds and to what the cluster
// grants at least. The first Renew of a process goes on with the lease that an earlier one of
// the same agent has left, so that an agent that is started again is alive all the while. That
// of another agent is left alone: the error is a claims.ErrRival.
//
// The instant that is returned is that of the request plus the TTL that was granted. Nobody
// sees the node dead earlier, unless somebody revokes its lease or restores the cluster.
//
// To that end a lease is renewed in one term of the cluster only, that in which it was granted.
// A leader that is paused, deposed, and goes on later without knowing it still renews the leases
// of its time; and those that have meanwhile ended for it alone it has revoked, as the members
// of etcd pass what it proposes to its successor. So a renewal counts when a read that was begun
// after it shows that no other leader has come, and a new leader grants a new lease.
func (s *Store) Renew(ctx context.Context, node string, ttl time.Duration) (time.Time, error) {
	if ttl <= 0 {
		return time.Time{}, fmt.Errorf("the lease of %s cannot last %s: give it a leaseTTL above zero", node, ttl)
	}
	ctx, cancel := s.within(ctx)
	defer cancel()
	key := s.key(aliveKeys, node)
	for {
		id, end, err := s.prolong(ctx, key, node)
		if err != nil {
			return time.Time{}, err
		}
		kv, h, err := s.get(ctx, key)
		if err != nil {
			return time.Time{}, err
		}
		want := aliveValue{ttl.String(), h.RaftTerm, s.options.Agent}
		current := kv != nil && string(kv.Value) == value(want)
		switch {
		case rival(kv, want.Agent):
			return time.Time{}, s.rivaled(kv, node)
		case current && clientv3.LeaseID(kv.Lease) != id:
			s.keep(node, clientv3.LeaseID(kv.Lease)) // it was left by an earlier process
			continue
		case current && !end.IsZero():
			return end, nil
		}
		end, err = s.grant(ctx, key, node, kv, ttl, want)
		if err != nil || !end.IsZero() {
			return end, err
		}
	}
}

// rival reports a key that keeps a node alive for another agent.
func rival(kv *mvccpb.KeyValue, agent string) bool {
	var v aliveValue
	return kv != nil && json.Unmarshal(kv.Value, &v) == nil && v.Agent != "" && v.Agent != agent
}

func (s *Store) rivaled(kv *mvccpb.KeyValue, node string) error {
	return fmt.Errorf("%w: node %s under the prefix %s of etcd at %s, see %s: stop one of the two, or give it another --node, or its ClaimsStore another prefix; when the other is gone already, this one goes on as soon as that lease has ended",
		claims.ErrRival, node, s.prefix, strings.Join(s.options.Endpoints, ","), kv.Value)
}

func (s *Store) keep(node string, id clientv3.LeaseID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leases[node] = id
}

// grant begins a lease, and has the key of the node be on it. It returns the zero time when the
// key is not any more what was read.
func (s *Store) grant(ctx context.Context, key, node string, kv *mvccpb.KeyValue, ttl time.Duration, v aliveValue) (end time.Time, err error) {
	var l *clientv3.LeaseGrantResponse
	err = s.ask(ctx, "grant a lease for "+key, func(ctx context.Context, c *clientv3.Client) (err error) {
		begun := time.Now()
		if l, err = c.Grant(ctx, int64((ttl+time.Second-1)/time.Second)); err == nil {
			end = begun.Add(time.Duration(l.TTL) * time.Second)
		}
		return err
	})
	if err != nil {
		return time.Time{}, err
	}
	written := false
	err = s.ask(ctx, "write "+key, func(ctx context.Context, c *clientv3.Client) error {
		r, err := c.Txn(ctx).If(still(key, kv)...).Then(clientv3.OpPut(key, value(v), clientv3.WithLease(l.ID))).Commit()
		written = err == nil && r.Succeeded
		return err
	})
	if errors.Is(err, rpctypes.ErrLeaseNotFound) { // it took longer than the lease lasts
		return time.Time{}, nil
	}
	if err != nil || !written {
		return time.Time{}, err
	}
	s.keep(node, l.ID)
	return end, nil
}

// prolong renews the lease that this process has of a node. It returns when that could end, if
// the answer is that of the leader, and the zero time when there is none or it has ended.
func (s *Store) prolong(ctx context.Context, key, node string) (id clientv3.LeaseID, end time.Time, err error) {
	s.mu.Lock()
	id = s.leases[node]
	s.mu.Unlock()
	if id == 0 {
		return id, end, nil
	}
	err = s.ask(ctx, "renew the lease of "+key, func(ctx context.Context, c *clientv3.Client) error {
		begun := time.Now()
		r, err := s.renew(ctx, c, id)
		if err == nil {
			end = begun.Add(time.Duration(r.TTL) * time.Second)
		}
		return err
	})
	if errors.Is(err, rpctypes.ErrLeaseNotFound) {
		return id, time.Time{}, nil
	}
	return id, end, err
}

// renewals is a stream on which leases are renewed. It is kept, as etcd checks the password
// anew for each.
type renewals struct {
	etcdserverpb.Lease_LeaseKeepAliveClient
	client *clientv3.Client
	cancel context.CancelFunc
}

// renew has a lease begin anew with its whole TTL.
func (s *Store) renew(ctx context.Context, c *clientv3.Client, id clientv3.LeaseID) (*etcdserverpb.LeaseKeepAliveResponse, error) {
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case s.renewal <- struct{}{}:
		defer func() { <-s.renewal }()
	}
	if s.stream == nil || s.stream.client != c {
		life, cancel := context.WithCancel(clientv3.WithRequireLeader(s.life))
		stop := context.AfterFunc(ctx, cancel)
		stream, err := etcdserverpb.NewLeaseClient(c.ActiveConnection()).LeaseKeepAlive(life)
		if stop(); err != nil {
			cancel()
			return nil, err
		}
		s.stream = &renewals{stream, c, cancel}
	}
	stop := context.AfterFunc(ctx, s.stream.cancel)
	_ = s.stream.Send(&etcdserverpb.LeaseKeepAliveRequest{ID: int64(id)}) // Recv says why it failed
	r, err := s.stream.Recv()
	if !stop() || err != nil {
		s.stream.cancel()
		s.stream = nil
	}
	switch {
	case err != nil && ctx.Err() != nil:
		err = ctx.Err()
	case err == nil && r.TTL <= 0:
		err = rpctypes.ErrLeaseNotFound
	}
	return r, err
}

// Release ends the lease of a node, for everybody to see at once: another takes over what it
// holds. The node must not be renewed any more. A node that is not alive is no error.
func (s *Store) Release(ctx context.Context, node string) error {
	ctx, cancel := s.within(ctx)
	defer cancel()
	key := s.key(aliveKeys, node)
	kv, _, err := s.get(ctx, key)
	if err != nil || kv == nil {
		return err
	}
	s.keep(node, 0)
	err = s.ask(ctx, "revoke the lease of "+key, func(ctx context.Context, c *clientv3.Client) error {
		_, err := c.Revoke(ctx, clientv3.LeaseID(kv.Lease))
		return err
	})
	if errors.Is(err, rpctypes.ErrLeaseNotFound) {
		return nil
	}
	return err
}
