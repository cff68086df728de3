package sqlite

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/tasuki-io/tasuki/internal/claims"
)

// FuzzOpen changes a store by some bytes at one place, or cuts it off. It is refused, or
// opened without an epoch that is lower or gone.
func FuzzOpen(f *testing.F) {
	whole, err := os.ReadFile(version1File)
	must(f, err)
	for _, at := range []uint32{0, 16, 18, 24, 28, 60, 68, 96, 100, 105, 4096, 4100, 8191} {
		f.Add(at, []byte{0xff}, uint32(len(whole)))
	}
	f.Add(uint32(0), []byte{}, uint32(4096))
	f.Add(uint32(0), []byte{}, uint32(0))
	f.Fuzz(func(t *testing.T, at uint32, with []byte, size uint32) {
		b := slices.Clone(whole[:min(int(size), len(whole))])
		if int(at) < len(b) {
			copy(b[at:], with)
		}
		neverLower(t, b)
	})
}

// Every byte of a store is changed, one after the other.
func TestNoDamagedByteLowersAnEpoch(t *testing.T) {
	whole, err := os.ReadFile(version1File)
	must(t, err)
	stride := 1
	if testing.Short() {
		stride = 97
	}
	for at := 0; at < len(whole); at += stride {
		if whole[at] != 0 { // most of the rest is empty space
			b := slices.Clone(whole)
			b[at] ^= 0xff
			if neverLower(t, b); t.Failed() {
				t.Fatalf("with another byte at %d", at)
			}
		}
	}
}

// neverLower opens a store that was damaged. It is refused, or nothing in it is lower or gone.
func neverLower(t *testing.T, b []byte) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "claims.db")
	must(t, os.WriteFile(path, b, 0o600))
	s, err := Open(path)
	if err != nil {
		return
	}
	defer func() { _ = s.Close() }()
	got, err := s.Changes(t.Context(), claims.Revision{})
	if err != nil {
		return
	}
	if got.Claims[key].Epoch < 400 || len(got.Leases) != 1 || got.Leases[0].Epoch < 1 {
		t.Errorf("there was %+v, and there is %+v", filled, got)
	}
}
