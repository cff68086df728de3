package rotation

import (
	"fmt"
	"time"
)

// Sum is one derived value and how it came about, for people.
type Sum struct {
	Name  string `json:"name"`
	Value string `json:"value"`
	How   string `json:"how,omitempty"` // the arithmetic with its values; empty for what is simply given
}

// Arithmetic is how the durations of a policy on a pool come about, in the order in which they
// follow from each other (§3.2).
func (p *Policy) Arithmetic(pool NodePool) []Sum {
	expireAfter, gracePeriod, m := "Never", "not set", p.Measure
	if pool.ExpireAfter != nil {
		expireAfter = pool.ExpireAfter.String()
	}
	if pool.GracePeriod != nil {
		gracePeriod = pool.GracePeriod.String()
	}
	sums := []Sum{
		{"expireAfter (E)", expireAfter, ""},
		{"terminationGracePeriod (tGP)", gracePeriod, ""},
		{"window period (P)", m.Period.String(), "the longest time from the start of a window to that of the next"},
	}
	if m.Continuous {
		sums[2].How = "always open: how often the controller looks"
	}
	t := p.Terms(pool.ExpireAfter, pool.GracePeriod)
	if !t.Expires {
		return sums
	}
	c := p.Throughput(pool.GracePeriod)
	threshold := p.howDue(pool.ExpireAfter, t)
	counted := ""
	if pool.GracePeriod == nil {
		counted = ", as it is not set,"
	}
	return append(sums,
		Sum{"rotation, at most (t_rot)", t.TRot.String(), fmt.Sprintf("readyTimeout %s + terminationGracePeriod%s %s + %s", p.ReadyTimeout, counted, grace(pool.GracePeriod), time.Duration(buffer))},
		Sum{"rotation, usually (t_rot_est)", c.TRotEst.String(), fmt.Sprintf("provisioningEstimate %s + drainEstimate %s", p.provisioning(), p.draining(pool.GracePeriod))},
		Sum{"ageThreshold (A)", t.Threshold.String(), threshold},
		Sum{"lead time", t.LeadTime.String(), fmt.Sprintf("E %s - A %s", pool.ExpireAfter, t.Threshold)},
		Sum{"chances (G)", fmt.Sprint(t.Chances), fmt.Sprintf("floor((E %s - t_rot %s - A %s) / P %s)", pool.ExpireAfter, t.TRot, t.Threshold, m.Period)},
		Sum{"rotations per window (C)", fmt.Sprint(c.Capacity), fmt.Sprintf("%d x ceil(shortest window %s / (t_rot_est %s + cooldownAfter %s))", maxUnavailable, p.shortest(), c.TRotEst, p.CooldownAfter)},
	)
}

// howDue is how the age threshold of these terms comes about.
func (p *Policy) howDue(expireAfter *time.Duration, t Terms) string {
	if p.AgeThreshold != 0 && t.Threshold == p.AgeThreshold {
		return "as the policy says"
	}
	return fmt.Sprintf("E %s - (minRotationChances %d x P %s + t_rot %s)", expireAfter, p.Chances, p.Measure.Period, t.TRot)
}
