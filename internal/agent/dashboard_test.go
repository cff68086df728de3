package agent

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The dashboard shows every metric, and none that there is not.
func TestCaptureDashboard(t *testing.T) {
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal([]byte(contents(t, "../../charts/tasuki/files/capture.json")), &dashboard); err != nil {
		t.Fatal(err)
	}
	shown := map[string]bool{}
	for _, panel := range dashboard.Panels {
		for _, target := range panel.Targets {
			for _, name := range regexp.MustCompile(namespace+`_\w+`).FindAllString(target.Expr, -1) {
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
