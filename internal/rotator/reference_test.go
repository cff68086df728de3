package rotator

import (
	"maps"
	"slices"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tasuki-io/tasuki/internal/reference"
)

func TestReferenceOfTheMetrics(t *testing.T) {
	m := newMetrics(prometheus.NewRegistry())
	all := []prometheus.Collector{m.completed, m.missed, m.fallback, m.duration, m.conflict}
	for _, name := range slices.Sorted(maps.Keys(m.gauges)) {
		all = append(all, m.gauges[name])
	}
	reference.Keep(t, "reference/metrics.md", reference.Page("Metrics of tasuki-controller", "internal/rotator/metrics.go")+
		"What to do about them is in the [runbook](../runbook.md#metrics). Beside them there are those of controller-runtime, of Go and of the process.\n\n"+reference.Metrics(all...))
}
