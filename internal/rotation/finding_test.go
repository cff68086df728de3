package rotation

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestFatalFindings(t *testing.T) {
	for _, tt := range []struct {
		name    string
		windows string
		edit    func(*Policy)
		pool    NodePool
		want    []Finding
	}{
		{name: "the worked example is feasible", windows: twiceWeekly},
		{
			name: "NoWindows",
			want: []Finding{{"NoWindows", Fatal, "the maintenance windows never open in the next 400 days", "add an entry to maintenanceWindows"}},
		},
		{
			name: "KBelowOne", windows: twiceWeekly, edit: func(p *Policy) { p.Chances = 0 },
			want: []Finding{{"KBelowOne", Fatal, "minRotationChances is 0", "set minRotationChances to 1 or more"}},
		},
		{
			name: "ANonPositive", windows: "Sat 02:00-06:00 Asia/Tokyo",
			want: []Finding{{"ANonPositive", Fatal,
				"ageThreshold = expireAfter 336h0m0s - (2 x window period 168h0m0s + t_rot 1h17m0s) = -1h17m0s, which is not positive",
				"raise expireAfter, add windows, or lower minRotationChances"}},
		},
		{
			name: "ANonPositive of whole days, which are one window", windows: "Mon,Tue,Wed,Thu,Fri 00:00-24:00 UTC",
			want: []Finding{{"ANonPositive", Fatal,
				"ageThreshold = expireAfter 336h0m0s - (2 x window period 168h0m0s + t_rot 1h17m0s) = -1h17m0s, which is not positive",
				"raise expireAfter, add windows, or lower minRotationChances; days that touch are one window, here of at least 120h0m0s, and the window period 168h0m0s runs from its start to that of the next: end each day before the next begins, such as at 23:00, for a window a day"}},
		},
		{
			name: "and so it is if each ends an hour sooner", windows: "Mon,Tue,Wed,Thu,Fri 00:00-23:00 UTC",
		},
		{
			name: "ANonPositive at exactly zero", windows: "Sat 02:00-06:00 Asia/Tokyo",
			pool: NodePool{ExpireAfter: ptr(14*day + 77*time.Minute), GracePeriod: ptr(time.Hour)},
			want: []Finding{{"ANonPositive", Fatal,
				"ageThreshold = expireAfter 337h17m0s - (2 x window period 168h0m0s + t_rot 1h17m0s) = 0s, which is not positive",
				"raise expireAfter, add windows, or lower minRotationChances"}},
		},
		{
			name: "a minute above zero is feasible", windows: "Sat 02:00-06:00 Asia/Tokyo",
			pool: NodePool{ExpireAfter: ptr(14*day + 78*time.Minute), GracePeriod: ptr(time.Hour)},
		},
		{
			name: "OverrideNonPositive", windows: twiceWeekly, edit: func(p *Policy) { p.AgeThreshold = -time.Hour },
			want: []Finding{{"OverrideNonPositive", Fatal, "ageThreshold is -1h0m0s", "set ageThreshold to auto or to a positive duration"}},
		},
		{
			name: "OverrideGBelowOne", windows: twiceWeekly, edit: func(p *Policy) { p.AgeThreshold = 11 * day },
			want: []Finding{{"OverrideGBelowOne", Fatal,
				"ageThreshold 264h0m0s leaves floor((expireAfter 336h0m0s - t_rot 1h17m0s - 264h0m0s) / window period 96h0m0s) = 0 whole window periods before the deadline",
				"lower ageThreshold or set it to auto"}},
		},
		{
			name: "an override that keeps one chance is not fatal", windows: twiceWeekly, edit: func(p *Policy) { p.AgeThreshold = 9 * day },
		},
		{
			name: "an override is not held to the derivation", windows: "Sat 02:00-06:00 Asia/Tokyo", edit: func(p *Policy) { p.AgeThreshold = 5 * day },
		},
		{
			name: "Never has no arithmetic to fail", windows: "Sat 02:00-06:00 Asia/Tokyo", pool: NodePool{GracePeriod: ptr(time.Hour)},
		},
		{
			name: "all that is wrong is said at once", edit: func(p *Policy) { p.Chances = -1 },
			want: []Finding{
				{"NoWindows", Fatal, "the maintenance windows never open in the next 400 days", "add an entry to maintenanceWindows"},
				{"KBelowOne", Fatal, "minRotationChances is -1", "set minRotationChances to 1 or more"},
			},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := policyOn(t, windows(tt.windows)...)
			if tt.edit != nil {
				tt.edit(p)
			}
			pool := tt.pool
			if pool.GracePeriod == nil {
				pool.ExpireAfter, pool.GracePeriod = ptr(14*day), ptr(time.Hour)
			}
			if diff := cmp.Diff(tt.want, p.fatal(pool)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// Every warning at the value at which it begins, and one step before it.
func TestWarnings(t *testing.T) {
	minutes := func(n int) *time.Duration { return ptr(time.Duration(n) * time.Minute) }
	for _, tt := range []struct {
		name    string
		windows string
		edit    func(*Policy)
		pool    NodePool
		want    []Finding
	}{
		{name: "the worked example gives no reason to worry"},
		{
			name: "KBelowTwo", edit: func(p *Policy) { p.Chances = 1 },
			want: []Finding{{"KBelowTwo", Warn, "minRotationChances is 1: a node that misses its window has no second one before its deadline", "set minRotationChances to 2 or more"}},
		},
		{
			name: "AVeryAggressive", pool: NodePool{ExpireAfter: ptr(12*day + 76*time.Minute), GracePeriod: minutes(60)},
			want: []Finding{{"AVeryAggressive", Warn, "ageThreshold 95h59m0s is below the window period 96h0m0s: every node is replaced in nearly every window",
				"raise expireAfter, add windows, or lower minRotationChances"}},
		},
		{name: "a threshold of one period is not aggressive", pool: NodePool{ExpireAfter: ptr(12*day + 77*time.Minute), GracePeriod: minutes(60)}},
		{
			name: "OverrideGBelowK", edit: func(p *Policy) { p.AgeThreshold = 9 * day },
			want: []Finding{{"OverrideGBelowK", Warn,
				"ageThreshold 216h0m0s leaves floor((expireAfter 336h0m0s - t_rot 1h17m0s - 216h0m0s) / window period 96h0m0s) = 1 whole window periods before the deadline, fewer than minRotationChances 2",
				"lower ageThreshold or set it to auto"}},
		},
		{name: "an override with as many chances", edit: func(p *Policy) { p.AgeThreshold = 5 * day }},
		{
			name: "TGPUnset", pool: NodePool{ExpireAfter: ptr(14 * day)},
			want: []Finding{{"TGPUnset", Warn, "terminationGracePeriod is not set: nothing bounds a drain, and it is counted as 1h0m0s", "set terminationGracePeriod in the NodePool's template"}},
		},
		{
			name: "HardCapExceeded", pool: NodePool{ExpireAfter: ptr(21*day - 59*time.Minute), GracePeriod: minutes(60)},
			want: []Finding{{"HardCapExceeded", Warn,
				"expireAfter 503h1m0s + terminationGracePeriod 1h0m0s = 504h1m0s, beyond the 504h0m0s after which EKS Auto Mode ends a node by force",
				"lower expireAfter or terminationGracePeriod"}},
		},
		{name: "at the hard cap exactly", pool: NodePool{ExpireAfter: ptr(21*day - time.Hour), GracePeriod: minutes(60)}},
		{
			name: "RetryBackoffShort", edit: func(p *Policy) { p.RetryBackoff = 14 * time.Minute },
			want: []Finding{{"RetryBackoffShort", Warn, "retryBackoff 14m0s is below readyTimeout 15m0s: a node is tried again sooner than an attempt takes to fail", "set retryBackoff to readyTimeout or more"}},
		},
		{name: "a backoff of one attempt", edit: func(p *Policy) { p.RetryBackoff = 15 * time.Minute }},
		{
			name: "DrainEstimateAboveTGP", edit: func(p *Policy) { p.DrainEstimate = minutes(61) },
			want: []Finding{{"DrainEstimateAboveTGP", Warn,
				"drainEstimate 1h1m0s is above terminationGracePeriod 1h0m0s, at which Karpenter ends the drain: it is taken as 1h0m0s", "lower drainEstimate"}},
		},
		{name: "a drain estimate of the whole grace period", edit: func(p *Policy) { p.DrainEstimate = minutes(60) }},
		{
			name: "ProvisioningEstimateAboveReadyTimeout", edit: func(p *Policy) { p.ProvisioningEstimate = minutes(16) },
			want: []Finding{{"ProvisioningEstimateAboveReadyTimeout", Warn,
				"provisioningEstimate 16m0s is above readyTimeout 15m0s, at which the attempt ends: it is taken as 15m0s", "lower provisioningEstimate or raise readyTimeout"}},
		},
		{name: "a provisioning estimate of the whole timeout", edit: func(p *Policy) { p.ProvisioningEstimate = minutes(15) }},
		{
			name: "ZoneNotRequired", edit: func(p *Policy) { p.Required = []string{"kubernetes.io/arch"} },
			want: []Finding{{"ZoneNotRequired", Warn,
				"matchNodeRequirements.required is without topology.kubernetes.io/zone: the replacement may come up in another zone than the volumes of the pods",
				"add topology.kubernetes.io/zone to matchNodeRequirements.required"}},
		},
		{
			name: "RotationSpansNextWindow", windows: "Wed,Sat 02:00-02:30 UTC; Wed,Sat 02:54-06:00 UTC",
			want: []Finding{{"RotationSpansNextWindow", Warn,
				"t_rot_est 15m0s + cooldownAfter 10m0s = 25m0s is longer than the shortest gap between windows 24m0s: a rotation that starts late takes from the next window, which then does not hold 2",
				"move the windows apart, or lower cooldownAfter"}},
		},
		{name: "a gap of one rotation", windows: "Wed,Sat 02:00-02:30 UTC; Wed,Sat 02:55-06:00 UTC"},
		{name: "r04: a window that never closes has no gap to span", windows: "daily 00:00-24:00 UTC"},
		{
			name: "a fatal finding leaves the throughput unasked, not the rest", windows: "Sat 02:00-02:10 UTC; Sat 02:20-02:30 UTC", edit: func(p *Policy) { p.RetryBackoff = time.Minute },
			want: []Finding{
				{"ANonPositive", Fatal, "ageThreshold = expireAfter 336h0m0s - (2 x window period 167h40m0s + t_rot 1h17m0s) = -37m0s, which is not positive",
					"raise expireAfter, add windows, or lower minRotationChances"},
				{"RetryBackoffShort", Warn, "retryBackoff 1m0s is below readyTimeout 15m0s: a node is tried again sooner than an attempt takes to fail", "set retryBackoff to readyTimeout or more"},
			},
		},
		{name: "Never has nothing to warn of", edit: func(p *Policy) { p.Chances = 1 }, pool: NodePool{GracePeriod: minutes(60)}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := policyOn(t, twiceWeekly)
			if tt.windows != "" {
				p = policyOn(t, windows(tt.windows)...)
			}
			if tt.edit != nil {
				tt.edit(p)
			}
			pool := tt.pool
			if pool.ExpireAfter == nil && pool.GracePeriod == nil {
				pool.ExpireAfter, pool.GracePeriod = ptr(14*day), ptr(time.Hour)
			}
			if diff := cmp.Diff(tt.want, p.Findings(pool, nil)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestShortLeadGoesByTheClaimsOwnTerms(t *testing.T) {
	lead := 8*day + 77*time.Minute // K x P + t_rot
	for _, tt := range []struct {
		name      string
		threshold time.Duration
		claim     NodeClaim
		short     bool
	}{
		{"exactly the lead", 0, NodeClaim{ExpireAfter: ptr(lead)}, true},
		{"a moment more", 0, NodeClaim{ExpireAfter: ptr(lead + 1)}, false},
		{"a longer grace period", 0, NodeClaim{ExpireAfter: ptr(lead + 1), GracePeriod: ptr(2 * time.Hour)}, true},
		{"being deleted already", 0, NodeClaim{ExpireAfter: ptr(day), Deleting: time.Unix(1, 0)}, false},
		{"Never", 0, NodeClaim{}, false},
		{"an override that leaves one period", 5 * day, NodeClaim{ExpireAfter: ptr(9*day + 77*time.Minute)}, false},
		{"an override that leaves none", 5 * day, NodeClaim{ExpireAfter: ptr(9*day + 76*time.Minute)}, true},
		{"an override and Never", 5 * day, NodeClaim{}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(date(t, "2026-06-09T00:00:00Z"))
			w.Governance.Policy = policyOn(t, twiceWeekly)
			w.Governance.Policy.AgeThreshold = tt.threshold
			w.NodePool = NodePool{Object: w.object(KindNodePool, "blue"), ExpireAfter: ptr(14 * day), GracePeriod: ptr(time.Hour)}
			c := tt.claim
			c.Name, c.Created = "blue-a", w.now
			if c.GracePeriod == nil {
				c.GracePeriod = ptr(time.Hour)
			}
			w.join(c)
			d := w.decide()
			var on []string
			for _, warn := range d.Warnings {
				if warn.Code == "ShortLead" {
					on = append(on, warn.On.Name)
				}
			}
			if (len(on) == 1 && on[0] == "blue-a") != tt.short || (d.Gauges.ShortLead == 1) != tt.short {
				t.Errorf("warned of %v, counted %d; want short %t", on, d.Gauges.ShortLead, tt.short)
			}
		})
	}
}
