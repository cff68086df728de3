package agent

import (
	"context"
	"sync"
	"time"

	"github.com/tasuki-io/tasuki/internal/capture"
	"github.com/tasuki-io/tasuki/internal/claims"
	"github.com/tasuki-io/tasuki/internal/executor"
	"github.com/tasuki-io/tasuki/internal/journal"
)

// Journal is what the agent needs of its journal.
type Journal interface {
	Load(context.Context) (journal.Contents, error)
	Note(context.Context, map[capture.Key]capture.Claim) error
	Apply(context.Context, *capture.Plan, time.Time) (journal.Receipt, error)
	Begin(ctx context.Context, id string, now, deadline time.Time) (capture.Action, capture.Stale, error)
	End(context.Context, capture.Action, journal.Ending, time.Time) (capture.Action, error)
}

// Agent serves one node. Its methods are called by one goroutine, but for the few that say
// otherwise.
type Agent struct {
	node    string
	store   claims.Store
	journal Journal
	// execute asks an executor; it is called by many goroutines at once.
	execute func(context.Context, executor.Request) executor.Result
	now     func() time.Time // with a monotonic clock
	jitter  func(time.Duration) time.Duration
	tell    *announcer
	asked   chan func() // what is to be done between two passes
	lease   lease
	lan     *lan

	// The goroutine that makes the passes writes what follows, under the lock; others read it
	// under the lock.
	mu       sync.RWMutex
	config   *Config
	view     *capture.View
	doubt    bool  // the journal may say otherwise than the view; at the start it does
	bulk     bool  // much was read of which little is kept
	unsaid   error // why the journal could not be written last; nil once it could
	revision claims.Revision
	drained  map[string]bool
	living   capture.Liveness
	leases   map[capture.Home]claims.AddressLease
	nics     map[capture.Target]capture.NIC
	looks    map[capture.Target]look
	paces    map[lane]*pace
	running  int // attempts under way
	begun    int // attempts begun since none was under way
	last     capture.Decision
	gone     map[string]bool // who was dead for the last decision
	failure  error           // of the last pass
}

// load reads what the journal has to say, after a start and when it is in doubt. The claims
// are to be read anew with it.
func (a *Agent) load(ctx context.Context) error {
	contents, err := a.journal.Load(ctx)
	if err != nil {
		return err
	}
	now := a.now()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.view, a.doubt, a.revision, a.bulk = capture.NewView(), false, claims.Revision{}, true
	for k, c := range contents.Known {
		a.view.Note(k, c)
	}
	for _, row := range contents.Actions {
		a.view.Restore(row, now)
	}
	for _, m := range contents.Markers {
		a.view.Mark(m)
	}
	a.lan.loaded(contents.Actions, now)
	return nil
}

// doubts takes note of a journal that has failed: what it was asked for may be done all the same.
func (a *Agent) doubts(err error) error {
	a.doubt, a.unsaid = true, err
	return err
}

// configure takes a configuration into use.
func (a *Agent) configure(c *Config) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.config, a.bulk = c, true
	a.lan.configure(c.seats(a.node))
}

func newAgent(node string, c *Config, store claims.Store, j Journal, execute func(context.Context, executor.Request) executor.Result, tell *announcer) *Agent {
	a := &Agent{
		node: node, store: store, journal: j, execute: execute, now: time.Now, jitter: jitter, tell: tell, config: c, view: capture.NewView(), doubt: true,
		drained: map[string]bool{}, leases: map[capture.Home]claims.AddressLease{},
		nics: map[capture.Target]capture.NIC{}, looks: map[capture.Target]look{}, paces: map[lane]*pace{}, asked: make(chan func()),
		lan: newLAN(machine{}, tell),
	}
	a.lan.now = func() time.Time { return a.now() }
	a.lan.alive = func() bool { return a.lease.holds(a.now()) }
	a.lan.held = a.holdsAt
	a.lan.configure(c.seats(node))
	return a
}
