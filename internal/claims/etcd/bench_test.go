package etcd

import (
	"testing"

	"github.com/tasuki-io/tasuki/internal/capture"
	"github.com/tasuki-io/tasuki/internal/claims"
)

// benched is a store in a cluster that syncs what it writes, with a thousand claims.
func benched(b *testing.B) *Store {
	c := started(b, newCluster(b, 3, timing...))
	s := opened(b, Options{Endpoints: endpoints(c.Members...)})
	thousand(b, s, 0)
	return s
}

// thousand bumps as many keys from one epoch to the next.
func thousand(b *testing.B, s *Store, from capture.Epoch) {
	bumps := make([]capture.Bump, 1000)
	for i := range bumps {
		bumps[i] = capture.Bump{Key: key(i), From: capture.Claim{Epoch: from, Holder: "a"}, To: capture.Claim{Epoch: from + 1, Holder: "a"}}
		if from == 0 {
			bumps[i].From = capture.Claim{}
		}
	}
	done, err := s.Bump(b.Context(), bumps)
	if must(b, err); !done[0] || !done[999] {
		b.Fatalf("the bumps from epoch %d were not done", from)
	}
}

// BenchmarkBump is a host that loses or takes over a thousand addresses.
func BenchmarkBump(b *testing.B) {
	s := benched(b)
	for e := capture.Epoch(1); b.Loop(); e++ {
		thousand(b, s, e)
	}
	b.ReportMetric(1000*float64(b.N)/b.Elapsed().Seconds(), "bumps/s")
}

// BenchmarkIdle is what a pass reads when nothing has changed, with a thousand claims.
func BenchmarkIdle(b *testing.B) {
	s := benched(b)
	at, err := s.Changes(b.Context(), claims.Revision{})
	must(b, err)
	for b.Loop() {
		got, err := s.Changes(b.Context(), at.Revision)
		if must(b, err); got.Revision != at.Revision {
			b.Fatal("something has changed")
		}
	}
}

// BenchmarkChanges is what a pass reads when others have written elsewhere in the cluster.
func BenchmarkChanges(b *testing.B) {
	s := benched(b)
	at, err := s.Changes(b.Context(), claims.Revision{})
	must(b, err)
	for b.Loop() {
		_, err := s.changes(b.Context(), at.Revision)
		must(b, err)
	}
}

// BenchmarkClaim is what an executor asks before each call.
func BenchmarkClaim(b *testing.B) {
	s := benched(b)
	for b.Loop() {
		_, err := s.Claim(b.Context(), key(1))
		must(b, err)
	}
}
