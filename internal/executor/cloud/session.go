package cloud

import (
	"context"
	"fmt"
	"time"

	"github.com/tasuki-io/tasuki/internal/executor"
)

// Session is one request on its way.
type Session struct {
	executor.Request
	Wire  *Wire
	Clock Clock
	until time.Time // when the patience ends, by the clock
}

// Begin begins a request, and with it executor.Patience.
func Begin(q executor.Request, w *Wire, c Clock) *Session {
	return &Session{Request: q, Wire: w, Clock: c, until: c.Now().Add(executor.Patience)}
}

// End is the result of a request with what was sent of it, and without what redact takes out.
func (s *Session) End(r executor.Result, redact func(string) string) executor.Result {
	r.Calls = int(s.Wire.calls.Load())
	if r.Outcome == executor.OutcomeThrottled {
		r.RetryAfter = int(s.Wire.retryAfter.Load())
	}
	r.Code, r.Message = redact(r.Code), redact(r.Message)
	return r
}

// Subject is what the request is about, for messages.
func (s *Session) Subject() string {
	if s.Address.IsValid() {
		return fmt.Sprintf("%s of %s on %s", s.Verb, s.Address, s.NIC)
	}
	return fmt.Sprintf("%s on %s", s.Verb, s.NIC)
}

// The first wait between two reads, and the longest.
const (
	FirstWait   = 200 * time.Millisecond
	LongestWait = 2 * time.Second
)

// Poll looks until there is a result, or until the patience ends before the next look: then the
// result has no outcome.
func (s *Session) Poll(ctx context.Context, look func() executor.Result) executor.Result {
	return s.PollUntil(ctx, s.until, look)
}

// PollUntil is a Poll that ends at a time of the clock.
func (s *Session) PollUntil(ctx context.Context, until time.Time, look func() executor.Result) executor.Result {
	for wait := FirstWait; ; wait = min(wait*3/2, LongestWait) {
		r := look()
		if r.Outcome != "" || s.Clock.Now().Add(wait).After(until) || s.Clock.Sleep(ctx, wait) != nil {
			return r
		}
	}
}

// Unread is the result of a request that ends with a failed read of a class, before any change.
func Unread(class executor.Outcome, code, format string, args ...any) executor.Result {
	if class == executor.OutcomeUnknown {
		class = executor.OutcomeRetry // a read leaves nothing behind
	}
	return executor.Resultf(class, code, format, args...)
}

// Clock is what a session waits by.
type Clock interface {
	Now() time.Time
	Sleep(ctx context.Context, d time.Duration) error
}

// Wall is the clock of the machine.
type Wall struct{}

// Now is the time.
func (Wall) Now() time.Time { return time.Now() }

// Sleep waits, unless ctx ends first.
func (Wall) Sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
