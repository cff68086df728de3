package rotator

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Incidents, each replayed in a world of its own. The schedule of one that was found by
// TestSimulation stays here for ever, with a paragraph that tells what happened.
func TestSimulationTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/simulation/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d transcripts: %v", len(files), err)
	}
	for _, name := range files {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			world, lines, rest, err := parseSchedule(string(text))
			if err != nil {
				t.Fatal(err)
			}
			if s := replay(world, lines, rest); s.laws.broken != "" {
				t.Errorf("%s\nat %s, after %d moves", s.laws.broken, s.api.now, len(s.lines))
			}
		})
	}
}
