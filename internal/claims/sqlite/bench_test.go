package sqlite

import (
	"net/netip"
	"path/filepath"
	"testing"

	"github.com/tasuki-io/tasuki/internal/capture"
	"github.com/tasuki-io/tasuki/internal/claims"
)

// thousand are bumps of as many keys, from one epoch to the next.
func thousand(from capture.Epoch) []capture.Bump {
	bumps := make([]capture.Bump, 1000)
	for i := range bumps {
		k := key
		k.Address = netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)})
		bumps[i] = capture.Bump{Key: k, From: capture.Claim{Epoch: from, Holder: "a"}, To: capture.Claim{Epoch: from + 1, Holder: "a"}}
		if from == 0 {
			bumps[i].From = capture.Claim{}
		}
	}
	return bumps
}

// BenchmarkBump is a host that loses or takes over a thousand addresses.
func BenchmarkBump(b *testing.B) {
	s := opened(b, filepath.Join(b.TempDir(), "claims.db"), newClock())
	for e := capture.Epoch(0); b.Loop(); e++ {
		done, err := s.Bump(b.Context(), thousand(e))
		if must(b, err); !done[999] {
			b.Fatalf("the last bump from epoch %d was not done", e)
		}
	}
	b.ReportMetric(1000*float64(b.N)/b.Elapsed().Seconds(), "bumps/s")
}

// BenchmarkIdle is what a Wait does ten times a second while nothing changes.
func BenchmarkIdle(b *testing.B) {
	s := opened(b, filepath.Join(b.TempDir(), "claims.db"), newClock())
	fill(b, s)
	since := everything(b, s).Revision
	for b.Loop() {
		changed, err := s.changed(b.Context(), since)
		if must(b, err); changed {
			b.Fatal("something has changed")
		}
	}
}

// BenchmarkChanges is what a pass reads when nothing has changed, with a thousand claims.
func BenchmarkChanges(b *testing.B) {
	s := opened(b, filepath.Join(b.TempDir(), "claims.db"), newClock())
	_, err := s.Bump(b.Context(), thousand(0))
	must(b, err)
	since := everything(b, s).Revision
	for b.Loop() {
		_, err := s.Changes(b.Context(), since)
		must(b, err)
	}
	b.StopTimer()
	if c, err := s.Changes(b.Context(), claims.Revision{}); err != nil || len(c.Claims) != 1000 {
		b.Fatalf("%d claims, %v", len(c.Claims), err)
	}
}
