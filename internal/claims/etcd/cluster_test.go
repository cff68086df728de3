package etcd

import (
	"testing"
	"time"

	"github.com/tasuki-io/tasuki/internal/claims"
	"github.com/tasuki-io/tasuki/internal/claims/etcd/etcdtest"
)

type (
	cluster = etcdtest.Cluster
	member  = etcdtest.Member
)

const patience = etcdtest.Patience

var (
	newCluster = etcdtest.New
	started    = etcdtest.Started
	endpoints  = etcdtest.Endpoints
	cutOff     = etcdtest.CutOff
	eventually = etcdtest.Eventually
	timing     = etcdtest.Timing
	unsynced   = etcdtest.Unsynced
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// answered asks until there is an answer. On a busy machine a cluster may take longer for one than
// a store waits, or elect another leader meanwhile; which is an error, and no fault, of any call.
func answered[T any](t testing.TB, ask func() (T, error)) T {
	t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		got, err := ask()
		if err == nil {
			return got
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
}

// changes are those since a revision.
func changes(t testing.TB, s *Store, since claims.Revision) claims.Changes {
	t.Helper()
	return answered(t, func() (claims.Changes, error) { return s.Changes(t.Context(), since) })
}

// drains drains a node, or lets it back.
func drains(t testing.TB, s *Store, node string, drained bool) {
	t.Helper()
	answered(t, func() (any, error) { return nil, s.Drain(t.Context(), node, drained) })
}

// renewed is when the lease of a node may end that was renewed.
func renewed(t testing.TB, s *Store, node string, ttl time.Duration) time.Time {
	t.Helper()
	return answered(t, func() (time.Time, error) { return s.Renew(t.Context(), node, ttl) })
}

// opened is a store in a cluster.
func opened(t testing.TB, o Options) *Store {
	t.Helper()
	s, err := Open(o)
	must(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}
