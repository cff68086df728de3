package agent

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/tasuki-io/tasuki/internal/capture"
)

// recheck compares what an agent would do now with what one would that has just read the journal
// and the store: its memory holds nothing that they could not give back.
func (n *simNode) recheck() {
	live := n.loop.view
	if !n.rechecks || n.loop.failure != nil || n.loop.doubt {
		return
	}
	anew := capture.NewView()
	for k, c := range n.disk.known {
		line := live.Line(k)
		if line.Known != c {
			return // the note of it was not acknowledged
		}
		anew.Note(k, c)
		anew.Learn(k, line.Claim, line.Since)
	}
	for _, id := range n.disk.order {
		anew.Record(n.disk.rows[id])
	}
	for _, id := range slices.Sorted(maps.Keys(n.disk.markers)) {
		anew.Mark(n.disk.markers[id])
	}
	s, _ := n.loop.snapshot()
	now := n.now()
	want := simDecision(capture.Decide(s, now))
	s.View = anew
	if got := simDecision(capture.Decide(s, now)); !slices.Equal(want, got) {
		n.breaks("memory: %s decides %q, and from its journal %q", n.name, want, got)
	}
	n.happens("decided anew")
}

// simDecision is what a decision comes to, in no order.
func simDecision(d capture.Decision) []string {
	out := []string{"wake " + d.Wake.String()}
	add := func(what string, a capture.Action) { out = append(out, what+" "+a.ID()) }
	for _, b := range d.Plan.Bumps {
		out = append(out, fmt.Sprint("bump ", b))
	}
	for _, s := range d.Plan.Skips {
		add("skip", s.Action)
	}
	for _, m := range d.Plan.Drops {
		out = append(out, "drop "+m.Marker.ID())
	}
	for _, m := range d.Plan.Marks {
		add("mark", m.Action)
	}
	for what, list := range map[string][]capture.Action{"import": d.Plan.Imports, "admit": d.Plan.Admits, "resume": d.Plan.Resumes, "run": d.Plan.Runs} {
		for _, a := range list {
			add(what, a)
		}
	}
	for _, h := range d.Held {
		add(fmt.Sprint("held ", h.Wait, h.Block.Rule, h.Until), *h.Action)
	}
	slices.Sort(out)
	return out
}

// noting is a journal that only takes note of what it is to note.
type noting struct {
	Journal
	last map[capture.Key]capture.Claim
}

func (n *noting) Note(_ context.Context, current map[capture.Key]capture.Claim) error {
	n.last = current
	return nil
}

// A store that has lost its history tells everything again: of that, what the journal holds already
// is not asked of it.
func TestWhatIsKnownIsNotNotedAgain(t *testing.T) {
	p := newPlay(t, 1, 3)
	p.settles()
	a, n := p.node("a").loop, &noting{}
	a.journal = n
	for _, news := range []map[capture.Key]capture.Claim{{}, {simKey(simAddr(2)): {Epoch: 2, Holder: "b"}}} {
		told := maps.Clone(p.store.claims)
		maps.Copy(told, news)
		if err := a.learn(t.Context(), told); err != nil || !maps.Equal(n.last, news) {
			t.Errorf("of %v it notes %v (%v), want %v", told, n.last, err, news)
		}
	}
}
