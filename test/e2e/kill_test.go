package e2e

import (
	"fmt"
	"testing"
	"time"

	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/tasuki-io/tasuki/api/v1alpha1"
	"github.com/tasuki-io/tasuki/lab/trial"
)

// death is the end of a controller at one of its writes on a pool.
type death struct {
	write int  // counted from 1
	lost  bool // the write does not arrive; otherwise its answer does not
	pool  *pool
}

func (d death) String() string { return fmt.Sprintf("write %d, %s lost", d.write, what(d.lost)) }

// deaths prepares a pool of one node and one pod for every write from first to last.
func deaths(t *testing.T, prefix string, first, last int, changes ...func(*karpv1.NodePool)) []death {
	t.Helper()
	var all []death
	for write := first; write <= last; write++ {
		for _, lost := range []bool{true, false} {
			p := &pool{t: t, name: fmt.Sprintf("%s-%02d-%s", prefix, write, what(lost))}
			t.Cleanup(p.remove)
			p.create(nodePoolOf(p.name, changes...))
			p.deploy("web", 1, cpu("1"))
			all = append(all, death{write, lost, p})
		}
	}
	for _, d := range all {
		d.pool.awaitSettled(1, 1)
	}
	return all
}

// mortal is a controller that can be killed at any of its writes.
type mortal struct {
	way        *proxy
	kubeconfig string
	now        *trial.Controller
}

// newMortal starts it. It is alone: the shared controller would do its work.
func newMortal(t *testing.T) *mortal {
	t.Helper()
	if err := stopController(); err != nil {
		t.Fatal(err)
	}
	m := &mortal{way: newProxy(t)}
	m.kubeconfig = m.way.kubeconfig(t)
	m.start(t)
	t.Cleanup(func() { m.now.Kill() })
	return m
}

func (m *mortal) start(t *testing.T) {
	t.Helper()
	// With the lease of a killed one, each successor would wait 15 s.
	m.now = startController(t, m.kubeconfig, "--leader-elect=false")
}

// dies governs the pool, waits for the death and starts a successor. It returns when the
// attempt had begun by then, empty if it had not, and false if the rotation was over
// before the death.
func (m *mortal) dies(p *pool, d death, changes ...func(*v1alpha1.RotationPolicy)) (started string, died bool) {
	p.t.Helper()
	claim := p.claimNames()[0]
	cut := m.way.cutAt(p.name, d.write, d.lost, m.now.Kill)
	p.govern(changes...)
	if !p.awaitDeath(cut) {
		p.t.Logf("it was over after %d writes", m.way.heal())
		return "", false
	}
	p.t.Logf("killed at %s", cut.what)
	for _, c := range p.claims() {
		if c.Name == claim {
			started = c.Annotations[startedAt]
		}
	}
	m.way.heal()
	m.start(p.t)
	return started, true
}

// r18: the controller is killed at any one of its writes, before it arrives or before its
// answer does. The next one finishes the same rotation, at the same price.
func TestR18KilledAtAnyWrite(t *testing.T) {
	needLab(t)
	m := newMortal(t)
	for _, d := range deaths(t, "r18", 1, 12) {
		t.Run(d.String(), func(t *testing.T) {
			p := d.pool.in(t)
			before := p.claimNames()
			started, died := m.dies(p, d)
			// One write may be saved by an observation that came late.
			if !died && d.write < 12 {
				t.Errorf("there is no write %d: the test no longer sees the rotation", d.write)
			}
			p.awaitRotated()
			p.awaitSettled(1, 1)
			p.rotated(before[0], before, 1)
			p.oneAttempt(before[0], started)
			p.tellWrites()
			if ends := p.onPool(lastRotationAt); len(ends) != 1 {
				t.Errorf("it ended at %v: want one instant", ends)
			}
			if failures := p.onPool(lastFailureAt); len(failures) > 0 {
				t.Errorf("it failed at %v", failures)
			}
			for _, reason := range []string{"RotationStarted", "RotationCompleted"} {
				if es := p.events(reason); len(es) > 1 {
					t.Errorf("%d Events %s: want at most one", len(es), reason)
				}
			}
		})
	}
}

// r18, r14: the controller is killed while it rolls a surge back that never came. The
// next one finishes the rollback, and the failure counts once.
func TestR18KilledDuringRollback(t *testing.T) {
	needLab(t)
	m := newMortal(t)
	// The first four writes are those of any attempt: anchor, state, cordon, placeholder.
	all := deaths(t, "r18-rollback", 5, 10, ownNodeClass(t, "r18-rollback"))
	stall(t, "r18-rollback")
	for _, d := range all {
		t.Run(d.String(), func(t *testing.T) {
			p := d.pool.in(t)
			claim, node := p.claimNames()[0], p.nodes()[0].Name
			began := time.Now()
			started, died := m.dies(p, d, readyWithin(10*time.Second))
			if !died {
				t.Errorf("there is no write %d: the test no longer sees the rollback", d.write)
			}
			p.awaitFailed(claim)
			p.rolledBack(claim, began)
			p.oneAttempt(claim, started)
			p.tellWrites()
			if n := p.node(node); len(ourMarks(n.Annotations)) > 0 || n.Spec.Unschedulable {
				t.Errorf("Node %s was not given back: unschedulable=%t %v", node, n.Spec.Unschedulable, ourMarks(n.Annotations))
			}
			if es := p.events("RotationFailed"); len(es) > 1 {
				t.Errorf("%d Events RotationFailed: want at most one", len(es))
			}
		})
	}
}

func what(lost bool) string {
	if lost {
		return "request"
	}
	return "answer"
}

// awaitDeath waits until the controller is dead, and returns false if the rotation, or its
// rollback, is over before.
func (p *pool) awaitDeath(c *cut) (dead bool) {
	p.t.Helper()
	p.await("the death of the controller", func() string {
		a := p.nodePool().Annotations
		over := a[activeRotation] == "" && (a[lastRotationAt] != "" || a[lastFailureAt] != "")
		wait := time.Duration(0)
		if over {
			wait = 2 * time.Second // the last write may be on its way to be cut
		}
		select {
		case <-c.done:
			dead = true
		case <-time.After(wait):
		}
		if dead || over {
			return ""
		}
		return "it lives, and the rotation is not over"
	})
	return dead
}

// tellWrites logs what both controllers wrote, for whoever wonders what a number means.
func (p *pool) tellWrites() {
	p.t.Helper()
	for i, w := range p.writes(time.Time{}) {
		p.t.Logf("%d %s", i+1, w)
	}
}

// oneAttempt checks that all there ever was on the pool was one attempt on this claim,
// begun once. Started is when it had begun at the death, empty if it had not.
func (p *pool) oneAttempt(claim, started string) {
	p.t.Helper()
	if anchors := p.onPool(activeRotation); len(anchors) != 1 || anchors[0] != claim {
		p.t.Errorf("anchors %v, want %s alone", anchors, claim)
	}
	if starts := p.onClaim(claim, startedAt); len(starts) != 1 || started != "" && starts[0] != started {
		p.t.Errorf("the attempt began at %v, and at %q when the controller died: want one instant", starts, started)
	}
}
