package agent

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/tasuki-io/tasuki/internal/capture"
	"github.com/tasuki-io/tasuki/internal/claims"
	"github.com/tasuki-io/tasuki/internal/executor"
	"github.com/tasuki-io/tasuki/internal/journal"
)

// What the simulation has found, each in the fewest steps.

// simTorn is a journal that does one thing, and says that it has not.
type simTorn struct {
	*simDisk
	left map[string]int // by what is done
}

func (d *simTorn) torn(what string, err error) error {
	if d.left[what]--; err == nil && d.left[what] == 0 {
		return errors.New("the disk is full")
	}
	return err
}

func (d *simTorn) Apply(ctx context.Context, p *capture.Plan, now time.Time) (journal.Receipt, error) {
	r, err := d.simDisk.Apply(ctx, p, now)
	if err := d.torn("apply", err); err != nil {
		return journal.Receipt{}, err
	}
	return r, nil
}

func (d *simTorn) Begin(ctx context.Context, id string, now, deadline time.Time) (capture.Action, capture.Stale, error) {
	a, stale, err := d.simDisk.Begin(ctx, id, now, deadline)
	return a, stale, d.torn("begin", err)
}

func (d *simTorn) End(ctx context.Context, begun capture.Action, e journal.Ending, now time.Time) (capture.Action, error) {
	a, err := d.simDisk.End(ctx, begun, e, now)
	return a, d.torn("end", err)
}

// A journal that fails leaves the agent not knowing what is in it. It is read again, so that
// nothing that it holds is forgotten, and no attempt is taken for running that has ended (seed
// 5, when the journal began to lie).
func TestAJournalThatFailsIsReadAgain(t *testing.T) {
	for _, what := range []string{"apply", "begin", "end"} {
		t.Run(what, func(t *testing.T) {
			p := newPlay(t, 1, 1)
			a := p.node("a")
			p.configured(func(c *simConfig) { c.policy.approval = what == "apply" })
			a.up()
			p.until("a", "", "changes")
			a.paused = false
			a.loop.journal = &simTorn{&a.disk, map[string]int{what: 1}}
			p.settles()
			if what != "apply" {
				p.isOn("eni-a")
			}
			p.store.drain("a", true)
			p.settles()
			p.isOn("")
			if len(a.disk.markers) > 0 {
				t.Errorf("the markers %v are left", a.disk.markers)
			}
			for id, row := range a.disk.rows {
				if row.State.Open() {
					t.Errorf("%s is left %s", id, row.State)
				}
			}
		})
	}
}

// What an attempt was refused because the store was restored, and had lost its epoch, is not
// stale: another may raise the line to just that epoch again (seed 20340).
func TestALostEpochMakesNothingStale(t *testing.T) {
	p := newPlay(t, 2, 1)
	p.settles()
	p.store.drain("a", true)
	p.goOn(p.node("a"), 1000)
	p.until("b", assign("b", "2"), "claim")
	writes := len(p.store.history)
	for i, w := range p.store.history {
		if w.claims[simKey(simAddr(1))].Epoch == 2 {
			writes = i
		}
	}
	p.store.restore(writes) // to before the bump
	b := p.node("b")
	b.paused = false
	for p.row("b", assign("b", "2")).State == capture.Running {
		p.goOn(b, 1)
	}
	if row := p.row("b", assign("b", "2")); row.State != capture.Failed || row.Attempts != 0 || !strings.Contains(row.Reason, "has lost epoch 2") {
		t.Errorf("it is %s after %d attempts: %s", row.State, row.Attempts, row.Reason)
	}
	p.store.drain("a", true)
	p.settles()
	p.isOn("eni-b")
}

// The node was taken out of its pool, and the store has lost what the node knows. It says so to
// the store itself, as nobody else may, and still gives the address up (seed 10).
func TestWhatIsGivenUpIsReseededToo(t *testing.T) {
	p := newPlay(t, 1, 1)
	p.settles()
	p.configured(func(c *simConfig) { c.pools = 0 })
	p.store.restore(0)
	p.settles()
	p.isOn("")
	p.claimed(capture.Claim{Epoch: 2, Holder: capture.None})
	if len(p.cloud.forwards) > 0 {
		t.Errorf("forwarding %v", p.cloud.forwards)
	}
}

// An attempt that was given up has not ended. When its end is heard, another of the same action
// is under way, and still counts for the run (seed 55).
func TestAnAttemptThatWasGivenUpEndsAlone(t *testing.T) {
	p := newPlay(t, 1, 1)
	a := p.node("a")
	a.up()
	id := assign("a", "1")
	p.until("a", id, "executed")
	var first *simProc
	for _, proc := range a.procs {
		if proc.try == (simTry{id, 1}) {
			first = proc
		}
	}
	a.paused = false
	p.clock += capture.ExecutorTime + time.Second
	for second := false; !second; {
		for _, proc := range a.procs {
			second = second || proc.try == (simTry{id, 2}) && proc.at == "execute"
			if proc != first && a.runnable(proc) && !second {
				p.resume(proc)
				break
			}
		}
	}
	for len(a.told) == 0 {
		p.resume(first)
	}
	for _, proc := range a.procs {
		if proc.isLoop {
			for len(a.told) > 0 || proc.at != "wait" {
				p.resume(proc)
			}
		}
	}
	if p.told("an ending was not heard") {
		t.Error("that it was given up is taken for a fault")
	}
	if a.loop.running != 1 || a.loop.begun < 2 {
		t.Errorf("%d attempts are under way, and the run has begun %d; want one, and those from before", a.loop.running, a.loop.begun)
	}
}

// An attempt that has not come to ask the provider waits like any other that has failed: a store
// that does not answer is not asked all the time.
func TestAnAttemptThatWasNotAskedWaits(t *testing.T) {
	p := newPlay(t, 1, 1)
	p.settles()
	a, now := p.node("a").loop, p.node("a").now()
	row := capture.Action{Attempts: 1}
	for _, end := range []ending{
		{Ending: journal.Ending{State: capture.Failed, Unasked: true}},
		{Ending: journal.Ending{State: capture.Failed, Unasked: true}, permanent: true},
	} {
		if got := a.again(row, end, now).Sub(now); got < time.Second/2 {
			t.Errorf("it is repeated after %s", got)
		}
	}
}

// A person asks an agent that has not read its journal yet.
func TestAPersonIsAnsweredBeforeTheJournalIsRead(t *testing.T) {
	p := newPlay(t, 1, 1)
	n := p.node("a")
	a := newAgent("a", p.inForce, simHandle{&p.store, n}, &n.disk, n.execute, n.tell)
	a.record(capture.Action{Token: capture.Token{Verb: capture.Assign, Key: simKey(simAddr(1)), Epoch: 1, Holder: "a"}, State: capture.Approved})
	if got := a.captures(); len(got) != 1 || got[0].State != PhaseUnknown {
		t.Errorf("captures %+v", got)
	}
	if _, err := a.explain(netip.MustParseAddr("10.0.0.1")); err != nil {
		t.Error(err)
	}
}

// A rehearsal asks the provider whether it would, and changes nothing.
func TestARehearsalConsumesNothing(t *testing.T) {
	p := newPlay(t, 1, 1)
	p.configured(func(c *simConfig) { c.policy.closed = "dry" })
	p.settles()
	writes := p.node("a").disk.writes
	before := p.row("a", assign("a", "1"))
	if r := p.rehearsed("a", before); r.Outcome != executor.OutcomeDone || len(r.Missing) != 1 || r.Missing[0].Rule != capture.RuleDryRunOnly {
		t.Errorf("%+v", r)
	}
	if p.isOn(""); p.node("a").disk.writes != writes || p.cloud.changing > 0 {
		t.Error("it has changed something")
	}
	p.configured(func(c *simConfig) { c.policy.closed = "" })
	p.settles()
	if row := p.row("a", assign("a", "1")); row.State != capture.Succeeded || row.Attempts != 1 {
		t.Errorf("then it is %s after %d attempts", row.State, row.Attempts)
	}
}

func (p *play) rehearsed(node string, row capture.Action) (r Rehearsal) {
	n := p.node(node)
	n.start(func() { r = n.loop.rehearse(context.Background(), row) })
	p.goOn(n, 1000)
	return r
}

// The journal of a host knows of an epoch that its agent has not heard of yet: the row is stale
// there, and nobody is asked.
func TestARowThatIsStaleInTheJournalDoesNotRun(t *testing.T) {
	p := newPlay(t, 1, 1)
	a := p.node("a")
	a.up()
	p.until("a", "", "begin")
	a.paused = false
	k := simKey(simAddr(1))
	current := map[capture.Key]capture.Claim{k: {Epoch: 2, Holder: "b"}}
	if err := a.disk.Note(t.Context(), current); err != nil {
		t.Fatal(err)
	}
	p.store.claims[k] = current[k]
	p.store.wrote(simChange{claims: current})
	p.configured(func(c *simConfig) { c.drain["a"] = true })
	p.settles()
	p.called(assigns)
	if row := p.row("a", assign("a", "1")); row.State != capture.Skipped || row.Attempts != 0 || p.told("action begins "+assign("a", "1")) {
		t.Errorf("it is %s after %d attempts", row.State, row.Attempts)
	}
}

// The store can be watched, and does not say who holds now. Nothing is begun, and nobody asks it
// all the time.
func TestAStoreThatDoesNotAnswerLetsNothingThrough(t *testing.T) {
	p := newPlay(t, 1, 1)
	a := p.node("a")
	a.up()
	p.until("a", "", "wait")
	a.paused = false
	a.loop.store = simDeaf{a.loop.store.(simHandle)}
	for range 1000 {
		if p.goOn(a, 1) == 0 {
			break
		}
	}
	p.called(nil)
	if row := p.row("a", assign("a", "1")); row.State != capture.Failed || row.Attempts != 0 || !strings.Contains(row.Reason, "did not say who holds") {
		t.Errorf("it is %s after %d attempts: %s", row.State, row.Attempts, row.Reason)
	}
}

// The store does not answer at all. Nothing is decided on what was once read of it.
func TestNothingIsDecidedWithoutTheStore(t *testing.T) {
	p := newPlay(t, 1, 1)
	p.settles()
	a := p.node("a")
	events := p.events
	a.loop.store = simDown{a.loop.store.(simHandle)}
	p.configured(func(c *simConfig) { c.drain["a"] = true })
	p.goOn(a, 1000)
	if p.events != events || a.loop.failure == nil {
		t.Errorf("%d writes and calls, and the pass has failed with %v", p.events-events, a.loop.failure)
	}
}

// simDown tells of no changes.
type simDown struct{ simHandle }

func (simDown) Changes(context.Context, claims.Revision) (claims.Changes, error) {
	return claims.Changes{}, errSim
}

// The one thing that is due is so in a second. A pass is made then, though nothing has happened.
func TestAPassIsMadeWhenABackoffIsOver(t *testing.T) {
	p := newPlay(t, 1, 1)
	p.configured(func(c *simConfig) { c.policy.budget = 1 })
	throttled := false
	p.cloud.answer = func(q executor.Request) *executor.Result {
		if throttled || q.Verb != capture.Assign {
			return nil
		}
		throttled = true
		return &executor.Result{Outcome: executor.OutcomeThrottled}
	}
	a := p.node("a")
	a.up()
	p.goOn(a, 1000)
	p.isOn("")
	p.tick()
	p.goOn(a, 1000)
	if p.isOn("eni-a"); p.clock != time.Second {
		t.Errorf("after %s", p.clock)
	}
}

// A provider that moves an address in two parts is asked twice, in one attempt.
func TestAMoveInTwoPartsIsOneAttempt(t *testing.T) {
	p := newPlay(t, 2, 1)
	p.config.provider = "azure"
	p.write()
	p.settles()
	p.store.drain("a", true)
	p.settles()
	p.isOn("eni-b")
	if row := p.row("b", "mobility:p:azure:eni-b:assign-secondary-ip:10.0.0.1:epoch:2"); row.State != capture.Succeeded || row.Attempts != 1 {
		t.Errorf("it is %s after %d attempts", row.State, row.Attempts)
	}
}

// simDeaf answers everything but who holds now.
type simDeaf struct{ simHandle }

func (simDeaf) Claim(context.Context, capture.Key) (capture.Claim, error) {
	return capture.Claim{}, errSim
}

// Two actions are begun, and one has ended. The run goes on, and may begin no third one.
func TestARunLastsUntilItsLastAttemptHasEnded(t *testing.T) {
	p := newPlay(t, 1, 2)
	p.configured(func(c *simConfig) { c.policy.budget = 2 })
	a := p.node("a")
	a.up()
	p.until("a", assign("a", "1"), "execute")
	a.paused = false
	var slow *simProc
	for _, proc := range a.procs {
		if proc.try.id == assign("a", "1") {
			slow = proc
		}
	}
	for went := true; went; {
		went = false
		for _, proc := range a.procs {
			if proc != slow && a.runnable(proc) {
				p.resume(proc)
				went = true
				break
			}
		}
	}
	if len(p.cloud.calls) != 1 || a.loop.begun != 2 {
		t.Errorf("%d calls were made, and the run has begun %d, while one is under way; want one, and two", len(p.cloud.calls), a.loop.begun)
	}
	p.settles()
	if len(p.cloud.calls) != 3 {
		t.Errorf("%d calls in the end, want all three", len(p.cloud.calls))
	}
}

// Many addresses are due at once. No more executors are started than run at once.
func TestAHostIsNotOverrun(t *testing.T) {
	p := newPlay(t, 1, 2*abreast)
	a := p.node("a")
	a.up()
	most := 0
	for p.goOn(a, 1) > 0 {
		most = max(most, a.loop.running)
	}
	if most != abreast || len(p.cloud.on) != 2*abreast {
		t.Errorf("%d at once, and %d addresses are there in the end", most, len(p.cloud.on))
	}
}

// A look that takes long tells nothing of what was done meanwhile, and there is one at a time.
func TestALookIsAsOldAsItsBegin(t *testing.T) {
	p := newPlay(t, 1, 1)
	p.settles()
	a := p.node("a")
	p.looks("a")
	p.until("a", "", "described")
	began := a.now()
	a.paused = false
	var look *simProc
	for _, proc := range a.procs {
		if proc.at == "described" {
			look = proc
		}
	}
	passes := func() {
		for _, proc := range a.procs {
			for proc.isLoop && a.runnable(proc) {
				p.resume(proc)
			}
		}
	}
	p.clock += 2 * lookRarely
	a.ask(func(context.Context) {})
	if passes(); len(a.procs) != 3 {
		t.Errorf("%d coroutines, want the passes, who renews, and one look", len(a.procs))
	}
	p.resume(look)
	passes()
	for _, nic := range a.loop.nics {
		if nic.At.After(began) {
			t.Errorf("the look is of %s after its begin", nic.At.Sub(began))
		}
	}
}

// What is stale is not even rehearsed.
func TestARehearsalOfWhatIsStaleAsksNobody(t *testing.T) {
	p := newPlay(t, 2, 1)
	p.configured(func(c *simConfig) { c.policy.closed = "dry" })
	p.settles()
	row := p.row("a", assign("a", "1"))
	p.store.drain("a", true)
	p.settles()
	if r := p.rehearsed("a", row); r.Stale == "" || r.Outcome != "" {
		t.Errorf("%+v", r)
	}
}

// A person does not want to wait for the backoff of what has failed.
func TestAPersonEndsABackoff(t *testing.T) {
	p := newPlay(t, 1, 1)
	fails := true
	p.cloud.answer = func(q executor.Request) *executor.Result {
		if fails && q.Verb == capture.Assign {
			return &executor.Result{Outcome: executor.OutcomePermanent}
		}
		return nil
	}
	a := p.node("a")
	a.up()
	p.goOn(a, 1000)
	fails = false
	if p.isOn(""); p.held("a", assign("a", "1")).Wait != capture.WaitBackoff {
		t.Error("it does not wait")
	}
	a.hasten()
	p.goOn(a, 1000)
	p.isOn("eni-a")
}
