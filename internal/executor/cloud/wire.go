package cloud

import (
	"net/http"
	"net/http/httptrace"
	"strconv"
	"sync/atomic"

	"github.com/tasuki-io/tasuki/internal/executor"
)

// Wire is the way to a provider. It counts what is sent, and knows whether the last request can
// have been.
type Wire struct {
	Send       func(*http.Request) (*http.Response, error)
	calls      atomic.Int64
	sent       atomic.Bool
	retryAfter atomic.Int64 // seconds, of the last answer; 0 when it has none
}

// Do sends a request. Without a connection nothing of it can have been sent.
func (w *Wire) Do(r *http.Request) (*http.Response, error) {
	w.Forget()
	trace := &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) {
		w.sent.Store(true)
		w.calls.Add(1)
	}}
	answer, err := w.Send(r.WithContext(httptrace.WithClientTrace(r.Context(), trace)))
	w.retryAfter.Store(0)
	if err == nil {
		seconds, _ := strconv.ParseUint(answer.Header.Get("Retry-After"), 10, 31)
		w.retryAfter.Store(int64(seconds))
	}
	return answer, err
}

// Forget begins a request of which nothing was sent yet.
func (w *Wire) Forget() { w.sent.Store(false) }

// Unanswered is how a request ended that the provider did not answer: OutcomeUnknown may have
// been carried out.
func (w *Wire) Unanswered() executor.Outcome {
	if w.sent.Load() {
		return executor.OutcomeUnknown
	}
	return executor.OutcomeRetry
}
