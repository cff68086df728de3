package journal_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/tasuki-io/tasuki/internal/capture"
	"github.com/tasuki-io/tasuki/internal/journal"
	"github.com/tasuki-io/tasuki/internal/journal/journaltest"
)

// Whatever an agent asks for, in whatever order, the file answers and keeps what the journal
// in memory does. A simulation that runs on that one thus says something about this one.
func TestTheFileAndTheModelAgree(t *testing.T) {
	dir, n := t.TempDir(), 0
	rapid.Check(t, func(t *rapid.T) {
		n++
		file, err := journal.Open(filepath.Join(dir, fmt.Sprintf("%d.db", n)))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = file.Close() }()
		p := &pair{T: t, file: file, now: time.Date(2026, 3, 4, 2, 0, 0, 0, time.UTC)}
		t.Repeat(map[string]func(*rapid.T){
			"":      p.agree,
			"note":  p.note,
			"apply": p.apply,
			"begin": p.begin,
			"end":   p.end,

			"approve": p.approve,
			"hasten":  p.hasten,
			"undo":    p.undo,
		})
	})
}

// pair is a journal in a file and the model of it.
type pair struct {
	*rapid.T
	file  *journal.Journal
	model journaltest.Memory
	now   time.Time
	begun []capture.Action
}

var (
	exactly = cmp.Options{cmpopts.EquateEmpty(), cmpopts.EquateComparable(capture.Key{}, capture.Claim{})}

	keys    = []capture.Key{{Pool: "blue", Address: netip.MustParseAddr("10.0.0.1"), Domain: "d"}, {Domain: "provider:c:nic:eni-a"}}
	holders = []capture.Holder{"a", "b", capture.None, capture.Unknown}
)

func (p *pair) same(t *rapid.T, what string, model, file any, modelErr, fileErr error) {
	t.Helper()
	if diff := cmp.Diff(model, file, exactly); diff != "" {
		t.Fatalf("%s (-model +file):\n%s", what, diff)
	}
	for _, is := range []error{nil, journal.ErrNoAction, journal.ErrNotStartable, journal.ErrGivenUp} {
		if errors.Is(modelErr, is) != errors.Is(fileErr, is) {
			t.Fatalf("%s: the model says %v, the file %v", what, modelErr, fileErr)
		}
	}
}

func (p *pair) agree(t *rapid.T) {
	model, err1 := p.model.Load(context.Background())
	file, err2 := p.file.Load(context.Background())
	p.same(t, "contents", model, file, err1, err2)
	p.now = p.now.Add(time.Duration(rapid.IntRange(0, 3).Draw(t, "passed")) * time.Second)
}

func (p *pair) note(t *rapid.T) {
	current := map[capture.Key]capture.Claim{}
	for range rapid.IntRange(1, 2).Draw(t, "notes") {
		current[rapid.SampledFrom(keys).Draw(t, "key")] = capture.Claim{
			Epoch: capture.Epoch(rapid.IntRange(0, 4).Draw(t, "epoch")), Holder: rapid.SampledFrom(holders).Draw(t, "holder"),
		}
	}
	p.same(t, "note", nil, nil, p.model.Note(context.Background(), current), p.file.Note(context.Background(), current))
}

// any is an action that is there, perhaps in a state of an older plan, or another.
func (p *pair) any(t *rapid.T) capture.Action {
	c, _ := p.model.Load(context.Background())
	if len(c.Actions) > 0 && rapid.IntRange(0, 3).Draw(t, "there") > 0 {
		a := rapid.SampledFrom(c.Actions).Draw(t, "action")
		if rapid.IntRange(0, 3).Draw(t, "older") == 0 {
			a.State = rapid.SampledFrom([]capture.State{capture.Pending, capture.Approved, capture.Running, capture.Failed}).Draw(t, "state")
		}
		return a
	}
	return p.fresh(t)
}

func (p *pair) fresh(t *rapid.T) capture.Action {
	a := capture.Action{
		Token: capture.Token{
			Verb: rapid.SampledFrom(capture.Verbs()).Draw(t, "verb"), Key: rapid.SampledFrom(keys).Draw(t, "key"),
			Epoch: capture.Epoch(rapid.IntRange(1, 4).Draw(t, "epoch")), Holder: "a",
		},
		Target: capture.Target{Provider: "aws", ProviderRef: "c", NIC: "eni-a"}, State: capture.Pending,
		Repair: rapid.IntRange(0, 1).Draw(t, "repair"), Reassign: rapid.Bool().Draw(t, "reassign"),
	}
	if c, _ := p.model.Load(context.Background()); len(c.Actions) > 0 && rapid.IntRange(0, 3).Draw(t, "undo") == 0 {
		a.Undoes = rapid.SampledFrom(c.Actions).Draw(t, "undoes").ID()
	}
	return a
}

func (p *pair) apply(t *rapid.T) {
	var plan capture.Plan
	for range rapid.IntRange(1, 6).Draw(t, "entries") {
		a, marker := p.any(t), capture.Marker{}
		why := capture.Stale(rapid.SampledFrom([]string{"", "stale"}).Draw(t, "why"))
		switch rapid.IntRange(0, 6).Draw(t, "part") {
		case 0:
			plan.Bumps = append(plan.Bumps, capture.Bump{Key: a.Key})
		case 1:
			plan.Skips = append(plan.Skips, capture.Skip{Action: a, Why: why})
		case 2:
			marker = capture.Marker{Token: a.Token, Target: a.Target, Repair: a.Repair}
			plan.Drops = append(plan.Drops, capture.Drop{Marker: marker, Why: why})
		case 3:
			a = p.fresh(t)
			marker = capture.Marker{Token: a.Token, Target: a.Target, Repair: a.Repair}
			plan.Marks = append(plan.Marks, capture.Mark{Marker: marker, Action: a})
		case 4:
			plan.Imports = append(plan.Imports, p.fresh(t))
		case 5:
			plan.Admits = append(plan.Admits, a)
		case 6:
			plan.Resumes = append(plan.Resumes, a)
		}
	}
	model, err1 := p.model.Apply(context.Background(), &plan, p.now)
	file, err2 := p.file.Apply(context.Background(), &plan, p.now)
	p.same(t, "receipt", model, file, err1, err2)
}

func (p *pair) begin(t *rapid.T) {
	id, deadline := p.any(t).ID(), p.now.Add(capture.ExecutorTime)
	model, stale1, err1 := p.model.Begin(context.Background(), id, p.now, deadline)
	file, stale2, err2 := p.file.Begin(context.Background(), id, p.now, deadline)
	p.same(t, "begin", model, file, err1, err2)
	p.same(t, "stale", stale1, stale2, nil, nil)
	if err1 == nil && stale1 == "" {
		p.begun = append(p.begun, model)
	}
}

func (p *pair) end(t *rapid.T) {
	if len(p.begun) == 0 {
		t.Skip("nothing has begun")
	}
	begun := rapid.SampledFrom(p.begun).Draw(t, "begun")
	end := journal.Ending{
		State:    rapid.SampledFrom([]capture.State{capture.Succeeded, capture.Failed, capture.Skipped, capture.Approved, capture.Pending}).Draw(t, "state"),
		Reason:   rapid.SampledFrom([]string{"", "full"}).Draw(t, "reason"),
		Answered: rapid.Bool().Draw(t, "answered"), Unasked: rapid.Bool().Draw(t, "unasked"),
	}
	if rapid.Bool().Draw(t, "backoff") {
		end.NotBefore = p.now.Add(time.Minute)
	}
	model, err1 := p.model.End(context.Background(), begun, end, p.now)
	file, err2 := p.file.End(context.Background(), begun, end, p.now)
	p.same(t, "end", model, file, err1, err2)
	if row, err := p.file.Row(context.Background(), begun.ID()); err != nil || row.Superseded != p.model.Superseded(begun.ID()) {
		t.Fatalf("superseded: the model says %t, the file %t, %v", p.model.Superseded(begun.ID()), row.Superseded, err)
	}
}

// people write to both; the errors are told apart as far as an agent does.
func (p *pair) approve(t *rapid.T) {
	ids := []string{p.any(t).ID(), p.any(t).ID()}
	model, err1 := p.model.Approve(context.Background(), ids, "ann", p.now)
	file, err2 := p.file.Approve(context.Background(), ids, "ann", p.now)
	p.same(t, "approve", model, file, err1, err2)
}

func (p *pair) hasten(t *rapid.T) {
	ids := []string{p.any(t).ID(), p.any(t).ID()}
	model, err1 := p.model.Hasten(context.Background(), ids, p.now)
	file, err2 := p.file.Hasten(context.Background(), ids, p.now)
	p.same(t, "hasten", model, file, err1, err2)
}

func (p *pair) undo(t *rapid.T) {
	id := p.any(t).ID()
	model, stale1, err1 := p.model.Undo(context.Background(), id, "ann", p.now)
	file, stale2, err2 := p.file.Undo(context.Background(), id, "ann", p.now)
	if stale1 != "" {
		model = capture.Action{}
	}
	if stale2 != "" {
		file = capture.Action{}
	}
	p.same(t, "undo", model, file, err1, err2)
	p.same(t, "stale", stale1, stale2, nil, nil)
}
