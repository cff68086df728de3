package chaos

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"syscall"
	"time"

	"github.com/tasuki-io/tasuki/internal/claims/etcd/etcdtest"
	"github.com/tasuki-io/tasuki/internal/executor/executortest"
)

// fault is something that goes wrong for a while. What it befalls is looked up when it begins.
type fault struct {
	what  string
	lasts time.Duration
	begin func(w *site) (over func())

	host         string // that it befalls, "" is none
	began, ended time.Time
}

// kind is a fault that is drawn as often as its weight says.
type kind struct {
	weight      int
	what        string
	least, most float64 // in TTLs
	begin       func(w *site, a *agent, r *rand.Rand) (over func())
}

var ofHosts = []kind{
	{4, "kill -9 of the agent of %s", 0, 3, func(w *site, a *agent, r *rand.Rand) func() {
		shift := time.Duration(0)
		if r.IntN(3) == 0 {
			shift = time.Duration(1+r.IntN(1000)) * time.Hour
		}
		a.kill()
		return func() { a.start(shift) }
	}},
	{2, "SIGSTOP of the agent of %s", 1.2, 3, func(w *site, a *agent, _ *rand.Rand) func() {
		a.signal(syscall.SIGSTOP)
		return func() { a.signal(syscall.SIGCONT) }
	}},
	{2, "SIGSTOP of the agent and the executors of %s", 1.2, 3, func(w *site, a *agent, _ *rand.Rand) func() {
		a.signalHost(syscall.SIGSTOP)
		return func() { a.signalHost(syscall.SIGCONT) }
	}},
	{1, "%s cut off from etcd", 0.2, 3, func(w *site, a *agent, _ *rand.Rand) func() {
		a.reach(false, true)
		return func() { a.reach(false, false) }
	}},
	{1, "%s gets no answer from etcd", 0.2, 3, func(w *site, a *agent, _ *rand.Rand) func() {
		a.reach(true, false)
		return func() { a.reach(false, false) }
	}},
	{1, "the wall clock of %s set", 0, 0.1, func(w *site, a *agent, r *rand.Rand) func() {
		a.wall.set(r.IntN(61) - 30)
		return func() {}
	}},
}

var ofStore = []kind{
	{2, "kill -9 of the leader of etcd", 0.3, 3, func(w *site, _ *agent, _ *rand.Rand) func() {
		m, _ := w.cluster.Leader(w.t)
		m.Kill()
		return func() { m.Start(w.t) }
	}},
	{1, "kill -9 of a follower of etcd", 0.3, 3, func(w *site, _ *agent, r *rand.Rand) func() {
		_, others := w.cluster.Leader(w.t)
		m := others[r.IntN(2)]
		m.Kill()
		return func() { m.Start(w.t) }
	}},
	{2, "SIGSTOP of the leader of etcd", 0.3, 2, func(w *site, _ *agent, _ *rand.Rand) func() {
		m, _ := w.cluster.Leader(w.t)
		m.Pause(w.t)
		return func() { m.Resume(w.t) }
	}},
	{2, "the leader of etcd cut off from the other members", 0.3, 3, func(w *site, _ *agent, _ *rand.Rand) func() {
		m, _ := w.cluster.Leader(w.t)
		w.cluster.Isolate(m)
		return w.cluster.Join
	}},
	{1, "kill -9 of two members of etcd: no quorum", 0.3, 3, func(w *site, _ *agent, _ *rand.Rand) func() {
		leader, others := w.cluster.Leader(w.t)
		both := []*etcdtest.Member{leader, others[0]}
		for _, m := range both {
			m.Kill()
		}
		return func() {
			for _, m := range both {
				m.Start(w.t)
			}
		}
	}},
}

// share has a part of EC2's calls go wrong.
func share(of float64, match func(executortest.Call) bool, f executortest.Fault) func(*site, *agent, *rand.Rand) func() {
	return func(w *site, _ *agent, _ *rand.Rand) func() {
		w.ec2.Inject(executortest.Rule{Match: match, Share: of, Fault: f})
		return w.ec2.Heal
	}
}

var ofProvider = []kind{
	{2, "EC2 throttles two of three calls", 0.3, 2, share(0.67, nil, executortest.Throttled)},
	{2, "EC2 loses half of the answers to changes that it makes", 0.3, 2, share(0.5, executortest.Changing, executortest.Fault{Carry: true})},
	{1, "EC2 does not answer one of ten calls", 0.3, 1, share(0.1, nil, executortest.Fault{Hang: true})},
	{2, "EC2 moves after 0.3 s and shows it after 1 s", 0.5, 2, func(w *site, _ *agent, _ *rand.Rand) func() {
		w.ec2.Lag(300*time.Millisecond, time.Second)
		return func() { w.ec2.Lag(0, 0) }
	}},
}

// draw draws the faults of a round: of a host, of the cluster, of EC2, or two of them at once.
// What is drawn depends on the seed alone.
func (w *site) draw(r *rand.Rand) (all []*fault) {
	n := r.IntN(20)
	if n < 15 {
		all = append(all, w.pick(r, ofHosts))
	}
	if n >= 12 && n < 18 {
		all = append(all, w.pick(r, ofStore))
	}
	if n >= 18 || n < 4 {
		all = append(all, w.pick(r, ofProvider))
	}
	return all
}

func (w *site) pick(r *rand.Rand, kinds []kind) *fault {
	sum := 0
	for _, k := range kinds {
		sum += k.weight
	}
	n, i := r.IntN(sum), 0
	for n >= kinds[i].weight {
		n -= kinds[i].weight
		i++
	}
	k := kinds[i]
	f := &fault{what: k.what, lasts: time.Duration((k.least + (k.most-k.least)*r.Float64()) * float64(w.ttl))}
	whom := r.IntN(2 * len(w.agents)) // half of the time whoever holds
	own := rand.New(rand.NewPCG(r.Uint64(), 0))
	f.begin = func(w *site) func() {
		var a *agent
		if strings.Contains(k.what, "%s") {
			if a = w.holder(); whom < len(w.agents) {
				a = w.agents[whom]
			}
			f.what, f.host = fmt.Sprintf(k.what, a.name), a.name
		}
		return k.begin(w, a, own)
	}
	return f
}

// holder is the host that holds the first address.
func (w *site) holder() *agent {
	holder := w.claims.current()[w.addresses()[0]].Holder
	for _, a := range w.agents {
		if a.name == holder {
			return a
		}
	}
	return w.agents[0]
}

// befall has faults happen at once, each for its time, and returns when the last is over.
func (w *site) befall(faults []*fault) (last time.Time) {
	overs := make([]func(), len(faults))
	for i, f := range faults {
		f.began = time.Now()
		overs[i] = f.begin(w)
	}
	for left := len(faults); left > 0; left-- {
		next := -1
		for i, f := range faults {
			if f.ended.IsZero() && (next < 0 || f.began.Add(f.lasts).Before(faults[next].began.Add(faults[next].lasts))) {
				next = i
			}
		}
		f := faults[next]
		time.Sleep(time.Until(f.began.Add(f.lasts)))
		overs[next]()
		f.ended = time.Now()
		last = f.ended
	}
	return last
}
