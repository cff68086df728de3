package journal

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"testing"
	"time"

	"github.com/tasuki-io/tasuki/internal/capture"
)

// keyed is the nth of many addresses.
func keyed(n int) capture.Key {
	k := key
	k.Address = netip.AddrFrom4([4]byte{10, byte(n >> 16), byte(n >> 8), byte(n)})
	return k
}

// BenchmarkAction is the life of one action: imported and approved, begun, ended, each durable.
func BenchmarkAction(b *testing.B) {
	j := opened(b, filepath.Join(b.TempDir(), "journal.db"))
	ctx := b.Context()
	for n := 0; b.Loop(); n++ {
		b.StopTimer()
		a := assign(1)
		a.Key = keyed(n)
		if err := j.Note(ctx, map[capture.Key]capture.Claim{a.Key: {Epoch: 1, Holder: "a"}}); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		if _, err := j.Apply(ctx, &capture.Plan{Imports: []capture.Action{a}, Admits: []capture.Action{a}}, start); err != nil {
			b.Fatal(err)
		}
		begun, _, err := j.Begin(ctx, a.ID(), start, start.Add(time.Minute))
		if err != nil {
			b.Fatal(err)
		}
		if _, err := j.End(ctx, begun, Ending{State: capture.Succeeded, Answered: true}, start); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "actions/s")
}

// BenchmarkLoad is what a restart reads.
func BenchmarkLoad(b *testing.B) {
	for _, rows := range []int{1_000, 100_000} {
		b.Run(fmt.Sprint(rows), func(b *testing.B) {
			j := opened(b, filepath.Join(b.TempDir(), "journal.db"))
			grow(b, j, rows)
			b.ResetTimer()
			for b.Loop() {
				if c, err := j.Load(b.Context()); err != nil || len(c.Actions) != rows {
					b.Fatalf("%d rows, %v", len(c.Actions), err)
				}
			}
		})
	}
}

// BenchmarkOpen is the check of a journal that is opened, after years of use.
func BenchmarkOpen(b *testing.B) {
	path := filepath.Join(b.TempDir(), "journal.db")
	j := opened(b, path)
	grow(b, j, 100_000)
	for b.Loop() {
		if err := j.Close(); err != nil {
			b.Fatal(err)
		}
		var err error
		if j, err = Open(path); err != nil {
			b.Fatal(err)
		}
	}
	_ = j.Close()
}

// grow imports as many actions.
func grow(b *testing.B, j *Journal, rows int) {
	b.Helper()
	known, plan := map[capture.Key]capture.Claim{}, capture.Plan{}
	for n := range rows {
		a := assign(1)
		a.Key = keyed(n)
		known[a.Key] = capture.Claim{Epoch: 1, Holder: "a"}
		plan.Imports = append(plan.Imports, a)
	}
	if err := j.Note(b.Context(), known); err != nil {
		b.Fatal(err)
	}
	if _, err := j.Apply(b.Context(), &plan, start); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkUnchanged is what a pass costs that finds all epochs as they were.
func BenchmarkUnchanged(b *testing.B) {
	j := opened(b, filepath.Join(b.TempDir(), "journal.db"))
	known := map[capture.Key]capture.Claim{}
	for n := range 1000 {
		known[keyed(n)] = capture.Claim{Epoch: 1, Holder: "a"}
	}
	for b.Loop() {
		if err := j.Note(b.Context(), known); err != nil {
			b.Fatal(err)
		}
	}
}
