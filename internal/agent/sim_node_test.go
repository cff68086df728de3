package agent

import (
	"context"
	"fmt"
	"iter"
	"log/slog"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/tasuki-io/tasuki/internal/capture"
	"github.com/tasuki-io/tasuki/internal/executor"
)

// simNode is a host. Its disk outlives its agent.
type simNode struct {
	*sim
	name, nic string
	disk      simDisk
	host      *simHost // of a node on a LAN, nil in a cloud

	boot   time.Duration // what its monotonic clock showed when the world began
	skew   time.Duration // of its wall clock
	paused bool          // SIGSTOP
	cut    simCut        // from the store

	// Of the agent, while there is one.
	loop     *loop
	policy   simPolicy // that is in force
	procs    []*simProc
	waiting  bool // between two passes
	next     time.Time
	alarm    time.Duration // of the timer, by the monotonic clock
	told     []simTold
	asks     []func(context.Context)
	readings []time.Time     // of the clock since the pass began
	fresh    []simTry        // begun in this pass
	flying   map[simTry]bool // attempts that the agent has not heard the end of
	begun    int             // since there was none
	alive    []string        // as the store has told last
	tell     *announcer
	until    time.Duration // the lease has not ended, as far as it was told
}

// simProc is what a coroutine does for an agent: its passes, or one attempt or look beside them.
type simProc struct {
	*simThread
	node    *simNode
	at      string // "" before it has begun
	isLoop  bool
	killed  bool
	nap     time.Duration  // of whoever renews: until when, by the clock of the world
	placing bool           // it is at a LAN, and has to end before a withdrawal
	try     simTry         // of an attempt
	read    *capture.Claim // what the store has answered since the attempt began, or since its last call
}

// simThread is a coroutine. It outlives what it does, as it is dear to make.
type simThread struct {
	work  func() // nil when it has nothing to do
	yield func(struct{}) bool
	next  func() (struct{}, bool)
	stop  func()
}

func newSimThread() *simThread {
	t := &simThread{}
	t.next, t.stop = iter.Pull(func(yield func(struct{}) bool) {
		t.yield = yield
		for ok := true; ok; ok = yield(struct{}{}) {
			t.do()
		}
	})
	return t
}

// do does the work, up to its end or to that of its agent.
func (t *simThread) do() {
	defer func() {
		t.work = nil
		if r := recover(); r != nil && r != (simCrash{}) {
			panic(fmt.Sprintf("%v\n%s", r, debug.Stack()))
		}
	}()
	t.work()
}

// simTry names an attempt.
type simTry struct {
	id      string
	attempt int
}

// simTold is what a job has to say to its agent.
type simTold struct {
	do  func(context.Context) error
	try simTry
}

// simCrash ends a coroutine.
type simCrash struct{}

// pause is called before and after everything that the world may come between. Where it is
// called is for tests that wait for it.
func (s *sim) pause(at string) {
	p := s.current
	if p == nil {
		return // somebody else than an agent
	}
	p.at = at
	if !p.yield(struct{}{}) || p.killed {
		panic(simCrash{})
	}
}

func (n *simNode) start(run func()) *simProc {
	st := n.stage
	if len(st.free) == 0 {
		st.free = append(st.free, newSimThread())
	}
	t := st.free[len(st.free)-1]
	st.free = st.free[:len(st.free)-1]
	t.work = run
	p := &simProc{simThread: t, node: n}
	n.procs = append(n.procs, p)
	return p
}

// resume lets a coroutine go on to its next point.
func (s *sim) resume(p *simProc) {
	by := s.current // one that waits for it
	s.current = p
	p.next()
	s.current = by
	if p.work == nil {
		n := p.node
		n.procs = slices.DeleteFunc(n.procs, func(o *simProc) bool { return o == p })
		s.stage.free = append(s.stage.free, p.simThread)
	}
}

// kill ends everything that an agent does.
func (n *simNode) kill() {
	for len(n.procs) > 0 {
		p := n.procs[0]
		if p.killed = true; p.at == "" { // it has not begun
			p.work = func() {}
		}
		n.resume(p)
	}
}

// now is the clock of the node.
func (n *simNode) now() time.Time {
	t := instant(simStart.Add(n.clock+n.skew), time.Hour+n.boot+n.clock)
	n.readings = append(n.readings, t)
	if n.disk.restoring {
		n.disk.restored(t)
	}
	return t
}

func (n *simNode) monotonic() time.Duration { return n.boot + n.clock }

func (n *simNode) jitter(d time.Duration) time.Duration {
	if n.calm {
		return d
	}
	return d/2 + time.Duration(n.rng.Int64N(int64(d/2)+1))
}

// up starts the agent of a node that has none.
func (n *simNode) up() {
	if len(n.procs) > 0 {
		return
	}
	n.flying, n.begun, n.until = map[simTry]bool{}, 0, 0
	n.start(n.live).isLoop = true
}

// live is Run, under the schedule.
func (n *simNode) live() {
	ctx := context.Background()
	a := newAgent(n.name, n.inForce, simHandle{&n.store, n}, &n.disk, n.execute, n.tell)
	a.now, a.jitter = n.now, n.jitter
	n.policy = n.sim.config.policy
	n.loop = &loop{Agent: a}
	n.start(func() { n.keepAlive(a) })
	if n.host != nil {
		n.host.started(a)
		n.start(func() { n.minds(a) })
	}
	for {
		n.readings, n.fresh = n.readings[:0], n.fresh[:0]
		if len(n.flying) == 0 {
			n.begun = 0
		}
		jobs, next := n.loop.round(ctx)
		n.happens("pass")
		n.recheck()
		for i, work := range jobs {
			n.loop.out++
			try := simTry{}
			if i < len(n.fresh) {
				try = n.fresh[i]
				n.flying[try] = true
			}
			n.start(func() { n.told = append(n.told, simTold{work(ctx), try}) }).try = try
		}
		n.next = next
		if !next.IsZero() {
			n.alarm = n.monotonic() + next.Sub(n.now())
		}
		n.waiting = true
		n.pause("wait")
		n.waiting = false
		select {
		case <-a.lan.nudge:
		default:
		}
		for len(n.told)+len(n.asks) > 0 {
			if len(n.asks) > 0 {
				do := n.asks[0]
				n.asks = n.asks[1:]
				do(ctx)
				continue
			}
			told := n.told[0]
			n.told = n.told[1:]
			n.loop.hear(n.loop.take(ctx, told.do))
			delete(n.flying, told.try)
		}
	}
}

// keepAlive is what renews, under the schedule.
func (n *simNode) keepAlive(a *Agent) {
	for {
		_ = a.renew(context.Background())
		n.current.nap = n.clock + a.ttl()/3
		n.pause("nap")
	}
}

// due reports what makes Run begin another pass.
func (n *simNode) due() bool {
	return len(n.told)+len(n.asks)+len(n.loop.lan.nudge) > 0 || !n.next.IsZero() && n.monotonic() >= n.alarm ||
		n.loop.fails == 0 && n.cut == 0 && (n.store.revision() != n.loop.revision || !slices.Equal(n.alive, n.store.alive()))
}

// runnable reports a coroutine that can go on.
func (n *simNode) runnable(p *simProc) bool {
	return !n.paused && p.nap <= n.clock && (!p.isLoop || !n.waiting || n.due())
}

// crash is a kill, or a power failure: nothing is left but the disk. What an executor was about
// to send is sent all the same, or it is not.
func (n *simNode) crash() {
	n.note("%s crashes", n.name)
	n.kill()
	n.loop, n.told, n.asks, n.waiting = nil, nil, nil, false
}

// ask has the agent do something between two passes.
func (n *simNode) ask(do func(context.Context)) {
	if n.loop != nil {
		n.asks = append(n.asks, do)
	}
}

// reload takes the files into use.
func (n *simNode) reload() {
	c, p := n.inForce, n.sim.config.policy
	n.ask(func(context.Context) {
		n.loop.configure(c)
		n.policy = p
	})
}

// simEar hears what an agent tells people.
type simEar struct {
	node *simNode
}

func (e *simEar) Enabled(context.Context, slog.Level) bool { return true }
func (e *simEar) WithAttrs([]slog.Attr) slog.Handler       { return e }
func (e *simEar) WithGroup(string) slog.Handler            { return e }
func (e *simEar) Handle(_ context.Context, r slog.Record) error {
	n := e.node
	id := ""
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "action" {
			id = a.Value.String()
		}
		if n.rechecks && strings.Contains(a.Value.String(), simSecret) {
			n.breaks("I12: the log of %s has a secret: %s %s", n.name, r.Message, a)
		}
		return true
	})
	if strings.HasPrefix(r.Message, "action succeeded") && n.disk.rows[id].State != capture.Succeeded {
		n.breaks("told: %s tells that %s has succeeded, and the journal says %q", n.name, id, n.disk.rows[id].State)
	}
	if n.read {
		n.note("%s: %s %s", n.name, r.Message, id)
	}
	return nil
}

// simStage is what the worlds of one worker have in common, as it is dear to make.
type simStage struct {
	tells []*announcer
	ears  []*simEar
	free  []*simThread // that have nothing to do
}

func newSimStage() *simStage {
	st := &simStage{}
	for range simNames {
		ear := &simEar{}
		st.ears = append(st.ears, ear)
		st.tells = append(st.tells, newAnnouncer(slog.New(ear), ""))
	}
	return st
}

// enter puts a world on the stage.
func (st *simStage) enter(s *sim) {
	s.stage = st
	for i, n := range s.nodes {
		st.ears[i].node = n
		n.tell = st.tells[i]
	}
}

// leave ends every agent of a world.
func (s *sim) leave() {
	for _, n := range s.nodes {
		n.kill()
	}
}

func (st *simStage) close() {
	for _, t := range st.free {
		t.stop()
	}
}

// rehearse has a person ask what would become of an action.
func (n *simNode) rehearse(row capture.Action) {
	a := n.loop.Agent
	n.start(func() {
		if r := a.rehearse(context.Background(), row); r.Outcome == executor.OutcomeDone {
			n.happens("dry run")
		}
	})
}
