package chaos

import (
	"flag"
	"testing"
	"time"

	"github.com/tasuki-io/tasuki/internal/executor/executortest"
)

var (
	nics = flag.Int("seize.nics", 20, "of the host that dies, with fifty addresses each")
	rate = flag.Float64("seize.rate", 0, "how many changes per second EC2 takes after the first fifty; 0 is all of them")
)

// limited is what is too much for EC2: a bucket of fifty tokens, of which each change that is
// taken costs one, and which is refilled at a rate per second.
func limited(rate float64) func(executortest.Call) bool {
	const bucket = 50
	tokens, at := float64(bucket), time.Now()
	return func(c executortest.Call) bool {
		if !c.Changes() {
			return false
		}
		tokens, at = min(bucket, tokens+rate*c.At.Sub(at).Seconds()), c.At
		if tokens < 1 {
			return true
		}
		tokens--
		return false
	}
}

// BenchmarkSeize is a host that dies and leaves a thousand addresses on twenty NICs, as many as
// EC2 gives them. The times are counted from the end of its lease as another client of the
// cluster sees it.
func BenchmarkSeize(b *testing.B) {
	for range b.N {
		b.StopTimer()
		seize(b)
	}
}

func seize(b *testing.B) {
	w := newSite(b, shape{hosts: []string{"a", "b"}, pools: *nics, each: 50}, *ttl, buildAgent(b))
	want := len(w.addresses())
	for _, a := range w.agents {
		a.start(0)
	}
	settled := func(host string) func() bool {
		return func() bool {
			at := 0
			for _, on := range w.on() {
				if len(on) == 1 && on[0] == host {
					at++
				}
			}
			return at == want
		}
	}
	wait(b, "a holding everything", 10*time.Minute, settled("a"))
	dead, heir := w.agents[0], w.agents[1]
	before := len(w.ec2.Calls())
	own, children := heir.cpu()
	if *rate > 0 {
		w.ec2.Inject(executortest.Rule{Match: limited(*rate), Fault: executortest.Throttled})
	}
	b.StartTimer()
	dead.kill()
	wait(b, "b holding everything", 10*time.Minute, settled("b"))
	b.StopTimer()
	ownAfter, childrenAfter := heir.cpu()
	end := w.claims.ended("a")

	assigns, reads, forwards, refused := 0, 0, 0, 0
	var first, last, shown time.Time
	for _, c := range w.ec2.Calls()[before:] {
		if hostOf(c.NIC+"--") != "b" {
			continue
		}
		if c.Code != "" {
			refused++
			continue
		}
		switch c.Action {
		case "AssignPrivateIpAddresses":
			if assigns++; first.IsZero() {
				first = c.At
			}
			last = c.At
		case "DescribeNetworkInterfaces":
			reads++
			shown = c.At
		default:
			forwards++
		}
	}
	n := float64(want)
	b.ReportMetric(first.Sub(end).Seconds(), "s-to-first-assign")
	b.ReportMetric(last.Sub(end).Seconds(), "s-to-last-assign")
	b.ReportMetric(shown.Sub(end).Seconds(), "s-to-last-read")
	b.ReportMetric(float64(assigns)/n, "assigns/address")
	b.ReportMetric(float64(reads)/n, "reads/address")
	b.ReportMetric(float64(forwards), "forwardings")
	b.ReportMetric(float64(refused), "refused")
	b.ReportMetric((childrenAfter-children).Seconds()*1000/n, "executor-cpu-ms/address")
	b.ReportMetric((ownAfter-own).Seconds()*1000/n, "agent-cpu-ms/address")
}

// wait asks until it is so.
func wait(t testing.TB, what string, most time.Duration, so func() bool) {
	t.Helper()
	for end := time.Now().Add(most); !so(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %s: %s", most, what)
		}
	}
}
