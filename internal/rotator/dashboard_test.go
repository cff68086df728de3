package rotator

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// The dashboard shows every metric, and none that there is not.
func TestDashboard(t *testing.T) {
	text, err := os.ReadFile("../../charts/tasuki/files/rotation.json")
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(text, &dashboard); err != nil {
		t.Fatal(err)
	}
	shown := map[string]bool{}
	for _, panel := range dashboard.Panels {
		for _, target := range panel.Targets {
			for _, name := range regexp.MustCompile(`noderotation_\w+`).FindAllString(target.Expr, -1) {
				name = strings.TrimSuffix(name, "_bucket")
				shown[name] = true
				if !slices.Contains(metricNames(), name) {
					t.Errorf("%s: nothing exports %s", panel.Title, name)
				}
			}
		}
	}
	for _, name := range metricNames() {
		if !shown[name] {
			t.Errorf("the dashboard does not show %s", name)
		}
	}
}

// metricNames are the names of all metrics of the controller's own.
func metricNames() (names []string) {
	m := newMetrics(prometheus.NewRegistry())
	descs := make(chan *prometheus.Desc, 100)
	for _, c := range []prometheus.Collector{m.completed, m.fallback, m.missed, m.duration, m.conflict} {
		c.Describe(descs)
	}
	for _, g := range m.gauges {
		g.Describe(descs)
	}
	close(descs)
	for d := range descs {
		_, name, _ := strings.Cut(d.String(), `fqName: "`)
		name, _, _ = strings.Cut(name, `"`)
		names = append(names, name)
	}
	return names
}
