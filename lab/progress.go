package lab

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// Progress is one line of news from Build or Up.
type Progress struct {
	Phase   string // "build" or "start"
	Step    int    // which of Steps, from 1
	Steps   int
	Item    string        // the component, or what is being done
	Done    bool          // the item is finished; otherwise it is under way
	Elapsed time.Duration // since the phase began
	// Expected is the likely duration of the whole phase; zero when unknown. An upper bound until the first item is
	// done: programs whose packages the go command has compiled before take seconds.
	Expected time.Duration
}

// String renders the news as one line without its end.
func (p Progress) String() string {
	state := "..."
	if p.Done {
		state = "ok"
	}
	line := fmt.Sprintf("%-5s %d/%d  %-26s %-4s %s", p.Phase, p.Step, p.Steps, p.Item, state, p.Elapsed.Round(100*time.Millisecond))
	if p.Expected > p.Elapsed {
		line += fmt.Sprintf(" of about %s", p.Expected.Round(time.Second))
	}
	return line
}

// ProgressTo returns a Progress function that writes lines to w.
func ProgressTo(w io.Writer) func(Progress) {
	return func(p Progress) { fmt.Fprintln(w, p) }
}

// reporter numbers and times the news of one phase.
type reporter struct {
	mu    sync.Mutex
	tell  func(Progress)
	phase string
	steps int
	begun time.Time
}

func newReporter(tell func(Progress), phase string, steps int) *reporter {
	return &reporter{tell: tell, phase: phase, steps: steps, begun: time.Now()}
}

func (r *reporter) say(step int, item string, done bool, expected time.Duration) {
	if r.tell == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tell(Progress{
		Phase: r.phase, Step: step, Steps: r.steps, Item: item, Done: done,
		Elapsed: time.Since(r.begun), Expected: expected,
	})
}
