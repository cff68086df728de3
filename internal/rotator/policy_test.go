package rotator

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tasuki-io/tasuki/api/v1alpha1"
)

func TestTheMostSpecificPolicyGoverns(t *testing.T) {
	labels := map[string]string{"workload": "web", "team": "a"}
	catchAll := policy("catch-all", nil)
	byWorkload := policy("workload", map[string]string{"workload": "web"})
	byBoth := policy("both", labels)
	byTeam := policy("team", map[string]string{"team": "a"})
	other := policy("other", map[string]string{"workload": "api", "team": "a", "x": "y"})
	for _, tc := range []struct {
		name     string
		policies []*v1alpha1.RotationPolicy
		governs  string
		conflict []string
	}{
		{"none", nil, "", nil},
		{"a catch-all alone", []*v1alpha1.RotationPolicy{catchAll}, "catch-all", nil},
		{"a catch-all loses to any key", []*v1alpha1.RotationPolicy{catchAll, byWorkload}, "workload", nil},
		{"more constraints win", []*v1alpha1.RotationPolicy{byWorkload, byBoth, byTeam}, "both", nil},
		{"what does not match does not count", []*v1alpha1.RotationPolicy{byWorkload, other}, "workload", nil},
		{"a tie at the top is a conflict", []*v1alpha1.RotationPolicy{byWorkload, catchAll, byTeam}, "", []string{"team", "workload"}},
		{"R21 two catch-alls", []*v1alpha1.RotationPolicy{catchAll, policy("catch-all-2", nil)}, "", []string{"catch-all", "catch-all-2"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var all []v1alpha1.RotationPolicy
			for _, p := range tc.policies {
				all = append(all, *p)
			}
			g := (&policies{}).govern(labels, all, now)
			got := ""
			if g.Policy != nil {
				got = g.Policy.Name
			}
			if got != tc.governs {
				t.Errorf("governed by %q, want %q", got, tc.governs)
			}
			if diff := cmp.Diff(tc.conflict, g.Conflict); diff != "" {
				t.Errorf("conflict (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPolicyFromAppliesWhatUnsetMeans(t *testing.T) {
	p := web()
	p.Spec.AgeThreshold = "auto"
	p.Spec.Surge.CooldownAfter.Duration = time.Hour
	got := PolicyFrom(p, now)
	if got.AgeThreshold != 0 || got.FailurePause != time.Hour || got.Invalid != "" {
		t.Errorf("got %+v: want auto, failurePause max(10m, cooldownAfter), valid", got)
	}
	p.Spec.Surge.CooldownAfter.Duration = 0
	if got := PolicyFrom(p, now).FailurePause; got != 10*time.Minute {
		t.Errorf("failurePause %s, want 10m", got)
	}
	p.Spec.Surge.FailurePause = &metav1.Duration{Duration: time.Minute}
	if got := PolicyFrom(p, now).FailurePause; got != time.Minute {
		t.Errorf("failurePause %s, want the 1m that is set", got)
	}
}

func TestEstimatesAreReadFromThePolicy(t *testing.T) {
	p := web()
	if got := PolicyFrom(p, now); got.DrainEstimate != nil || got.ProvisioningEstimate != nil {
		t.Errorf("unset estimates read as %v and %v", got.DrainEstimate, got.ProvisioningEstimate)
	}
	p.Spec.Surge.DrainEstimate = &metav1.Duration{Duration: 20 * time.Minute}
	p.Spec.Surge.ProvisioningEstimate = &metav1.Duration{Duration: 2 * time.Minute}
	got := PolicyFrom(p, now)
	if *got.DrainEstimate != 20*time.Minute || *got.ProvisioningEstimate != 2*time.Minute {
		t.Errorf("estimates read as %v and %v", got.DrainEstimate, got.ProvisioningEstimate)
	}
}

func TestWhatAdmissionCannotJudgeMakesThePolicyInvalid(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*v1alpha1.RotationPolicy)
		want   string
	}{
		"a zone that nobody knows":   {func(p *v1alpha1.RotationPolicy) { p.Spec.MaintenanceWindows[0].Timezone = "Asia/Nowhere" }, `spec.maintenanceWindows[0]`},
		"an age that is no duration": {func(p *v1alpha1.RotationPolicy) { p.Spec.AgeThreshold = "10 days" }, `spec.ageThreshold is "10 days"`},
	} {
		t.Run(name, func(t *testing.T) {
			p := web()
			tc.change(p)
			if got := PolicyFrom(p, now).Invalid; !strings.Contains(got, tc.want) {
				t.Errorf("invalid because %q, want it to contain %q", got, tc.want)
			}
		})
	}
}

func TestAPolicyIsReadAgainWhenItChangesOrTheDayDoes(t *testing.T) {
	ps, p := &policies{}, web()
	first := ps.read(p, now)
	if ps.read(p, now.Add(time.Hour)) != first {
		t.Error("read twice within a day")
	}
	if ps.read(p, now.Add(24*time.Hour)) == first {
		t.Error("not read again on the next day, when the next 400 days are others")
	}
	p.Generation++
	p.Spec.MinRotationChances = 5
	if got := ps.read(p, now); got.Chances != 5 {
		t.Errorf("K is %d after the change, want 5", got.Chances)
	}
}

func TestAPolicyThatChangesIsReadAgainOnTheSameDay(t *testing.T) {
	ps, p := &policies{}, web()
	ps.read(p, now)
	p.Generation++
	p.Spec.MinRotationChances = 5
	if got := ps.read(p, now); got.Chances != 5 {
		t.Errorf("K is %d after the change, want 5", got.Chances)
	}
}

func TestAPolicyThatIsGoneIsForgotten(t *testing.T) {
	ps := &policies{}
	a, b := *policy("a", nil), *policy("b", nil)
	ps.govern(nil, []v1alpha1.RotationPolicy{a}, now)
	ps.govern(nil, []v1alpha1.RotationPolicy{b}, now)
	ps.govern(nil, []v1alpha1.RotationPolicy{b}, now)
	if len(ps.known) != 1 {
		t.Errorf("%d policies are remembered, want 1", len(ps.known))
	}
}

// The status is for reading: whatever it says, the policy is what its spec says.
func TestTheStatusDecidesNothing(t *testing.T) {
	p, shown := web(), web()
	shown.Status = v1alpha1.RotationPolicyStatus{
		MatchedNodePools: 7, RotatingNodePools: 1, ObservedGeneration: 9,
		Conditions: []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonInvalid}},
	}
	if got, want := PolicyFrom(shown, now), PolicyFrom(p, now); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if g := (&policies{}).govern(pool(nil).Labels, []v1alpha1.RotationPolicy{*shown}, now); g.Policy == nil {
		t.Errorf("it does not govern: %+v", g)
	}
}
