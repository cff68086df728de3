package sqlite

import (
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/tasuki-io/tasuki/internal/claims"
	"github.com/tasuki-io/tasuki/internal/claims/claimstest"
)

// clock is one that a test sets.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock { return &clock{now: time.Date(2026, 3, 4, 2, 0, 0, 0, time.UTC)} }

func (c *clock) time() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func opened(t testing.TB, path string, c *clock) *Store {
	t.Helper()
	s, err := open(path, c.time)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestStore(t *testing.T) {
	claimstest.Run(t, func(t *testing.T) claimstest.Subject {
		path, clock := filepath.Join(t.TempDir(), "claims.db"), newClock()
		return claimstest.Subject{
			Open: func(t *testing.T) claims.Store { return opened(t, path, clock) },
			Now:  clock.time, Pass: clock.pass, TTL: 10 * time.Second,
		}
	})
}
