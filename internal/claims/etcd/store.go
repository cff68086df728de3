package etcd

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/stats"

	"github.com/tasuki-io/tasuki/internal/claims"
)

// Store is a claims store in an etcd cluster.
type Store struct {
	options Options
	prefix  string
	timeout time.Duration
	life    context.Context // ends with Close
	end     context.CancelFunc

	dialing chan struct{} // holds one while a client is made
	turning sync.Mutex    // held while the client goes on to another member
	renewal chan struct{} // holds one while the stream of renewals is in use

	mu     sync.Mutex
	client *clientv3.Client // nil until it is needed
	at     int              // which of the endpoints it talks to
	breaks uint64           // connections that have ended, and what else ends a history
	told   told
	watch  *watch
	leases map[string]clientv3.LeaseID // by node, those that this process renews
	stream *renewals
}

var _ claims.Store = (*Store)(nil)

// Open returns the store in a cluster. It reads the files of the options, and connects when it
// is first asked for something: a cluster that is away is an error then.
func Open(o Options) (*Store, error) {
	o, err := o.check()
	if err != nil {
		return nil, err
	}
	life, end := context.WithCancel(context.Background())
	return &Store{
		options: o, prefix: o.Prefix, timeout: o.Timeout, life: life, end: end, at: rand.IntN(len(o.Endpoints)),
		dialing: make(chan struct{}, 1), renewal: make(chan struct{}, 1), leases: map[string]clientv3.LeaseID{},
	}, nil
}

// Close ends all calls. The leases of nodes go on until their TTL is over, so that an agent
// that is started again soon holds what it held; see Release.
func (s *Store) Close() error {
	s.end()
	if c, _ := s.current(); c != nil {
		if err := c.Close(); err != nil && !errors.Is(err, context.Canceled) {
			return fmt.Errorf("close the client of etcd: %w", err)
		}
	}
	return nil
}

// How soon a member that does not answer is given up: etcd allows a ping every five seconds.
const (
	pingEvery   = 10 * time.Second
	pingTimeout = 5 * time.Second
)

// connected returns the client and the member that it talks to, and makes it when there is
// none. To make one takes as long as etcd takes to check the password.
func (s *Store) connected(ctx context.Context) (*clientv3.Client, int, error) {
	c, at := s.current()
	if c != nil {
		return c, at, nil
	}
	select {
	case <-ctx.Done():
		return nil, at, ctx.Err()
	case s.dialing <- struct{}{}:
		defer func() { <-s.dialing }()
	}
	if c, at = s.current(); c != nil {
		return c, at, nil
	}
	tls, password, err := s.options.secrets()
	if err != nil {
		return nil, at, err
	}
	c, err = clientv3.New(clientv3.Config{
		Context: s.life, Endpoints: s.options.Endpoints[at : at+1], TLS: tls, Username: s.options.User, Password: password,
		DialTimeout: s.timeout / attempts, DialKeepAliveTime: pingEvery, DialKeepAliveTimeout: pingTimeout,
		// What may be asked twice is known here better: the client repeats a write, too, when a
		// member says that it was canceled.
		MaxUnaryRetries: 1,
		Logger:          zap.NewNop(),
		DialOptions:     []grpc.DialOption{grpc.WithStatsHandler(connections{s}), grpc.WithChainUnaryInterceptor(promptly)},
	})
	if err != nil {
		return nil, at, err
	}
	s.mu.Lock()
	s.client = c
	s.mu.Unlock()
	if s.life.Err() != nil { // Close may have seen none
		return nil, at, errors.Join(s.life.Err(), c.Close())
	}
	return c, at, nil
}

// promptly has a call fail, and say why, when there is no connection. The client would let it
// wait for one.
func promptly(ctx context.Context, method string, req, reply any, c *grpc.ClientConn, call grpc.UnaryInvoker, o ...grpc.CallOption) error {
	return call(ctx, method, req, reply, c, append(o, grpc.WaitForReady(false))...)
}

func (s *Store) current() (*clientv3.Client, int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.client, s.at
}

// turn goes on to the next member after one that has failed. The client would take turns by
// itself, and so send every so many calls to a member that is cut off from the others: of an
// agent that always makes the same calls it could be all the writes.
func (s *Store) turn(from int) {
	s.turning.Lock()
	defer s.turning.Unlock()
	c, at := s.current()
	next := (from + 1) % len(s.options.Endpoints)
	if at != from || at == next {
		return
	}
	s.mu.Lock()
	s.at = next
	s.mu.Unlock()
	s.broken() // the old connection may go on for a while
	if c != nil {
		c.SetEndpoints(s.options.Endpoints[next])
	}
}

// refused forgets a client whose password etcd does not take: the next one reads it again.
func (s *Store) refused(c *clientv3.Client) {
	s.mu.Lock()
	forget := c != nil && s.client == c
	if forget {
		s.client = nil
	}
	s.mu.Unlock()
	if forget {
		_ = c.Close()
	}
}

// broken takes note that what was read before may not be what is read from now on.
func (s *Store) broken() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.breaks++
	s.told = told{}
	if s.watch != nil {
		s.watch.cancel()
		s.watch = nil
	}
}

// connections hears of the end of every connection.
type connections struct{ store *Store }

func (c connections) HandleConn(_ context.Context, event stats.ConnStats) {
	if _, ended := event.(*stats.ConnEnd); ended && c.store.life.Err() == nil {
		c.store.broken()
	}
}

func (connections) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
func (connections) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context   { return ctx }
func (connections) HandleRPC(context.Context, stats.RPCStats)                         {}
