package agent

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/tasuki-io/tasuki/internal/executor/linux"
	"github.com/tasuki-io/tasuki/internal/vrrp"
)

// The pace of a lan.
const (
	lanTick    = 100 * time.Millisecond // how often the authority is judged anew
	lanRefresh = 5 * time.Second        // how often what is held is announced
)

// run watches until ctx ends, and then withdraws everything.
func (l *lan) run(ctx context.Context) {
	w := &watching{lan: l, ups: map[string]context.CancelFunc{}}
	tick := time.NewTicker(lanTick)
	defer tick.Stop()
	for ctx.Err() == nil {
		l.judge() // at the start it withdraws what an earlier process has left
		l.announceAll()
		beat := tick.C
		if l.idle() {
			beat = nil
		}
		select {
		case <-ctx.Done():
		case <-beat:
		case <-l.again:
			w.follow(ctx)
		}
	}
	w.end()
	l.configure(nil)
	l.judge()
}

func (l *lan) idle() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.seats) == 0
}

// announceAll announces what is placed and held, where it is due.
func (l *lan) announceAll() {
	l.mu.Lock()
	var due []seat
	for s, a := range l.seats {
		if a.open && len(a.placed) > 0 && !l.now().Before(a.announce) {
			due = append(due, s)
		}
	}
	l.mu.Unlock()
	for _, s := range due {
		l.announce(s, l.held(s))
	}
}

func (l *lan) announce(s seat, held []netip.Addr) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.seats[s]
	if a == nil || !a.open || !l.alive() || s.instance != "" && !l.state(s.instance).Proven {
		return
	}
	a.announce = l.now().Add(lanRefresh)
	held = slices.DeleteFunc(held, func(addr netip.Addr) bool { return !a.placed[addr] })
	if len(held) > 0 {
		l.failed(s, a, l.wire.Announce(s.iface, held...))
	}
}

// up has what is on an interface looked at, and announced.
func (l *lan) up(iface string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for s, a := range l.seats {
		if s.iface == iface && a.open {
			a.look, a.announce = true, time.Time{}
			wake(l.nudge)
		}
	}
}

// watching is what a lan has running.
type watching struct {
	*lan
	instances []string
	stop      func() // the watch
	ups       map[string]context.CancelFunc
	wait      sync.WaitGroup
}

// follow watches what the seats need.
func (w *watching) follow(ctx context.Context) {
	w.mu.Lock()
	var instances, ifaces []string
	for s, a := range w.seats {
		if a.listed {
			ifaces = append(ifaces, s.iface)
			if s.instance != "" {
				instances = append(instances, s.instance)
			}
		}
	}
	w.mu.Unlock()
	slices.Sort(instances)
	if instances = slices.Compact(instances); !slices.Equal(instances, w.instances) {
		w.instances = instances
		w.listen(ctx)
	}
	for _, iface := range ifaces {
		if w.ups[iface] == nil {
			up, cancel := context.WithCancel(ctx)
			w.ups[iface] = cancel
			w.wait.Go(func() { w.heed(up, iface) })
		}
	}
	for iface, cancel := range w.ups {
		if !slices.Contains(ifaces, iface) {
			cancel()
			delete(w.ups, iface)
		}
	}
}

// listen has the instances watched, by one watch: two would take words from each other.
func (w *watching) listen(ctx context.Context) {
	if w.stop != nil {
		w.stop()
		w.stop = nil
	}
	w.put(nil, "it is not watched")
	if len(w.instances) == 0 {
		return
	}
	watch, err := w.wire.Watch(w.instances, func(vrrp.State) { w.judge() })
	if err != nil {
		w.put(nil, err.Error())
		return
	}
	w.put(watch, "")
	run, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() { defer close(ended); watch.Run(run) }()
	w.stop = func() { cancel(); <-ended }
}

func (w *watching) put(watch watch, trouble string) {
	w.mu.Lock()
	w.watch, w.trouble = watch, trouble
	w.mu.Unlock()
	w.judge()
}

// heed waits for an interface to come up, until ctx ends.
func (w *watching) heed(ctx context.Context, iface string) {
	for ctx.Err() == nil {
		err := w.wire.Ups(ctx, iface, func() { w.up(iface) })
		if ctx.Err() != nil {
			return
		}
		w.tell.log.Warn("it is not seen whether an interface comes up: it is watched anew", "interface", iface, "error", err)
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
			w.up(iface) // it may have
		}
	}
}

func (w *watching) end() {
	if w.stop != nil {
		w.stop()
	}
	for _, cancel := range w.ups {
		cancel()
	}
	w.wait.Wait()
}

// machine is the wire of this host.
type machine struct {
	fifo   string        // of keepalived; "" is none
	advert time.Duration // the longest advert_int
}

func (m machine) Watch(instances []string, changed func(vrrp.State)) (watch, error) {
	if m.fifo == "" {
		return nil, errors.New("tasuki-agent was started without --vrrp-fifo: nothing is ever proven")
	}
	return vrrp.New(m.fifo, m.advert, changed, instances...)
}

func (machine) Withdraw(iface string, addrs ...netip.Addr) error {
	return linux.Withdraw(iface, addrs...)
}

func (machine) Announce(iface string, addrs ...netip.Addr) error {
	return linux.Announce(iface, addrs...)
}

func (machine) Ups(ctx context.Context, iface string, up func()) error {
	return linux.Ups(ctx, iface, up)
}
