package agent

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/tasuki-io/tasuki/internal/capture"
	"github.com/tasuki-io/tasuki/internal/vrrp"
)

// wire is what a lan needs of this host.
type wire interface {
	// Watch makes a watch of some VRRP instances. It calls changed with every new word.
	Watch(instances []string, changed func(vrrp.State)) (watch, error)
	Withdraw(iface string, addrs ...netip.Addr) error
	Announce(iface string, addrs ...netip.Addr) error
	// Ups calls up whenever an interface comes up.
	Ups(ctx context.Context, iface string, up func()) error
}

// watch is a vrrp.Watch.
type watch interface {
	Run(context.Context)
	State(instance string) vrrp.State
}

// seat is where this node answers for addresses by proxy ARP: an interface, and the VRRP
// instance whose MASTER it has to be for that, "" for none.
type seat struct{ iface, instance string }

// lan sees to it that this node answers for nothing without authority: that of the local VRRP
// MASTER, and of a lease that has certainly not ended. It withdraws by itself, at once, whatever
// a policy says and whatever the passes do; what is placed is placed by them (ADR 0008 §5).
//
// Whoever holds the agent's lock may take that of the lan, and never the other way round.
type lan struct {
	wire  wire
	now   func() time.Time
	alive func() bool             // the lease has certainly not ended
	held  func(seat) []netip.Addr // what is to be announced there, if it is placed
	join  func(*sync.WaitGroup)   // waits for attempts that have to end
	tell  *announcer
	nudge chan struct{} // the next pass has something to see
	again chan struct{} // what is to be watched has changed

	mu      sync.Mutex
	seats   map[seat]*answers
	watch   watch
	trouble string             // why there is none
	masters map[string]mastery // the proven ones, by instance
	told    map[string]vrrp.State
}

// mastery is since when an instance is MASTER, or was said to be again.
type mastery struct {
	since    time.Time
	sequence uint64
}

// answers is what this node may answer for at a seat.
type answers struct {
	addrs  []netip.Addr // all that the configuration lists
	gone   []netip.Addr // that it listed, and that have yet to be withdrawn
	listed bool         // the configuration still has the seat

	open  bool // it may answer
	clean bool // all was withdrawn since it was last open
	round int  // counts the withdrawals
	// placed is what was placed since the last withdrawal.
	placed map[netip.Addr]bool
	// emptied is when it was last seen that nothing is there but what is placed; unheard is that
	// no pass knows it yet, and look that the interface is to be looked at.
	emptied       time.Time
	unheard, look bool
	announce      time.Time // when next
	trouble       string    // the last failure

	attempts context.Context // ends before a withdrawal
	cancel   context.CancelFunc
	running  sync.WaitGroup
}

func newLAN(w wire, tell *announcer) *lan {
	return &lan{
		wire: w, tell: tell, join: (*sync.WaitGroup).Wait, nudge: make(chan struct{}, 1), again: make(chan struct{}, 1), seats: map[seat]*answers{},
		masters: map[string]mastery{}, told: map[string]vrrp.State{}, trouble: "it is not watched yet",
	}
}

// configure has the seats be those that are listed. What is not listed any more is withdrawn.
func (l *lan) configure(listed map[seat][]netip.Addr) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for s, a := range l.seats {
		addrs, stays := listed[s]
		for _, addr := range a.addrs {
			if !slices.Contains(addrs, addr) {
				a.gone = append(a.gone, addr)
			}
		}
		a.addrs, a.listed = addrs, stays
	}
	for s, addrs := range listed {
		if a := l.seats[s]; a == nil {
			l.seats[s] = &answers{addrs: addrs, listed: true, placed: map[netip.Addr]bool{}}
		} else {
			a.gone = slices.DeleteFunc(a.gone, func(addr netip.Addr) bool { return slices.Contains(addrs, addr) })
		}
	}
	wake(l.again)
}

// loaded takes note that the passes have read the journal anew: what it tells of interfaces is
// older than what is known here. What was once placed where nothing is listed is withdrawn.
func (l *lan) loaded(rows []capture.Action, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, a := range l.seats {
		if len(a.placed) == 0 {
			a.empty(now)
		}
	}
	for i := range rows {
		r := &rows[i]
		if r.Provider == capture.Linux && r.Verb == capture.Assign && !l.lists(r.NIC, r.Key.Address) {
			s := seat{iface: r.NIC}
			if l.seats[s] == nil {
				l.seats[s] = &answers{placed: map[netip.Addr]bool{}}
			}
			l.seats[s].gone = append(l.seats[s].gone, r.Key.Address)
			wake(l.again)
		}
	}
}

func (l *lan) lists(iface string, addr netip.Addr) bool {
	for s, a := range l.seats {
		if s.iface == iface && (slices.Contains(a.addrs, addr) || slices.Contains(a.gone, addr)) {
			return true
		}
	}
	return false
}

// judge has every seat be open or withdrawn, as the authority is now.
func (l *lan) judge() {
	l.mu.Lock()
	defer l.mu.Unlock()
	again := l.hear()
	alive := l.alive()
	for s, a := range l.seats {
		_, master := l.masters[s.instance]
		may := a.listed && alive && (s.instance == "" || master)
		if !a.clean && !(may && a.open) { // also what an earlier process may have left
			l.withdraw(s, a)
		}
		if len(a.gone) > 0 {
			l.drop(s, a)
		}
		switch {
		case !a.listed && a.clean && len(a.gone) == 0:
			delete(l.seats, s)
		case may && !a.open && a.clean:
			a.open, a.clean, a.look = true, false, true
			a.attempts, a.cancel = context.WithCancel(context.Background())
			wake(l.nudge)
		case a.open && again[s.instance]:
			a.look, a.announce = true, time.Time{}
			wake(l.nudge)
		}
	}
}

// hear takes note of who is MASTER, and returns the instances that were told to be so again.
func (l *lan) hear() (again map[string]bool) {
	again = map[string]bool{}
	heard := map[string]bool{}
	for s := range l.seats {
		i := s.instance
		if i == "" || heard[i] {
			continue
		}
		heard[i] = true
		state, was := l.state(i), l.told[i]
		if l.told[i] = state; state.Word != was.Word || state.Proven != was.Proven || state.Reason != was.Reason {
			l.tell.mastered(state)
		}
		m, proven := l.masters[i]
		switch {
		case !state.Proven:
			delete(l.masters, i)
			if proven {
				wake(l.nudge)
			}
		case !proven || m.sequence != state.Sequence:
			l.masters[i], again[i] = mastery{l.now(), state.Sequence}, true
			wake(l.nudge)
		}
	}
	return again
}

// withdraw takes everything from a seat, after what is on its way there has ended.
func (l *lan) withdraw(s seat, a *answers) {
	l.stop(a)
	a.round++
	a.open = false
	if l.failed(s, a, l.wire.Withdraw(s.iface, slices.Concat(a.addrs, a.gone)...)) {
		return
	}
	a.clean, a.gone = true, nil
	clear(a.placed)
	a.empty(l.now())
	l.tell.log.Info("nothing is answered for any more", "interface", s.iface, "instance", s.instance)
	wake(l.nudge)
}

// drop withdraws what is not listed any more.
func (l *lan) drop(s seat, a *answers) {
	l.stop(a)
	if a.open {
		a.attempts, a.cancel = context.WithCancel(context.Background())
	}
	if l.failed(s, a, l.wire.Withdraw(s.iface, a.gone...)) {
		return
	}
	for _, addr := range a.gone {
		delete(a.placed, addr)
	}
	a.gone = nil
	a.empty(l.now())
	wake(l.nudge)
}

func (l *lan) stop(a *answers) {
	if a.cancel != nil {
		a.cancel()
	}
	l.join(&a.running)
}

func (a *answers) empty(now time.Time) { a.emptied, a.unheard = now, true }

// failed tells of a failure once, as everything is tried again and again.
func (l *lan) failed(s seat, a *answers, err error) bool {
	if err == nil {
		a.trouble = ""
		return false
	}
	if a.trouble != err.Error() {
		a.trouble = err.Error()
		l.tell.log.Error("this host may answer for what it must not, or is not heard: it is tried again", "interface", s.iface, "instance", s.instance, "error", err)
	}
	return true
}

// enter lets an attempt to place an address begin at a seat, if it may. The attempt has to end
// with the context, by the deadline at the latest, and to leave; the round tells whether what it has placed was withdrawn since.
func (l *lan) enter(s seat, addr netip.Addr, deadline time.Time) (at context.Context, leave func(), round int, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.seats[s]
	switch {
	case a == nil || !a.listed || !slices.Contains(a.addrs, addr): // it would not be withdrawn
		return nil, nil, 0, fmt.Errorf("no pool of this node captures %s on %s under VRRP instance %q any more", addr, s.iface, s.instance)
	case s.instance != "" && !l.state(s.instance).Proven:
		return nil, nil, 0, fmt.Errorf("VRRP instance %s is not proven to be MASTER: %s", s.instance, l.state(s.instance).Reason)
	case !a.open || !l.alive():
		return nil, nil, 0, fmt.Errorf("interface %s was withdrawn, and is not open yet", s.iface)
	}
	a.running.Add(1)
	at, cancel := context.WithDeadline(a.attempts, deadline)
	return at, func() { cancel(); a.running.Done() }, a.round, nil
}

// placed takes note of what an attempt has brought about.
func (l *lan) placed(s seat, addr netip.Addr, round int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.seats[s]
	if a == nil {
		return
	}
	if a.open && a.round == round && slices.Contains(a.addrs, addr) {
		a.placed[addr] = true
	} else {
		a.empty(l.now()) // it was withdrawn after it was placed
	}
}

// released takes note of an address that is not there any more.
func (l *lan) released(iface string, addr netip.Addr) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for s, a := range l.seats {
		if s.iface == iface {
			delete(a.placed, addr)
		}
	}
}

// news is what no pass knows yet: interfaces as they were seen to be, and those to be looked at.
func (l *lan) news() (seen map[capture.Target]capture.NIC, look []capture.Target) {
	l.mu.Lock()
	defer l.mu.Unlock()
	seen = map[capture.Target]capture.NIC{}
	for s, a := range l.seats {
		t := capture.Target{Provider: capture.Linux, NIC: s.iface}
		if a.unheard {
			nic := l.nic(s.iface)
			nic.At = a.emptied
			if !nic.At.Before(seen[t].At) {
				seen[t] = nic
			}
		}
		if a.look && !slices.Contains(look, t) {
			look = append(look, t)
		}
		a.unheard, a.look = false, false
	}
	return seen, look
}

// nic is what is placed on an interface.
func (l *lan) nic(iface string) capture.NIC {
	var addrs []netip.Addr
	for s, a := range l.seats {
		if s.iface == iface {
			addrs = slices.AppendSeq(addrs, maps.Keys(a.placed))
		}
	}
	return capture.NIC{Addresses: capture.NewAddresses(addrs...)}
}

// mastered are the proven instances, and since when.
func (l *lan) mastered() map[string]time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	since := make(map[string]time.Time, len(l.masters))
	for i, m := range l.masters {
		since[i] = m.since
	}
	return since
}

// State is what is known of an instance.
func (l *lan) State(instance string) vrrp.State {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state(instance)
}

func (l *lan) state(instance string) vrrp.State {
	if l.watch == nil {
		return vrrp.State{Instance: instance, Reason: l.trouble}
	}
	return l.watch.State(instance)
}

func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
