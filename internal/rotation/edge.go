package rotation

import "time"

// windowEdge judges what has become of the occurrence of the window that was last seen open
// (§4.2, §5.2 step 0): a statement about the window, not about what kept a rotation from
// starting, so it is asked before every gate.
//
// An occurrence is known by the stamp that it was given when it was first seen open with
// something to rotate and no freeze on it. Without that it could only end well, and a pool at
// rest is not written to. One that does not close is never judged.
//
// It returns the step to take, or else the instant at which there may come to be one. The
// write that clears the stamp is what claims the verdict.
func (s *Snapshot) windowEdge(p *Policy, v survey, now time.Time) (edge Step, next time.Time) {
	opened, err := readPast(s.NodePool.Annotations, AnnotationWindowOpened, now)
	seen := err != nil || !opened.IsZero()
	waiting := v.census[Eligible] + v.census[Backoff]
	freeze := s.freezeGate(now)
	o, open := p.Windows.At(now)
	switch {
	case p.Invalid != "": // some of its windows are not known
		return Step{}, time.Time{}
	case open && (o.End.IsZero() || seen && err == nil):
		return Step{}, time.Time{}
	case !open && !seen:
		o, _ = p.Windows.Next(now) // whatever keeps the pool from starting then
		return Step{}, o.Start
	case open && waiting == 0:
		return Step{}, v.next
	case open && freeze.Reason != "":
		return Step{}, freeze.Opens
	case open:
		return Step{Act: ActStampWindow, On: s.NodePool.Object, Set: map[string]string{AnnotationWindowOpened: stamp(now)}}, time.Time{}
	case err == nil && s.NodePool.Annotations[AnnotationActive] != "":
		return Step{}, time.Time{} // it may still succeed
	}
	done := Step{Act: ActSettleWindow, On: s.NodePool.Object, Clear: []string{AnnotationWindowOpened}}
	last, _ := readPast(s.NodePool.Annotations, AnnotationLastRotation, now)
	// Nothing is before a stamp that cannot be read.
	if waiting > 0 && freeze.Reason == "" && last.Before(opened) {
		done.Act = ActMissWindow
		done.Facts = Facts{WindowOpened: opened, Eligible: v.census[Eligible], InBackoff: v.census[Backoff]}
	}
	return done, time.Time{}
}

// withEdge puts the verdict, if there is one, in front of the plan. A stamp rides along with
// the anchor where one is claimed, and costs no write of its own.
func withEdge(edge Step, plan []Step) []Step {
	if edge.Act == "" {
		return plan
	}
	if edge.Act == ActStampWindow && len(plan) > 0 && plan[0].Act == ActClaimAnchor {
		plan[0].Set[AnnotationWindowOpened] = edge.Set[AnnotationWindowOpened]
		return plan
	}
	return append([]Step{edge}, plan...)
}
