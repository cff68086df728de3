package rotation

import (
	"slices"
	"time"
)

// maxUnavailable is how many nodes of a pool are replaced at a time (§5.4).
const maxUnavailable = 1

const (
	usualDrain        = 10 * time.Minute // drainEstimate, unless the grace period is shorter
	usualProvisioning = 5 * time.Minute  // provisioningEstimate, unless readyTimeout is shorter
)

// Throughput is how many rotations a window is expected to hold (§3.2, layer 2). It is made
// of estimates, and no deadline depends on it.
type Throughput struct {
	TRotEst  time.Duration // t_rot_est: provisioning and drain, as they usually go
	Capacity int           // C: rotations that start in the shortest occurrence
}

// Throughput derives the estimates for claims with this grace period. What the operator
// expects is taken for no more than the limit at which it would be cut short.
func (p *Policy) Throughput(gracePeriod *time.Duration) Throughput {
	t := Throughput{TRotEst: plus(p.provisioning(), p.draining(gracePeriod))}
	slot := max(plus(t.TRotEst, p.CooldownAfter), time.Second)
	if p.Measure.ShortestOccurrence > 0 {
		t.Capacity = maxUnavailable * int((p.Measure.ShortestOccurrence-1)/slot+1)
	}
	return t
}

// provisioning is how long a surge is expected to take.
func (p *Policy) provisioning() time.Duration {
	if d := p.ProvisioningEstimate; d != nil {
		return min(*d, p.ReadyTimeout)
	}
	return min(usualProvisioning, p.ReadyTimeout)
}

// draining is how long a drain is expected to take.
func (p *Policy) draining(gracePeriod *time.Duration) time.Duration {
	drain := usualDrain
	if p.DrainEstimate != nil {
		drain = *p.DrainEstimate
	}
	if gracePeriod != nil {
		drain = min(drain, *gracePeriod)
	}
	return drain
}

// shortest is the shortest window, for people.
func (p *Policy) shortest() string {
	if p.Measure.Continuous {
		return p.Measure.ShortestOccurrence.String() + " (always open, counted minute by minute)"
	}
	return p.Measure.ShortestOccurrence.String()
}

// bottlenecks is what does not fit into the windows: layer 2.
func (p *Policy) bottlenecks(pool NodePool, terms Terms, claims []NodeClaim) []Finding {
	const remedy = "widen the windows, add some, or lower cooldownAfter"
	var fs []Finding
	t, m := p.Throughput(pool.GracePeriod), p.Measure
	slot := plus(t.TRotEst, p.CooldownAfter)
	n, batch := batches(claims, m.Period)
	if float64(t.Capacity)*float64(terms.Threshold) < float64(n)*float64(m.Period) {
		fs = append(fs, warning("ThroughputBelowArrival", remedy,
			"C = %d x ceil(shortest window %s / (t_rot_est %s + cooldownAfter %s)) = %d rotations per window, but %d nodes x window period %s / ageThreshold %s = %.1f become due in that time",
			maxUnavailable, p.shortest(), t.TRotEst, p.CooldownAfter, t.Capacity, n, m.Period, terms.Threshold,
			float64(n)*float64(m.Period)/float64(terms.Threshold)))
	}
	if chances := p.Chances * t.Capacity; chances < batch {
		fs = append(fs, warning("ThroughputBurstShortfall", remedy+", or raise minRotationChances",
			"%d nodes have their deadlines within one window period %s, but minRotationChances %d x C %d = %d rotations fit before it (C = %d x ceil(shortest window %s / (t_rot_est %s + cooldownAfter %s)))",
			batch, m.Period, p.Chances, t.Capacity, chances, maxUnavailable, p.shortest(), t.TRotEst, p.CooldownAfter))
	}
	if m.ShortestGap > 0 && slot > m.ShortestGap {
		fs = append(fs, warning("RotationSpansNextWindow", "move the windows apart, or lower cooldownAfter",
			"t_rot_est %s + cooldownAfter %s = %s is longer than the shortest gap between windows %s: a rotation that starts late takes from the next window, which then does not hold %d",
			t.TRotEst, p.CooldownAfter, slot, m.ShortestGap, t.Capacity))
	}
	return fs
}

// Fleet is the claims of the pool without what was born in an attempt whose candidate still
// stands: the two are one of the nodes that the pool keeps.
func (p *NodePool) Fleet(claims []NodeClaim, now time.Time) []NodeClaim {
	i := slices.IndexFunc(claims, func(c NodeClaim) bool { return c.Name == p.Annotations[AnnotationActive] })
	if i < 0 || !claims[i].Deleting.IsZero() {
		return claims
	}
	c := &claims[i]
	start := c.startedAt(now)
	return slices.DeleteFunc(slices.Clone(claims), func(o NodeClaim) bool { return o.Name != c.Name && o.bornWithin(start) })
}

// batches counts the claims that will have to be rotated, and the most of them whose
// deadlines lie within one window period of each other: born together, they compete for
// the same chances.
func batches(claims []NodeClaim, period time.Duration) (all, largest int) {
	var deadlines []time.Time
	for i := range claims {
		if c := &claims[i]; c.ExpireAfter != nil && c.Deleting.IsZero() {
			deadlines = append(deadlines, c.Created.Add(*c.ExpireAfter))
		}
	}
	slices.SortFunc(deadlines, time.Time.Compare)
	first := 0
	for last := range deadlines {
		for deadlines[last].Sub(deadlines[first]) >= period {
			first++
		}
		largest = max(largest, last-first+1)
	}
	return len(deadlines), largest
}
