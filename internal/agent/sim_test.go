package agent

import (
	"flag"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

var (
	simSeed  = flag.Uint64("sim.seed", 0, "replay this one schedule of TestSimulation")
	simSteps = flag.String("sim.steps", "", "of the schedule that is replayed, these steps alone: 2,5-9")
	simRuns  = flag.Int("sim.runs", 0, "how many schedules TestSimulation runs; 0 is 200 with -short and 200,000 without")
)

// TestSimulation lets real agents hand addresses to each other while they crash, pause and lose
// their clocks, while stores, disks and the provider fail, are late and forget to answer, and
// while people change their minds.
func TestSimulation(t *testing.T) {
	if *simSeed != 0 {
		steps, err := parseSteps(*simSteps)
		if err != nil {
			t.Fatal(err)
		}
		s := simulate(newSimStage(), *simSeed, steps, true)
		t.Log("\n" + strings.Join(s.notes, "\n"))
		if s.broken != "" {
			t.Fatal(s.broken)
		}
		return
	}
	runs := *simRuns
	if runs == 0 {
		if runs = 200_000; testing.Short() {
			runs = 200
		}
	}
	seen, broken := simulateAll(uint64(runs))
	if broken != nil {
		st := newSimStage()
		steps := shrink(st, broken.seed, simSchedule, breaksAlike(broken))
		again := simulate(st, broken.seed, steps, true)
		t.Fatalf("seed %d: %s\n%s\nreplay all of it:   go test ./internal/agent -run 'TestSimulation$' -sim.seed=%d\nreplay a part:  go test ./internal/agent -run 'TestSimulation$' -sim.seed=%d -sim.steps=%s",
			broken.seed, broken.broken, strings.Join(again.notes, "\n"), broken.seed, broken.seed, formatSteps(steps))
	}
	for _, k := range missed(seen, runs) {
		t.Errorf("it never came to %q: the simulation tests less than it says", k)
	}
	t.Logf("%d schedules: %v", runs, seen)
}

// simulateAll runs so many schedules, on all processors. It returns what came up in them, and
// the first that broke a law.
func simulateAll(runs uint64) (seen map[string]int, broken *sim) {
	var last atomic.Uint64
	var mu sync.Mutex
	var workers sync.WaitGroup
	seen = map[string]int{}
	defer debug.SetGCPercent(debug.SetGCPercent(1000)) // worlds are small, and short-lived
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			st := newSimStage()
			defer st.close()
			for seed := last.Add(1); seed <= runs; seed = last.Add(1) {
				s := simulate(st, seed, nil, false)
				mu.Lock()
				for k, n := range s.seen {
					seen[k] += n
				}
				if s.broken != "" {
					last.Store(runs)
					if broken == nil || seed < broken.seed {
						broken = s
					}
				}
				mu.Unlock()
			}
		})
	}
	workers.Wait()
	return seen, broken
}

// shrink leaves out steps as long as a world still is what is asked for.
func shrink(st *simStage, seed uint64, steps []int, is func(*sim) bool) []int {
	for n := len(steps) / 2; n > 0; n /= 2 {
		for i := 0; i+n <= len(steps); {
			fewer := slices.Delete(slices.Clone(steps), i, i+n)
			if is(simulate(st, seed, fewer, false)) {
				steps = fewer
			} else {
				i += n
			}
		}
	}
	return steps
}

// breaksAlike are the worlds that break the same law.
func breaksAlike(s *sim) func(*sim) bool {
	law, _, _ := strings.Cut(s.broken, ":")
	return func(o *sim) bool { return strings.HasPrefix(o.broken, law+":") }
}

func formatSteps(steps []int) string {
	var parts []string
	for i := 0; i < len(steps); {
		j := i
		for j+1 < len(steps) && steps[j+1] == steps[j]+1 {
			j++
		}
		if j > i {
			parts = append(parts, fmt.Sprintf("%d-%d", steps[i], steps[j]))
		} else {
			parts = append(parts, fmt.Sprint(steps[i]))
		}
		i = j + 1
	}
	return strings.Join(parts, ",")
}

func parseSteps(text string) (steps []int, err error) {
	if text == "" {
		return nil, nil
	}
	for _, part := range strings.Split(text, ",") {
		var from, to int
		if n, _ := fmt.Sscanf(part, "%d-%d", &from, &to); n == 1 {
			to = from
		} else if n == 0 {
			return nil, fmt.Errorf("steps %q: write 2,5-9", text)
		}
		for ; from <= to; from++ {
			steps = append(steps, from)
		}
	}
	return steps, nil
}

// The clock of a simulated node is one that can be set: what is measured with it is measured by
// its monotonic part.
func TestASimulatedClockCanBeSet(t *testing.T) {
	before, after := instant(simStart, 5*time.Hour), instant(simStart.Add(-time.Hour), 5*time.Hour+time.Second)
	if got := after.Sub(before); got != time.Second || !before.Before(after) {
		t.Errorf("%s went by, want a second", got)
	}
	if got := after.Round(0); got != simStart.Add(-time.Hour) || after.Hour() != 1 {
		t.Errorf("the wall clock shows %s", got)
	}
}
