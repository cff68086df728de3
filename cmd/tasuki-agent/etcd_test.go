package main

import (
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tasuki-io/tasuki/internal/agent"
)

// member is a cluster of one member, as etcd's own module builds it.
type member struct {
	*exec.Cmd
	client string
}

func newMember(t *testing.T) *member {
	t.Helper()
	if testing.Short() {
		t.Skip("a cluster takes its time: make test runs these tests alone")
	}
	build := exec.Command("go", "tool", "-modfile=tools/etcd/go.mod", "-n", "server")
	build.Dir = "../.."
	bin, err := build.Output()
	if err != nil {
		t.Fatalf("building the server of tools/etcd: %v", err)
	}
	m := &member{client: "http://" + freeAddress(t)}
	peer := "http://" + freeAddress(t)
	m.Cmd = exec.Command(strings.TrimSpace(string(bin)), "--name=m", "--data-dir="+t.TempDir()+"/etcd", "--log-level=error", "--unsafe-no-fsync",
		"--listen-client-urls="+m.client, "--advertise-client-urls="+m.client, "--listen-peer-urls="+peer, "--initial-advertise-peer-urls="+peer,
		"--initial-cluster=m="+peer, "--heartbeat-interval=50", "--election-timeout=500")
	m.Stderr = os.Stderr
	if err := m.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = m.Process.Kill()
		_ = m.Wait()
	})
	return m
}

// store is a ClaimsStore in the cluster.
func (m *member) store(ttl string) string {
	return strings.Replace(configuration, "spec:\n", "spec:\n  leaseTTL: "+ttl+"\n", 1) + fmt.Sprintf(`---
apiVersion: mobility.tasuki.io/v1alpha1
kind: ClaimsStore
metadata: {name: c}
spec: {type: etcd, etcd: {endpoints: [%q]}}
`, m.client)
}

var reading = regexp.MustCompile(`(?m)^grpc_server_started_total\{grpc_method="(?:Range|Txn|LeaseKeepAlive)".*\} (\S+)$`)

// reads counts what the cluster was asked so far.
func (m *member) reads(h *host) (n float64) {
	_, text := h.get(m.client + "/metrics")
	for _, found := range reading.FindAllStringSubmatch(text, -1) {
		one, err := strconv.ParseFloat(found[1], 64)
		if err != nil {
			h.t.Fatal(err)
		}
		n += one
	}
	return n
}

// pace is how much the cluster is asked per second, over some seconds.
func (m *member) pace(h *host) float64 {
	const over = 5 * time.Second
	before := m.reads(h)
	time.Sleep(over)
	return (m.reads(h) - before) / over.Seconds()
}

// Two agents have the same --node by mistake. The second one stands by, and says what is wrong and
// what to do; it leaves the first alone, also when that is killed and started again. Once the first
// is gone for good, the second goes on after its lease. Meanwhile the cluster has little to do.
func TestASecondAgentOfANodeInEtcdStandsBy(t *testing.T) {
	m := newMember(t)
	h := newHost(t)
	h.write(fmt.Sprintf(m.store("3s"), h.ec2.URL(), false))
	first := h.up()
	h.held()
	idle := m.pace(h)
	second := h.run("--state", h.path("second"))
	h.until("the second one says what is wrong", func() bool {
		return strings.Contains(second.log.String(), "another agent keeps the node alive: node a under the prefix /tasuki/")
	})
	second.says("the pass failed: nothing is begun until one succeeds", "stop one of the two, or give it another --node")
	both := m.pace(h)
	t.Logf("asked of the cluster per second: %.1f by an agent that is idle, %.1f by it and one that stands by", idle, both)
	if idle > 5 || both > 15 {
		t.Errorf("the cluster is asked %.1f and %.1f times a second", idle, both)
	}
	first.kill()
	first = h.up()
	h.held()
	if text := first.log.String(); strings.Contains(text, "another agent") {
		t.Errorf("after a restart, the first one has to wait:\n%s", text)
	}
	if text := second.log.String(); strings.Contains(text, "action begins") {
		t.Errorf("the second one acts:\n%s", text)
	}
	first.signal(syscall.SIGTERM)
	first.ends(0)
	h.until("the second one goes on", func() bool { return strings.Contains(second.log.String(), "passes succeed again") })
	second.signal(syscall.SIGTERM)
	second.ends(0)
}

// Case c15: the store is away for longer than the lease. The holder begins nothing new, and the
// standby does not seize, as it cannot see that the lease is gone. When the store is there again,
// all goes on.
func TestC15InEtcdNobodyActsWhileTheStoreIsAway(t *testing.T) {
	m := newMember(t)
	h := newHost(t)
	config := fmt.Sprintf(m.store("2s"), h.ec2.URL(), false)
	h.write(config)
	address := freeAddress(t)
	holder := h.up("--metrics-bind-address", address)
	h.held()
	standby := h.run("--node", "b", "--state", h.path("b"))
	h.until("b answers", func() bool {
		_, err := agent.NewClient(agent.Socket(h.path("b"))).Status(t.Context())
		return err == nil
	})
	if err := m.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	h.metric(address, "tasuki_capture_lease_held", "0")
	before := len(h.ec2.Calls())
	const more = "10.0.0.2"
	h.write(strings.Replace(config, "addresses: [", "addresses: [{address: "+more+", owner: {site: home}}, ", 1))
	for _, p := range []*process{holder, standby} {
		seen := strings.Count(p.log.String(), "configuration in force")
		p.signal(syscall.SIGHUP)
		h.until("the second address is wanted", func() bool { return strings.Count(p.log.String(), "configuration in force") > seen })
	}
	time.Sleep(5 * time.Second) // more than twice the lease
	for _, c := range h.ec2.Calls()[before:] {
		if c.Action != "DescribeNetworkInterfaces" {
			t.Errorf("%s is asked for while the store is away", c.Action)
		}
	}
	if err := m.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	h.until("both addresses are held", func() bool {
		return len(h.ec2.Holders(mobile)) == 1 && len(h.ec2.Holders(netip.MustParseAddr(more))) == 1
	})
	for _, p := range []*process{holder, standby} {
		p.signal(syscall.SIGTERM)
		p.ends(0)
	}
}
