package agent

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tasuki-io/tasuki/internal/capture"
)

// The acceptance of ADR 0008. A holds at epoch 1 and is drained: epoch 2, with B. Before its
// release has run, A is desired again: epoch 3. Nothing is cancelled; the release is stale, is
// skipped exactly once, and is never sent.
func TestServeChainMobilityCancelsPendingDeprovisionWhenDesiredAgain(t *testing.T) {
	const (
		assign   = "mobility:p:aws:eni-a:assign-secondary-ip:10.0.0.1:epoch:"
		unassign = "mobility:p:aws:eni-a:unassign-secondary-ip:10.0.0.1:epoch:"
		forward  = "mobility:-:aws:eni-a:ensure-forwarding-enabled:-:epoch:"
		disable  = "mobility:-:aws:eni-a:ensure-forwarding-disabled:-:epoch:"
	)
	s := newSite(t)
	a := s.host("a", s.pool(automatic))
	key := capture.Key{Pool: "p", Address: a.config.Pools[0].Addresses[0].Addr, Domain: "provider:cloud-a:placement:g"}
	claimed := func(want capture.Claim) {
		t.Helper()
		if got, err := a.store.Claim(t.Context(), key); got != want || err != nil {
			t.Errorf("the claim is %s (%v), want %s", got, err, want)
		}
	}
	same := func(what string, got []string, want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}

	a.settle()
	claimed(capture.Claim{Epoch: 1, Holder: "a"})
	same("succeeded", a.rows(capture.Succeeded), forward+"1", assign+"1")
	s.holds("eni-a")

	a.configure(s.pool(byHand, "a"))
	a.settle()
	claimed(capture.Claim{Epoch: 2, Holder: "b"})
	same("pending", a.rows(capture.Pending), disable+"2", unassign+"2")
	var outbox []string
	for _, m := range a.view.Markers() {
		outbox = append(outbox, m.ID())
	}
	same("markers", outbox, disable+"2", unassign+"2")

	a.configure(s.pool(byHand))
	a.settle()
	claimed(capture.Claim{Epoch: 3, Holder: "a"})
	if left := a.view.Markers(); len(left) > 0 {
		t.Errorf("markers are left: %v", left)
	}
	same("pending", a.rows(capture.Pending, capture.Approved, capture.Running, capture.Failed), forward+"3", assign+"3")
	same("skipped", a.rows(capture.Skipped), disable+"2", unassign+"2")
	events, err := a.journal.Events(t.Context(), unassign+"2", 0)
	if err != nil {
		t.Fatal(err)
	}
	skips := 0
	for _, e := range events {
		if e.To == capture.Skipped {
			skips++
		}
	}
	if skips != 1 || len(events) != 2 {
		t.Errorf("the release was skipped %d times in %v, want once after it was planned", skips, events)
	}
	same("releases that were sent", s.changes("UnassignPrivateIpAddresses"))

	a.configure(s.pool(automatic))
	a.settle()
	same("succeeded", a.rows(capture.Succeeded), forward+"1", forward+"3", assign+"1", assign+"3")
	s.holds("eni-a")
}
