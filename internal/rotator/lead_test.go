package rotator

import (
	"context"
	"errors"
	"testing"
	"time"

	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/tasuki-io/tasuki/internal/rotation"
)

// slowLock takes its time, or fails.
type slowLock struct {
	resourcelock.Interface
	write func() error
}

func (s slowLock) Create(context.Context, resourcelock.LeaderElectionRecord) error { return s.write() }
func (s slowLock) Update(context.Context, resourcelock.LeaderElectionRecord) error { return s.write() }

// A leader stands still for longer than its lease, and wakes up. Another leads by now: the first
// writes nothing more, not even the rest of what it was about to do.
func TestALeaderWhoseLeaseHasPassedWritesNothing(t *testing.T) {
	now := time.Now()
	var fails error
	l := &lead{now: func() time.Time { return now }}
	l.Interface = slowLock{write: func() error { now = now.Add(time.Second); return fails }}
	r := &Rotator{leads: l.holds}
	acts := func() error { return r.act(t.Context(), []rotation.Step{{}}, func(rotation.Step) {}) }

	if err := acts(); !errors.Is(err, errDeposed) {
		t.Errorf("before it leads: %v", err)
	}
	if err := l.Create(t.Context(), resourcelock.LeaderElectionRecord{}); err != nil {
		t.Fatal(err)
	}
	now = now.Add(leaseDuration - 2*time.Second)
	if err := l.holds(); err != nil {
		t.Errorf("within its lease: %v", err)
	}
	if err := l.Update(t.Context(), resourcelock.LeaderElectionRecord{}); err != nil {
		t.Fatal(err)
	}
	fails = errors.New("it is another's")
	_ = l.Update(t.Context(), resourcelock.LeaderElectionRecord{})
	now = now.Add(leaseDuration - 2*time.Second)
	if err := acts(); !errors.Is(err, errDeposed) {
		t.Errorf("a lease after it was renewed last: %v", err)
	}
}
