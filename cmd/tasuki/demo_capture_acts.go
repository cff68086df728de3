package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"syscall"

	"github.com/tasuki-io/tasuki/internal/agent"
	"github.com/tasuki-io/tasuki/internal/capture"
	"github.com/tasuki-io/tasuki/internal/executor/executortest"
)

// wholePlay is the demo; its last act waits until a provider has to show what it has done.
var wholePlay = []act{
	{"act 1", "A takes the addresses", (*captureDemo).take},
	{"act 2", "A is drained: B takes over, and only then A lets go", (*captureDemo).handOver},
	{"act 3", "A is paused while its seize is due, and is fenced when it resumes", (*captureDemo).fence},
	{"act 4", "A is paused while its seize is at the provider: it lands late, and B repairs", (*captureDemo).repair},
}

func (d *captureDemo) take(ctx context.Context) error {
	for _, a := range d.site.agents {
		if err := a.start(ctx); err != nil {
			return err
		}
		d.say("setup", "the agent of %s runs, with a journal of its own", a.node)
	}
	return d.held(ctx, nodeA)
}

func (d *captureDemo) handOver(ctx context.Context) error {
	a := d.site.agent(nodeA)
	if err := d.drain(ctx, nodeA, nodeA, true); err != nil {
		return err
	}
	if err := d.held(ctx, nodeB); err != nil {
		return err
	}
	err := d.await(ctx, "A has released everything", func() bool {
		list, err := a.client.Actions(ctx, nil)
		return err == nil && len(list) == 0 && !d.site.ec2.NIC(nicOf(nodeA)).Forwards
	})
	if err == nil {
		d.say("act 2", "A has nothing left, and forwards no more: the host may be turned off")
	}
	return err
}

// fence lets A back and has EC2 throttle it, so that its seize is due, and waits.
func (d *captureDemo) fence(ctx context.Context) error {
	s, a := d.site, d.site.agent(nodeA)
	s.ec2.Inject(executortest.Rule{Match: assignsTo(nodeA), Fault: executortest.Throttled})
	d.say("EC2", "throttles every assignment to %s from now on", nicOf(nodeA))
	if err := d.drain(ctx, nodeA, nodeA, false); err != nil {
		return err
	}
	err := d.await(ctx, "A waits for EC2 with its seizes due", func() bool {
		list, err := a.client.Actions(ctx, nil)
		waiting := 0
		for _, action := range list {
			if action.Verb == capture.Assign && (action.Wait == capture.WaitBackoff || action.Wait == capture.WaitPace) && action.Attempts >= 2 {
				waiting++
			}
		}
		return err == nil && waiting == len(mobile)
	})
	if err != nil {
		return err
	}
	fenced := s.count(nodeA, fencedAssign)
	if err := d.seize(ctx); err != nil {
		return err
	}
	s.ec2.Heal()
	d.say("EC2", "throttles no more: what A sends now would succeed")
	if err := a.signal(syscall.SIGCONT); err != nil {
		return err
	}
	d.say("act 3", "A resumes (SIGCONT), with its seizes due")
	err = d.await(ctx, "the gate has refused A's seizes", func() bool { return s.count(nodeA, fencedAssign) >= fenced+len(mobile) })
	if err != nil {
		return err
	}
	return d.held(ctx, nodeB)
}

func assignsTo(node string) func(executortest.Call) bool {
	return func(c executortest.Call) bool {
		return c.Action == "AssignPrivateIpAddresses" && c.NIC == nicOf(node)
	}
}

func fencedAssign(l logLine) bool { return l.Message == saidFenced && l.Verb == string(capture.Assign) }

// seize stops A and makes B the holder, as an operator would through B's agent.
func (d *captureDemo) seize(ctx context.Context) error {
	if err := d.site.agent(nodeA).signal(syscall.SIGSTOP); err != nil {
		return err
	}
	d.say(nodeA, "is stopped (SIGSTOP): it does not know what happens from here on")
	if err := d.drain(ctx, nodeB, nodeA, true); err != nil {
		return err
	}
	return d.held(ctx, nodeB)
}

// repair holds A's seizes at the provider, while B seizes.
func (d *captureDemo) repair(ctx context.Context) error {
	s, b := d.site, d.site.agent(nodeB)
	if err := d.settled(ctx); err != nil {
		return err
	}
	b.kill()
	d.say("act 4", "B is killed (SIGKILL) and started again: what it has to know is in its journal and the claims")
	if err := b.start(ctx); err != nil {
		return err
	}
	landed, drifted, seized := s.landed(), s.count(nodeB, drift), s.count(nodeB, assigned)
	arrived, release := d.hold()
	if err := d.drain(ctx, nodeB, nodeA, false); err != nil {
		return err
	}
	if err := d.await(ctx, "A's seizes are at EC2", func() bool { return arrived() == len(mobile) }); err != nil {
		return err
	}
	d.say("EC2", "has got A's seizes, and holds them")
	if err := d.seize(ctx); err != nil {
		return err
	}
	// B's own have to come first: B has had the addresses on its NIC all along.
	if err := d.await(ctx, "B has seized", func() bool { return s.count(nodeB, assigned) >= seized+len(mobile) }); err != nil {
		return err
	}
	release()
	err := d.await(ctx, "A's late seizes have landed", func() bool { return s.landed() >= landed+len(mobile) })
	if err != nil {
		return err
	}
	d.say("EC2", "carries A's late seizes out: the addresses go to %s, although B is the holder. No gate could stop that", nicOf(nodeA))
	if err := s.agent(nodeA).signal(syscall.SIGCONT); err != nil {
		return err
	}
	d.say("act 4", "A resumes (SIGCONT); B looks at its NIC every 5s, and gives EC2 half a minute to show what B has done")
	if err := d.await(ctx, "B has repaired the drift", func() bool { return s.count(nodeB, drift) >= drifted+len(mobile) }); err != nil {
		return err
	}
	return d.held(ctx, nodeB)
}

func assigned(l logLine) bool { return l.Message == saidDone && l.Verb == string(capture.Assign) }

func drift(l logLine) bool { return l.Message == saidDrift && l.address() != "" }

// landed counts the assignments to A that EC2 has carried out.
func (s *captureSite) landed() (n int) {
	for _, c := range s.ec2.Calls() {
		if assignsTo(nodeA)(c) && !c.Took.IsZero() {
			n++
		}
	}
	return n
}

// hold keeps the assignments to A at the provider. It returns how many have arrived, and what
// lets them go.
func (d *captureDemo) hold() (arrived func() int, release func()) {
	var mu sync.Mutex
	n, gate := 0, make(chan struct{})
	d.site.ec2.Before(func(c executortest.Call) {
		if !assignsTo(nodeA)(c) {
			return
		}
		mu.Lock()
		n++
		mu.Unlock()
		<-gate
	})
	d.site.unhold = sync.OnceFunc(func() {
		d.site.ec2.Before(nil)
		close(gate)
	})
	return func() int { mu.Lock(); defer mu.Unlock(); return n }, d.site.unhold
}

// drain drains a node, or lets it back, through the agent of one.
func (d *captureDemo) drain(ctx context.Context, through, node string, drained bool) error {
	if _, err := d.site.agent(through).client.Drain(ctx, node, drained); err != nil {
		return fmt.Errorf("ask the agent of %s: %w", through, err)
	}
	verb := "undrain"
	if drained {
		verb = "drain"
	}
	d.say("you", "tasuki captures %s %s --state .../%s", verb, node, through)
	return nil
}

// held waits until a node holds every address, as its own agent and the provider see it.
func (d *captureDemo) held(ctx context.Context, node string) error {
	a := d.site.agent(node)
	return d.await(ctx, node+" holds the addresses", func() bool {
		list, err := a.client.Captures(ctx)
		if err != nil || len(list) != len(mobile) {
			return false
		}
		for _, c := range list {
			if c.State != agent.PhaseHeld {
				return false
			}
		}
		return d.site.on(node) && d.site.ec2.NIC(nicOf(node)).Forwards
	})
}

// settled waits until no agent has anything to do.
func (d *captureDemo) settled(ctx context.Context) error {
	return d.await(ctx, "nothing is pending any more", func() bool {
		for _, a := range d.site.agents {
			list, err := a.client.Actions(ctx, nil)
			s, err2 := a.client.Status(ctx)
			if errors.Join(err, err2) != nil || len(list)+s.Outbox > 0 {
				return false
			}
		}
		return true
	})
}
