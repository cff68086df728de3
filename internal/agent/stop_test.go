package agent

import (
	"context"
	"testing"
	"time"

	"github.com/tasuki-io/tasuki/internal/capture"
	"github.com/tasuki-io/tasuki/internal/executor"
)

// The agent is told to stop while it is busy, and executors have just ended. How they ended is
// recorded all the same.
func TestAStopLosesNoEnding(t *testing.T) {
	s := newSite(t)
	h := s.host("a", s.pool(automatic))
	started, let := make(chan struct{}, 10), make(chan struct{})
	h.execute = func(_ context.Context, q executor.Request) executor.Result {
		if executor.Reads(q.Verb) {
			return executor.Result{Outcome: executor.OutcomeDone, NIC: &executor.NIC{}}
		}
		started <- struct{}{}
		<-let
		return executor.Result{Outcome: executor.OutcomeDone}
	}
	ctx, stop := context.WithCancel(t.Context())
	ran := make(chan error)
	go func() { ran <- h.Run(ctx) }()
	<-started
	<-started // the forwarding and the assignment
	err := h.do(t.Context(), func() {
		close(let)
		time.Sleep(100 * time.Millisecond) // what has ended waits to be heard
		stop()
	})
	if err := <-ran; err != nil {
		t.Error(err)
	}
	if left := h.rows(capture.Running); err != nil || len(left) > 0 || len(h.rows(capture.Succeeded)) != 2 {
		t.Errorf("left running: %v (%v), succeeded: %v", left, err, h.rows(capture.Succeeded))
	}
}
