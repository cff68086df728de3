package trial

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tasuki-io/tasuki/lab"
)

// A watch of pods may be slower than the watch of NodeClaims: what it delivers late is put
// before what was written later.
func TestWitnessOrdersWatchesByWrite(t *testing.T) {
	f := newFilm(2)
	w := &Witness{ledger: f.l, changed: make(chan struct{})}
	heard := func(version int, after time.Duration, s seen, gone bool) {
		w.held = append(w.held, sighting{seen: s, at: noon.Add(after), version: fmt.Sprint(version), gone: gone})
	}
	f.see(pool(nil), claim("web-a", "node-a"), node("node-a"), anchored("web-a"), node("node-b"), placeholder("node-b", false))
	heard(11, 0, drainNext("web-a"), false)
	heard(13, 0, leaving(claim("web-a", "node-a")), false)
	heard(10, 200*time.Millisecond, placeholder("node-b", true), false)
	heard(12, 250*time.Millisecond, placeholder("node-b", true), true)
	heard(14, 400*time.Millisecond, leaving(node("node-a")), true)
	w.enter(noon)
	if d := f.account().Disorder; d != nil {
		t.Errorf("disorder = %q, want none: the writes were in order", d)
	}
	if len(w.held) != 1 || w.held[0].version != "14" {
		t.Errorf("held = %+v, want version 14 alone, as it may still be preceded", w.held)
	}
	select {
	case <-w.changed:
		t.Error("changed is closed, want a fresh channel")
	default:
	}
}

func TestOfRotation(t *testing.T) {
	all := []lab.AuditEvent{
		{Resource: "nodepools", Group: "karpenter.sh", Verb: "patch"},
		{Resource: "events", Group: "events.k8s.io", Verb: "create"},
		{Resource: "leases", Group: "coordination.k8s.io", Verb: "update"},
		{Resource: "rotationpolicies", Group: "noderotation.io", Subresource: "status", Verb: "patch"},
		{Resource: "pods", Verb: "create", Code: 409},
	}
	if diff := cmp.Diff([]lab.AuditEvent{all[0], all[4]}, OfRotation(all)); diff != "" {
		t.Errorf("writes of the rotation (-want +got):\n%s", diff)
	}
}
