package agent

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Incidents, each replayed in a world of its own: a paragraph that tells what they are about,
// what has to come up in them, the schedule, and what then happened. With -update they are
// written anew, and one in which it does not come up any more is looked for anew.
func TestSimulationTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/sim/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d transcripts: %v", len(files), err)
	}
	st := newSimStage()
	defer st.close()
	for _, name := range files {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txt"), func(t *testing.T) {
			raw, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			i, err := parseIncident(string(raw))
			if err != nil {
				t.Fatal(err)
			}
			if *update {
				i.find(st)
			}
			s := simulate(st, i.seed, i.steps, true)
			if s.broken != "" || !i.comesUp(s) {
				t.Errorf("broken: %q; came up: %v", s.broken, s.seen)
			}
			want := i.write(s)
			if *update {
				if err := os.WriteFile(name, []byte(want), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(string(raw), want); diff != "" && !*update {
				t.Errorf("it went otherwise (-file +now); if that is right, write it anew with -update:\n%s", diff)
			}
		})
	}
}

// incident is a transcript.
type incident struct {
	about string
	shows []string // happenings
	seed  uint64
	steps []int
}

func parseIncident(text string) (i incident, err error) {
	about, rest, _ := strings.Cut(text, "shows: ")
	shows, rest, _ := strings.Cut(rest, "\n")
	if i.about, i.shows = about, strings.Split(shows, ", "); shows == "" {
		return i, fmt.Errorf("a transcript has to say what it shows")
	}
	var steps string
	if n, _ := fmt.Sscanf(rest, "seed: %d\nsteps: %s\n", &i.seed, &steps); n < 2 {
		return i, nil // it was not looked for yet
	}
	i.steps, err = parseSteps(steps)
	return i, err
}

func (i *incident) comesUp(s *sim) bool {
	for _, what := range i.shows {
		if s.seen[what] == 0 {
			return false
		}
	}
	return s.broken == ""
}

// find looks for a short schedule in which it comes up, unless the one that is there is such. It
// is the shortest of the first few that it finds.
func (i *incident) find(st *simStage) {
	if i.seed > 0 && i.comesUp(simulate(st, i.seed, i.steps, false)) {
		return
	}
	best := simSchedule
	for seed, found := uint64(1), 0; seed < 2000 && found < 12; seed++ {
		if !i.comesUp(simulate(st, seed, nil, false)) {
			continue
		}
		found++
		if steps := shrink(st, seed, simSchedule, i.comesUp); len(steps) < len(best) {
			i.seed, i.steps, best = seed, steps, steps
		}
	}
}

func (i *incident) write(s *sim) string {
	return fmt.Sprintf("%sshows: %s\nseed: %d\nsteps: %s\n\n%s\n", i.about, strings.Join(i.shows, ", "), i.seed, formatSteps(i.steps), strings.Join(s.notes, "\n"))
}
