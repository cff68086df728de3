package e2e

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tasuki-io/tasuki/api/v1alpha1"
	"github.com/tasuki-io/tasuki/lab"
	"github.com/tasuki-io/tasuki/lab/trial"
)

// For ten minutes there is nothing to do in two pools: in one no node is due, in the other
// the window is closed. The controller writes nothing at all about them, be it an Event or
// the status of a policy.
//
// It is the first of the tests that run side by side, as it takes longest.
func TestPoolsAtRestAreNotWrittenTo(t *testing.T) {
	needLab(t)
	t.Parallel()
	needController(t)
	open, closed := newPool(t, "rest-open"), newPool(t, "rest-closed", expireAfter("720h"))
	for _, p := range []*pool{open, closed} {
		p.deploy("web", 1, cpu("1"))
		p.awaitSettled(1, 1)
	}
	open.govern(func(rp *v1alpha1.RotationPolicy) { rp.Spec.AgeThreshold = v1alpha1.AgeThresholdAuto })
	later := time.Now().Add(12 * time.Hour)
	closed.govern(openDaily(later, later.Add(time.Hour)))
	if census := open.awaitReason("noCandidate"); census != "notDue=1" {
		t.Errorf("the census is %q, want one that is not due", census)
	}
	closed.awaitReason("outOfWindow")
	open.measured(map[string]float64{"window_active": 1, "candidates": 0})
	closed.measured(map[string]float64{"window_active": 0, "candidates": 1})
	time.Sleep(10 * time.Second) // what there is to tell is told

	since := time.Now()
	time.Sleep(10 * time.Minute)
	all, err := lab.AuditWrites(world.lab.Audit(), trial.User)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []*pool{open, closed} {
		names := p.names()
		for _, w := range all {
			object, _, _ := strings.Cut(w.Name, ".") // an Event is named after what it is about
			if !w.Time.Before(since) && (names[w.Name] || names[object]) {
				t.Errorf("write %s", w)
			}
		}
		if states := slices.Concat(p.onPool(activeRotation), p.onPool(windowOpenedAt)); len(states) > 0 {
			t.Errorf("NodePool %s carried %v", p.name, states)
		}
		p.unmarked()
		p.complete()
	}
}
