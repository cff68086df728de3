package scale

import (
	"fmt"
	"math"
	"net"
	"net/http"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// sample is what the controller's metrics say at one moment, by name and labels: counters, and
// the buckets of the histogram of its passes.
type sample struct {
	counters map[string]float64  // rest_client_requests_total, by "METHOD code"
	buckets  map[float64]float64 // controller_runtime_reconcile_time_seconds of the passes over pools, cumulative
}

func scrape(b *testing.B, address string) sample {
	b.Helper()
	resp, err := http.Get("http://" + address + "/metrics")
	if err != nil {
		b.Fatal(err)
	}
	defer resp.Body.Close()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(resp.Body)
	if err != nil {
		b.Fatalf("read the controller's metrics: %v", err)
	}
	s := sample{map[string]float64{}, map[float64]float64{}}
	for _, m := range families["rest_client_requests_total"].GetMetric() {
		s.counters[label(m, "method")+" "+label(m, "code")] += m.GetCounter().GetValue()
	}
	for _, m := range families["controller_runtime_reconcile_time_seconds"].GetMetric() {
		if label(m, "controller") != "rotation" {
			continue
		}
		for _, bucket := range m.GetHistogram().GetBucket() {
			s.buckets[bucket.GetUpperBound()] = float64(bucket.GetCumulativeCount())
		}
	}
	if len(s.counters) == 0 || len(s.buckets) == 0 {
		b.Fatal("the controller counts neither its requests nor its passes")
	}
	return s
}

func label(m *dto.Metric, name string) string {
	for _, l := range m.GetLabel() {
		if l.GetName() == name {
			return l.GetValue()
		}
	}
	return ""
}

// since is what has been counted since an earlier sample.
func (s sample) since(before sample) sample {
	d := sample{map[string]float64{}, map[float64]float64{}}
	for k, n := range s.counters {
		d.counters[k] = n - before.counters[k]
	}
	for le, n := range s.buckets {
		d.buckets[le] = n - before.buckets[le]
	}
	return d
}

type requests struct{ reads, writes, refused int }

func (s sample) requests() (r requests) {
	for k, n := range s.counters {
		method, code, _ := strings.Cut(k, " ")
		switch {
		case code == "429":
			r.refused += int(n)
		case method == http.MethodGet:
			r.reads += int(n)
		default:
			r.writes += int(n)
		}
	}
	return r
}

// reconcile is the upper bound, in milliseconds, of the bucket that this share of the passes
// does not exceed.
func (s sample) reconcile(share float64) float64 {
	all, le := 0.0, math.Inf(1)
	for _, n := range s.buckets {
		all = max(all, n)
	}
	for bound, n := range s.buckets {
		if n >= share*all {
			le = min(le, bound)
		}
	}
	return le * 1000
}

func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("find a free port: %w", err)
	}
	return l.Addr().String(), l.Close()
}
