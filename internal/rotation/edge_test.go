package rotation

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// The window of Wednesday 10 June is open from 02:00 to 06:00.
func TestTheVerdictOnAWindow(t *testing.T) {
	const open, closed, opened = "2026-06-10T03:00:00Z", "2026-06-10T06:00:00Z", "2026-06-10T02:00:00Z"
	for _, tt := range []struct {
		name        string
		now         string
		annotations map[string]string
		waiting     Census // what is on the pool
		edit        func(*Policy)
		want        Act
	}{
		{name: "open, never seen", now: open, waiting: Census{Eligible: 1}, want: ActStampWindow},
		{name: "open, all of it in backoff", now: open, waiting: Census{Backoff: 1}, want: ActStampWindow},
		{name: "open, nothing to rotate", now: open, waiting: Census{NotDue: 3, OptedOut: 1}},
		{name: "open, seen before", now: open, annotations: map[string]string{AnnotationWindowOpened: opened}, waiting: Census{Eligible: 1}},
		{name: "open, the stamp unreadable", now: open, annotations: map[string]string{AnnotationWindowOpened: "noon"}, waiting: Census{Eligible: 1}, want: ActStampWindow},
		{name: "open, frozen", now: open, annotations: map[string]string{AnnotationFreeze: "2026-07-01T00:00:00Z"}, waiting: Census{Eligible: 1}},
		{name: "open, the freeze is over", now: open, annotations: map[string]string{AnnotationFreeze: open}, waiting: Census{Eligible: 1}, want: ActStampWindow},
		{name: "r04: open for good", now: open, waiting: Census{Eligible: 1}, edit: func(p *Policy) { p.Windows = policyOn(t, "daily 00:00-24:00 UTC").Windows }},
		{name: "a policy that is not fully read", now: open, waiting: Census{Eligible: 1}, edit: func(p *Policy) { p.Invalid = "?" }},

		{name: "closed, never seen", now: closed, waiting: Census{Eligible: 1}},
		{name: "closed, missed", now: closed, annotations: map[string]string{AnnotationWindowOpened: opened}, waiting: Census{Eligible: 1}, want: ActMissWindow},
		{name: "a moment before it closes", now: "2026-06-10T05:59:59.999Z", annotations: map[string]string{AnnotationWindowOpened: opened}, waiting: Census{Eligible: 1}},
		{name: "closed, missed by what failed", now: closed, annotations: map[string]string{AnnotationWindowOpened: opened}, waiting: Census{Backoff: 1}, want: ActMissWindow},
		{name: "closed, the stamp unreadable", now: closed, annotations: map[string]string{AnnotationWindowOpened: "noon"}, waiting: Census{Eligible: 1}, want: ActSettleWindow},
		{name: "closed, unreadable and anchored", now: closed, annotations: map[string]string{AnnotationWindowOpened: "", AnnotationActive: "x"}, waiting: Census{Eligible: 1}, want: ActSettleWindow},
		{name: "closed, a rotation under way", now: closed, annotations: map[string]string{AnnotationWindowOpened: opened, AnnotationActive: "x"}, waiting: Census{Eligible: 1}},
		{name: "closed, frozen", now: closed, annotations: map[string]string{AnnotationWindowOpened: opened, AnnotationFreeze: "2026-07-01T00:00:00Z"}, waiting: Census{Eligible: 1}, want: ActSettleWindow},
		{name: "closed, frozen in doubt", now: closed, annotations: map[string]string{AnnotationWindowOpened: opened, AnnotationFreeze: "x"}, waiting: Census{Eligible: 1}, want: ActSettleWindow},
		{name: "closed, the freeze is over", now: closed, annotations: map[string]string{AnnotationWindowOpened: opened, AnnotationFreeze: closed}, waiting: Census{Eligible: 1}, want: ActMissWindow},
		{name: "closed, nothing left to rotate", now: closed, annotations: map[string]string{AnnotationWindowOpened: opened}, waiting: Census{OptedOut: 1}, want: ActSettleWindow},
		{name: "closed, rotated in its first second", now: closed, annotations: map[string]string{AnnotationWindowOpened: opened, AnnotationLastRotation: opened}, waiting: Census{Eligible: 1}, want: ActSettleWindow},
		{name: "closed, rotated the second before", now: closed, annotations: map[string]string{AnnotationWindowOpened: opened, AnnotationLastRotation: "2026-06-10T01:59:59Z"}, waiting: Census{Eligible: 1}, want: ActMissWindow},
		{name: "closed, no telling when it rotated", now: closed, annotations: map[string]string{AnnotationWindowOpened: opened, AnnotationLastRotation: "x"}, waiting: Census{Eligible: 1}, want: ActMissWindow},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := Snapshot{NodePool: NodePool{Object: Object{Kind: KindNodePool, Name: "blue"}, Annotations: tt.annotations}}
			p := policyOn(t, "Wed,Sat 02:00-06:00 UTC")
			if tt.edit != nil {
				tt.edit(p)
			}
			st, _ := s.windowEdge(p, survey{census: tt.waiting}, date(t, tt.now))
			if st.Act != tt.want {
				t.Fatalf("%s; want %q", st, tt.want)
			}
			if tt.want == ActMissWindow {
				want := Facts{WindowOpened: date(t, opened), Eligible: tt.waiting[Eligible], InBackoff: tt.waiting[Backoff]}
				if diff := cmp.Diff(want, st.Facts); diff != "" {
					t.Errorf("facts (-want +got):\n%s", diff)
				}
			}
			if tt.want == ActStampWindow && st.Set[AnnotationWindowOpened] != stamp(date(t, tt.now)) {
				t.Errorf("stamped %v", st.Set)
			}
		})
	}
}

// In a closed gate nothing starts, but a claim that becomes due makes the window count: the
// pool wakes for it, and for the end of a freeze.
func TestTheWindowWakesForWhatMakesItCount(t *testing.T) {
	w := oldNode(t)
	w.NodePool.Static = true
	w.now = w.now.Add(-time.Hour)
	if d := w.decide(); len(d.Plan) > 0 || !d.Wake.Equal(date(t, "2026-06-10T02:00:00Z")) {
		t.Errorf("%s, wake at %s; want it when the window opens", acts(d.Plan), d.Wake)
	}
	w.now = w.now.Add(2 * time.Hour)
	w.claim("blue-a").Created = w.now.Add(-142*time.Hour - 43*time.Minute)
	if d := w.decide(); len(d.Plan) > 0 || !d.Wake.Equal(w.now.Add(1)) {
		t.Errorf("%s, wake in %s; want it just past the threshold", acts(d.Plan), d.Wake.Sub(w.now))
	}
	w.now = w.now.Add(1)
	w.freezeUntil(w.now.Truncate(time.Second).Add(time.Minute))
	d := w.decide()
	if len(d.Plan) > 0 || !d.Wake.Equal(w.now.Truncate(time.Second).Add(time.Minute)) {
		t.Errorf("%s, wake in %s; want it at the end of the freeze", acts(d.Plan), d.Wake.Sub(w.now))
	}
	w.now = d.Wake
	if d := perform(t, w); acts(d.Plan) != string(ActStampWindow) {
		t.Errorf("%s, want the stamp", acts(d.Plan))
	}
	if d := w.decide(); len(d.Plan) > 0 || !d.Wake.Equal(date(t, "2026-06-10T06:00:00Z")) {
		t.Errorf("%s, wake at %s; want nothing until the window closes", acts(d.Plan), d.Wake)
	}
}

// A week without anything that is due, and two windows in it: not one write.
func TestAnIdlePoolIsNotStamped(t *testing.T) {
	w := newWorld(date(t, "2026-06-10T00:00:00Z"))
	w.Governance.Policy = policyOn(t, "Wed,Sat 02:00-06:00 UTC")
	w.NodePool = NodePool{Object: w.object(KindNodePool, "blue"), ExpireAfter: ptr(21 * day), GracePeriod: ptr(time.Hour)}
	w.join(NodeClaim{Object: Object{Name: "blue-a"}, NodeName: "node-a", Ready: true, Created: w.now, ExpireAfter: ptr(21 * day), GracePeriod: ptr(time.Hour)})
	for end := w.now.Add(7 * day); w.now.Before(end); {
		d := w.decide()
		if len(d.Plan) > 0 {
			t.Fatalf("at %s it writes %q", w.now, acts(d.Plan))
		}
		w.now = d.Wake
	}
}
