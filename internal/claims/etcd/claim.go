package etcd

import (
	"context"
	"errors"
	"fmt"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/tasuki-io/tasuki/internal/capture"
)

// Claim reads one claim from a majority of the cluster, asked after the call has begun.
func (s *Store) Claim(ctx context.Context, k capture.Key) (capture.Claim, error) {
	ctx, cancel := s.within(ctx)
	defer cancel()
	kv, _, err := s.get(ctx, s.claimKey(k))
	if err != nil {
		return capture.Claim{}, err
	}
	return claim(kv)
}

// get reads one key from a majority of the cluster, nil when it is not there.
func (s *Store) get(ctx context.Context, key string) (kv *mvccpb.KeyValue, head *header, err error) {
	err = s.ask(ctx, "read "+key, func(ctx context.Context, c *clientv3.Client) error {
		r, err := c.Get(ctx, key)
		if err != nil {
			return err
		}
		if head = r.Header; len(r.Kvs) > 0 {
			kv = r.Kvs[0]
		}
		return nil
	})
	return kv, head, err
}

// perTxn is how many bumps go into one transaction. Each takes an operation and two
// comparisons, and a cluster allows 128 of them together unless it is told otherwise.
const perTxn = 100

// Bump performs each bump whose claim is still what its From says, up to a hundred in one
// transaction. An error leaves those that were not said to be done unknown: the answer to the
// last transaction may be lost, and those after it were not tried.
func (s *Store) Bump(ctx context.Context, bumps []capture.Bump) ([]bool, error) {
	ctx, cancel := s.within(ctx)
	defer cancel()
	done := make([]bool, len(bumps))
	var wrong []error
	var batch []int // indexes of bumps
	seen := map[capture.Key]bool{}
	flush := func() error {
		if len(batch) == 0 {
			return nil
		}
		err := s.bump(ctx, bumps, batch, done)
		batch = batch[:0]
		clear(seen)
		return err
	}
	if err := ctx.Err(); err != nil {
		return done, s.failed(ctx, "bump", err)
	}
	for i, b := range bumps {
		if b.To.Epoch <= b.From.Epoch {
			wrong = append(wrong, fmt.Errorf("%s cannot go from %s to %s: an epoch only rises", b.Key, b.From, b.To))
			continue
		}
		if len(batch) == perTxn || seen[b.Key] { // a transaction changes a key once
			if err := flush(); err != nil {
				return done, errors.Join(append(wrong, err)...)
			}
		}
		batch = append(batch, i)
		seen[b.Key] = true
	}
	return done, errors.Join(append(wrong, flush())...)
}

// bump reads the claims of a batch and bumps those that are what they are expected to be, by
// comparing what was read: each in a transaction of its own inside of the one that makes all
// of them durable.
func (s *Store) bump(ctx context.Context, bumps []capture.Bump, batch []int, done []bool) error {
	keys := make([]string, len(batch))
	reads := make([]clientv3.Op, len(batch))
	for i, at := range batch {
		keys[i] = s.claimKey(bumps[at].Key)
		reads[i] = clientv3.OpGet(keys[i])
	}
	what := " " + keys[0]
	if len(keys) > 1 {
		what += fmt.Sprintf(" and %d more", len(keys)-1)
	}
	var were *clientv3.TxnResponse
	err := s.ask(ctx, "read"+what, func(ctx context.Context, c *clientv3.Client) (err error) {
		were, err = c.Txn(ctx).Then(reads...).Commit()
		return err
	})
	if err != nil {
		return err
	}
	var writes []clientv3.Op
	var written []int
	for i, at := range batch {
		var kv *mvccpb.KeyValue
		if found := were.Responses[i].GetResponseRange().Kvs; len(found) > 0 {
			kv = found[0]
		}
		switch was, err := claim(kv); {
		case err != nil:
			return err
		case was == bumps[at].From:
			put := clientv3.OpPut(keys[i], value(claimValue(bumps[at].To)))
			writes = append(writes, clientv3.OpTxn(still(keys[i], kv), []clientv3.Op{put}, nil))
			written = append(written, at)
		}
	}
	if len(writes) == 0 {
		return nil
	}
	return s.tell(ctx, "bump"+what, func(ctx context.Context, c *clientv3.Client) error {
		r, err := c.Txn(ctx).Then(writes...).Commit()
		if err != nil {
			return err
		}
		for i, at := range written {
			done[at] = r.Responses[i].GetResponseTxn().Succeeded
		}
		return nil
	})
}

// still compares a key with what was read of it. The revision alone would not do, as a cluster
// that was restored counts through the same ones again.
func still(key string, kv *mvccpb.KeyValue) []clientv3.Cmp {
	if kv == nil {
		return []clientv3.Cmp{clientv3.Compare(clientv3.ModRevision(key), "=", 0)}
	}
	return []clientv3.Cmp{
		clientv3.Compare(clientv3.ModRevision(key), "=", kv.ModRevision),
		clientv3.Compare(clientv3.Value(key), "=", string(kv.Value)),
	}
}
