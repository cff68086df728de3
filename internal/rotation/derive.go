package rotation

import "time"

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
