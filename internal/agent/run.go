package agent

import (
	"context"
	"time"

	"github.com/tasuki-io/tasuki/internal/capture"
)

// Run makes passes until ctx ends, and then lets the attempts under way come to their end. A
// pass follows whatever may change the answer: the store, the configuration, the end of an
// attempt, a look at a NIC, a person's command, and the instant at which the last decision
// says that time alone changes it.
func (a *Agent) Run(ctx context.Context) error {
	l := &loop{Agent: a, ended: make(chan func(context.Context) error, 1), wake: make(chan chan struct{})}
	watch, stop := context.WithCancel(ctx)
	defer stop()
	go l.watch(watch)
	go a.keepAlive(watch)
	lan := make(chan struct{})
	go func() { defer close(lan); a.lan.run(watch) }()
	for ctx.Err() == nil {
		l.turn(ctx)
	}
	stop()
	<-lan
	for l.out > 0 { // attempts have a deadline each
		if err := l.take(context.WithoutCancel(ctx), <-l.ended); err != nil {
			a.tell.log.Error("an ending is lost: it counts as unanswered after the restart", "error", err)
		}
	}
	return nil
}

// loop is what Run is made of. Attempts and looks run in goroutines of their own; what they
// have to say comes back through ended.
type loop struct {
	*Agent
	ended chan func(context.Context) error
	out   int                // goroutines whose ending has yet to come
	wake  chan chan struct{} // the store has changed: closed by the pass that follows
	awake chan struct{}      // what that pass closes, nil for none
	fails int                // passes in a row
}

// turn makes one pass and waits for a reason to make the next.
func (l *loop) turn(ctx context.Context) {
	jobs, next := l.round(ctx)
	if l.awake != nil {
		close(l.awake)
		l.awake = nil
	}
	for _, work := range jobs {
		l.out++
		go func() { l.ended <- work(ctx) }()
	}
	l.tidy()
	l.wait(ctx, next)
}

// job is work beside the passes. What it returns is done between two of them.
type job func(context.Context) func(context.Context) error

// round makes one pass. It returns what is to run beside the next ones, and when the next one
// is, should nothing else ask for one.
func (l *loop) round(ctx context.Context) (jobs []job, next time.Time) {
	begun, d, err := l.pass(ctx)
	for _, t := range begun {
		jobs = append(jobs, func(ctx context.Context) func(context.Context) error {
			end := t.run(context.WithoutCancel(ctx))
			return func(ctx context.Context) error { return l.finish(ctx, t, end) }
		})
	}
	if l.settle(err); err != nil {
		return jobs, l.now().Add(l.patience(l.fails))
	}
	looks, next := l.lookAround(d)
	return append(jobs, looks...), sooner(next, d.Wake)
}

// patience is how long to wait after so many failures in a row. The first may be over at once, as
// when the store has another leader, and later ones do not keep a store busy that has trouble;
// but a second after the trouble is over all goes on.
func (l *loop) patience(fails int) time.Duration {
	return l.jitter(min(50*time.Millisecond<<min(fails-1, 5), time.Second))
}

// lookAround has the NICs looked at that are due, and returns when the next one is.
func (l *loop) lookAround(d capture.Decision) (jobs []job, next time.Time) {
	now := l.now()
	due, next := l.due(now, d)
	for _, t := range due {
		if p := l.paces[readsOf(t)]; p != nil && now.Before(p.next) {
			next = sooner(next, p.next)
			continue
		}
		placed := l.placed(t, now)
		l.looking(t, len(placed) > 0)
		profile := l.config.profile(t)
		jobs = append(jobs, func(ctx context.Context) func(context.Context) error {
			nic, err := l.see(ctx, t, profile, placed...)
			return func(context.Context) error { l.looked(t, nic, err); return nil }
		})
	}
	return jobs, next
}

// settle tells of passes that fail, once for each reason, and that they no longer do.
func (l *loop) settle(err error) {
	failure := err
	if err == nil {
		failure = l.unsaid // a pass with nothing to write does not show that the journal can be written
	}
	l.mu.Lock()
	last := l.failure
	l.failure = failure
	l.mu.Unlock()
	l.tell.failing.Set(map[bool]float64{true: 1}[failure != nil])
	switch {
	case err == nil:
		if l.fails > 0 && failure == nil {
			l.tell.log.Info("passes succeed again", "failed", l.fails)
		}
		l.fails = 0
	default:
		if l.fails++; last != nil && last.Error() == err.Error() {
			return
		}
		l.tell.log.Error("the pass failed: nothing is begun until one succeeds", "error", err)
	}
}

// take hears what a goroutine has to say.
func (l *loop) take(ctx context.Context, told func(context.Context) error) error {
	l.out--
	return told(ctx)
}

// wait returns when there may be something to do: whatever comes in, it takes all of it.
func (l *loop) wait(ctx context.Context, next time.Time) {
	timer := make(<-chan time.Time)
	if !next.IsZero() {
		t := time.NewTimer(next.Sub(l.now()))
		defer t.Stop()
		timer = t.C
	}
	wake := l.wake
	if l.fails > 0 {
		wake = nil // what has changed may be what cannot be taken in
	}
	select {
	case <-ctx.Done():
	case <-timer:
	case l.awake = <-wake:
	case <-l.lan.nudge:
	case do := <-l.asked:
		do()
	case told := <-l.ended:
		l.hear(l.take(context.WithoutCancel(ctx), told)) // what has come in is recorded
	}
	for {
		select {
		case do := <-l.asked:
			do()
		case told := <-l.ended:
			l.hear(l.take(context.WithoutCancel(ctx), told))
		default:
			return
		}
	}
}

func (l *loop) hear(err error) {
	if err != nil {
		l.tell.log.Warn("an ending was not heard", "error", err)
	}
}

// watch wakes the loop whenever the store has changed since the last pass. Only when the pass that
// follows is over is there something new to wait for; and while passes fail, which take no wake-up,
// nobody but they ask anything of the store.
func (l *loop) watch(ctx context.Context) {
	for fails := 0; ctx.Err() == nil; {
		l.mu.RLock()
		since := l.revision
		l.mu.RUnlock()
		if err := l.store.Wait(ctx, since); err == nil {
			fails = 0
		} else {
			fails++
			select {
			case <-ctx.Done():
			case <-time.After(l.patience(fails)):
			}
		}
		passed := make(chan struct{})
		select {
		case <-ctx.Done():
			return
		case l.wake <- passed:
		}
		select {
		case <-ctx.Done():
		case <-passed:
		}
	}
}

func sooner(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// do has the loop run something between two passes, and waits for it. It may be called by any
// goroutine.
func (a *Agent) do(ctx context.Context, f func()) error {
	done := make(chan struct{})
	select {
	case a.asked <- func() { f(); close(done) }:
	case <-ctx.Done():
		return ctx.Err()
	}
	<-done
	return nil
}
