package rotation

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func date(t fatal, s string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// policyOn is a policy with every default, measured from Monday 8 June 2026.
func policyOn(t fatal, windows ...string) *Policy {
	t.Helper()
	p, err := testPolicy(date(t, "2026-06-08T00:00:00Z"), windows...)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

const twiceWeekly = "Wed,Sat 02:00-06:00 Asia/Tokyo"

func TestTerms(t *testing.T) {
	hours := func(n int) time.Duration { return time.Duration(n) * time.Hour }
	for _, tt := range []struct {
		name        string
		windows     string
		edit        func(*Policy)
		expire      *time.Duration
		gracePeriod *time.Duration
		want        Terms
	}{
		{
			name: "Wed and Sat, a grace period of 1h", windows: twiceWeekly, expire: ptr(14 * day), gracePeriod: ptr(time.Hour),
			want: Terms{Expires: true, TRot: hours(1) + 17*time.Minute, LeadTime: 8*day + hours(1) + 17*time.Minute,
				Threshold: 14*day - (8*day + hours(1) + 17*time.Minute), Chances: 2},
		},
		{
			name: "a grace period of 24h costs a day of age", windows: twiceWeekly, expire: ptr(14 * day), gracePeriod: ptr(day),
			want: Terms{Expires: true, TRot: hours(24) + 17*time.Minute, LeadTime: 9*day + 17*time.Minute,
				Threshold: 5*day - 17*time.Minute, Chances: 2},
		},
		{
			name: "an unset grace period counts as 1h", windows: twiceWeekly, expire: ptr(14 * day),
			want: Terms{Expires: true, TRot: hours(1) + 17*time.Minute, LeadTime: 8*day + hours(1) + 17*time.Minute,
				Threshold: 14*day - (8*day + hours(1) + 17*time.Minute), Chances: 2},
		},
		{
			name: "weekly leaves nothing", windows: "Sat 02:00-06:00 Asia/Tokyo", expire: ptr(14 * day), gracePeriod: ptr(time.Hour),
			want: Terms{Expires: true, TRot: hours(1) + 17*time.Minute, LeadTime: 14*day + hours(1) + 17*time.Minute,
				Threshold: -(hours(1) + 17*time.Minute), Chances: 2},
		},
		{
			name: "an override counts whole periods", windows: twiceWeekly, expire: ptr(14 * day), gracePeriod: ptr(time.Hour),
			edit: func(p *Policy) { p.AgeThreshold = 5 * day },
			want: Terms{Expires: true, TRot: hours(1) + 17*time.Minute, LeadTime: 9 * day, Threshold: 5 * day, Chances: 2},
		},
		{
			name: "an override that is a minute late for its second chance", windows: twiceWeekly, expire: ptr(14 * day), gracePeriod: ptr(time.Hour),
			edit: func(p *Policy) { p.AgeThreshold = 6*day - 76*time.Minute },
			want: Terms{Expires: true, TRot: hours(1) + 17*time.Minute, LeadTime: 8*day + 76*time.Minute, Threshold: 6*day - 76*time.Minute, Chances: 1},
		},
		{
			name: "an override beyond the deadline rounds down, not to zero", windows: twiceWeekly, expire: ptr(14 * day), gracePeriod: ptr(time.Hour),
			edit: func(p *Policy) { p.AgeThreshold = 14 * day },
			want: Terms{Expires: true, TRot: hours(1) + 17*time.Minute, Threshold: 14 * day, Chances: -1},
		},
		{
			name: "no windows", expire: ptr(14 * day), gracePeriod: ptr(time.Hour),
			want: Terms{Expires: true, TRot: hours(1) + 17*time.Minute, LeadTime: hours(1) + 17*time.Minute, Threshold: 14*day - hours(1) - 17*time.Minute},
		},
		{name: "Never", windows: twiceWeekly, gracePeriod: ptr(time.Hour)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := policyOn(t, windows(tt.windows)...)
			if tt.edit != nil {
				tt.edit(p)
			}
			if diff := cmp.Diff(tt.want, p.Terms(tt.expire, tt.gracePeriod)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func windows(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(s, "; ")
}

// A claim keeps the terms with which it was launched; the template of its pool may have
// moved on since.
func TestAClaimIsDueByItsOwnTerms(t *testing.T) {
	p := policyOn(t, "Wed,Sat 02:00-06:00 UTC")
	w := newWorld(date(t, "2026-06-10T02:00:00Z"))
	w.Governance.Policy = p
	w.NodePool = NodePool{Object: w.object(KindNodePool, "blue"), ExpireAfter: ptr(30 * day), GracePeriod: ptr(time.Hour)}
	w.join(NodeClaim{
		Object: Object{Name: "blue-a"}, NodeName: "node-a", Ready: true,
		Created: w.now.Add(-6 * day), ExpireAfter: ptr(14 * day), GracePeriod: ptr(time.Hour),
	})
	if d := w.decide(); d.Active != "blue-a" {
		t.Errorf("the claim is past its own threshold: %+v", d)
	}
	w.claim("blue-a").GracePeriod = ptr(day)
	w.claim("blue-a").Created = w.now.Add(-5 * day)
	if d := w.decide(); d.Active != "blue-a" {
		t.Errorf("a longer grace period of its own makes it due earlier: %+v", d)
	}
	w.claim("blue-a").ExpireAfter = ptr(30 * day)
	if d := w.decide(); d.Reason != ReasonNoCandidate {
		t.Errorf("a longer life of its own makes it due later: %+v", d)
	}
}

func TestGauges(t *testing.T) {
	w := newWorld(date(t, "2026-06-10T02:00:00Z"))
	w.Governance.Policy = policyOn(t, "Wed,Sat 02:00-06:00 UTC")
	w.NodePool = NodePool{Object: w.object(KindNodePool, "blue"), ExpireAfter: ptr(14 * day), GracePeriod: ptr(time.Hour)}
	w.NodePool.Annotations = map[string]string{AnnotationFreeze: "2026-06-11T00:00:00Z"}
	for name, c := range map[string]NodeClaim{
		"due":     {Created: w.now.Add(-6 * day)},
		"young":   {Created: w.now},
		"waiting": {Created: w.now.Add(-6 * day), Annotations: map[string]string{AnnotationState: StateFailed, AnnotationFailedAt: "2026-06-10T01:59:00Z", AnnotationRetryCount: "3"}},
	} {
		c.Name, c.NodeName, c.Ready, c.ExpireAfter = name, "node-"+name, true, ptr(14*day)
		w.join(c)
	}
	want := Gauges{
		Governed: true, Census: Census{Eligible: 1, NotDue: 1, Backoff: 1}, WindowOpen: true,
		FreezeUntil: date(t, "2026-06-11T00:00:00Z"), Retries: 3, Period: 4 * day,
		Terms: w.Governance.Policy.Terms(ptr(14*day), ptr(time.Hour)), Throughput: Throughput{15 * time.Minute, 10},
	}
	if diff := cmp.Diff(want, w.decide().Gauges); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	w.now = date(t, "2026-06-11T00:00:00Z")
	if g := w.decide().Gauges; g.WindowOpen || !g.FreezeUntil.IsZero() {
		t.Errorf("after the window and the freeze: %+v", g)
	}
	w.NodePool.ExpireAfter = nil
	if g := w.decide().Gauges; g.Terms != (Terms{}) || g.Throughput != (Throughput{}) {
		t.Errorf("r26: Never reads as zero: %+v", g)
	}
	w.Governance = Governance{Conflict: []string{"a", "b"}}
	if g := w.decide().Gauges; !cmp.Equal(g, Gauges{Conflict: true}) {
		t.Errorf("under a conflict: %+v", g)
	}
}

// The template has 30 days, the policy says 10, and a claim of an older template has 150 hours:
// it would expire before it is due. The derived threshold is for it as well; a claim with a
// whole period left after 10 days is due then.
func TestAShortLifeUnderAnExplicitThresholdIsRotatedAtTheFirstOpportunity(t *testing.T) {
	w := oldNode(t)
	w.Governance.Policy.AgeThreshold = 10 * day
	w.NodePool.ExpireAfter = ptr(30 * day)
	c := w.claim("blue-a")
	c.ExpireAfter, c.Created = ptr(150*time.Hour), w.now.Add(-149*time.Hour)
	for _, fallback := range []bool{false, true} {
		w.Governance.Policy.ForcefulFallback = fallback
		d := w.decide()
		if !strings.HasPrefix(acts(d.Plan), string(ActClaimAnchor)) || d.Gauges.ShortLead != 1 {
			t.Errorf("fallback %t: %s %s: %s, %d short leads", fallback, d.Reason, d.Detail, acts(d.Plan), d.Gauges.ShortLead)
		}
	}
	if due, _ := w.Governance.Policy.due(&NodeClaim{Created: w.now, ExpireAfter: ptr(15 * day), GracePeriod: ptr(time.Hour)}); !due.Equal(w.now.Add(10 * day)) {
		t.Errorf("a claim of 15 days is due after %s", due.Sub(w.now))
	}
}

// As long as a duration of Karpenter's can be: 292 years.
func TestDurationsDoNotOverflow(t *testing.T) {
	const most = time.Duration(math.MaxInt64)
	for i, got := range []time.Duration{plus(most, 1), plus(most-1, 1), plus(1, most), times(most/2, 3), -plus(-most, -1), -plus(-most+1, -1), times(1, math.MaxInt)} {
		if got != most {
			t.Errorf("case %d: %s", i, got)
		}
	}
	if plus(time.Minute, -time.Hour) != -59*time.Minute || plus(-most, most) != 0 || times(time.Minute, 3) != 3*time.Minute || times(0, 3) != 0 {
		t.Error("what is far from the ends is reckoned otherwise")
	}
	w := oldNode(t)
	long := 2562047 * time.Hour
	w.NodePool.GracePeriod = &long
	p := w.Governance.Policy
	p.ReadyTimeout, p.RetryBackoff, p.CooldownAfter = long, long, long
	if terms := p.Terms(w.NodePool.ExpireAfter, &long); terms.TRot != most || terms.Threshold > 0 || terms.Chances >= 0 && p.AgeThreshold > 0 {
		t.Errorf("t_rot %s, A %s, G %d", terms.TRot, terms.Threshold, terms.Chances)
	}
	codes := map[string]bool{}
	for _, f := range p.Findings(w.NodePool, nil) {
		codes[f.Code] = true
	}
	if !codes["HardCapExceeded"] || !codes["ANonPositive"] {
		t.Errorf("found %v", codes)
	}
	if got := p.backoff(w.now, 4, w.now); got <= 0 {
		t.Errorf("the fourth attempt comes after %s", got)
	}
	if got := p.Throughput(&long); got.Capacity != 1 {
		t.Errorf("%d starts in a window", got.Capacity)
	}
}
