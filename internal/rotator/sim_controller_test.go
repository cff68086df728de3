package rotator

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/tasuki-io/tasuki/api/v1alpha1"
)

var errDead = errors.New("this incarnation is dead")

// incarnation is one process of the controller, from its first breath as a leader to its
// SIGKILL, or to the moment at which it notices that it leads no more.
type incarnation struct {
	name   string
	sim    *sim
	r      *Rotator
	caches [simKinds]simCache
	queue  map[string]time.Time // when a pool is due for a pass
	fails  map[string]int
	passes map[string]*simPass // in flight, by pool; "" is the sweep
	ctx    context.Context
	cancel context.CancelFunc
	swept  bool
	lost   bool // another one has the lease
	dead   bool
}

// simPass is one run of Reconcile or of the sweep. It runs only while the schedule resumes it,
// and is blocked in an API call otherwise.
type simPass struct {
	of      *incarnation
	pool    string
	on      *simThread
	call    simCall
	fate    fate
	result  reconcile.Result
	err     error
	cancel  context.CancelFunc
	decided time.Time                 // the last time it asked for the time
	saw     [simKinds][]client.Object // what the API server said last
	looked  [simKinds]bool
	pods    map[string][]client.Object // ... when asked for the pods on a node
	began   int                        // the resourceVersion of the server at its start
	current bool
	writes  int
	trouble bool // a call of it failed
}

// simCall is a call that is on its way to the API server.
type simCall struct {
	what  string
	write bool
	at    time.Time // when it was sent
	do    func() error
}

// fate is what becomes of a call.
type fate string

const (
	answered fate = ""
	refused  fate = "refused" // an error, and nothing was applied
	lost     fate = "lost"    // applied, and the answer never came
	killed   fate = "killed"  // applied, and the process died before it heard
)

// lead starts a new incarnation as the leader. What it lists first may be old: of one kind,
// or of every kind, it misses this many writes.
func (s *sim) lead(missing int, of string) {
	s.incarnations++
	i := &incarnation{
		name: fmt.Sprintf("c%d", s.incarnations), sim: s,
		queue: map[string]time.Time{}, fails: map[string]int{}, passes: map[string]*simPass{},
	}
	if s.leader != nil && !s.leader.dead {
		s.leader.lost = true
		s.old = append(s.old, s.leader)
	}
	s.leader = i
	i.ctx, i.cancel = context.WithCancel(log.IntoContext(context.Background(), logr.Discard()))
	i.r = &Rotator{
		Client: simClient{of: i}, Live: simReader{i}, Namespace: "node-rotation-system", PlaceholderImage: "pause",
		Now: func() time.Time {
			if s.running != nil {
				s.running.decided = s.api.now
			}
			return s.api.now
		},
		policies: s.policies, announce: newAnnouncer(i, newMetrics(prometheus.NewRegistry())),
	}
	for k := range i.caches {
		i.caches[k].kind = simKind(k)
		if of == "" || of == simKind(k).String() {
			i.caches[k].fill(s.api, missing)
		} else {
			i.caches[k].fill(s.api, 0)
		}
	}
	for _, pool := range simPoolNames {
		i.wake(pool, s.api.now)
	}
	s.laws.counts = append(s.laws.counts, i.r.announce.metrics)
	i.start("", func(ctx context.Context, p *simPass) {
		p.err = (&sweeper{Rotator: i.r}).sweep(ctx)
	})
}

// wake is the queue: one entry per pool, the earliest counts.
func (i *incarnation) wake(pool string, at time.Time) {
	if due, ok := i.queue[pool]; !ok || at.Before(due) {
		i.queue[pool] = at
	}
}

// reconcile starts a pass.
func (i *incarnation) reconcile(pool string) {
	delete(i.queue, pool)
	i.start(pool, func(ctx context.Context, p *simPass) {
		p.result, p.err = i.r.Reconcile(ctx, reconcile.Request{NamespacedName: types.NamespacedName{Name: pool}})
	})
}

// simThread is a coroutine that runs one pass after another: the race detector never gives
// back what a coroutine takes.
type simThread struct {
	run    func()
	resume func() (blocked, alive bool)
	stop   func()
	yield  func(blocked bool) bool
}

// simIdle are the threads without a pass, of whatever world.
var simIdle []*simThread

func idleThread() *simThread {
	if n := len(simIdle); n > 0 {
		t := simIdle[n-1]
		simIdle = simIdle[:n-1]
		return t
	}
	t := &simThread{}
	t.resume, t.stop = iter.Pull(func(yield func(bool) bool) {
		t.yield = yield
		for on := true; on; on = yield(false) {
			t.run()
		}
	})
	return t
}

func (i *incarnation) start(pool string, run func(context.Context, *simPass)) {
	p := &simPass{of: i, pool: pool, began: i.sim.api.rv, current: i.current(), pods: map[string][]client.Object{}}
	var ctx context.Context
	ctx, p.cancel = context.WithCancel(i.ctx)
	p.on = idleThread()
	p.on.run = func() { run(ctx, p) }
	i.passes[pool] = p
	p.advance(answered)
}

// advance lets the pass run up to its next call, or to its end.
func (p *simPass) advance(f fate) {
	i, s := p.of, p.of.sim
	p.fate = f
	s.running = p
	blocked, _ := p.on.resume()
	s.running = nil
	if f == killed {
		i.kill()
		return
	}
	if blocked || i.dead {
		return
	}
	simIdle = append(simIdle, p.on)
	delete(i.passes, p.pool)
	p.cancel()
	if p.pool == "" {
		i.swept = true
		return
	}
	if i.lost {
		return
	}
	if p.err != nil { // the rate limiter
		i.wake(p.pool, s.api.now.Add(min(shortBackstop, again<<min(i.fails[p.pool], 20))))
		i.fails[p.pool]++
	} else {
		i.fails[p.pool] = 0
		i.wake(p.pool, s.api.now.Add(p.result.RequeueAfter))
	}
	s.laws.passEnded(p)
}

// kill stops the incarnation for ever: no call of it arrives, and nothing is announced.
func (i *incarnation) kill() {
	i.dead = true
	i.cancel()
	for _, pool := range append([]string{""}, simPoolNames...) {
		if p := i.passes[pool]; p != nil {
			i.sim.running = p
			p.on.stop()
			i.sim.running = nil
			delete(i.passes, pool)
		}
	}
}

// current says whether every cache holds all that was written.
func (i *incarnation) current() bool {
	for k := range i.caches {
		if i.caches[k].behind(i.sim.api) > 0 {
			return false
		}
	}
	return true
}

// call hands the API call to the schedule and waits for its fate.
func (i *incarnation) call(ctx context.Context, c simCall) error {
	p := i.sim.running
	if i.dead {
		p.cancel()
		return errDead
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	c.at = i.sim.api.now
	p.call = c
	if !p.on.yield(true) {
		p.cancel()
		return errDead
	}
	if p.fate == refused {
		p.giveUp()
		return apierrors.NewServerTimeout(schema.GroupResource{Resource: c.what}, "call", 1)
	}
	i.sim.laws.fate = p.fate
	err := c.do()
	switch p.fate {
	case lost:
		p.giveUp()
		return fmt.Errorf("%s: %w", c.what, context.DeadlineExceeded)
	case killed:
		i.dead = true
		p.cancel()
		return errDead
	}
	if err != nil && !apierrors.IsNotFound(err) {
		i.sim.saw("conflict")
	}
	return err
}

// giveUp notes an error, and ends a sweep that gets no anchors, as its timeout would.
func (p *simPass) giveUp() {
	p.trouble = true
	if p.pool == "" && strings.HasSuffix(p.call.what, "NodePools") {
		p.cancel()
	}
}

// record makes the incarnation the recorder of its Events: each is a call of its own.
func (i *incarnation) record(ctx context.Context, on *metav1.PartialObjectMetadata, _, reason, _, _ string) {
	_ = i.call(context.WithoutCancel(ctx), simCall{what: "create Event " + reason, do: func() error {
		i.sim.saw("event " + reason)
		return nil
	}})
}

// simReader reads the API server.
type simReader struct{ of *incarnation }

func (r simReader) Get(ctx context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	k, s := kindOf(into), r.of.sim
	return r.of.call(ctx, simCall{what: "get " + k.String() + " " + key.Name, do: func() error {
		p := s.running
		o := s.api.get(k, key.Name)
		if p != nil {
			p.told(k, key.Name, o)
		}
		if o == nil {
			return precondition(k, key.Name, nil, nil, nil)
		}
		read(o, into)
		if policy, ok := into.(*v1alpha1.RotationPolicy); ok {
			s.measured(policy)
		}
		return nil
	}})
}

// told remembers what the API server said of one object. Of the others of its kind the pass knows
// what the cache holds, unless it has asked for all.
func (p *simPass) told(k simKind, name string, o client.Object) {
	if !p.looked[k] && p.saw[k] == nil {
		p.saw[k] = p.of.caches[k].objects
	}
	p.saw[k] = slices.DeleteFunc(slices.Clone(p.saw[k]), func(o client.Object) bool { return o.GetName() == name })
	if o != nil {
		p.saw[k] = append(p.saw[k], o)
	}
	p.looked[k] = p.looked[k] || k == simPools
}

func (r simReader) List(ctx context.Context, into client.ObjectList, opts ...client.ListOption) error {
	k, s := kindOf(into), r.of.sim
	return r.of.call(ctx, simCall{what: "list " + k.String() + "s", do: func() error {
		if p := s.running; p != nil {
			p.saw[k], p.looked[k] = s.api.objects[k], true
			if node := nodeAsked(opts); node != "" {
				p.pods[node] = s.api.objects[k]
			}
		}
		s.list(s.api.objects[k], into, opts)
		return nil
	}})
}

// list reads what somebody knows of a kind.
func (s *sim) list(objects []client.Object, into client.ObjectList, opts []client.ListOption) {
	list(objects, into, opts)
	if policies, ok := into.(*v1alpha1.RotationPolicyList); ok {
		for i := range policies.Items {
			s.measured(&policies.Items[i])
		}
	}
}

// simClient reads the caches and writes to the API server.
type simClient struct {
	client.Client
	of *incarnation
}

func (c simClient) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	return c.of.caches[kindOf(into)].get(key, into)
}

func (c simClient) List(_ context.Context, into client.ObjectList, opts ...client.ListOption) error {
	c.of.sim.list(c.of.caches[kindOf(into)].objects, into, opts)
	return nil
}

func (c simClient) Create(ctx context.Context, o client.Object, _ ...client.CreateOption) error {
	return c.write(ctx, "create", o, func(k simKind) error {
		return c.of.sim.api.create("controller", k, o.DeepCopyObject().(client.Object))
	})
}

func (c simClient) Delete(ctx context.Context, o client.Object, opts ...client.DeleteOption) error {
	var d client.DeleteOptions
	d.ApplyOptions(opts)
	return c.write(ctx, "delete", o, func(k simKind) error {
		api := c.of.sim.api
		on := api.get(k, o.GetName())
		var uid *types.UID
		var rv *string
		if p := d.Preconditions; p != nil {
			uid, rv = p.UID, p.ResourceVersion
		}
		if err := precondition(k, o.GetName(), on, uid, rv); err != nil {
			return err
		}
		api.remove("controller", k, on, d.GracePeriodSeconds != nil && *d.GracePeriodSeconds == 0)
		return nil
	})
}

func (c simClient) Patch(ctx context.Context, o client.Object, patch client.Patch, _ ...client.PatchOption) error {
	body, err := patch.Data(o)
	if err != nil {
		return err
	}
	return c.write(ctx, "patch", o, func(k simKind) error {
		rv := c.of.sim.api.rv
		after, err := c.of.sim.api.patch("controller", k, o.GetName(), body)
		if err != nil {
			return err
		}
		if c.of.sim.api.rv == rv {
			c.of.sim.laws.changedNothing(k, body)
		}
		o.SetResourceVersion(after.GetResourceVersion())
		return nil
	})
}

func (c simClient) write(ctx context.Context, verb string, o client.Object, do func(simKind) error) error {
	k := kindOf(o)
	return c.of.call(ctx, simCall{what: verb + " " + k.String() + " " + o.GetName(), write: true, do: func() error { return do(k) }})
}
