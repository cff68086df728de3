package journal

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tasuki-io/tasuki/internal/capture"
)

// crashing is the journal that this process writes to until it is killed.
const crashing = "TASUKI_JOURNAL_UNTIL_KILLED"

func TestMain(m *testing.M) {
	if path := os.Getenv(crashing); path != "" {
		writeUntilKilled(path)
	}
	os.Exit(m.Run())
}

// writeUntilKilled raises an epoch, and carries an action at it out, for ever; it says so when
// each is acknowledged.
func writeUntilKilled(path string) {
	ctx := context.Background()
	must := func(err error) {
		if err != nil {
			fmt.Println("error:", err)
			os.Exit(1)
		}
	}
	j, err := Open(path)
	must(err)
	c, err := j.Load(ctx)
	must(err)
	for e := c.Known[key].Epoch + 1; ; e++ {
		must(j.Note(ctx, map[capture.Key]capture.Claim{key: {Epoch: e, Holder: "a"}}))
		fmt.Println("known", e)
		a := assign(e)
		_, err := j.Apply(ctx, &capture.Plan{Imports: []capture.Action{a}, Admits: []capture.Action{a}}, time.Now())
		must(err)
		begun, stale, err := j.Begin(ctx, a.ID(), time.Now(), time.Now().Add(time.Minute))
		if must(err); stale != "" {
			must(fmt.Errorf("%s", stale))
		}
		_, err = j.End(ctx, begun, Ending{State: capture.Succeeded, Answered: true}, time.Now())
		must(err)
		fmt.Println("done", e)
	}
}

// An agent is killed with SIGKILL, over and over, in the middle of its writes: everything that
// it has said is done is there.
func TestWhatWasAcknowledgedSurvivesAKill(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	for round := range 5 {
		known, done := untilKilled(t, path, 20+7*round)
		j, err := Open(path) // the lock went with the process
		if err != nil {
			t.Fatal(err)
		}
		c, err := j.Load(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got := c.Known[key].Epoch; got < known {
			t.Errorf("epoch %d was acknowledged, and %d is known", known, got)
		}
		succeeded := capture.Epoch(0)
		for _, a := range c.Actions {
			if a.State == capture.Succeeded {
				succeeded = max(succeeded, a.Epoch)
			}
		}
		if succeeded < done {
			t.Errorf("the action at epoch %d was acknowledged, and the last that has succeeded is at %d", done, succeeded)
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// untilKilled runs a process that writes, kills it after so many lines, and returns what it
// has acknowledged.
func untilKilled(t *testing.T, path string, lines int) (known, done capture.Epoch) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), crashing+"="+path)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	said := bufio.NewScanner(out)
	for n := 1; said.Scan(); n++ {
		what, number, _ := strings.Cut(said.Text(), " ")
		e, err := strconv.ParseUint(number, 10, 64)
		switch {
		case err != nil:
			t.Fatalf("the process says %q", said.Text())
		case what == "known":
			known = capture.Epoch(e)
		default:
			done = capture.Epoch(e)
		}
		if n == lines {
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	_ = cmd.Wait() // it was killed
	if done == 0 {
		t.Fatal("the process has done nothing")
	}
	return known, done
}
