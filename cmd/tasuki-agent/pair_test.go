package main

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tasuki-io/tasuki/internal/agent"
	"github.com/tasuki-io/tasuki/internal/capture"
	"github.com/tasuki-io/tasuki/internal/claims/etcd/etcdtest"
	"github.com/tasuki-io/tasuki/internal/executor/executortest"
)

// pair is the hosts a and b, whose agents share their claims in a cluster of three members.
type pair struct {
	*host
	cluster *etcdtest.Cluster
	text    string // the configuration
}

// leaseTTL is how long the agents of a pair take each other for alive. It outlasts a busy machine, as
// leases that end by themselves make other epochs than the tests expect.
const leaseTTL = 5 * time.Second

func newPair(t *testing.T) *pair {
	t.Helper()
	p := &pair{cluster: etcdtest.New(t, 3, etcdtest.Unsynced...), host: newHost(t)}
	etcdtest.Started(t, p.cluster)
	p.text = p.through(p.cluster.Members...)
	p.write(p.text)
	return p
}

// through is a configuration of equals, by which a host reaches some members of the cluster.
func (p *pair) through(members ...*etcdtest.Member) string {
	text := strings.NewReplacer("deprovisionHoldDuration: 0s", fmt.Sprintf("deprovisionHoldDuration: 5s\n  leaseTTL: %s", leaseTTL), ", priority: 1", "").Replace(configuration)
	return fmt.Sprintf(text+`---
apiVersion: mobility.tasuki.io/v1alpha1
kind: ClaimsStore
metadata: {name: c}
spec: {type: etcd, etcd: {endpoints: [%s]}}
`, p.ec2.URL(), false, strings.Join(etcdtest.Endpoints(members...), ", "))
}

// starts starts the agent of a host, and returns when it answers.
func (p *pair) starts(node string, args ...string) *process {
	p.t.Helper()
	run := p.run(append([]string{"--node", node, "--state", p.path(node)}, args...)...)
	p.until(node+" answers", func() bool {
		_, err := p.of(node).Status(p.t.Context())
		return err == nil
	})
	return run
}

func (p *pair) of(node string) *agent.Client { return agent.NewClient(agent.Socket(p.path(node))) }

func (p *pair) drain(through, node string, drained bool) {
	p.t.Helper()
	if _, err := p.of(through).Drain(p.t.Context(), node, drained); err != nil {
		p.t.Fatal(err)
	}
}

// rests waits until some hosts, or both, know of a claim and have nothing left to do, and the
// address is where it should be.
func (p *pair) rests(epoch capture.Epoch, holder string, nodes ...string) {
	p.t.Helper()
	if len(nodes) == 0 {
		nodes = []string{"a", "b"}
	}
	p.until(fmt.Sprintf("%s holds at epoch %d, and nothing is left to do on %v", holder, epoch, nodes), func() bool {
		for _, node := range nodes {
			state := agent.PhaseElsewhere
			if node == holder {
				state = agent.PhaseHeld
			}
			list, err := p.of(node).Explain(p.t.Context(), mobile.String())
			open, err2 := p.of(node).Actions(p.t.Context(), nil)
			if err != nil || err2 != nil || len(open) > 0 || list[0].Epoch != epoch || list[0].Holder != holder || list[0].State != state || len(list[0].Outbox) > 0 {
				return false
			}
		}
		return slices.Equal(p.ec2.Holders(mobile), []string{"eni-" + holder})
	})
}

// handsOver has b take the address from a, in a way that leaves both there: epochs 1 and 2.
func (p *pair) handsOver() (a, b *process) {
	p.t.Helper()
	a = p.starts("a")
	p.rests(1, "a", "a")
	b = p.starts("b")
	p.rests(1, "a")
	p.drain("a", "a", true)
	p.rests(2, "b")
	p.drain("a", "a", false)
	return a, b
}

// changing are the calls of a host since the first ones that change something.
func (p *pair) changing(node string, since int) (all []string) {
	for _, c := range p.ec2.Calls()[since:] {
		if c.Changes() && c.NIC == "eni-"+node {
			all = append(all, c.ID)
		}
	}
	return all
}

// reloads has a process take a configuration into use.
func (p *process) reloads() {
	p.host.t.Helper()
	const inForce = "configuration in force"
	seen := p.said(inForce)
	p.signal(syscall.SIGHUP)
	p.host.until("the configuration is in force", func() bool { return p.said(inForce) > seen })
}

// said counts the lines of the log with some words.
func (p *process) said(words string) int { return strings.Count(p.log.String(), words) }

func assignTo(nic string) func(executortest.Call) bool {
	return func(c executortest.Call) bool { return c.Action == "AssignPrivateIpAddresses" && c.NIC == nic }
}
