package e2e

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tasuki-io/tasuki/lab"
	"github.com/tasuki-io/tasuki/lab/trial"
)

const surgeClaim = "noderotation.io/surge-claim"

// replica is one of several controllers, told apart by its User-Agent in the audit log.
type replica struct {
	*trial.Controller
	t     *testing.T
	agent string
}

func newReplica(t *testing.T, name string) replica {
	t.Helper()
	way := newProxy(t)
	agent := t.Name() + "/" + name
	way.next = marked{way.next, agent}
	r := replica{startController(t, way.kubeconfig(t)), t, agent}
	t.Cleanup(r.Stop) // which gives the lease back
	return r
}

// writes are all that the replica ever wrote, Events and leases included, refused ones too.
func (r replica) writes() []lab.AuditEvent {
	r.t.Helper()
	all, err := lab.AuditWrites(world.lab.Audit(), trial.User)
	if err != nil {
		r.t.Fatal(err)
	}
	var own []lab.AuditEvent
	for _, e := range all {
		if e.UserAgent == r.agent {
			own = append(own, e)
		}
	}
	return own
}

// pair starts a leader and, once it leads, its standby. It also returns whom the lease names.
func pair(t *testing.T, p *pool) (leader, standby replica, holder string) {
	t.Helper()
	alone(t)
	was := p.holder()
	leader = newReplica(t, "leader")
	holder = p.awaitHolder(was)
	return leader, newReplica(t, "standby"), holder
}

// holder is whom the lease names, empty if nobody.
func (p *pool) holder() string {
	p.t.Helper()
	var lease coordinationv1.Lease
	err := world.client.Get(world.ctx, client.ObjectKey{Namespace: trial.Namespace, Name: "tasuki-controller"}, &lease)
	if client.IgnoreNotFound(err) != nil {
		p.t.Fatal(err)
	}
	if lease.Spec.HolderIdentity == nil {
		return ""
	}
	return *lease.Spec.HolderIdentity
}

// awaitHolder waits until the lease names somebody else, and returns whom.
func (p *pool) awaitHolder(other string) (holder string) {
	p.t.Helper()
	p.await("another holder of the lease", func() string {
		if holder = p.holder(); holder == "" || holder == other {
			return fmt.Sprintf("it names %q", holder)
		}
		return ""
	})
	return holder
}

// slowSurge is a pool of one node, whose surge takes longer to come up than a lease lasts.
func slowSurge(t *testing.T, name string) (p *pool, before []string, node string) {
	t.Helper()
	p = newPool(t, name, ownNodeClass(t, name))
	p.deploy("web", 1, cpu("1"))
	p.awaitSettled(1, 1)
	applyNodeClass(t, name, 25*time.Second)
	return p, p.claimNames(), p.nodes()[0].Name
}

// takenOver checks a success in whose middle the lead has changed.
func (p *pool) takenOver(before []string, by replica) {
	p.t.Helper()
	p.awaitRotated()
	p.awaitSettled(1, 1)
	p.rotated(before[0], before, 1)
	p.oneAttempt(before[0], "")
	if got, want := p.onClaim(before[0], surgeClaim), p.claims()[0].Name; len(got) != 1 || got[0] != want {
		p.t.Errorf("the surge claim was %v, want %s alone", got, want)
	}
	p.oneSuccess()
	p.oneEvent("RotationStarted")
	p.oneEvent("RotationCompleted")
	p.once(by.Controller, "drain started")
	p.once(by.Controller, "rotation complete")
}

// The leader is killed in the middle of a rotation. Its standby was ready all the time and
// had written nothing; it finishes the rotation.
func TestLeaderIsKilled(t *testing.T) {
	needLab(t)
	p, before, node := slowSurge(t, "leader-killed")
	leader, standby, holder := pair(t, p)

	p.govern()
	p.awaitPending(before[0], node)
	for _, w := range standby.writes() {
		t.Errorf("the standby wrote: %s", w)
	}
	leader.Kill()
	killed := time.Now()

	p.awaitHolder(holder)
	t.Logf("the standby led after %s", time.Since(killed).Round(time.Second))
	p.takenOver(before, standby)
}

// The leader is told to stop, as in a rollout. It gives the lease back, so that the standby
// need not wait until it has run out.
func TestLeaderIsStopped(t *testing.T) {
	needLab(t)
	p, before, node := slowSurge(t, "leader-stopped")
	leader, standby, holder := pair(t, p)

	p.govern()
	p.awaitPending(before[0], node)
	leader.Stop()
	if end := leader.End(); end != "exit status 0" {
		t.Errorf("the leader ended with %q, want exit status 0:\n%s", end, leader.Tail())
	}

	p.awaitHolder(holder)
	last := leader.writes()
	released, led := last[len(last)-1], standby.writes()[0]
	if released.Resource != "leases" || led.Resource != "leases" || led.Code != 200 {
		t.Errorf("the last write of the leader and the first of the standby are\n%s\n%s\nwant the lease twice", released, led)
	}
	if took := led.Time.Sub(released.Time); took > 10*time.Second {
		t.Errorf("the standby led %s after the lease was given back, want a few seconds", took)
	} else {
		t.Logf("the standby led %s after the lease was given back", took)
	}
	p.takenOver(before, standby)
}

// r27: the leader stands still in the middle of a surge until its lease is another's. That
// one carries on the same attempt. When the first wakes up, it does no harm, and ends.
func TestR27LeaderIsPaused(t *testing.T) {
	needLab(t)
	p, before, node := slowSurge(t, "r27")
	leader, standby, holder := pair(t, p)

	p.govern()
	p.awaitPending(before[0], node)
	signal := func(sig syscall.Signal) {
		if err := syscall.Kill(leader.PID(), sig); err != nil {
			t.Fatal(err)
		}
	}
	signal(syscall.SIGSTOP)
	time.Sleep(time.Second) // what is on its way arrives
	wrote := len(leader.writes())
	p.awaitHolder(holder)
	signal(syscall.SIGCONT)

	p.await("the end of the first leader", func() string {
		if leader.End() == "" {
			return "it runs"
		}
		return ""
	})
	if end := leader.End(); end != "exit status 1" {
		t.Errorf("the first leader ended with %q, want exit status 1:\n%s", end, leader.Tail())
	}
	p.takenOver(before, standby)
	// It may still tell what it had done or seen: an Event does no harm.
	for _, w := range trial.OfRotation(leader.writes()[wrote:]) {
		if w.Code < 300 {
			t.Errorf("the first leader still wrote: %s", w)
		}
	}
}
