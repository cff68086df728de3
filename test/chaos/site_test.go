package chaos

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tasuki-io/tasuki/internal/claims/etcd/etcdtest"
	"github.com/tasuki-io/tasuki/internal/executor/executortest"
)

func TestMain(m *testing.M) { os.Exit(executortest.Main(m)) }

// site is some hosts in one subnet, and the cluster that they share.
type site struct {
	t       testing.TB
	dir     string
	binary  string
	ttl     time.Duration
	shape   shape
	ec2     *executortest.EC2
	cluster *etcdtest.Cluster
	claims  *claimLog
	agents  []*agent
}

// shape is how many addresses a site has: those of a pool are on one NIC of a host at a time.
type shape struct {
	hosts []string
	pools int
	each  int
}

func newSite(t testing.TB, s shape, ttl time.Duration, binary string) *site {
	t.Helper()
	executortest.Binary(t)
	cluster := etcdtest.New(t, 3, etcdtest.Timing...)
	w := &site{t: t, ttl: ttl, shape: s, ec2: executortest.StartEC2(t), cluster: cluster, binary: binary}
	// The path of a socket is short, and that of t.TempDir may be long.
	var err error
	w.dir, err = os.MkdirTemp("", "tasuki-")
	must(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the logs and the journals of the agents are in %s", w.dir)
			return
		}
		_ = os.RemoveAll(w.dir)
	})
	etcdtest.Started(t, cluster)
	w.claims = watchClaims(t, cluster)
	for h, name := range s.hosts {
		for p := range s.pools {
			w.ec2.AddNIC(executortest.Interface{ID: nicOf(name, p), Subnet: "s", VPC: "v", Primary: netip.AddrFrom4([4]byte{10, 1, byte(h), byte(p + 1)})})
		}
		w.agents = append(w.agents, w.newAgent(name))
	}
	return w
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func nicOf(host string, pool int) string { return fmt.Sprintf("eni-%s-%d", host, pool) }

// host is whose NIC it is.
func hostOf(nic string) string { return strings.Split(nic, "-")[1] }

func (w *site) addresses() (all []netip.Addr) {
	for p := range w.shape.pools {
		for i := range w.shape.each {
			all = append(all, addressOf(p, i))
		}
	}
	return all
}

func addressOf(pool, i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, byte(pool), byte(i)}) }

// configure writes the configuration of a host. The first one is preferred, the others are
// equals.
func (w *site) configure(path string, endpoints []string) {
	var b strings.Builder
	for p := range w.shape.pools {
		fmt.Fprintf(&b, poolHead, p, w.ttl)
		for i := range w.shape.each {
			fmt.Fprintf(&b, "  - {address: %s, owner: {site: home}}\n", addressOf(p, i))
		}
		b.WriteString("  members:\n")
		for h, name := range w.shape.hosts {
			fmt.Fprintf(&b, poolMember, name, min(h, 1), nicOf(name, p))
		}
		b.WriteString("---\n")
	}
	fmt.Fprintf(&b, rest, w.ec2.URL(), strings.Join(endpoints, ", "))
	must(w.t, os.WriteFile(path, []byte(b.String()), 0o600))
}

const poolHead = `apiVersion: mobility.tasuki.io/v1alpha1
kind: MobilityPool
metadata: {name: p%d}
spec:
  prefix: 10.0.0.0/16
  deprovisionHoldDuration: 2s
  leaseTTL: %s
  addresses:
`

const poolMember = `  - nodeRef: %s
    site: cloud
    role: cloud
    placement: {group: g, priority: %d}
    capture: {type: provider-secondary-ip, providerRef: fake, nicRef: %s}
`

const rest = `apiVersion: mobility.tasuki.io/v1alpha1
kind: CloudProviderProfile
metadata: {name: fake}
spec: {provider: aws, region: eu-test-1, endpoint: %q}
---
apiVersion: mobility.tasuki.io/v1alpha1
kind: ClaimsStore
metadata: {name: shared}
spec: {type: etcd, etcd: {endpoints: [%s], timeout: 1s}}
---
apiVersion: mobility.tasuki.io/v1alpha1
kind: ProviderActionPolicy
metadata: {name: p}
spec:
  enabled: true
  dryRunOnly: false
  requireApproval: false
  maxActionsPerRun: 1000
  allowedProviders: [aws]
  allowedProviderRefs: [fake]
  allowedCIDRs: [10.0.0.0/16]
  allowedActions: [assign-secondary-ip, unassign-secondary-ip, ensure-forwarding-enabled, ensure-forwarding-disabled]
`

// on is where each address is at this moment, by host.
func (w *site) on() map[netip.Addr][]string {
	on := map[netip.Addr][]string{}
	for _, host := range w.shape.hosts {
		for p := range w.shape.pools {
			for _, a := range w.ec2.NIC(nicOf(host, p)).Secondary {
				on[a] = append(on[a], host)
			}
		}
	}
	return on
}

// missing are the addresses that are not with the holder of their claim, and only there.
func (w *site) missing() (all []netip.Addr) {
	on := w.on()
	for a, c := range w.claims.current() {
		if c.Holder == "" || len(on[a]) != 1 || on[a][0] != string(c.Holder) {
			all = append(all, a)
		}
	}
	if want := w.shape.pools * w.shape.each; len(w.claims.current()) < want {
		return w.addresses()
	}
	return all
}

func (w *site) path(parts ...string) string {
	return filepath.Join(append([]string{w.dir}, parts...)...)
}
