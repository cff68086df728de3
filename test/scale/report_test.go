package scale

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"testing"
	"text/tabwriter"
	"time"
)

var output = flag.String("scale.json", "", "file that the results are written to as JSON; - is the standard output")

// result is one measurement. Memory is resident, in MB of 10^6 bytes; CPU is user and system
// time, in seconds.
type result struct {
	Pools    int     `json:"pools"`
	Nodes    int     `json:"nodes"`
	Pods     int     `json:"pods"`
	PodBytes int     `json:"podBytes"`
	LimitMB  float64 `json:"limitMB,omitempty"`

	ReadyS      float64 `json:"readySeconds"` // from the start of the process
	StartPeakMB float64 `json:"startPeakMB"`  // until then

	RestMB   float64 `json:"restMB"`
	RestCPUS float64 `json:"restCPUSeconds"` // the start included

	BusyMB   float64 `json:"rotatingMB"` // at the end of a rotation in every pool
	BusyCPUS float64 `json:"rotatingCPUSeconds"`
	PeakMB   float64 `json:"peakMB"` // of the whole run

	// Of the rotations alone: requests to the API server, and those that it refused with 429.
	Reads   int `json:"reads"`
	Writes  int `json:"writes"`
	Refused int `json:"refused"`
	// Of the passes over pools: the bucket of the histogram.
	ReconcileP50MS float64 `json:"reconcileP50Milliseconds"`
	ReconcileP99MS float64 `json:"reconcileP99Milliseconds"`
	// From what happened to the next write of the pool.
	Opened  spread `json:"windowOpens"`
	Running spread `json:"placeholderRunning"`
	Gone    spread `json:"nodeClaimGone"`
}

// spread is how long something took, in milliseconds.
type spread struct {
	N   int     `json:"n"`
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
	Max float64 `json:"max"`
}

func spreadOf(all []time.Duration) spread {
	if len(all) == 0 {
		return spread{}
	}
	slices.Sort(all)
	at := func(share float64) float64 {
		return float64(all[min(len(all)-1, int(share*float64(len(all))))]) / float64(time.Millisecond)
	}
	return spread{len(all), at(0.5), at(0.99), at(1)}
}

func (s spread) String() string { return fmt.Sprintf("%.0f / %.0f / %.0f", s.P50, s.P99, s.Max) }

// report hands the result to benchstat.
func (r result) report(b *testing.B) {
	for unit, v := range map[string]float64{
		"s-to-ready": r.ReadyS, "MB-peak-start": r.StartPeakMB, "MB-rest": r.RestMB, "MB-rotating": r.BusyMB, "MB-peak": r.PeakMB,
		"cpu-s-rest": r.RestCPUS, "cpu-s-rotating": r.BusyCPUS, "reads": float64(r.Reads), "writes": float64(r.Writes),
		"ms-reconcile-p50": r.ReconcileP50MS, "ms-reconcile-p99": r.ReconcileP99MS,
		"ms-open-p50": r.Opened.P50, "ms-open-max": r.Opened.Max, "ms-running-p50": r.Running.P50, "ms-running-p99": r.Running.P99,
		"ms-gone-p50": r.Gone.P50, "ms-gone-p99": r.Gone.P99, "ns/op": 0,
	} {
		b.ReportMetric(v, unit)
	}
}

var results []result

func TestMain(m *testing.M) {
	flag.Parse()
	code := m.Run()
	if len(results) > 0 {
		table(os.Stdout, results)
		if err := write(*output, results); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// table is that of docs/performance.md.
func table(w io.Writer, results []result) {
	t := tabwriter.NewWriter(w, 0, 0, 1, ' ', tabwriter.Debug)
	rows := []struct {
		what string
		of   func(result) string
	}{
		{"pools, nodes, pods", func(r result) string { return fmt.Sprintf("%d, %d, %d", r.Pools, r.Nodes, r.Pods) }},
		{"ready after, s", func(r result) string { return fmt.Sprintf("%.1f", r.ReadyS) }},
		{"MB at the highest until then", func(r result) string { return fmt.Sprintf("%.0f", r.StartPeakMB) }},
		{"MB at rest", func(r result) string { return fmt.Sprintf("%.0f", r.RestMB) }},
		{"MB after a rotation in every pool", func(r result) string { return fmt.Sprintf("%.0f", r.BusyMB) }},
		{"MB at the highest", func(r result) string { return fmt.Sprintf("%.0f", r.PeakMB) }},
		{"MB allowed", func(r result) string { return fmt.Sprintf("%.0f", r.LimitMB) }},
		{"CPU s, start and rest", func(r result) string { return fmt.Sprintf("%.2f", r.RestCPUS) }},
		{"CPU s, rotations", func(r result) string { return fmt.Sprintf("%.2f", r.BusyCPUS) }},
		{"reads and writes, rotations", func(r result) string { return fmt.Sprintf("%d, %d", r.Reads, r.Writes) }},
		{"refused with 429", func(r result) string { return fmt.Sprint(r.Refused) }},
		{"pass, ms, p50 / p99 at most", func(r result) string { return fmt.Sprintf("%g / %g", r.ReconcileP50MS, r.ReconcileP99MS) }},
		{"window opens to anchor, ms, p50 / p99 / max", func(r result) string { return r.Opened.String() }},
		{"placeholder Running to write, ms", func(r result) string { return r.Running.String() }},
		{"NodeClaim gone to write, ms", func(r result) string { return r.Gone.String() }},
	}
	for _, row := range rows {
		fmt.Fprintf(t, "| %s\t", row.what)
		for _, r := range results {
			fmt.Fprintf(t, " %s\t", row.of(r))
		}
		fmt.Fprintln(t)
	}
	_ = t.Flush() // the standard output
}

func write(path string, results []result) error {
	if path == "" {
		return nil
	}
	text, err := json.MarshalIndent(results, "", "  ")
	if err != nil {
		return err
	}
	text = append(text, '\n')
	if path == "-" {
		_, err = os.Stdout.Write(text)
		return err
	}
	return os.WriteFile(path, text, 0o644)
}
