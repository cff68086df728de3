package agent

import (
	"testing"

	"github.com/tasuki-io/tasuki/internal/capture"
	"github.com/tasuki-io/tasuki/internal/executor"
)

// undone is a world in which a holds at epoch 3 what it has released at epoch 2, and is told to
// undo the release while the policy allows none.
func undone(t *testing.T) *play {
	p := newPlay(t, 1, 1)
	for _, drained := range []bool{false, true, false} {
		p.store.drain("a", drained)
		p.settles()
	}
	p.configured(func(c *simConfig) { c.policy.closed = "undo" })
	p.node("a").undo(unassign("a", "2"))
	p.goOn(p.node("a"), 1000)
	p.called(moves, assign("a", "1"), unassign("a", "2"), assign("a", "3"))
	return p
}

// An undo waits for a policy that allows it, runs once, and leaves what it undid rolled back.
func TestAnUndoRunsOnceWhenThePolicyAllowsIt(t *testing.T) {
	p := undone(t)
	if h := p.held("a", assign("a", "3:undo")); h.Block.Rule != capture.RuleAllowUndo {
		t.Errorf("held: %+v", h)
	}
	p.configured(func(c *simConfig) { c.policy.closed = "" })
	p.settles()
	p.called(moves, assign("a", "1"), unassign("a", "2"), assign("a", "3"), assign("a", "3:undo"))
	if row := p.row("a", unassign("a", "2")); row.State != capture.RolledBack {
		t.Errorf("what it undid is %s", row.State)
	}
}

// An undo that nobody has carried out before the epoch rose is skipped like any other row.
func TestAnUndoAtAnOldEpochIsSkipped(t *testing.T) {
	p := undone(t)
	p.store.drain("a", true)
	p.configured(func(c *simConfig) { c.policy.closed = "" })
	p.settles()
	p.called(moves, assign("a", "1"), unassign("a", "2"), assign("a", "3"), unassign("a", "4"))
	if row := p.row("a", assign("a", "3:undo")); row.State != capture.Skipped || p.row("a", unassign("a", "2")).State != capture.Succeeded {
		t.Errorf("the undo is %s", row.State)
	}
}

// An undo that the gate would refuse is not even planned: what a holds is not taken from it.
func TestAnUndoPassesTheGate(t *testing.T) {
	p := newPlay(t, 1, 1)
	p.settles()
	rows := len(p.node("a").disk.rows)
	p.node("a").undo(assign("a", "1"))
	p.settles()
	if got := len(p.node("a").disk.rows); got != rows {
		t.Errorf("%d rows, want the %d from before", got, rows)
	}
	p.isOn("eni-a")
}

// An assignment was asked for twice, as the first answer was lost. It was undone, the pool went,
// and then the provider carries the first one out. A restart has not forgotten that it may, and
// the NIC is looked at although no pool has it any more.
func TestALateCallOfAPoolThatIsGoneIsReleased(t *testing.T) {
	p := newPlay(t, 1, 1)
	var late []executor.Request
	p.cloud.answer = func(q executor.Request) *executor.Result {
		if q.Verb != capture.Assign || q.ReadFirst {
			return nil
		}
		late = append(late, q)
		return &executor.Result{Outcome: executor.OutcomeUnknown}
	}
	p.settles()
	if row := p.row("a", assign("a", "1")); row.State != capture.Succeeded || row.Unanswered != 1 || len(late) != 1 {
		t.Fatalf("the assignment: %+v", row)
	}
	p.store.drain("a", true)
	p.settles()
	p.isOn("")
	p.node("a").crash()
	p.configured(func(c *simConfig) { c.pools = 0 })
	p.settles()
	p.cloud.do(late[0])
	p.settles()
	p.isOn("")
	p.called(releases, unassign("a", "2"), unassign("a", "2:repair:1"))
}
