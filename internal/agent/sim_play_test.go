package agent

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tasuki-io/tasuki/internal/capture"
)

// play is a world that a test leads: nothing goes wrong in it by itself.
type play struct {
	*sim
	t *testing.T
}

func newPlay(t *testing.T, nodes, addresses int) *play {
	p := &play{newSim(nodes, addresses), t}
	p.calm, p.read, p.rechecks = true, true, true
	st := newSimStage()
	st.enter(p.sim)
	t.Cleanup(func() {
		p.leave()
		st.close()
		if t.Failed() {
			t.Log("\n" + strings.Join(p.notes, "\n"))
		}
	})
	return p
}

// settles starts the agents, all or those that are named, and lets the world go on until nothing
// happens in it any more.
func (p *play) settles(nodes ...string) {
	p.t.Helper()
	for _, n := range p.nodes {
		if len(nodes) == 0 || slices.Contains(nodes, n.name) {
			n.up()
		}
	}
	if !p.rest() {
		p.t.Fatal(p.broken)
	}
}

// configured changes the files, and has every agent take them into use.
func (p *play) configured(change func(*simConfig)) {
	change(&p.config)
	p.write()
	for _, n := range p.nodes {
		n.reload()
	}
}

// until lets an agent go on until an attempt of an action, or anything of it when the ID is "",
// is at a point, and stops it there.
func (p *play) until(node, id, at string) {
	p.t.Helper()
	n := p.node(node)
	for range 1000 {
		for _, proc := range n.procs {
			if (id == "" || proc.try.id == id) && proc.at == at {
				n.paused = true
				return
			}
		}
		if p.goOn(n, 1) == 0 {
			p.tick()
		}
	}
	p.t.Fatalf("%s of %s does not come to %q", id, node, at)
}

// looks has an agent look at its NICs now.
func (p *play) looks(node string) {
	n := p.node(node)
	n.ask(func(context.Context) { clear(n.loop.looks) })
}

func (p *play) claimed(want capture.Claim) {
	p.t.Helper()
	if got := p.store.claims[simKey(simAddr(1))]; got != want {
		p.t.Errorf("the claim is %s, want %s", got, want)
	}
}

func (p *play) isOn(want string) {
	p.t.Helper()
	if got := p.cloud.on[simAddr(1)]; got != want {
		p.t.Errorf("the address is on %q, want %q", got, want)
	}
}

// called compares the calls of some verbs, or of all, by idempotencyKey.
func (p *play) called(verbs []capture.Verb, want ...string) {
	p.t.Helper()
	var got []string
	for _, c := range p.cloud.calls {
		if len(verbs) == 0 || slices.Contains(verbs, c.Verb) {
			got = append(got, c.ID)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		p.t.Errorf("calls (-want +got):\n%s", diff)
	}
}

func (p *play) row(node, id string) capture.Action {
	p.t.Helper()
	row, ok := p.node(node).disk.rows[id]
	if !ok {
		p.t.Fatalf("%s has no %s", node, id)
	}
	return row
}

// held is what keeps an action of a node that does not begin.
func (p *play) held(node, id string) capture.Held {
	p.t.Helper()
	n := p.node(node)
	s, _ := n.loop.snapshot()
	for _, h := range capture.Decide(s, n.now()).Held {
		if h.Action.ID() == id {
			return h
		}
	}
	p.t.Fatalf("%s does not hold %s back", node, id)
	return capture.Held{}
}

// told reports whether something was told, or has happened.
func (p *play) told(what string) bool {
	return slices.ContainsFunc(p.notes, func(n string) bool { return strings.Contains(n, what) })
}

var (
	assigns  = []capture.Verb{capture.Assign}
	moves    = []capture.Verb{capture.Assign, capture.Unassign}
	releases = []capture.Verb{capture.Unassign}
)

func assign(node, epoch string) string {
	return "mobility:p:aws:eni-" + node + ":assign-secondary-ip:10.0.0.1:epoch:" + epoch
}

func unassign(node, epoch string) string {
	return "mobility:p:aws:eni-" + node + ":unassign-secondary-ip:10.0.0.1:epoch:" + epoch
}

func disable(node, epoch string) string {
	return "mobility:-:aws:eni-" + node + ":ensure-forwarding-disabled:-:epoch:" + epoch
}
