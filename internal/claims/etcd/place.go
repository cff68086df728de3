package etcd

import (
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/tasuki-io/tasuki/internal/capture"
	"github.com/tasuki-io/tasuki/internal/claims"
)

// Drain takes a node out of every placement, or lets it back. It writes nothing when that is
// so already.
func (s *Store) Drain(ctx context.Context, node string, drained bool) error {
	ctx, cancel := s.within(ctx)
	defer cancel()
	key := s.key(drainKeys, node)
	if !drained {
		return s.ask(ctx, "delete "+key, func(ctx context.Context, c *clientv3.Client) error {
			_, err := c.Delete(ctx, key)
			return err
		})
	}
	return s.ask(ctx, "write "+key, func(ctx context.Context, c *clientv3.Client) error {
		_, err := c.Txn(ctx).If(still(key, nil)...).Then(clientv3.OpPut(key, "drained")).Commit()
		return err
	})
}

// Own says where an address lives. It writes nothing when it lives there already, and begins
// again when somebody else has just said where it lives.
func (s *Store) Own(ctx context.Context, h capture.Home, owner capture.Location) (claims.AddressLease, error) {
	ctx, cancel := s.within(ctx)
	defer cancel()
	key := s.key(homeKeys, h.Pool, address(h.Addr))
	for {
		lease := claims.AddressLease{Home: h}
		kv, _, err := s.get(ctx, key)
		if err == nil && kv != nil {
			lease, err = home(h, kv)
		}
		switch {
		case err != nil:
			return claims.AddressLease{}, err
		case kv != nil && lease.Owner == owner:
			return lease, nil
		}
		lease.Owner = owner
		lease.Epoch++
		written := false
		err = s.tell(ctx, "write "+key, func(ctx context.Context, c *clientv3.Client) error {
			put := clientv3.OpPut(key, value(homeValue{owner.Node, owner.Site, lease.Epoch}))
			r, err := c.Txn(ctx).If(still(key, kv)...).Then(put).Commit()
			written = err == nil && r.Succeeded
			return err
		})
		if err != nil {
			return claims.AddressLease{}, err
		}
		if written {
			return lease, nil
		}
	}
}
