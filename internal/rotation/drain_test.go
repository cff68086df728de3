package rotation

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// draining is a rotation of blue-a that Karpenter drains since 02:00:40.
func draining(t fatal, grace *time.Duration) *world {
	w := pendingRotation(t)
	w.claim("blue-a").GracePeriod = grace
	perform(t, w)
	return w
}

func TestADrainIsStuckPastItsOwnBound(t *testing.T) {
	for _, tt := range []struct {
		name  string
		grace *time.Duration
		after time.Duration
		stuck bool
	}{
		{"r24: 2m, before", ptr(2 * time.Minute), 4*time.Minute - 1, false},
		{"r24: 2m, at the bound", ptr(2 * time.Minute), 4 * time.Minute, true},
		{"r25: unset, before", nil, 62*time.Minute - 1, false},
		{"r25: unset, at the bound", nil, 62 * time.Minute, true},
		{"a day", ptr(day), 24 * time.Hour, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := draining(t, tt.grace)
			w.NodePool.GracePeriod = ptr(time.Minute) // the template does not count
			deleted := w.claim("blue-a").Deleting
			w.now = deleted.Add(tt.after)
			d := w.decide()
			if d.Gauges.DrainStuck != tt.stuck || d.Active != "blue-a" || len(d.Plan) > 0 {
				t.Errorf("stuck %t, active %q, plan %s; want stuck %t and the gate kept", d.Gauges.DrainStuck, d.Active, acts(d.Plan), tt.stuck)
			}
			if !tt.stuck && !d.Wake.After(w.now) {
				t.Errorf("wakes at %s", d.Wake)
			}
			if tt.after%time.Minute != 0 && !d.Wake.Equal(deleted.Add(tt.after+1)) {
				t.Errorf("wakes at %s, want the bound", d.Wake)
			}
		})
	}
}

func TestBlockersAreThePodsThatKarpenterWaitsFor(t *testing.T) {
	tolerant := func(t corev1.Toleration) *corev1.Pod {
		return podWith(func(p *corev1.Pod) { p.Name, p.Spec.Tolerations = "tolerant", []corev1.Toleration{{Key: "other"}, t} })
	}
	named := func(name string) *corev1.Pod { return podWith(func(p *corev1.Pod) { p.Name = name }) }
	var many []*corev1.Pod
	for i := range 12 {
		many = append(many, named(fmt.Sprintf("p%02d", i)))
	}
	for _, tt := range []struct {
		name string
		pods []*corev1.Pod
		want string
	}{
		{"none", nil, ""},
		{"sorted", []*corev1.Pod{named("b"), named("a")}, "default/a, default/b"},
		{"what stays with the node", []*corev1.Pod{podWith(owned("DaemonSet")), podWith(owned("Node"))}, ""},
		{"tolerates the taint", []*corev1.Pod{tolerant(corev1.Toleration{Key: taintDisrupt, Operator: corev1.TolerationOpExists})}, ""},
		{"tolerates its effect", []*corev1.Pod{tolerant(corev1.Toleration{Key: taintDisrupt, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule})}, ""},
		{"tolerates another effect", []*corev1.Pod{tolerant(corev1.Toleration{Key: taintDisrupt, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute})}, "default/tolerant"},
		{"tolerates everything", []*corev1.Pod{tolerant(corev1.Toleration{Operator: corev1.TolerationOpExists})}, ""},
		{"many", many, "default/p00, default/p01, default/p02, default/p03, default/p04, default/p05, default/p06, default/p07, default/p08, default/p09, and 2 more"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := Snapshot{Pods: map[string][]*corev1.Pod{"node-a": tt.pods}}
			if got := s.blockers("node-a"); got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}

// A webhook does not let the NodeClaim be deleted. The drain counts from the transition, as it
// has no other beginning.
func TestADrainThatIsNotLetBeginIsStuck(t *testing.T) {
	w := draining(t, ptr(time.Hour))
	w.claim("blue-a").Deleting = time.Time{}
	w.Trouble = "denied the request: locked"
	begun := w.now
	for after, stuck := range map[time.Duration]bool{62*time.Minute - 1: false, 62 * time.Minute: true} {
		w.now = begun.Add(after)
		d := w.decide()
		if d.Gauges.DrainStuck != stuck || acts(d.Plan) != string(ActDeleteNodeClaim) {
			t.Errorf("after %s: stuck %t, plan %s", after, d.Gauges.DrainStuck, acts(d.Plan))
		}
		const want = "NodeClaim blue-a was to be drained from 2026-06-10T02:00:40Z on: its deletion is not let through; look for webhooks and admission policies on NodeClaims: denied the request: locked"
		if stuck && d.Detail != want {
			t.Errorf("it says %q", d.Detail)
		}
	}
	w.now = begun.Add(2 * time.Hour)
	w.Placeholder = &Placeholder{Object: Object{Name: "noderotation-surge-blue-a"}, Deleting: true}
	if d := w.decide(); !strings.Contains(d.Detail, "its placeholder noderotation-surge-blue-a does not go") {
		t.Errorf("held by its placeholder, it says %q", d.Detail)
	}
	edit(&w.NodePool.Annotations, map[string]string{AnnotationDrainingAt: "x"}, nil)
	if d := w.decide(); d.Gauges.DrainStuck {
		t.Errorf("nothing says since when: %v", d.Stuck)
	}
}
