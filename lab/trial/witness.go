package trial

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/tasuki-io/tasuki/internal/rotation"
	"github.com/tasuki-io/tasuki/internal/rotator"
	"github.com/tasuki-io/tasuki/lab"
)

// Subject is what a witness looks at: the nodes of a pool, and one workload on them.
type Subject struct {
	NodePool  string
	Namespace string // of the workload; not the controller's
	Selector  string // of its pods
	Replicas  int    // how many of them there should be
}

// hold is how long a sighting waits for an earlier one that another watch delivers later.
const hold = 300 * time.Millisecond

// Witness sees what happens to its subject, from Watch to Close. Its methods may be called
// from any goroutine.
type Witness struct {
	lab     *lab.Lab
	subject Subject
	stop    context.CancelFunc
	ended   chan struct{} // closed when all watching is over

	mu       sync.Mutex
	last     map[string]sighting
	all      []sighting // as they came
	held     []sighting // not yet in the ledger
	ledger   *ledger
	timeline []Happening
	changed  chan struct{}
	handed   int // accounts that AwaitRotation has returned
	counted  int // controller writes that belong to those, or to the time before Watch
}

// Watch begins to watch, and returns when everything that is there has been seen. It stops
// when ctx ends, or at Close.
func Watch(ctx context.Context, l *lab.Lab, subject Subject) (*Witness, error) {
	if subject.Namespace == Namespace {
		return nil, fmt.Errorf("witness: the workload may not be in namespace %s, which holds the placeholders", Namespace)
	}
	pods, err := labels.Parse(subject.Selector)
	if err != nil {
		return nil, fmt.Errorf("witness: selector of the workload: %w", err)
	}
	config, err := l.RESTConfig()
	if err != nil {
		return nil, err
	}
	writes, err := lab.AuditWrites(l.Audit(), User)
	if err != nil {
		return nil, err
	}
	ofPool := labels.SelectorFromSet(labels.Set{karpv1.NodePoolLabelKey: subject.NodePool})
	informers, err := cache.New(config, cache.Options{
		Scheme: rotator.Scheme(),
		ByObject: map[client.Object]cache.ByObject{
			&karpv1.NodeClaim{}: {Label: ofPool},
			&corev1.Node{}:      {Label: ofPool},
			&corev1.Pod{}: {Namespaces: map[string]cache.Config{
				subject.Namespace: {LabelSelector: pods},
				Namespace:         {LabelSelector: labels.SelectorFromSet(labels.Set{rotation.LabelPlaceholder: "true"})},
			}},
		},
		// A watch that breaks is taken up again; a lab's API server may well be killed on purpose.
		DefaultWatchErrorHandler: func(context.Context, *toolscache.Reflector, error) {},
	})
	if err != nil {
		return nil, fmt.Errorf("witness: %w", err)
	}
	ctx, stop := context.WithCancel(ctx)
	w := &Witness{
		lab: l, subject: subject, stop: stop, ended: make(chan struct{}),
		last: map[string]sighting{}, changed: make(chan struct{}), counted: len(writes),
	}
	w.ledger = newLedger(subject, func(h Happening) { w.timeline = append(w.timeline, h) })
	if err := w.begin(ctx, informers); err != nil {
		w.Close()
		return nil, fmt.Errorf("witness: %w", err)
	}
	return w, nil
}

func (w *Witness) begin(ctx context.Context, informers cache.Cache) error {
	var running sync.WaitGroup
	running.Go(func() { _ = informers.Start(ctx) })
	running.Go(func() { w.enterLoop(ctx) })
	go func() {
		running.Wait()
		close(w.ended)
	}()
	for _, kind := range []client.Object{&karpv1.NodePool{}, &karpv1.NodeClaim{}, &corev1.Node{}, &corev1.Pod{}} {
		informer, err := informers.GetInformer(ctx, kind)
		if err != nil {
			return fmt.Errorf("watch %T: %w", kind, err)
		}
		heard, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc:    func(o any) { w.hear(o, false) },
			UpdateFunc: func(_, o any) { w.hear(o, false) },
			DeleteFunc: func(o any) { w.hear(o, true) },
		})
		if err != nil {
			return fmt.Errorf("watch %T: %w", kind, err)
		}
		if !toolscache.WaitForCacheSync(ctx.Done(), heard.HasSynced) {
			return context.Cause(ctx)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.enter(time.Now())
	return nil
}

// Close stops watching, and returns when nothing of it runs any more.
func (w *Witness) Close() {
	w.stop()
	<-w.ended
}

func (w *Witness) hear(o any, gone bool) {
	at := time.Now()
	if lost, ok := o.(toolscache.DeletedFinalStateUnknown); ok {
		o = lost.Obj
	}
	object, ok := o.(client.Object)
	if !ok {
		return
	}
	v, ok := w.subject.look(object)
	if !ok {
		return
	}
	s := sighting{seen: v, at: at, version: object.GetResourceVersion(), gone: gone}
	key := string(s.role) + "/" + s.name
	w.mu.Lock()
	defer w.mu.Unlock()
	if last, ok := w.last[key]; ok && last.same(s) {
		return
	}
	w.last[key] = s
	w.all = append(w.all, s)
	w.held = append(w.held, s)
}

// enterLoop brings what was heard into the ledger, in the order of the writes.
func (w *Witness) enterLoop(ctx context.Context) {
	tick := time.NewTicker(hold / 6)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			w.mu.Lock()
			w.enter(now.Add(-hold))
			w.mu.Unlock()
		}
	}
}

// enter brings every sighting that was heard by then into the ledger, and all that were
// written before it.
func (w *Witness) enter(by time.Time) {
	slices.SortStableFunc(w.held, compareVersions)
	n := 0
	for i, s := range w.held {
		if !s.at.After(by) {
			n = i + 1
		}
	}
	if n == 0 {
		return
	}
	for _, s := range w.held[:n] {
		w.ledger.observe(s)
	}
	w.held = slices.Delete(w.held, 0, n)
	close(w.changed)
	w.changed = make(chan struct{})
}

// Changed returns a channel that is closed when there is anything new to see. Take it
// before looking, so that nothing is missed in between.
func (w *Witness) Changed() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.changed
}

// Timeline returns what has happened since Watch, without the first so many happenings.
func (w *Witness) Timeline(from int) []Happening {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.timeline[min(from, len(w.timeline)):])
}

// Scene returns how the subject looks now.
func (w *Witness) Scene() Scene {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ledger.scene()
}

// Account returns the account of the present or latest rotation, without what AwaitRotation
// adds. It is zero but for Replicas when none has started.
func (w *Witness) Account() Account {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := w.ledger.accounts()
	if len(all) == 0 {
		return Account{Replicas: w.subject.Replicas}
	}
	return all[len(all)-1]
}

// AwaitRotation returns the account of the next rotation that has ended, and whose pods are
// all Ready again unless another one has begun since. When ctx ends first, it returns the
// account so far with the error.
func (w *Witness) AwaitRotation(ctx context.Context) (Account, error) {
	var interrupted error
	for interrupted == nil {
		changed := w.Changed()
		if w.settled() {
			break
		}
		select {
		case <-ctx.Done():
			interrupted = context.Cause(ctx)
		case <-changed:
		}
	}
	account := w.replay()
	writes, err := lab.AuditWrites(w.lab.Audit(), User)
	if err == nil {
		w.mu.Lock()
		account.Writes = OfRotation(writes[min(w.counted, len(writes)):])
		if interrupted == nil {
			w.handed, w.counted = w.handed+1, len(writes)
		}
		w.mu.Unlock()
	}
	if latest := w.Account(); latest.Ended.IsZero() || !latest.Started.Equal(account.Started) {
		// The marks of a rotation that runs are no residue.
		return account, errors.Join(interrupted, err)
	}
	residue, failed := Residue(context.WithoutCancel(ctx), w.lab)
	account.Residue = residue
	return account, errors.Join(interrupted, err, failed)
}

func (w *Witness) settled() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := w.ledger.accounts()
	if len(all) <= w.handed {
		return false
	}
	a := all[w.handed]
	return !a.Ended.IsZero() && (a.Unready <= 0 || len(all) > w.handed+1)
}

// replay makes the account anew from everything heard so far in the order of the writes,
// so that no verdict hangs on which watch was quicker.
func (w *Witness) replay() Account {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := slices.Clone(w.all)
	slices.SortStableFunc(all, compareVersions)
	l := newLedger(w.subject, func(Happening) {})
	for _, s := range all {
		l.observe(s)
	}
	if accounts := l.accounts(); len(accounts) > w.handed {
		return accounts[w.handed]
	}
	return Account{Replicas: w.subject.Replicas}
}
