package rotator

import (
	"fmt"
	"maps"
	"sort"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tasuki-io/tasuki/api/v1alpha1"
	"github.com/tasuki-io/tasuki/internal/rotation"
	"github.com/tasuki-io/tasuki/internal/window"
)

// policies turns RotationPolicies into what the core reads, once per generation and day:
// the measure of a schedule looks 400 days ahead and is not free.
type policies struct {
	mu    sync.Mutex
	known map[types.UID]knownPolicy
}

type knownPolicy struct {
	generation int64
	day        time.Time
	policy     *rotation.Policy
}

// prune forgets the policies that are gone.
func (ps *policies) prune(all []v1alpha1.RotationPolicy) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if len(ps.known) <= len(all) {
		return
	}
	there := map[types.UID]bool{}
	for i := range all {
		there[all[i].UID] = true
	}
	maps.DeleteFunc(ps.known, func(uid types.UID, _ knownPolicy) bool { return !there[uid] })
}

// govern picks the policy that rules a pool with these labels (§5.4): the one with the
// most label constraints. Two that tie at the top are a conflict, and neither rules.
func (ps *policies) govern(pool map[string]string, all []v1alpha1.RotationPolicy, now time.Time) rotation.Governance {
	ps.prune(all)
	top := mostSpecific(pool, all)
	switch len(top) {
	case 0:
		return rotation.Governance{}
	case 1:
		return rotation.Governance{Policy: ps.read(top[0], now)}
	}
	return rotation.Governance{Conflict: policyNames(top)}
}

func policyNames(ps []*v1alpha1.RotationPolicy) []string {
	var names []string
	for _, p := range ps {
		names = append(names, p.Name)
	}
	sort.Strings(names)
	return names
}

// mostSpecific returns the policies that select a pool with these labels by the most
// constraints, in the order of all.
func mostSpecific(pool map[string]string, all []v1alpha1.RotationPolicy) []*v1alpha1.RotationPolicy {
	var top []*v1alpha1.RotationPolicy
	best := -1
	for i := range all {
		p := &all[i]
		selector, err := p.Spec.NodePoolSelector.AsSelector()
		if err != nil || !selector.Matches(labels.Set(pool)) {
			continue
		}
		switch n := p.Spec.NodePoolSelector.Specificity(); {
		case n > best:
			best, top = n, []*v1alpha1.RotationPolicy{p}
		case n == best:
			top = append(top, p)
		}
	}
	return top
}

func (ps *policies) read(p *v1alpha1.RotationPolicy, now time.Time) *rotation.Policy {
	day := now.UTC().Truncate(24 * time.Hour)
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if k, ok := ps.known[p.UID]; ok && k.generation == p.Generation && k.day.Equal(day) {
		return k.policy
	}
	policy := PolicyFrom(p, day)
	if ps.known == nil {
		ps.known = map[types.UID]knownPolicy{}
	}
	ps.known[p.UID] = knownPolicy{generation: p.Generation, day: day, policy: policy}
	return policy
}

// PolicyFrom reads a RotationPolicy as admission has defaulted it, measuring its windows
// from day on. What admission cannot judge, such as a time zone that this machine does
// not know, makes the policy Invalid.
func PolicyFrom(p *v1alpha1.RotationPolicy, day time.Time) *rotation.Policy {
	s := p.Spec.Surge
	out := &rotation.Policy{
		Name:          p.Name,
		Chances:       int(p.Spec.MinRotationChances),
		ReadyTimeout:  s.ReadyTimeout.Duration,
		CooldownAfter: s.CooldownAfter.Duration,
		FailurePause:  max(10*time.Minute, s.CooldownAfter.Duration),
		RetryBackoff:  s.RetryBackoff.Duration,

		DrainEstimate:        optional(s.DrainEstimate),
		ProvisioningEstimate: optional(s.ProvisioningEstimate),

		ForcefulFallback:     s.ForcefulFallback.Enabled,
		WholeNodeReservation: s.WholeNodeReservation.Enabled,

		Required:  texts(s.MatchNodeRequirements.Required),
		Preferred: texts(s.MatchNodeRequirements.Preferred),
	}
	if s.FailurePause != nil {
		out.FailurePause = s.FailurePause.Duration
	}
	if a := p.Spec.AgeThreshold; a != "" && a != v1alpha1.AgeThresholdAuto {
		d, err := time.ParseDuration(a)
		if err != nil {
			out.Invalid = fmt.Sprintf("RotationPolicy %s: spec.ageThreshold is %q: write auto or a Go duration such as 240h", p.Name, a)
		}
		out.AgeThreshold = d
	}
	var rules []window.Rule
	for i, w := range p.Spec.MaintenanceWindows {
		rule, err := window.ParseRule(w.Timezone, texts(w.Days), w.Start, w.End)
		if err != nil {
			out.Invalid = fmt.Sprintf("RotationPolicy %s: spec.maintenanceWindows[%d]: %v", p.Name, i, err)
			continue
		}
		rules = append(rules, rule)
	}
	out.Windows = window.NewSchedule(rules...)
	out.Measure = out.Windows.Measure(day)
	return out
}

func optional(d *metav1.Duration) *time.Duration {
	if d == nil {
		return nil
	}
	return &d.Duration
}

func texts[T ~string](in []T) []string {
	out := make([]string, 0, len(in))
	for _, v := range in {
		out = append(out, string(v))
	}
	return out
}
