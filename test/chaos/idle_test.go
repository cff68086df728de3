package chaos

import (
	"flag"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tasuki-io/tasuki/internal/capture"
	"github.com/tasuki-io/tasuki/internal/claims/etcd"
	"github.com/tasuki-io/tasuki/internal/executor/executortest"
	"github.com/tasuki-io/tasuki/internal/journal"
)

// The agent starts, and the garbage of its start is collected: the runtime does so every two
// minutes.
var idleFor = flag.Duration("idle.for", 150*time.Second, "how long an agent rests before it is measured, and again while it is")

// BenchmarkIdle is an agent that holds ten thousand addresses, on forty NICs, and has nothing to
// do but to look at them and to renew its lease. Its executors are counted apart: each NIC is
// looked at once a minute.
func BenchmarkIdle(b *testing.B) {
	for range b.N {
		idle(b)
	}
}

func idle(b *testing.B) {
	w := newSite(b, shape{hosts: []string{"a"}, pools: 40, each: 250}, 10*time.Second, buildAgent(b))
	a := w.agents[0]
	w.settle(a)
	before := len(w.ec2.Calls())
	a.start(0)
	time.Sleep(*idleFor)
	own, executors := a.cpu()
	begun := time.Now()
	time.Sleep(*idleFor)
	took := time.Since(begun).Seconds()
	ownAfter, executorsAfter := a.cpu()
	if !a.runs() {
		b.Fatal("the agent has ended")
	}
	looks := 0
	for _, c := range w.ec2.Calls()[before:] {
		if c.Action != "DescribeNetworkInterfaces" {
			b.Errorf("at rest it called %s on %s", c.Action, c.NIC)
		}
		looks++
	}
	if looks == 0 {
		b.Error("it never looked at a NIC: it does not hold what it was to hold")
	}
	b.ReportMetric((ownAfter-own).Seconds()*100/took, "agent-cpu-%")
	b.ReportMetric((executorsAfter-executors).Seconds()*100/took, "executors-cpu-%")
	b.ReportMetric(a.memory("VmRSS"), "MB-resident")
	b.ReportMetric(a.memory("RssAnon"), "MB-anonymous")
	b.ReportMetric(a.memory("RssFile"), "MB-of-files")
	b.ReportMetric(a.memory("VmHWM"), "MB-peak")
	b.ReportMetric(0, "ns/op")
}

// settle writes down that the host has long taken every address: in etcd, in its journal, and
// in EC2.
func (w *site) settle(a *agent) {
	t, ctx := w.t, w.t.Context()
	s := &capture.Snapshot{
		Node: a.name, Providers: map[string]string{"fake": "aws"}, View: capture.NewView(),
		Policy: capture.Policy{
			Enabled: true, Providers: []string{"aws"}, ProviderRefs: []string{"fake"}, Verbs: capture.Verbs(),
			CIDRs: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/16")}, MaxPerRun: 1 << 20,
		},
	}
	for p := range w.shape.pools {
		pool := capture.Pool{Name: fmt.Sprintf("p%d", p), Prefix: netip.MustParsePrefix("10.0.0.0/16")}
		nic := executortest.Interface{ID: nicOf(a.name, p), Subnet: "s", VPC: "v", Primary: w.ec2.NIC(nicOf(a.name, p)).Primary, Forwards: true}
		for i := range w.shape.each {
			pool.Addresses = append(pool.Addresses, capture.Address{Addr: addressOf(p, i), Owner: capture.Location{Site: "home"}})
			nic.Secondary = append(nic.Secondary, addressOf(p, i))
		}
		pool.Members = []capture.Member{{
			Node: a.name, Site: "cloud", Role: capture.RoleCloud, Group: "g",
			Capture: capture.Capture{Method: capture.SecondaryIP, ProviderRef: "fake", NIC: nic.ID},
		}}
		s.Pools = append(s.Pools, pool)
		w.ec2.AddNIC(nic)
	}
	plan := capture.Decide(s, time.Now()).Plan
	if want := w.shape.pools * (w.shape.each + 1); len(plan.Imports) != want {
		t.Fatalf("%d actions to take everything, want %d", len(plan.Imports), want)
	}

	var endpoints []string
	for _, m := range w.cluster.Members {
		endpoints = append(endpoints, m.Client)
	}
	store, err := etcd.Open(etcd.Options{Endpoints: endpoints, Timeout: 5 * time.Minute, Agent: "settle"})
	must(t, err)
	defer store.Close()
	_, err = store.Bump(ctx, plan.Bumps)
	must(t, err)

	state := w.path(a.name, "state")
	must(t, os.MkdirAll(state, 0o700))
	j, err := journal.Open(filepath.Join(state, "journal.db"))
	must(t, err)
	defer j.Close()
	claims := map[capture.Key]capture.Claim{}
	for _, bump := range plan.Bumps {
		claims[bump.Key] = bump.To
	}
	must(t, j.Note(ctx, claims))
	now := time.Now()
	_, err = j.Apply(ctx, &capture.Plan{Imports: plan.Imports, Admits: plan.Imports}, now)
	must(t, err)
	for _, planned := range plan.Imports {
		begun, stale, err := j.Begin(ctx, planned.ID(), now, now.Add(time.Minute))
		must(t, err)
		if stale != "" {
			t.Fatalf("%s is stale: %s", planned.ID(), stale)
		}
		_, err = j.End(ctx, begun, journal.Ending{State: capture.Succeeded, Answered: true}, now)
		must(t, err)
	}
}

// memory is a line of the status of the process, in MB of 10^6 bytes.
func (a *agent) memory(what string) float64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", a.cmd.Process.Pid))
	must(a.w.t, err)
	_, rest, _ := strings.Cut(string(text), what+":")
	var kibibytes float64
	_, err = fmt.Sscan(rest, &kibibytes)
	must(a.w.t, err)
	return kibibytes * 1024 / 1e6
}
