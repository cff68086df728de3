package e2e

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// After a rotation, everything that a dashboard or an alert reads of the pool is there, and
// says what has happened. When the policy goes, what it has measured goes too; what has
// happened stays.
func TestMetricsTellTheRotation(t *testing.T) {
	needLab(t)
	t.Parallel()
	needController(t)
	p := newPool(t, "metrics")
	p.deploy("web", 1, cpu("1"))
	p.awaitSettled(1, 1)
	before := p.claimNames()
	began := p.govern()
	p.awaitRotated()
	took := time.Since(began)
	p.awaitSettled(1, 1)
	p.rotated(before[0], before, 1)

	counters := map[string]float64{
		`completed_total{outcome="success"}`: 1, `completed_total{outcome="failure"}`: 0, `completed_total{outcome="expired"}`: 0,
		"forceful_fallback_total": 0, "window_missed_total": 0,
		`duration_seconds_count{phase="surge_wait"}`: 1, `duration_seconds_count{phase="drain"}`: 1,
	}
	gauges := map[string]float64{
		"candidates": 1, "in_backoff": 0, "in_progress": 0, // the new node is due as well, and the pool rests
		"window_active": 1, "policy_conflict": 0, "drain_stuck": 0, "freeze_until_timestamp": 0,
		"age_threshold_seconds": 1, "window_period_seconds": 60,
		"t_rot_bound_seconds":    (5 + 10 + 2) * 60, // readyTimeout, terminationGracePeriod, buffer
		"t_rot_estimate_seconds": (5 + 10) * 60,     // provisioning and drain, as they are cut short
		"rotation_chances":       102,               // (2h - 17m - 1s) / 1m
		"throughput_capacity":    1, "short_lead_nodes": 0, "retry_count": 0,
	}
	want := maps.Clone(counters)
	maps.Copy(want, gauges)
	p.measuredAll(want)
	all := p.metrics()
	for _, phase := range []string{"surge_wait", "drain"} {
		if sum := all[`duration_seconds_sum{phase="`+phase+`"}`]; sum < 0 || sum > took.Seconds() {
			t.Errorf("duration_seconds tells of %vs of %s in a rotation of %s", sum, phase, took)
		}
		for _, le := range []string{"1", "86400", "+Inf"} {
			if _, there := all[fmt.Sprintf("duration_seconds_bucket{phase=%q,le=%q}", phase, le)]; !there {
				t.Errorf("duration_seconds of %s has no bucket up to %s", phase, le)
			}
		}
	}

	p.abandon()
	p.measuredAll(counters)
}

// measuredAll waits until these are the samples about the pool, and there is no other but
// the sums and buckets of durations.
func (p *pool) measuredAll(want map[string]float64) {
	p.t.Helper()
	p.awaitWithin(15*time.Second, "metrics of NodePool "+p.name, func() string {
		got := p.metrics()
		maps.DeleteFunc(got, func(name string, _ float64) bool {
			return strings.HasPrefix(name, "duration_seconds_sum") || strings.HasPrefix(name, "duration_seconds_bucket")
		})
		return cmp.Diff(want, got)
	})
}
