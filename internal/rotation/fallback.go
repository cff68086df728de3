package rotation

import (
	"slices"
	"time"
)

// surgeless reports a claim for which no time is left to surge, and that may go without one.
func (p *Policy) surgeless(c *NodeClaim, now time.Time) bool {
	return p.ForcefulFallback && c.Created.Add(*c.ExpireAfter).Sub(now) < p.terms(c).TRot
}

// fallBack starts a rotation without a surge: a graceful one could not end before the
// deadline, so the drain that Karpenter would force at any hour is brought into the window
// (§3.6). The mode and the mirror are part of the anchor, in one write, so that whoever
// resumes it after a crash does not begin a surge instead.
func (s *Snapshot) fallBack(c *NodeClaim, anchor Step, now time.Time) Decision {
	anchor.Set[AnnotationMode] = ModeFallback
	anchor.Set[AnnotationActiveState] = StateDraining
	anchor.Set[AnnotationDrainingAt] = stamp(now)
	anchor.Clear = slices.DeleteFunc(anchor.Clear, func(k string) bool { _, set := anchor.Set[k]; return set })
	anchor.Facts.Mode = ModeFallback
	d := s.forceful(c)
	d.Plan = append([]Step{anchor}, d.Plan...)
	return d
}

// forceful asserts what an anchored rotation without a surge wants of its claim.
func (s *Snapshot) forceful(c *NodeClaim) Decision {
	f := Facts{NodeClaim: c.Name, Node: c.NodeName, Mode: ModeFallback}
	d := Decision{Active: c.Name, Reason: ReasonAwaitingDrain, Plan: []Step{{
		Act: ActMarkDraining, On: c.Object, Facts: f,
		Set: map[string]string{AnnotationState: StateDraining}, Clear: present(c.Annotations, attemptSet...),
	}}}
	if c.Deleting.IsZero() {
		d.Plan = append(d.Plan, Step{Act: ActDeleteNodeClaim, On: c.Object, Facts: f})
	}
	return d
}

// mode is the mode of the anchored rotation.
func (s *Snapshot) mode() string {
	if s.NodePool.Annotations[AnnotationMode] == ModeFallback {
		return ModeFallback
	}
	return ModeSurge
}
