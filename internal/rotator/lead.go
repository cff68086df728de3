package rotator

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// leaseDuration is how long a standby waits for the leader to renew, as is usual.
const leaseDuration = 15 * time.Second

// errDeposed stops a leader whose lease can have passed to another while it stood still. Its
// elector will find out, too, but some seconds later.
var errDeposed = errors.New("the lease was not renewed in time, and another may lead by now")

// lead is the lock of the leader, which knows how long it certainly holds.
type lead struct {
	resourcelock.Interface
	now func() time.Time // with a monotonic clock

	mu    sync.Mutex
	until time.Time
}

func (l *lead) Create(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	return l.hold(func() error { return l.Interface.Create(ctx, r) })
}

func (l *lead) Update(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	return l.hold(func() error { return l.Interface.Update(ctx, r) })
}

// hold reckons from before the write: no standby has seen it earlier.
func (l *lead) hold(write func() error) error {
	asked := l.now()
	err := write()
	if err == nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.until = asked.Add(leaseDuration)
	}
	return err
}

// holds returns errDeposed once another can have the lease.
func (l *lead) holds() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.now().Before(l.until) {
		return errDeposed
	}
	return nil
}
