package agent

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tasuki-io/tasuki/internal/capture"
	"github.com/tasuki-io/tasuki/internal/claims/sqlite"
	"github.com/tasuki-io/tasuki/internal/executor"
	"github.com/tasuki-io/tasuki/internal/executor/executortest"
	"github.com/tasuki-io/tasuki/internal/journal"
)

// The whole chain on one machine: configuration files, the stores, executors in processes of
// their own, and the fake of EC2 that their SDK talks to.

func TestMain(m *testing.M) { os.Exit(executortest.Main(m)) }

// site is a few hosts that share a claims file and a provider.
type site struct {
	t   *testing.T
	ec2 *executortest.EC2
	dir string
}

func newSite(t *testing.T) *site {
	s := &site{t: t, ec2: executortest.StartEC2(t), dir: t.TempDir()}
	for _, pair := range s.ec2.Environment() {
		name, value, _ := strings.Cut(pair, "=")
		t.Setenv(name, value)
	}
	for i, node := range []string{"a", "b"} {
		s.ec2.AddNIC(executortest.Interface{
			ID: "eni-" + node, Subnet: "subnet-1", VPC: "vpc-1", Primary: netip.AddrFrom4([4]byte{10, 0, 1, byte(10 + i)}),
		})
	}
	return s
}

const address = "10.0.0.1"

// pool is a configuration: a is better than b, and who is drained is drained.
func (s *site) pool(policy string, drained ...string) *Config {
	s.t.Helper()
	var members strings.Builder
	for i, node := range []string{"a", "b"} {
		fmt.Fprintf(&members, `
  - nodeRef: %[1]s
    site: cloud
    role: cloud
    placement: {group: g, priority: %[2]d}
    maintenance: {drain: %[3]t}
    capture: {type: provider-secondary-ip, providerRef: cloud-a, nicRef: eni-%[1]s}`, node, i, slices.Contains(drained, node))
	}
	path := filepath.Join(s.dir, "config.yaml")
	text := fmt.Sprintf(`apiVersion: mobility.tasuki.io/v1alpha1
kind: MobilityPool
metadata: {name: p}
spec:
  prefix: 10.0.0.0/24
  addresses: [{address: %s, owner: {site: home}}]
  members:%s
---
apiVersion: mobility.tasuki.io/v1alpha1
kind: CloudProviderProfile
metadata: {name: cloud-a}
spec: {provider: aws, region: eu-test-1, endpoint: %q}
---
apiVersion: mobility.tasuki.io/v1alpha1
kind: ProviderActionPolicy
metadata: {name: policy}
spec: {%s}
`, address, members.String(), s.ec2.URL(), policy)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
	c, err := LoadConfig(path)
	if err != nil {
		s.t.Fatal(err)
	}
	return c
}

// The policies: what is planned is executed, or waits for somebody to approve it.
const (
	automatic = `enabled: true, dryRunOnly: false, requireApproval: false, maxActionsPerRun: 10, allowUndo: true,
  allowedProviders: [aws], allowedProviderRefs: [cloud-a], allowedCIDRs: [10.0.0.0/24],
  allowedActions: [assign-secondary-ip, unassign-secondary-ip, ensure-forwarding-enabled, ensure-forwarding-disabled]`
	byHand = `enabled: true, dryRunOnly: false, requireApproval: true, maxActionsPerRun: 10,
  allowedProviders: [aws], allowedProviderRefs: [cloud-a], allowedCIDRs: [10.0.0.0/24],
  allowedActions: [assign-secondary-ip, unassign-secondary-ip, ensure-forwarding-enabled, ensure-forwarding-disabled]`
)

// host is an agent whose passes the test makes.
type host struct {
	*Agent
	t       *testing.T
	journal *journal.Journal
	store   *sqlite.Store
}

func (s *site) host(node string, c *Config) *host {
	s.t.Helper()
	store, err := sqlite.Open(filepath.Join(s.dir, "claims.db"))
	if err != nil {
		s.t.Fatal(err)
	}
	rows, err := journal.Open(filepath.Join(s.dir, node+".db"))
	if err != nil {
		s.t.Fatal(err)
	}
	h := &host{
		Agent: newAgent(node, c, store, rows, (&executor.Command{Path: executortest.Binary(s.t)}).Run, newAnnouncer(slog.New(slog.NewTextHandler(s.t.Output(), nil)), node)),
		t:     s.t, journal: rows, store: store,
	}
	s.t.Cleanup(h.stop)
	return h
}

// stop ends the host, as a kill does: nothing of its memory is written.
func (h *host) stop() {
	h.store.Close()
	h.journal.Close()
}

// settle makes passes, runs what they begin, and looks at the NICs, until there is nothing to do.
func (h *host) settle() {
	h.t.Helper()
	for range 50 {
		begun, d, err := h.pass(h.t.Context())
		if err != nil {
			h.t.Fatal(err)
		}
		h.finishAll(begun)
		if d.Plan.Empty() {
			return
		}
	}
	h.t.Fatalf("%s does not come to rest", h.node)
}

func (h *host) finishAll(begun []*attempt) {
	h.t.Helper()
	for _, t := range begun {
		if err := h.finish(h.t.Context(), t, t.run(h.t.Context())); err != nil {
			h.t.Fatal(err)
		}
	}
}

// rows are the actions of some states, by ID.
func (h *host) rows(states ...capture.State) []string {
	h.t.Helper()
	rows, err := h.journal.Rows(context.Background(), journal.Filter{States: states})
	if err != nil {
		h.t.Fatal(err)
	}
	var ids []string
	for _, r := range rows {
		ids = append(ids, r.ID())
	}
	slices.Sort(ids)
	return ids
}

// changes are the changing calls that the provider was sent, in order.
func (s *site) changes(action string) (ids []string) {
	for _, c := range s.ec2.Calls() {
		if c.Changes() && (action == "" || c.Action == action) {
			ids = append(ids, c.ID)
		}
	}
	return ids
}

func (s *site) on(nic string) bool {
	return slices.Equal(s.ec2.Holders(netip.MustParseAddr(address)), []string{nic})
}

func (s *site) holds(want ...string) {
	s.t.Helper()
	if got := s.ec2.Holders(netip.MustParseAddr(address)); !slices.Equal(got, want) {
		s.t.Errorf("address %s is on %v, want %v", address, got, want)
	}
}
