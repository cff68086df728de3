package agent

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/tasuki-io/tasuki/internal/capture"
	"github.com/tasuki-io/tasuki/internal/executor"
	"github.com/tasuki-io/tasuki/internal/journal"
)

// obedient is a host whose provider does whatever it is asked for, and whose looks show what the
// test says.
func obedient(t *testing.T) *host {
	s := newSite(t)
	h := s.host("a", s.pool(automatic))
	h.execute = func(context.Context, executor.Request) executor.Result {
		return executor.Result{Outcome: executor.OutcomeDone}
	}
	h.settle()
	return h
}

func (h *host) explained() (e Explanation) {
	h.t.Helper()
	w := httptest.NewRecorder()
	Control{h.Agent, h.journal}.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/v1/explain?address="+address, nil))
	var list []Explanation
	if err := json.NewDecoder(w.Body).Decode(&list); err != nil || len(list) != 1 {
		h.t.Fatalf("%s (%v)", w.Body, err)
	}
	return list[0]
}

// A look from before the assignment says nothing against it, and one from well after it does.
func TestALookIsJudgedByItsAge(t *testing.T) {
	h := obedient(t)
	nic := capture.Target{Provider: "aws", ProviderRef: "cloud-a", NIC: "eni-a"}
	empty := capture.NIC{Forwards: true, At: h.Agent.now()}
	h.looked(nic, empty, nil)
	if e := h.explained(); e.State != PhaseHeld || e.Confirmed.IsZero() || e.Shown == nil || e.Shown.Has || !e.Shown.Stale {
		t.Errorf("after a look that need not show it: %+v, shown %+v", e.Capture, e.Shown)
	}
	now := h.Agent.now().Add(settles + time.Second)
	h.Agent.now = func() time.Time { return now }
	h.lease.renewed(now.Add(time.Minute))
	empty.At = now
	h.looked(nic, empty, nil)
	if _, _, err := h.pass(t.Context()); err != nil {
		t.Fatal(err)
	}
	if e := h.explained(); e.State != PhaseAcquiring || e.Shown == nil || e.Shown.Stale {
		t.Errorf("after a look that has to show it: %+v, shown %+v", e.Capture, e.Shown)
	}
}

// A NIC that cannot be looked at is named everywhere, until it can.
func TestANICThatCannotBeLookedAtIsNamed(t *testing.T) {
	h := obedient(t)
	nic := capture.Target{Provider: "aws", ProviderRef: "cloud-a", NIC: "eni-a"}
	h.looking(nic, false)
	h.looked(nic, capture.NIC{}, context.DeadlineExceeded)
	b := h.explained().Blind
	if b == nil || b.NIC != "eni-a" || !strings.Contains(b.Error, "deadline") || b.At.IsZero() || !b.Seen.IsZero() {
		t.Errorf("explain says %+v", b)
	}
	if list := h.captures(); len(list) != 1 || list[0].Blind == nil {
		t.Errorf("list says %+v", list)
	}
	if s := h.status(); len(s.Blind) != 1 {
		t.Errorf("status says %+v", s)
	}
	h.looking(nic, false)
	h.looked(nic, capture.NIC{At: h.Agent.now()}, nil)
	if s := h.status(); len(s.Blind) > 0 || h.explained().Blind != nil {
		t.Errorf("after a look that has shown something status says %+v", s)
	}
}

// Many handles take one look at the journal, not one each.
func TestHandlesAreLookedUpAtOnce(t *testing.T) {
	s := newSite(t)
	h := s.host("a", s.pool(byHand))
	h.settle()
	audit := &counting{Audit: h.journal}
	ids := h.rows()
	rows, err := Control{h.Agent, audit}.named(t.Context(), []string{Handle(ids[0]), Handle(ids[1]), ids[0], Handle(ids[1])})
	if err != nil || len(rows) != 4 || rows[0].ID() != ids[0] || rows[3].ID() != ids[1] {
		t.Errorf("%d rows (%v)", len(rows), err)
	}
	if audit.reads != 1 {
		t.Errorf("the journal was read %d times", audit.reads)
	}
	if _, err := (Control{h.Agent, audit}).named(t.Context(), []string{"deadbeef"}); err == nil || !strings.Contains(err.Error(), "no action of the journal has the handle deadbeef") {
		t.Errorf("a handle of nothing: %v", err)
	}
}

// counting counts how often all rows are read.
type counting struct {
	Audit
	reads int
}

func (c *counting) Rows(ctx context.Context, f journal.Filter) ([]journal.Row, error) {
	c.reads++
	return c.Audit.Rows(ctx, f)
}
