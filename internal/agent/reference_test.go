package agent

import (
	"testing"

	"github.com/tasuki-io/tasuki/internal/reference"
)

func TestReferenceOfTheMetrics(t *testing.T) {
	m := newMetrics()
	reference.Keep(t, "reference/agent-metrics.md", reference.Page("Metrics of tasuki-agent", "internal/agent/metrics.go")+
		"What they mean is in [capture.md](../capture.md#metrics).\n\n"+
		reference.Metrics(m.actions, m.duration, m.fenced, m.drift, m.success, m.failing, m.alive, m.refused, levels{}))
}
