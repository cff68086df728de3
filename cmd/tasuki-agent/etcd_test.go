package main

import (
	"net/netip"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tasuki-io/tasuki/internal/claims/etcd/etcdtest"
)

var reading = regexp.MustCompile(`(?m)^grpc_server_started_total\{grpc_method="(?:Range|Txn|LeaseKeepAlive)".*\} (\S+)$`)

// reads counts what the cluster was asked so far.
func (p *pair) reads() (n float64) {
	for _, m := range p.cluster.Members {
		_, text := p.get(m.Client + "/metrics")
		for _, found := range reading.FindAllStringSubmatch(text, -1) {
			one, err := strconv.ParseFloat(found[1], 64)
			if err != nil {
				p.t.Fatal(err)
			}
			n += one
		}
	}
	return n
}

// pace is how much the cluster is asked per second, over some seconds.
func (p *pair) pace() float64 {
	const over = 5 * time.Second
	before := p.reads()
	time.Sleep(over)
	return (p.reads() - before) / over.Seconds()
}

// Two agents have the same --node by mistake. The second one stands by, and says what is wrong and
// what to do; it leaves the first alone, also when that is killed and started again. Once the first
// is gone for good, the second goes on after its lease. Meanwhile the cluster has little to do.
func TestASecondAgentOfANodeInEtcdStandsBy(t *testing.T) {
	p := newPair(t)
	first := p.starts("a")
	p.rests(1, "a", "a")
	idle := p.pace()
	second := p.run("--state", p.path("second"))
	p.until("the second one says what is wrong", func() bool {
		return second.said("another agent keeps the node alive: node a under the prefix /tasuki/") > 0
	})
	second.says("the pass failed: nothing is begun until one succeeds", "stop one of the two, or give it another --node")
	both := p.pace()
	t.Logf("asked of the cluster per second: %.1f by an agent that is idle, %.1f by it and one that stands by", idle, both)
	if idle > 5 || both > 15 {
		t.Errorf("the cluster is asked %.1f and %.1f times a second", idle, both)
	}
	first.kill()
	first = p.starts("a")
	p.rests(1, "a", "a")
	if first.said("another agent") > 0 {
		t.Error("after a restart, the first one has to wait")
	}
	if second.said("action begins") > 0 {
		t.Error("the second one acts")
	}
	first.signal(syscall.SIGTERM)
	first.ends(0)
	p.until("the second one goes on", func() bool { return second.said("passes succeed again") > 0 })
	second.signal(syscall.SIGTERM)
	second.ends(0)
}

// Case c15: the store is away for longer than the lease. The holder begins nothing new, and the
// standby does not seize, as it cannot see that the lease is gone. When the store is there again,
// all goes on.
func TestC15InEtcdNobodyActsWhileTheStoreIsAway(t *testing.T) {
	p := newPair(t)
	address := freeAddress(t)
	holder := p.starts("a", "--metrics-bind-address", address)
	p.rests(1, "a", "a")
	standby := p.starts("b")
	p.rests(1, "a")
	etcdtest.CutOff(true, false, p.cluster.Members...)
	p.metric(address, "tasuki_capture_lease_held", "0")
	before := len(p.ec2.Calls())
	p.write(wantMore(p.text))
	holder.reloads()
	standby.reloads()
	time.Sleep(leaseTTL) // and so twice as long
	if calls := append(p.changing("a", before), p.changing("b", before)...); len(calls) > 0 {
		t.Errorf("%v are asked for while the store is away", calls)
	}
	etcdtest.CutOff(false, false, p.cluster.Members...)
	p.until("both addresses are held", func() bool { return len(p.ec2.Holders(mobile)) == 1 && len(p.ec2.Holders(another)) == 1 })
	for _, run := range []*process{holder, standby} {
		run.signal(syscall.SIGTERM)
		run.ends(0)
	}
}

// Case c15, of a partition: the holder reaches the leader alone, which has lost the others, and the
// standby reaches those. The holder begins nothing new; the standby seizes when the majority shows
// that the lease is gone, and keeps the address when the members hear each other again.
func TestC15InEtcdTheMajoritySeizesFromTheHolderOfTheMinority(t *testing.T) {
	p := newPair(t)
	leader, others := p.cluster.Leader(t)
	p.text = p.through(leader)
	p.write(p.text)
	address := freeAddress(t)
	holder := p.starts("a", "--metrics-bind-address", address)
	p.rests(1, "a", "a")
	p.put("b.yaml", p.through(others...))
	p.starts("b", "--config", p.path("b.yaml"))
	p.rests(1, "a")
	p.cluster.Isolate(leader)
	before := len(p.ec2.Calls())
	p.metric(address, "tasuki_capture_lease_held", "0")
	p.write(wantMore(p.text))
	holder.reloads()
	p.rests(2, "b", "b")
	if calls := p.changing("a", before); len(calls) > 0 {
		t.Errorf("%v are asked for on the side of the minority", calls)
	}
	p.cluster.Join()
	p.rests(2, "b")
}

var another = netip.MustParseAddr("10.0.0.2")

// wantMore is a configuration with one more address.
func wantMore(text string) string {
	return strings.Replace(text, "addresses: [", "addresses: [{address: "+another.String()+", owner: {site: home}}, ", 1)
}
