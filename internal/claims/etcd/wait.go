package etcd

import (
	"context"
	"sync"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/tasuki-io/tasuki/internal/claims"
)

// Wait returns as soon as something has changed since a revision, or Changes would begin anew.
// It costs nothing while nothing changes. When the cluster is away it returns an error, and is
// to be called again a little later.
func (s *Store) Wait(ctx context.Context, since claims.Revision) error {
	w, after, err := s.watching(ctx, since)
	for err == nil && w != nil {
		newest, next := w.state()
		if newest > after {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.life.Done():
			return s.failed(s.life, "watch "+s.prefix, s.life.Err())
		case <-next:
		case <-w.ended:
			if w.compacted {
				return nil
			}
			if w.err != nil {
				s.turn(w.at)
				return s.failed(ctx, "watch "+s.prefix, w.err)
			}
			w, after, err = s.watching(ctx, since) // it was broken off
		}
	}
	return err
}

// watching returns the watch that tells of all changes after a revision of the cluster, and
// begins one if it has to. It returns none when something has changed already.
func (s *Store) watching(ctx context.Context, since claims.Revision) (*watch, int64, error) {
	bounded, cancel := s.within(ctx)
	defer cancel()
	for {
		t, breaks := s.state()
		after := int64(since.N)
		if since == t.revision {
			after = t.until
		}
		if w := s.running(); w != nil && w.store == since.Store {
			if w.from > after {
				return nil, 0, nil // it began too late to tell
			}
			return w, after, nil
		}
		_, h, err := s.get(bounded, s.prefix)
		if err != nil {
			return nil, 0, err
		}
		if since.Store != identity(h.ClusterId, breaks) || after > h.Revision {
			return nil, 0, nil
		}
		s.begin(since.Store, after, breaks)
	}
}

// watch is what the cluster tells of its changes, from the one after a revision. It lives
// until it fails, or until a connection ends: what a client takes up again by itself could go
// on in a cluster that was restored meanwhile.
type watch struct {
	store     string // the history that it is of
	from      int64
	at        int // the member that it began with
	cancel    context.CancelFunc
	ended     chan struct{}
	compacted bool  // once ended
	err       error // once ended, nil when it was broken off

	mu     sync.Mutex
	newest int64
	next   chan struct{} // closed when newest rises
}

func (w *watch) state() (newest int64, next <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.newest, w.next
}

// running is the watch, nil when there is none.
func (s *Store) running() *watch {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.watch
}

// begin begins a watch, unless somebody else has, or what was read before is in doubt again.
func (s *Store) begin(store string, from int64, breaks uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.watch != nil || s.breaks != breaks || s.client == nil || s.life.Err() != nil {
		return
	}
	ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(s.life))
	w := &watch{store: store, from: from, at: s.at, cancel: cancel, ended: make(chan struct{}), next: make(chan struct{})}
	s.watch = w
	go s.follow(ctx, w, s.client)
}

func (s *Store) follow(ctx context.Context, w *watch, c *clientv3.Client) {
	defer close(w.ended)
	defer w.cancel()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.watch == w {
			s.watch = nil
		}
	}()
	for r := range c.Watch(ctx, s.prefix, clientv3.WithPrefix(), clientv3.WithRev(w.from+1)) {
		if err := r.Err(); err != nil {
			if w.compacted = r.CompactRevision > 0; ctx.Err() == nil {
				w.err = err
			}
			return
		}
		w.mu.Lock()
		for _, e := range r.Events {
			w.newest = max(w.newest, e.Kv.ModRevision)
		}
		if len(r.Events) > 0 {
			close(w.next)
			w.next = make(chan struct{})
		}
		w.mu.Unlock()
	}
}
