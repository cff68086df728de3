package rotation

import (
	"fmt"
	"time"
)

const (
	// buffer is the slack on the deadline side: four short requeues (§3.2).
	buffer = 2 * time.Minute
	// unsetGracePeriod stands for a terminationGracePeriod that is not set (§3.2).
	unsetGracePeriod = time.Hour
	// backoffSteps caps the escalation: retryBackoff x 1, 2, 4, 8.
	backoffSteps = 4
)

// Terms are the durations that follow from a policy and one pair of expireAfter and
// terminationGracePeriod (§3.2). All are zero for expireAfter Never.
type Terms struct {
	Expires   bool
	TRot      time.Duration // t_rot: readyTimeout + grace period + buffer
	LeadTime  time.Duration // E - Threshold
	Threshold time.Duration // A: the age past which a claim is due; may be negative
	Chances   int           // G: whole window periods between A and E - t_rot
}

// Terms derives the durations for a claim with this expireAfter and grace period.
func (p *Policy) Terms(expireAfter, gracePeriod *time.Duration) Terms {
	if expireAfter == nil {
		return Terms{}
	}
	t := Terms{Expires: true, TRot: p.ReadyTimeout + grace(gracePeriod) + buffer}
	if p.AgeThreshold != 0 {
		t.Threshold = p.AgeThreshold
	} else {
		t.Threshold = *expireAfter - (time.Duration(p.Chances)*p.Measure.Period + t.TRot)
	}
	t.LeadTime = *expireAfter - t.Threshold
	if p.Measure.Period > 0 {
		t.Chances = floorDiv(*expireAfter-t.TRot-t.Threshold, p.Measure.Period)
	}
	return t
}

func (p *Policy) terms(c *NodeClaim) Terms { return p.Terms(c.ExpireAfter, c.GracePeriod) }

func grace(d *time.Duration) time.Duration {
	if d == nil {
		return unsetGracePeriod
	}
	return *d
}

func floorDiv(a, b time.Duration) int {
	q := a / b
	if a%b < 0 {
		q--
	}
	return int(q)
}

// Severity of a Finding: a fatal one keeps every rotation of the pool from starting.
type Severity string

// The severities.
const (
	Fatal Severity = "fatal"
	Warn  Severity = "warn"
)

// Finding is a verdict about a policy on a pool, reached before anything moves (§3.2,
// layer 1). Code is the same word in log, Event and CLI.
type Finding struct {
	Code     string
	Severity Severity
	Message  string // the arithmetic, with its values
	Remedy   string // what to change
}

// Findings judges the policy against the pool's template.
func (p *Policy) Findings(pool NodePool) []Finding {
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
	if !t.Expires || period == 0 || p.Chances < 1 || p.AgeThreshold < 0 {
		return fs
	}
	if p.AgeThreshold == 0 && t.Threshold <= 0 {
		fatal("ANonPositive", "raise expireAfter, add windows, or lower minRotationChances",
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
