package main

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/tasuki-io/tasuki/internal/executor/executortest"
)

// The cast: two hosts that share a claims file, and the addresses that they hold in turn.
const (
	nodeA = "router-a"
	nodeB = "router-b"
)

var mobile = []netip.Addr{netip.MustParseAddr("10.20.0.10"), netip.MustParseAddr("10.20.0.11")}

// nicOf is the NIC of a node.
func nicOf(node string) string { return "eni-" + strings.TrimPrefix(node, "router-") }

// captureSite is where the demo takes place: the provider, the files and the agents.
type captureSite struct {
	dir    string
	ec2    *executortest.EC2
	agents []*captureAgent

	mu     sync.Mutex
	seen   []spoken          // every line of every agent
	torn   map[string]string // addresses that were on two NICs at once, and on which
	watch  chan struct{}     // ends the watch of the NICs
	over   chan struct{}     // it has ended
	unhold func()            // lets the calls go that are held at the provider
}

// spoken is a line that an agent has logged.
type spoken struct {
	node string
	at   time.Time
	line logLine
}

func newCaptureSite(d *captureDemo) (*captureSite, error) {
	s := &captureSite{torn: map[string]string{}, watch: make(chan struct{}), over: make(chan struct{}), unhold: func() {}}
	var err error
	if s.dir, err = os.MkdirTemp("", "tasuki-demo-"); err != nil {
		close(s.over)
		return s, err
	}
	s.ec2 = executortest.NewEC2()
	if err := s.ec2.Serve("127.0.0.1:0"); err != nil {
		close(s.over)
		return s, err
	}
	for i, node := range []string{nodeA, nodeB} {
		s.ec2.AddNIC(executortest.Interface{
			ID: nicOf(node), Subnet: "subnet-1", VPC: "vpc-1", Primary: netip.AddrFrom4([4]byte{10, 20, 0, byte(4 + i)}),
		})
		s.agents = append(s.agents, &captureAgent{node: node, demo: d, state: filepath.Join(s.dir, node)})
	}
	go s.guard()
	return s, os.WriteFile(s.config(), []byte(s.text()), 0o600)
}

func (s *captureSite) config() string { return filepath.Join(s.dir, "tasuki.yaml") }
func (s *captureSite) claims() string { return filepath.Join(s.dir, "claims.db") }

func (s *captureSite) agent(node string) *captureAgent {
	for _, a := range s.agents {
		if a.node == node {
			return a
		}
	}
	panic("no agent " + node)
}

// text is the configuration of both agents: whatever is planned is approved by the policy, and
// A is the better one. The hold is longer than the demo, so that a release waits for the next
// holder only.
func (s *captureSite) text() string {
	var addresses, members []string
	for _, a := range mobile {
		addresses = append(addresses, fmt.Sprintf("  - {address: %s, owner: {site: machine-room}}", a))
	}
	for i, node := range []string{nodeA, nodeB} {
		members = append(members, fmt.Sprintf(`  - nodeRef: %s
    site: cloud
    role: cloud
    placement: {group: edge, priority: %d}
    capture: {type: provider-secondary-ip, providerRef: fake, nicRef: %s}`, node, 10*(i+1), nicOf(node)))
	}
	return fmt.Sprintf(`apiVersion: mobility.tasuki.io/v1alpha1
kind: MobilityPool
metadata: {name: demo}
spec:
  prefix: 10.20.0.0/24
  deprovisionHoldDuration: 10m
  addresses:
%s
  members:
%s
---
apiVersion: mobility.tasuki.io/v1alpha1
kind: CloudProviderProfile
metadata: {name: fake}
spec: {provider: aws, region: eu-test-1, endpoint: %q}
---
apiVersion: mobility.tasuki.io/v1alpha1
kind: ProviderActionPolicy
metadata: {name: demo}
spec:
  enabled: true
  dryRunOnly: false
  requireApproval: false
  maxActionsPerRun: 10
  allowedProviders: [aws]
  allowedProviderRefs: [fake]
  allowedCIDRs: [10.20.0.0/24]
  allowedActions: [assign-secondary-ip, unassign-secondary-ip, ensure-forwarding-enabled, ensure-forwarding-disabled]
`, strings.Join(addresses, "\n"), strings.Join(members, "\n"), s.ec2.URL())
}

// guard watches that no address is on two NICs at once.
func (s *captureSite) guard() {
	defer close(s.over)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		for _, a := range mobile {
			if on := s.ec2.Holders(a); len(on) > 1 {
				s.mu.Lock()
				s.torn[a.String()] = strings.Join(on, " and ")
				s.mu.Unlock()
			}
		}
		select {
		case <-s.watch:
			return
		case <-tick.C:
		}
	}
}

// heard takes note of a line of an agent.
func (s *captureSite) heard(node string, l logLine) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = append(s.seen, spoken{node, l.Time, l})
}

// count counts the lines of a node that are as wanted.
func (s *captureSite) count(node string, wanted func(logLine) bool) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.seen {
		if l.node == node && wanted(l.line) {
			n++
		}
	}
	return n
}

// alive is an error when an agent has ended that was not to.
func (s *captureSite) alive() error {
	for _, a := range s.agents {
		if err := a.died(); err != nil {
			return err
		}
	}
	return nil
}

// on reports whether every address is on the NIC of a node.
func (s *captureSite) on(node string) bool {
	for _, a := range mobile {
		if has := s.ec2.Holders(a); len(has) != 1 || has[0] != nicOf(node) {
			return false
		}
	}
	return true
}

// clean ends every process and removes every file.
func (s *captureSite) clean() error {
	s.unhold()
	for _, a := range s.agents {
		a.kill()
	}
	close(s.watch)
	<-s.over
	var err error
	if s.ec2 != nil && s.ec2.URL() != "" {
		err = s.ec2.Close()
	}
	if s.dir != "" {
		err = errors.Join(err, os.RemoveAll(s.dir))
	}
	return err
}
