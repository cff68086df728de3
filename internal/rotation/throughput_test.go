package rotation

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestThroughput(t *testing.T) {
	minutes := func(n int) *time.Duration { return ptr(time.Duration(n) * time.Minute) }
	for _, tt := range []struct {
		name    string
		windows string
		edit    func(*Policy)
		grace   *time.Duration
		want    Throughput
	}{
		{"the worked example", twiceWeekly, nil, minutes(60), Throughput{15 * time.Minute, 10}},
		{"a grace period of 24h changes nothing", twiceWeekly, nil, minutes(24 * 60), Throughput{15 * time.Minute, 10}},
		{"one below the usual drain does", twiceWeekly, nil, minutes(5), Throughput{10 * time.Minute, 12}},
		{"none set", twiceWeekly, nil, nil, Throughput{15 * time.Minute, 10}},
		{"a readyTimeout below the usual launch", twiceWeekly, func(p *Policy) { p.ReadyTimeout = time.Minute }, minutes(60), Throughput{11 * time.Minute, 12}},
		{"the estimates of the operator", twiceWeekly, func(p *Policy) { p.DrainEstimate, p.ProvisioningEstimate = minutes(30), minutes(10) }, minutes(60), Throughput{40 * time.Minute, 5}},
		{"clamped where they are cut short", twiceWeekly, func(p *Policy) { p.DrainEstimate, p.ProvisioningEstimate = minutes(90), minutes(20) }, minutes(60), Throughput{75 * time.Minute, 3}},
		{"a drain that nothing bounds is taken as told", twiceWeekly, func(p *Policy) { p.DrainEstimate = minutes(90) }, nil, Throughput{95 * time.Minute, 3}},
		{"the shortest window counts", "Wed 02:00-06:00 UTC; Sat 02:00-02:30 UTC", nil, minutes(60), Throughput{15 * time.Minute, 2}},
		{"a window holds a start however short it is", "Wed 02:00-02:01 UTC", nil, minutes(60), Throughput{15 * time.Minute, 1}},
		{"exactly two", "Wed 02:00-02:50 UTC", nil, minutes(60), Throughput{15 * time.Minute, 2}},
		{"no cooldown", twiceWeekly, func(p *Policy) { p.CooldownAfter = 0 }, minutes(60), Throughput{15 * time.Minute, 16}},
		{"r04: of a window that never closes, one minute", "daily 00:00-24:00 UTC", nil, minutes(60), Throughput{15 * time.Minute, 1}},
		{"without windows", "", nil, minutes(60), Throughput{15 * time.Minute, 0}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := policyOn(t, windows(tt.windows)...)
			if tt.edit != nil {
				tt.edit(p)
			}
			if diff := cmp.Diff(tt.want, p.Throughput(tt.grace)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// K x C is 4 in these windows, and a window period is seven days long.
func TestR09ABatchIsWarnedOfBeforeAnythingHappens(t *testing.T) {
	p := policyOn(t, "Wed 02:00-02:50 UTC")
	pool := NodePool{ExpireAfter: ptr(60 * day), GracePeriod: ptr(time.Hour)}
	now := date(t, "2026-06-10T00:00:00Z")
	born := func(n int, apart time.Duration) (cs []NodeClaim) {
		for i := range n {
			cs = append(cs, NodeClaim{Object: Object{Name: fmt.Sprint(i)}, Created: now.Add(time.Duration(i) * apart), ExpireAfter: ptr(60 * day)})
		}
		return cs
	}
	leaving := born(5, 0)
	leaving[4].Deleting = now
	eternal := born(5, 0)
	eternal[4].ExpireAfter = nil
	alike := append(born(4, 0), NodeClaim{Created: now.Add(-30 * day), ExpireAfter: ptr(90 * day)})
	for _, tt := range []struct {
		name   string
		claims []NodeClaim
		warns  bool
	}{
		{"as many as fit", born(4, 0), false},
		{"one more", born(5, 0), true},
		{"one more, which is on its way out", leaving, false},
		{"one more, which never expires", eternal, false},
		{"the same deadline by another life", alike, true},
		{"a day apart each", born(5, day), true},
		{"nearly two days apart each", born(5, 7*day/4-1), true},
		{"spread over a period", born(5, 7*day/4), false},
		{"none", nil, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			fs := p.bottlenecks(pool, p.Terms(pool.ExpireAfter, pool.GracePeriod), tt.claims)
			if got := len(fs) == 1 && fs[0].Code == "ThroughputBurstShortfall"; got != tt.warns || len(fs) > 1 {
				t.Errorf("found %+v, want the shortfall %t", fs, tt.warns)
			}
		})
	}
}

// Two rotations fit into a week, and a node is due at 14 days: four nodes is what that
// keeps up with.
func TestThroughputBelowArrival(t *testing.T) {
	p := policyOn(t, "Wed 02:00-02:50 UTC")
	pool := NodePool{ExpireAfter: ptr(28*day + 77*time.Minute), GracePeriod: ptr(time.Hour)}
	var claims []NodeClaim
	for n := 1; n <= 5; n++ {
		claims = append(claims, NodeClaim{Created: date(t, "2026-06-10T00:00:00Z").Add(time.Duration(n) * 5 * day), ExpireAfter: pool.ExpireAfter})
		fs := p.bottlenecks(pool, p.Terms(pool.ExpireAfter, pool.GracePeriod), claims)
		if n < 5 {
			if len(fs) > 0 {
				t.Errorf("%d nodes: %+v", n, fs)
			}
			continue
		}
		want := []Finding{{"ThroughputBelowArrival", Warn,
			"C = 1 x ceil(shortest window 50m0s / (t_rot_est 15m0s + cooldownAfter 10m0s)) = 2 rotations per window, but 5 nodes x window period 168h0m0s / ageThreshold 336h0m0s = 2.5 become due in that time",
			"widen the windows, add some, or lower cooldownAfter"}}
		if diff := cmp.Diff(want, fs); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	}
}

// The pool is at what the windows hold. While one of its nodes is being replaced there is one
// claim more, and no more to do.
func TestARotationDoesNotMakeItsPoolLarger(t *testing.T) {
	w := newWorld(date(t, "2026-06-10T02:10:00Z"))
	w.Governance.Policy = policyOn(t, "Wed 02:00-02:50 UTC")
	w.NodePool = NodePool{Object: w.object(KindNodePool, "blue"), ExpireAfter: ptr(28*day + 77*time.Minute), GracePeriod: ptr(time.Hour)}
	for n := range 4 {
		w.join(NodeClaim{Object: Object{Name: fmt.Sprintf("blue-%d", n)}, Created: w.now.Add(time.Duration(n-5) * 5 * day), ExpireAfter: w.NodePool.ExpireAfter, GracePeriod: ptr(time.Hour)})
	}
	warned := func() (codes []string) {
		for _, f := range w.decide().Warnings {
			if strings.HasPrefix(f.Code, "Throughput") {
				codes = append(codes, f.Code)
			}
		}
		return codes
	}
	w.NodePool.Annotations = map[string]string{AnnotationActive: "blue-0"}
	w.claim("blue-0").Annotations = map[string]string{AnnotationState: StatePending, AnnotationStartedAt: stamp(w.now)}
	surge := NodeClaim{Object: Object{Name: "blue-s"}, Created: w.now.Add(time.Minute), ExpireAfter: w.NodePool.ExpireAfter, GracePeriod: ptr(time.Hour)}
	w.now = w.now.Add(2 * time.Minute)
	w.join(surge)
	if got := warned(); got != nil {
		t.Errorf("the replacement counts: %v", got)
	}
	w.claim("blue-0").Deleting = w.now
	if got := warned(); got != nil {
		t.Errorf("in the drain: %v", got)
	}
	w.join(NodeClaim{Object: Object{Name: "blue-5"}, Created: w.now.Add(-day), ExpireAfter: w.NodePool.ExpireAfter, GracePeriod: ptr(time.Hour)})
	if got := warned(); got == nil {
		t.Error("four nodes and the replacement of a fifth are too many, and nothing is said")
	}
}
