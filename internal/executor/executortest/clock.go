package executortest

import (
	"context"
	"sync"
	"time"
)

// Clock is a clock that only moves when it is told to.
type Clock struct {
	mu sync.Mutex
	t  time.Time
}

// NewClock returns a clock at the beginning of 2026.
func NewClock() *Clock { return &Clock{t: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)} }

// Now is the time.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.t
}

// Sleep moves the clock, and takes no time.
func (c *Clock) Sleep(ctx context.Context, d time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = c.t.Add(d)
	return ctx.Err()
}
