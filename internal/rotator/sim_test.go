package rotator

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

var (
	simSeed   = flag.Uint64("sim.seed", 1, "the first `world` of TestSimulation")
	simSteps  = flag.Int("sim.steps", 0, "how many `steps` TestSimulation takes at least; 0 is 1,000,000, and 8,000 under -short")
	simShrink = flag.Bool("sim.shrink", true, "shorten the schedule of a world that breaks a law, and write it to testdata/simulation")
)

// simWeather is how many moves of bad weather a world sees before it comes to rest.
const simWeather = 2500

func TestSimulation(t *testing.T) {
	want := *simSteps
	if want == 0 {
		want = 1_000_000
		if testing.Short() {
			want = 8_000
		}
	}
	seen := map[string]int{}
	begun, steps, worlds := time.Now(), 0, 0
	// A long simulation goes on until it has come to everything, within reason.
	long := want >= 1_000_000
	for world := *simSeed; steps < want || long && steps < 2*want && len(missed(seen)) > 0; world++ {
		s := newSim(world, seen)
		r := &random{Rand: rand.New(rand.NewPCG(world, 2))}
		steps += r.run(s, simWeather)
		worlds++
		if s.laws.broken != "" {
			report(t, world, s)
			return
		}
		s.close()
	}
	t.Logf("%d steps in %d worlds in %s: %d rotations (%d success, %d failure, %d expired, %d without a surge), %d kills, %d lost answers, %d refused calls, %d leader changes, %d conflicts",
		steps, worlds, time.Since(begun).Round(time.Millisecond), seen["rotations"], seen["outcome success"], seen["outcome failure"], seen["outcome expired"], seen["fallback"],
		seen["kills"]+seen["calls killed"], seen["calls lost"], seen["calls refused"], seen["leader changes"], seen["conflict"])
	if m := missed(seen); long && len(m) > 0 {
		t.Errorf("it never came to this: %s", strings.Join(m, ", "))
	}
	if testing.Verbose() {
		for _, k := range slices.Sorted(maps.Keys(seen)) {
			t.Logf("%7d  %s", seen[k], k)
		}
	}
}

func report(t *testing.T, world uint64, s *sim) {
	lines := s.lines
	tail := lines[max(0, len(lines)-25):]
	var b strings.Builder
	for _, m := range tail {
		fmt.Fprintf(&b, "\t%s\n", m)
	}
	t.Errorf("%s\nafter %d steps in world %d, at %s; the last of them:\n%sreplay it with\n\tgo test ./internal/rotator -run TestSimulation -sim.seed=%d -sim.steps=1",
		s.laws.broken, len(lines), world, s.api.now.Format(time.RFC3339Nano), b.String(), world)
	if !*simShrink {
		return
	}
	short := shrink(world, lines, s.laws.broken, time.Now().Add(20*time.Second))
	if short == nil {
		t.Error("its schedule does not break the law again: the simulation is not deterministic")
		return
	}
	b.Reset()
	fmt.Fprintf(&b, "# %s\n\nworld %d\n", replay(world, short, false).laws.broken, world)
	for _, m := range short {
		fmt.Fprintln(&b, m)
	}
	name := filepath.Join("testdata", "simulation", fmt.Sprintf("world-%d.txt", world))
	if err := os.WriteFile(name, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Errorf("%d of its lines are enough: %s", len(short), name)
}

// close ends what is still under way, so that nothing of a world outlives it.
func (s *sim) close() {
	s.outage = false
	for _, i := range append(s.old, s.leader) {
		if i != nil && !i.dead {
			i.kill()
		}
	}
}
