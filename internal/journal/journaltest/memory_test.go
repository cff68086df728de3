package journaltest

import (
	"testing"
	"time"

	"github.com/tasuki-io/tasuki/internal/capture"
	"github.com/tasuki-io/tasuki/internal/journal"
)

func TestMemory(t *testing.T) {
	Run(t, func(*testing.T) Subject {
		m := &Memory{}
		return Subject{m, func(*testing.T) Journal { return m }}
	})
}

// BenchmarkMemory is the life of one action in a journal of twenty: five calls.
func BenchmarkMemory(b *testing.B) {
	now := time.Date(2026, 3, 4, 2, 0, 0, 0, time.UTC)
	var m *Memory
	for n := 0; b.Loop(); n++ {
		if n%20 == 0 {
			m = &Memory{}
		}
		a := action(capture.Assign, key, capture.Epoch(n%20+1))
		_ = m.Note(b.Context(), map[capture.Key]capture.Claim{key: claim(a.Epoch, "a")})
		_, _ = m.Apply(b.Context(), &capture.Plan{Imports: []capture.Action{a}}, now)
		_, _ = m.Apply(b.Context(), &capture.Plan{Admits: []capture.Action{a}}, now)
		begun, _, _ := m.Begin(b.Context(), a.ID(), now, now.Add(time.Minute))
		if ended, err := m.End(b.Context(), begun, journal.Ending{State: capture.Succeeded, Answered: true}, now); err != nil || ended.Attempts != 1 {
			b.Fatalf("it ends as %+v, %v", ended, err)
		}
	}
}
