package agent

import (
	"slices"
	"testing"

	"github.com/tasuki-io/tasuki/internal/capture"
)

// What is named anew is another key, with a line of epochs of its own; the NIC is the same one.
// The address stays on it all the time, is held under the new name at an epoch whose actions
// have not run yet, and can be handed over from there.
func TestANewNameDoesNotMoveAnAddress(t *testing.T) {
	for name, rename := range map[string]func(*capture.Pool){
		"of the placement group": func(p *capture.Pool) {
			for i := range p.Members {
				p.Members[i].Group = "h"
			}
		},
		"of the pool": func(p *capture.Pool) { p.Name = "q" },
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlay(t, 2, 1)
			hand := func(from, to string) {
				p.store.drain(from, true)
				p.store.drain(to, false)
				p.settles()
				p.isOn("eni-" + to)
			}
			p.settles()
			hand("a", "b") // a few epochs, of each node
			hand("b", "a")
			before := len(p.cloud.calls)
			renamed := *p.inForce
			renamed.Pools = slices.Clone(renamed.Pools)
			renamed.Pools[0].Members = slices.Clone(renamed.Pools[0].Members)
			rename(&renamed.Pools[0])
			p.inForce = &renamed
			for _, n := range p.nodes {
				n.reload()
			}
			p.settles()
			p.isOn("eni-a")
			for _, call := range p.cloud.calls[before:] {
				if call.Verb != capture.Assign || call.NIC != "eni-a" {
					t.Errorf("%s is called", call.ID)
				}
			}
			hand("a", "b")
			hand("b", "a")
			for _, n := range p.nodes {
				if len(n.disk.markers) > 0 {
					t.Errorf("%s keeps the markers %v", n.name, n.disk.markers)
				}
			}
		})
	}
}
