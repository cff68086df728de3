package rotation

import (
	"strings"
	"testing"
	"time"
)

// asking is a pool outside of its window, at noon of a Wednesday, with one old claim and one
// young.
func asking(t *testing.T) *world {
	w := newWorld(date(t, "2026-06-10T12:00:00Z"))
	w.Governance.Policy = policyOn(t, "Wed,Sat 02:00-06:00 UTC")
	w.NodePool = NodePool{Object: w.object(KindNodePool, "blue"), ExpireAfter: ptr(14 * day), GracePeriod: ptr(time.Hour)}
	for name, age := range map[string]time.Duration{"old": 10 * day, "young": day} {
		w.join(NodeClaim{Object: Object{Name: name}, NodeName: "node-" + name, Ready: true, Created: w.now.Add(-age), ExpireAfter: ptr(14 * day)})
	}
	return w
}

func (w *world) request(claim, value string) {
	c := w.claim(claim)
	c.Annotations = map[string]string{AnnotationRequested: value, AnnotationRequestedBy: "mei"}
	w.touch(&c.Object)
}

// What a request passes: the age always, the window if it says now, and nothing else.
func TestWhatARequestPasses(t *testing.T) {
	open := func(w *world) { w.now = date(t, "2026-06-13T02:00:00Z") }
	for name, tt := range map[string]struct {
		value string
		given func(*world)
		want  Reason
		start string
	}{
		"now, and no window":           {"now", func(*world) {}, ReasonAwaitingSurge, "young"},
		"for a window, and none is":    {"true", func(*world) {}, ReasonOutOfWindow, ""},
		"for a window, and one is":     {"true", func(w *world) { open(w); w.remove("old"); w.finalize("old") }, ReasonAwaitingSurge, "young"},
		"the earliest deadline, still": {"now", open, ReasonAwaitingSurge, "old"},
		"what nobody can read":         {"please", func(*world) {}, ReasonOutOfWindow, ""},
		"a freeze":                     {"now", func(w *world) { w.annotatePool(AnnotationFreeze, stamp(w.now.Add(time.Hour))) }, ReasonFrozen, ""},
		"a cooldown":                   {"now", func(w *world) { w.annotatePool(AnnotationLastRotation, stamp(w.now)) }, ReasonCooldown, ""},
		"a failure":                    {"now", func(w *world) { w.annotatePool(AnnotationLastFailure, stamp(w.now)) }, ReasonFailurePause, ""},
		"a node on its way out":        {"now", func(w *world) { w.claim("old").Deleting = w.now }, ReasonDisruption, ""},
		"the limits":                   {"now", func(w *world) { w.NodePool.Limits = list("nodes", "0") }, ReasonInsufficientHeadroom, ""},
		"an operator's do-not-disrupt": {"now", func(w *world) {
			w.change("node-young", func(n *Node) { n.Annotations = map[string]string{AnnotationDoNotDisrupt: "true"} })
		}, ReasonOutOfWindow, ""},
		"a node that is not ready":      {"now", func(w *world) { w.claim("young").Ready = false }, ReasonOutOfWindow, ""},
		"a claim that does not expire":  {"now", func(w *world) { w.claim("young").ExpireAfter = nil }, ReasonOutOfWindow, ""},
		"a policy that loses its nodes": {"now", func(w *world) { w.NodePool.ExpireAfter = ptr(2 * day) }, ReasonInfeasible, ""},
		"the backoff of a failure": {"now", func(w *world) {
			a := w.claim("young").Annotations
			a[AnnotationState], a[AnnotationFailedAt], a[AnnotationRetryCount] = StateFailed, stamp(w.now.Add(-time.Minute)), "1"
		}, ReasonOutOfWindow, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := asking(t)
			w.request("young", tt.value)
			tt.given(w)
			d := w.decide()
			if d.Reason != tt.want || d.Active != tt.start {
				t.Fatalf("%s of %q, want %s of %q: %s", d.Reason, d.Active, tt.want, tt.start, d.Detail)
			}
			if d.Active == "young" && (d.Plan[0].Facts.Requested != tt.value || d.Plan[0].Facts.RequestedBy != "mei") {
				t.Errorf("nothing is told of the request: %+v", d.Plan[0].Facts)
			}
			told := false
			for _, warn := range d.Warnings {
				told = told || warn.Code == "AnnotationInvalid" && strings.Contains(warn.Message, `"please"`)
			}
			if told != (tt.value == "please") {
				t.Errorf("warnings %+v", d.Warnings)
			}
		})
	}
}

// A claim that is asked for now wakes the pool when its backoff is over, window or not.
func TestARequestWakesAfterTheBackoff(t *testing.T) {
	w := asking(t)
	w.request("young", RequestNow)
	a := w.claim("young").Annotations
	a[AnnotationState], a[AnnotationFailedAt], a[AnnotationRetryCount] = StateFailed, stamp(w.now), "1"
	d := w.decide()
	if d.Reason != ReasonOutOfWindow || d.Wake.Sub(w.now) > time.Hour {
		t.Fatalf("%s, wake in %s", d.Reason, d.Wake.Sub(w.now))
	}
	w.now = d.Wake
	if d = w.decide(); d.Active != "young" {
		t.Errorf("at the wake-up: %s, %s", d.Reason, d.Detail)
	}
}

// A request is for one attempt: nobody has to remember at night what was asked for by day.
func TestARequestEndsWithItsAttempt(t *testing.T) {
	w := asking(t)
	w.request("young", RequestNow)
	perform(t, w)
	w.now = w.now.Add(w.Governance.Policy.ReadyTimeout)
	for w.claim("young").state() != StateFailed {
		perform(t, w)
	}
	if a := w.claim("young").Annotations; a[AnnotationRequested]+a[AnnotationRequestedBy] != "" {
		t.Errorf("the request is still there: %v", a)
	}
}

func (w *world) annotatePool(key, value string) {
	w.NodePool.Annotations = map[string]string{key: value}
	w.touch(&w.NodePool.Object)
}

// A failed claim that is still anchored is rotated again only when a first attempt would be.
func TestARequestForAWindowIsNotRetriedOutsideOfOne(t *testing.T) {
	w := asking(t)
	w.request("young", RequestWindow)
	a := w.claim("young").Annotations
	a[AnnotationState], a[AnnotationFailedAt], a[AnnotationRetryCount] = StateFailed, stamp(w.now.Add(-day)), "1"
	w.annotatePool(AnnotationActive, "young")
	if d := w.decide(); d.Plan[len(d.Plan)-1].Act != ActReleaseAnchor {
		t.Errorf("outside of the window: %s", acts(d.Plan))
	}
	w.request("young", RequestNow)
	a = w.claim("young").Annotations
	a[AnnotationState], a[AnnotationFailedAt], a[AnnotationRetryCount] = StateFailed, stamp(w.now.Add(-day)), "1"
	if d := w.decide(); d.Plan[0].Act != ActMarkPending {
		t.Errorf("asked for now: %s", acts(d.Plan))
	}
}
