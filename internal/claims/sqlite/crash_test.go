package sqlite

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/tasuki-io/tasuki/internal/capture"
)

// crashing is the store that this process writes to until it is killed.
const crashing = "TASUKI_CLAIMS_UNTIL_KILLED"

func TestMain(m *testing.M) {
	if path := os.Getenv(crashing); path != "" {
		bumpUntilKilled(path)
	}
	os.Exit(m.Run())
}

// bumpUntilKilled bumps one key for ever, and says so when a bump is acknowledged.
func bumpUntilKilled(path string) {
	s, err := Open(path)
	for err == nil {
		var c capture.Claim
		if c, err = s.Claim(context.Background(), key); err != nil {
			break
		}
		var done []bool
		to := capture.Claim{Epoch: c.Epoch + 1, Holder: capture.Holder(fmt.Sprint(os.Getpid()))}
		if done, err = s.Bump(context.Background(), []capture.Bump{{Key: key, From: c, To: to}}); err == nil && done[0] {
			fmt.Println(to.Epoch)
		}
	}
	fmt.Println("error:", err)
	os.Exit(1)
}

// Two agents of a host are killed with SIGKILL, over and over, in the middle of their writes:
// every bump that either has said is done is there, and no epoch was given to both.
func TestWhatWasAcknowledgedSurvivesAKill(t *testing.T) {
	path := filepath.Join(t.TempDir(), "claims.db")
	given := map[capture.Epoch]bool{}
	for round := range 4 {
		lines := make(chan string)
		var agents []*exec.Cmd
		for range 2 {
			cmd := exec.CommandContext(t.Context(), os.Args[0])
			cmd.Env = append(os.Environ(), crashing+"="+path)
			out, err := cmd.StdoutPipe()
			must(t, err)
			must(t, cmd.Start())
			agents = append(agents, cmd)
			go func() {
				for said := bufio.NewScanner(out); said.Scan(); {
					lines <- said.Text()
				}
				_ = cmd.Wait() // it was killed
				lines <- "over"
			}()
		}
		last := capture.Epoch(0)
		for n, over := 0, 0; over < len(agents); n++ {
			line := <-lines
			if line == "over" {
				over++
				continue
			}
			e, err := strconv.ParseUint(line, 10, 64)
			if err != nil {
				t.Fatalf("an agent says %q", line)
			}
			if given[capture.Epoch(e)] {
				t.Errorf("epoch %d was given to both", e)
			}
			given[capture.Epoch(e)] = true
			last = max(last, capture.Epoch(e))
			if n == 30+9*round {
				for _, a := range agents {
					must(t, a.Process.Kill())
				}
			}
		}
		s, err := Open(path)
		must(t, err)
		if got, err := s.Claim(t.Context(), key); err != nil || got.Epoch < last || last == 0 {
			t.Errorf("epoch %d was acknowledged, and the claim is %s, %v", last, got, err)
		}
		must(t, s.Close())
	}
}
