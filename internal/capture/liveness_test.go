package capture

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A process starts, and looks. What it takes for dead, and when it looks again, depends on what
// it has seen alone.
func TestWhoIsDead(t *testing.T) {
	start := time.Date(2026, 3, 4, 2, 0, 0, 0, time.UTC)
	nodes := []string{"a", "b", "c"}
	for _, tt := range []struct {
		name  string
		looks [][]string // one a second
		fence time.Duration
		dead  []string
		next  time.Duration // from the start; 0 is never
		back  time.Duration // when somebody came back, from the start; 0 is never
	}{
		{"nothing was seen", nil, time.Minute, nil, 0, 0},
		{"all are alive", [][]string{{"a", "b", "c"}}, time.Minute, nil, 0, 0},
		{"one was and is not", [][]string{{"a", "b", "c"}, {"a", "c"}}, time.Minute, []string{"b"}, 0, 0},
		{"one has not come yet", [][]string{{"a", "b"}}, time.Minute, nil, time.Minute, 0},
		{"one does not come", [][]string{{"a", "b"}, {"a", "b"}, {"a", "b"}}, 2 * time.Second, []string{"c"}, 0, 0},
		{"one never has a lease here", [][]string{{"a", "b"}, {"a", "b"}, {"a", "b"}}, 0, nil, 0, 0},
		{"one comes back", [][]string{{"a", "b", "c"}, {"a"}, {"a", "b", "c"}, {"a", "b", "c"}}, time.Minute, nil, 0, 2 * time.Second},
		{"all are gone", [][]string{{"a", "b", "c"}, {}}, 0, []string{"a", "b", "c"}, 0, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var l Liveness
			now := start
			for i, alive := range tt.looks {
				now = start.Add(time.Duration(i) * time.Second)
				l.Look(alive, now)
			}
			dead, next := l.Dead(nodes, tt.fence, now)
			want, due, back := map[string]bool{}, time.Time{}, time.Time{}
			for _, node := range tt.dead {
				want[node] = true
			}
			if tt.next > 0 {
				due = start.Add(tt.next)
			}
			if tt.back > 0 {
				back = start.Add(tt.back)
			}
			if !l.Returned.Equal(back) {
				t.Errorf("somebody came back at %s, want %s", l.Returned, back)
			}
			if len(dead) == 0 {
				dead = map[string]bool{}
			}
			if diff := cmp.Diff(want, dead); diff != "" || !next.Equal(due) {
				t.Errorf("dead (-want +got):\n%snext %s, want %s", diff, next, due)
			}
		})
	}
}
