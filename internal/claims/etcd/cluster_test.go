package etcd

import (
	"testing"

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

// opened is a store in a cluster.
func opened(t testing.TB, o Options) *Store {
	t.Helper()
	s, err := Open(o)
	must(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}
