package rotator

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/tasuki-io/tasuki/internal/rotation"
)

func TestGaugesSayWhatIsGranted(t *testing.T) {
	m := newMetrics(prometheus.NewRegistry())
	m.set("web", rotation.Decision{Reason: rotation.ReasonInfeasible, Gauges: rotation.Gauges{
		Governed: true, FreezeUnreadable: true, Terms: rotation.Terms{Expires: true, Chances: 3},
	}})
	for name, want := range map[string]float64{"rotation_chances": 0, "freeze_until_timestamp": math.Inf(1)} {
		if got := testutil.ToFloat64(m.gauges[name].WithLabelValues("web")); got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
}

func TestEveryMetricIsServed(t *testing.T) {
	reg := prometheus.NewRegistry()
	m := newMetrics(reg)
	m.set("web", rotation.Decision{Gauges: rotation.Gauges{Governed: true}})
	m.duration.WithLabelValues("web", "drain").Observe(1)
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range families {
		got = append(got, strings.TrimPrefix(f.GetName(), "noderotation_"))
	}
	want := strings.Fields(`age_threshold_seconds candidates completed_total drain_stuck duration_seconds
		forceful_fallback_total freeze_until_timestamp in_backoff in_progress policy_conflict retry_count
		rotation_chances short_lead_nodes t_rot_bound_seconds t_rot_estimate_seconds throughput_capacity
		window_active window_missed_total window_period_seconds`)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("metrics (-want +got):\n%s", diff)
	}
}
