package agent

import (
	"context"
	"testing"
	"time"

	"github.com/tasuki-io/tasuki/internal/capture"
)

// eventually waits for something that other goroutines bring about.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within a minute: %s", what)
		}
	}
}

// runs has a host run by itself, until it is killed.
func (h *host) runs() (kill func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = h.Run(ctx) }()
	kill = func() { cancel(); <-done }
	h.t.Cleanup(kill)
	return kill
}

// Two agents of one host. The one that holds dies; when its lease is over the other takes the
// address, at the next epoch and with reassignment. The dead one comes back, has a better
// priority, and takes it again in order.
func TestADeadAgentIsSucceeded(t *testing.T) {
	s := newSite(t)
	c := s.pool(automatic)
	c.Pools[0].LeaseTTL = time.Second
	a, b := s.host("a", c), s.host("b", c)
	kill := a.runs()
	b.runs()
	eventually(t, "a holds", func() bool { return s.on("eni-a") })
	eventually(t, "b has seen a", func() bool {
		b.mu.RLock()
		defer b.mu.RUnlock()
		dead, _ := b.dead(b.now())
		return b.revision.N > 0 && len(dead) == 0
	})
	kill()
	eventually(t, "b holds", func() bool { return s.on("eni-b") })
	key := capture.Key{Pool: "p", Address: c.Pools[0].Addresses[0].Addr, Domain: c.Pools[0].Members[0].Domain()}
	if got, err := b.store.Claim(t.Context(), key); got != (capture.Claim{Epoch: 2, Holder: "b"}) || err != nil {
		t.Errorf("the claim is %s (%v), want b at epoch 2", got, err)
	}
	a.stop()
	s.host("a", c).runs()
	eventually(t, "a holds again", func() bool { return s.on("eni-a") })
	if got, err := b.store.Claim(t.Context(), key); got != (capture.Claim{Epoch: 3, Holder: "a"}) || err != nil {
		t.Errorf("the claim is %s (%v), want a at epoch 3", got, err)
	}
}

// The leaseTTL is made shorter while the agent runs: the others take it for dead as much earlier,
// and so it does itself, also when it cannot reach the store any more.
func TestALeaseThatIsMadeShorterEndsEarlier(t *testing.T) {
	s := newSite(t)
	c := s.pool(automatic)
	c.Pools[0].LeaseTTL = time.Hour
	h := s.host("a", c)
	if err := h.renew(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.Pools[0].LeaseTTL = time.Minute
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for _, ctx := range []context.Context{gone, t.Context()} {
		if err := h.renew(ctx); (err == nil) != (ctx == t.Context()) {
			t.Error(err)
		}
		if now := h.now(); !h.lease.holds(now.Add(time.Second)) || h.lease.holds(now.Add(time.Minute+time.Second)) {
			t.Errorf("a lease of a minute is held for longer or not at all: until %s, it is %s", h.lease.until, now)
		}
	}
}
