package rotation

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// hardCap is how old a node of EKS Auto Mode may get, drain included.
const hardCap = 21 * 24 * time.Hour

// Severity of a Finding: a fatal one keeps every rotation of the pool from starting.
type Severity string

// The severities.
const (
	Fatal Severity = "fatal"
	Warn  Severity = "warn"
)

// Finding is a verdict about a policy on a pool, reached before anything moves (§3.2,
// layers 1 and 2). Code is the same word in log, Event and CLI.
type Finding struct {
	Code     string   `json:"code"`
	Severity Severity `json:"severity"`
	Message  string   `json:"message"` // the arithmetic, with its values
	Remedy   string   `json:"remedy"`  // what to change
}

// String is how an Event puts it.
func (f Finding) String() string { return f.Message + "; " + f.Remedy }

// warning is the Warning Event that tells it of the NodePool.
func (f Finding) warning() Warning { return Warning{Code: f.Code, Message: f.String()} }

// claimFinding is one about a single claim.
type claimFinding struct {
	Finding
	claim Object
}

func warning(code, remedy, format string, args ...any) Finding {
	return Finding{Code: code, Severity: Warn, Message: fmt.Sprintf(format, args...), Remedy: remedy}
}

// Judgement is what is found of a policy on a pool, by class (§3.2).
type Judgement struct {
	Fatal       []Finding // layer 1: nothing starts
	Doubts      []Finding // layer 1: it works, but not as well as it seems
	Bottlenecks []Finding // layer 2: the windows do not hold what becomes due
}

// Findings judges the policy against the pool's template and its claims. A pool whose
// template never expires has no deadline to miss, and nothing to warn of.
func (p *Policy) Findings(pool NodePool, claims []NodeClaim) []Finding {
	j := p.Judge(pool, claims)
	return slices.Concat(j.Fatal, j.Doubts, j.Bottlenecks)
}

// Judge is Findings, by class.
func (p *Policy) Judge(pool NodePool, claims []NodeClaim) Judgement {
	j := Judgement{Fatal: p.fatal(pool)}
	t := p.Terms(pool.ExpireAfter, pool.GracePeriod)
	if !t.Expires {
		return j
	}
	feasible := len(j.Fatal) == 0
	j.Doubts = p.doubts(pool, t)
	if feasible { // without an age threshold there is no arrival to compare with
		j.Bottlenecks = p.bottlenecks(pool, t, claims)
	}
	return j
}

// ShortLeads are the findings about claims whose own life is too short for the policy: layer 3.
func (p *Policy) ShortLeads(claims []NodeClaim) []Finding {
	var fs []Finding
	for _, f := range (&Snapshot{NodeClaims: claims}).shortLeads(p) {
		fs = append(fs, ofClaim(f.claim.Name, f.Finding))
	}
	return fs
}

// fatal is what keeps every rotation of the pool from starting.
func (p *Policy) fatal(pool NodePool) []Finding {
	var fs []Finding
	fatal := func(code, remedy, format string, args ...any) {
		fs = append(fs, Finding{Code: code, Severity: Fatal, Message: fmt.Sprintf(format, args...), Remedy: remedy})
	}
	period := p.Measure.Period
	if period == 0 {
		fatal("NoWindows", "add an entry to maintenanceWindows",
			"the maintenance windows never open in the next 400 days")
	}
	if p.Chances < 1 {
		fatal("KBelowOne", "set minRotationChances to 1 or more", "minRotationChances is %d", p.Chances)
	}
	if p.AgeThreshold < 0 {
		fatal("OverrideNonPositive", "set ageThreshold to auto or to a positive duration",
			"ageThreshold is %s", p.AgeThreshold)
	}
	t := p.Terms(pool.ExpireAfter, pool.GracePeriod)
	if !t.Expires || len(fs) > 0 {
		return fs
	}
	if p.AgeThreshold == 0 && t.Threshold <= 0 {
		fatal("ANonPositive", p.sooner(),
			"ageThreshold = expireAfter %s - (%d x window period %s + t_rot %s) = %s, which is not positive",
			pool.ExpireAfter, p.Chances, period, t.TRot, t.Threshold)
	}
	if p.AgeThreshold > 0 && t.Chances < 1 {
		fatal("OverrideGBelowOne", "lower ageThreshold or set it to auto",
			"ageThreshold %s leaves floor((expireAfter %s - t_rot %s - %s) / window period %s) = %d whole window periods before the deadline",
			p.AgeThreshold, pool.ExpireAfter, t.TRot, p.AgeThreshold, period, t.Chances)
	}
	return fs
}

// sooner is the remedy for too little time between windows. Days that are open as a whole are one
// window, and more of them do not help: no entry alone is longer than the day of 25 hours.
func (p *Policy) sooner() string {
	remedy := "raise expireAfter, add windows, or lower minRotationChances"
	if m := p.Measure; m.ShortestOccurrence > 25*time.Hour {
		remedy += fmt.Sprintf("; days that touch are one window, here of at least %s, and the window period %s runs from its start to that of the next: end each day before the next begins, such as at 23:00, for a window a day",
			m.ShortestOccurrence, m.Period)
	}
	return remedy
}

// doubts is what works, but not as well as the operator may think: the rest of layer 1.
func (p *Policy) doubts(pool NodePool, t Terms) []Finding {
	var fs []Finding
	doubt := func(holds bool, code, remedy, format string, args ...any) {
		if holds {
			fs = append(fs, warning(code, remedy, format, args...))
		}
	}
	period := p.Measure.Period
	doubt(p.Chances == 1, "KBelowTwo", "set minRotationChances to 2 or more",
		"minRotationChances is 1: a node that misses its window has no second one before its deadline")
	doubt(0 < t.Threshold && t.Threshold < period, "AVeryAggressive", p.sooner(),
		"ageThreshold %s is below the window period %s: every node is replaced in nearly every window", t.Threshold, period)
	doubt(p.AgeThreshold > 0 && 1 <= t.Chances && t.Chances < p.Chances, "OverrideGBelowK", "lower ageThreshold or set it to auto",
		"ageThreshold %s leaves floor((expireAfter %s - t_rot %s - %s) / window period %s) = %d whole window periods before the deadline, fewer than minRotationChances %d",
		p.AgeThreshold, pool.ExpireAfter, t.TRot, p.AgeThreshold, period, t.Chances, p.Chances)
	doubt(pool.GracePeriod == nil, "TGPUnset", "set terminationGracePeriod in the NodePool's template",
		"terminationGracePeriod is not set: nothing bounds a drain, and it is counted as %s", unsetGracePeriod)
	life := plus(*pool.ExpireAfter, grace(pool.GracePeriod))
	doubt(life > hardCap, "HardCapExceeded", "lower expireAfter or terminationGracePeriod",
		"expireAfter %s + terminationGracePeriod %s = %s, beyond the %s after which EKS Auto Mode ends a node by force",
		pool.ExpireAfter, grace(pool.GracePeriod), life, time.Duration(hardCap))
	doubt(p.RetryBackoff < p.ReadyTimeout, "RetryBackoffShort", "set retryBackoff to readyTimeout or more",
		"retryBackoff %s is below readyTimeout %s: a node is tried again sooner than an attempt takes to fail", p.RetryBackoff, p.ReadyTimeout)
	if d := p.DrainEstimate; d != nil && pool.GracePeriod != nil {
		doubt(*d > *pool.GracePeriod, "DrainEstimateAboveTGP", "lower drainEstimate",
			"drainEstimate %s is above terminationGracePeriod %s, at which Karpenter ends the drain: it is taken as %s", d, pool.GracePeriod, pool.GracePeriod)
	}
	if d := p.ProvisioningEstimate; d != nil {
		doubt(*d > p.ReadyTimeout, "ProvisioningEstimateAboveReadyTimeout", "lower provisioningEstimate or raise readyTimeout",
			"provisioningEstimate %s is above readyTimeout %s, at which the attempt ends: it is taken as %s", d, p.ReadyTimeout, p.ReadyTimeout)
	}
	doubt(!slices.Contains(p.Required, corev1.LabelTopologyZone), "ZoneNotRequired", "add "+corev1.LabelTopologyZone+" to matchNodeRequirements.required",
		"matchNodeRequirements.required is without %s: the replacement may come up in another zone than the volumes of the pods", corev1.LabelTopologyZone)
	return fs
}

// shortLead says why a life is too short for what the policy promises, if it is (§3.2,
// layer 3): no positive age threshold, or under an explicit one not a single whole period.
func (p *Policy) shortLead(expireAfter *time.Duration, t Terms) string {
	switch {
	case !t.Expires:
		return ""
	case p.AgeThreshold == 0 && t.Threshold <= 0:
		return fmt.Sprintf("expireAfter %s is not longer than %d x window period %s + t_rot %s", expireAfter, p.Chances, p.Measure.Period, t.TRot)
	case p.AgeThreshold != 0 && t.Chances < 1:
		return fmt.Sprintf("expireAfter %s - ageThreshold %s is shorter than one window period %s + t_rot %s", expireAfter, p.AgeThreshold, p.Measure.Period, t.TRot)
	}
	return ""
}

// shortLeads are the claims whose own terms leave too little lead. Each is rotated at the
// first opportunity there is, without a promise.
func (s *Snapshot) shortLeads(p *Policy) []claimFinding {
	var fs []claimFinding
	for i := range s.NodeClaims {
		c := &s.NodeClaims[i]
		if why := p.shortLead(c.ExpireAfter, p.terms(c)); why != "" && c.Deleting.IsZero() {
			fs = append(fs, claimFinding{warning("ShortLead", "raise expireAfter in the NodePool's template, for its successors",
				"%s: whether the node is rotated before its deadline %s is not sure", why, stamp(c.Created.Add(*c.ExpireAfter))), c.Object})
		}
	}
	return fs
}
