package journal

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// FuzzOpen changes a journal by some bytes at one place, or cuts it off. It is refused, or
// opened without an epoch that is lower or gone.
func FuzzOpen(f *testing.F) {
	whole, err := os.ReadFile(version1File)
	if err != nil {
		f.Fatal(err)
	}
	for _, at := range []uint32{0, 16, 18, 24, 28, 60, 68, 96, 100, 105, 4096, 4100, 8191} {
		f.Add(at, []byte{0xff}, uint32(len(whole)))
	}
	f.Add(uint32(0), []byte{}, uint32(4096))
	f.Add(uint32(0), []byte{}, uint32(0))
	want := loaded(f)
	f.Fuzz(func(t *testing.T, at uint32, with []byte, size uint32) {
		b := slices.Clone(whole[:min(int(size), len(whole))])
		if int(at) < len(b) {
			copy(b[at:], with)
		}
		neverLower(t, b, want)
	})
}

// Every byte of a journal is changed, one after the other.
func TestNoDamagedByteLowersAnEpoch(t *testing.T) {
	whole, err := os.ReadFile(version1File)
	if err != nil {
		t.Fatal(err)
	}
	want, stride := loaded(t), 1
	if testing.Short() {
		stride = 97
	}
	for at := 0; at < len(whole); at += stride {
		if whole[at] != 0 { // most of the rest is empty space
			b := slices.Clone(whole)
			b[at] ^= 0xff
			if neverLower(t, b, want); t.Failed() {
				t.Fatalf("with another byte at %d", at)
			}
		}
	}
}

// loaded is what is in the journal of version 1.
func loaded(t testing.TB) Contents {
	t.Helper()
	c, err := opened(t, copied(t)).Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// neverLower opens a journal that was damaged. It is refused, or no epoch in it is lower, and
// no action or marker is gone.
func neverLower(t *testing.T, b []byte, want Contents) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "journal.db")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	j, err := Open(path)
	if err != nil {
		return
	}
	defer func() { _ = j.Close() }()
	got, err := j.Load(t.Context())
	if err != nil {
		return
	}
	for k, c := range want.Known {
		if got.Known[k].Epoch < c.Epoch {
			t.Errorf("%s was claimed by %s, and is by %s", k, c, got.Known[k])
		}
	}
	if len(got.Actions) != len(want.Actions) || len(got.Markers) != len(want.Markers) {
		t.Errorf("there were %+v, and there are %+v", want, got)
	}
}
