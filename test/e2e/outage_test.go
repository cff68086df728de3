package e2e

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/tasuki-io/tasuki/lab"
	"github.com/tasuki-io/tasuki/lab/trial"
)

// outage is how long the API server is away.
const outage = 60 * time.Second

// r20: the API server is down for a minute while one pool drains and another waits for its
// surge. The leader cannot hold its lease that long and ends, as it must. Its node starts it
// again, and both rotations go on.
func TestR20APIServerIsDownForAMinute(t *testing.T) {
	needLab(t)
	alone(t)
	k := newKubelet(t)
	draining, pending := newPool(t, "r20-drain"), newPool(t, "r20-pending")
	both := []*pool{draining, pending}
	webs, before := map[*pool]*appsv1.Deployment{}, map[*pool][]string{}
	for _, p := range both {
		webs[p] = p.deploy("web", 1, cpu("1"))
	}
	draining.keep(webs[draining])
	for _, p := range both {
		p.awaitSettled(1, 1)
		before[p] = p.claimNames()
	}

	draining.govern()
	draining.await("a drain that its budget holds", func() string {
		if draining.claim(before[draining][0]).DeletionTimestamp == nil {
			return "the NodeClaim is not being deleted"
		}
		return ""
	})
	resume := pauseKarpenter(t)
	pending.govern()
	pending.await("a placeholder", func() string {
		if len(pending.placeholders()) == 0 {
			return "none"
		}
		return ""
	})
	down := stopAPIServer(t)
	resume()
	draining.awaitLab()
	draining.lift(webs[draining].Name)

	for _, p := range both {
		p.awaitRotated()
		p.awaitSettled(1, 1)
	}
	world.history.excuse() // what the API server cannot tell any more, nobody could have done
	for _, p := range both {
		p.rotated(before[p][0], before[p], 1)
		p.oneAttempt(before[p][0], "")
		p.oneSuccess()
		p.oneEvent("RotationStarted")
		p.oneEvent("RotationCompleted")
	}
	// Once because of the lease, and once whenever nobody has answered for half a minute.
	ends := k.ends()
	if most := 1 + int(down/(30*time.Second)); len(ends) == 0 || len(ends) > most {
		t.Errorf("the controller ended %d times in %s, want 1 to %d:\n%s", len(ends), down, most, strings.Join(ends, "\n"))
	}
	for _, end := range ends {
		if !strings.Contains(end, "leader election lost") && !strings.Contains(end, "preflight: no answer") {
			t.Errorf("the controller ended because of something else:\n%s", end)
		}
	}
}

// pauseKarpenter stops Karpenter until resume is called or the test ends.
func pauseKarpenter(t *testing.T) (resume func()) {
	t.Helper()
	signal := func(sig syscall.Signal) {
		if err := world.lab.Signal(lab.Karpenter, sig); err != nil {
			t.Error(err)
		}
	}
	signal(syscall.SIGSTOP)
	resume = func() { signal(syscall.SIGCONT) }
	t.Cleanup(resume)
	return resume
}

// stopAPIServer stops the API server for the time of an outage, and returns how long it was
// away.
func stopAPIServer(t *testing.T) time.Duration {
	t.Helper()
	begun := time.Now()
	if err := world.lab.Stop(lab.APIServer); err != nil {
		t.Fatal(err)
	}
	time.Sleep(outage)
	if err := world.lab.Start(world.ctx, lab.APIServer); err != nil {
		t.Fatal(err)
	}
	return time.Since(begun)
}

// awaitLab waits until all components of the lab work.
func (p *pool) awaitLab() {
	p.t.Helper()
	p.await("the lab's components", func() string {
		for _, s := range world.lab.Status(world.ctx) {
			if s.State != lab.Ready {
				return fmt.Sprintf("%s is %s: %s", s.Name, s.State, s.Reason)
			}
		}
		return ""
	})
}

// kubelet keeps a controller running in the way in which its namesake would.
type kubelet struct {
	mu  sync.Mutex
	all []string // how it has ended, each time
}

// newKubelet returns when the controller is ready.
func newKubelet(t *testing.T) *kubelet {
	t.Helper()
	kubeconfig, err := world.lab.KubeconfigFor(world.ctx, trial.Namespace, trial.ServiceAccount)
	if err != nil {
		t.Fatal(err)
	}
	k, ready := &kubelet{}, make(chan struct{})
	ctx, stop := context.WithCancel(world.ctx)
	var running sync.WaitGroup
	running.Go(func() { k.run(ctx, kubeconfig, ready) })
	t.Cleanup(func() { stop(); running.Wait() })
	select {
	case <-ready:
	case <-time.After(patience):
		t.Fatal("the controller is not ready")
	}
	return k
}

func (k *kubelet) run(ctx context.Context, kubeconfig string, ready chan<- struct{}) {
	for pause := 10 * time.Second; ctx.Err() == nil; pause *= 2 {
		c, err := trial.StartController(ctx, world.lab, filepath.Join(world.dir, "tasuki-controller"), world.dir, kubeconfig)
		if err != nil {
			k.ended(err.Error())
		} else {
			if ready != nil {
				close(ready)
				ready = nil
			}
			select {
			case <-ctx.Done():
				c.Stop()
				return
			case <-c.Done():
				k.ended(c.End() + "\n" + c.Tail())
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

func (k *kubelet) ended(how string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.all = append(k.all, how)
}

func (k *kubelet) ends() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.all
}
