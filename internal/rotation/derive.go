package rotation

import (
	"math"
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
	t := Terms{Expires: true, TRot: plus(p.ReadyTimeout, plus(grace(gracePeriod), buffer))}
	t.Threshold = p.AgeThreshold
	if t.Threshold == 0 {
		t.Threshold = p.derived(*expireAfter, t.TRot)
	}
	t.LeadTime = plus(*expireAfter, -t.Threshold)
	if p.Measure.Period > 0 {
		t.Chances = floorDiv(plus(plus(*expireAfter, -t.TRot), -t.Threshold), p.Measure.Period)
	}
	return t
}

// derived is the age threshold that follows from the windows: A = E - (K x P + t_rot).
func (p *Policy) derived(expireAfter, tRot time.Duration) time.Duration {
	return plus(expireAfter, -plus(times(p.Measure.Period, p.Chances), tRot))
}

// terms are those of one claim. An explicit ageThreshold that does not leave it a single chance,
// as its life is shorter than that of the template, would leave it to expire: it is rotated at
// the first opportunity instead (§3.2, layer 3).
func (p *Policy) terms(c *NodeClaim) Terms {
	t := p.Terms(c.ExpireAfter, c.GracePeriod)
	if t.Expires && p.AgeThreshold != 0 && t.Chances < 1 {
		t.Threshold = min(t.Threshold, p.derived(*c.ExpireAfter, t.TRot))
		t.LeadTime = plus(*c.ExpireAfter, -t.Threshold)
	}
	return t
}

// plus adds durations that people have written, and ends at the longest there is. Neither may
// be the most negative one, and the sum is not.
func plus(a, b time.Duration) time.Duration {
	const longest = time.Duration(math.MaxInt64)
	switch {
	case b > 0 && a > longest-b:
		return longest
	case b < 0 && a < -longest-b:
		return -longest
	}
	return a + b
}

// times multiplies one that is not negative, and ends where plus does.
func times(d time.Duration, n int) time.Duration {
	const longest = time.Duration(math.MaxInt64)
	if d > 0 && n > 0 && time.Duration(n) > longest/d {
		return longest
	}
	return d * time.Duration(n)
}

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
