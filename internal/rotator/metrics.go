package rotator

import (
	"math"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tasuki-io/tasuki/internal/rotation"
)

// metrics are the time series of the controller, one per NodePool. Gauges of a pool that
// is gone or ungoverned are dropped; counters stay.
type metrics struct {
	completed *prometheus.CounterVec // outcome: success, failure, expired
	fallback  *prometheus.CounterVec
	missed    *prometheus.CounterVec
	duration  *prometheus.HistogramVec // phase: surge_wait, drain; seconds
	gauges    map[string]*prometheus.GaugeVec
	conflict  *prometheus.GaugeVec
}

var gaugeHelp = map[string]string{
	"candidates":             "NodeClaims that are eligible for rotation now.",
	"in_backoff":             "NodeClaims past their threshold that only their retry backoff holds.",
	"in_progress":            "1 while a rotation is under way.",
	"window_active":          "1 while a maintenance window is open.",
	"freeze_until_timestamp": "Unix seconds until which rotations are frozen, 0 when they are not, +Inf for a freeze that cannot be read.",
	"age_threshold_seconds":  "Age past which a NodeClaim of the pool's template is due; 0 for expireAfter Never.",
	"rotation_chances":       "Whole window periods between the age threshold and the deadline; 0 for expireAfter Never and for an infeasible policy.",
	"window_period_seconds":  "Longest time from the start of one window occurrence to the next.",
	"t_rot_bound_seconds":    "Upper bound of one rotation; 0 for expireAfter Never.",
	"throughput_capacity":    "Rotations that are expected to start in the shortest window; 0 for expireAfter Never.",
	"t_rot_estimate_seconds": "Expected duration of one rotation; 0 for expireAfter Never.",
	"short_lead_nodes":       "NodeClaims whose own expireAfter leaves fewer windows than the policy promises.",
	"drain_stuck":            "1 while a drain is past terminationGracePeriod and a buffer.",
	"retry_count":            "Highest number of failed attempts on a NodeClaim of the pool.",
}

func newMetrics(reg prometheus.Registerer) *metrics {
	const ns = "noderotation"
	m := &metrics{
		completed: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: ns, Name: "completed_total", Help: "Rotation attempts that ended, by outcome.",
		}, []string{"nodepool", "outcome"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: ns, Name: "duration_seconds", Help: "Duration of the phases of a rotation.",
			Buckets: []float64{1, 5, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 28800, 86400},
		}, []string{"nodepool", "phase"}),
		fallback: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: ns, Name: "forceful_fallback_total", Help: "Rotations started without a surge.",
		}, []string{"nodepool"}),
		missed: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: ns, Name: "window_missed_total", Help: "Maintenance windows that closed on a NodeClaim that should have been rotated, without a rotation.",
		}, []string{"nodepool"}),
		conflict: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Namespace: ns, Name: "policy_conflict", Help: "1 while RotationPolicies of equal specificity select the pool.",
		}, []string{"nodepool"}),
		gauges: map[string]*prometheus.GaugeVec{},
	}
	reg.MustRegister(m.completed, m.fallback, m.missed, m.duration, m.conflict)
	for name, help := range gaugeHelp {
		m.gauges[name] = prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: ns, Name: name, Help: help}, []string{"nodepool"})
		reg.MustRegister(m.gauges[name])
	}
	return m
}

func (m *metrics) set(pool string, d rotation.Decision) {
	g := d.Gauges
	if !g.Governed && !g.Conflict {
		m.drop(pool)
		return
	}
	m.conflict.WithLabelValues(pool).Set(number(g.Conflict))
	if !g.Governed {
		m.dropGauges(pool)
		return
	}
	m.begin(pool)
	chances := float64(g.Terms.Chances)
	if d.Reason == rotation.ReasonInfeasible { // what the arithmetic yields is not granted
		chances = 0
	}
	freeze := 0.0
	if !g.FreezeUntil.IsZero() {
		freeze = float64(g.FreezeUntil.Unix())
	} else if g.FreezeUnreadable {
		freeze = math.Inf(1)
	}
	for name, v := range map[string]float64{
		"candidates":             float64(g.Census[rotation.Eligible]),
		"in_backoff":             float64(g.Census[rotation.Backoff]),
		"in_progress":            number(g.InProgress),
		"window_active":          number(g.WindowOpen),
		"freeze_until_timestamp": freeze,
		"age_threshold_seconds":  g.Terms.Threshold.Seconds(),
		"rotation_chances":       chances,
		"window_period_seconds":  g.Period.Seconds(),
		"t_rot_bound_seconds":    g.Terms.TRot.Seconds(),
		"throughput_capacity":    float64(g.Throughput.Capacity),
		"t_rot_estimate_seconds": g.Throughput.TRotEst.Seconds(),
		"short_lead_nodes":       float64(g.ShortLead),
		"drain_stuck":            number(g.DrainStuck),
		"retry_count":            float64(g.Retries),
	} {
		m.gauges[name].WithLabelValues(pool).Set(v)
	}
}

// begin gives the counters of a pool their zero: of a series that begins with 1, increase()
// does not see the first.
func (m *metrics) begin(pool string) {
	m.missed.WithLabelValues(pool)
	m.fallback.WithLabelValues(pool)
	for _, o := range []rotation.Outcome{rotation.Success, rotation.Failure, rotation.Gone} {
		m.completed.WithLabelValues(pool, string(o))
	}
}

func (m *metrics) drop(pool string) {
	m.dropGauges(pool)
	m.conflict.DeleteLabelValues(pool)
}

func (m *metrics) dropGauges(pool string) {
	for _, g := range m.gauges {
		g.DeleteLabelValues(pool)
	}
}

func number(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
