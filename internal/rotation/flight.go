package rotation

import "time"

// Flight is a rotation under way, as the annotations have it.
type Flight struct {
	NodeClaim string
	Surge     string // the NodeClaim that is to take over, empty while none is known
	Mode      string // ModeSurge or ModeFallback
	Phase     string // StatePending, StateDraining, or PhaseRollback
	Since     time.Time
}

// PhaseRollback is a pending rotation that has been given up.
const PhaseRollback = "rollback"

// Flight is the rotation that the pool is anchored to, nil if there is none. Since is when its
// phase began, zero if that cannot be read.
func (s *Snapshot) Flight(now time.Time) *Flight {
	active := s.NodePool.Annotations[AnnotationActive]
	if active == "" {
		return nil
	}
	f := &Flight{NodeClaim: active, Mode: s.mode(), Phase: StatePending}
	c := s.claim(active)
	if c != nil {
		f.Surge = c.Annotations[AnnotationSurgeClaim]
	}
	on, since := map[string]string(nil), AnnotationStartedAt
	switch {
	case s.NodePool.Annotations[AnnotationActiveState] == StateDraining || c != nil && c.state() == StateDraining:
		f.Phase, on, since = StateDraining, s.NodePool.Annotations, AnnotationDrainingAt
	case c == nil:
		return f
	case c.Annotations[AnnotationRollbackAt] != "":
		f.Phase, on, since = PhaseRollback, c.Annotations, AnnotationRollbackAt
	default:
		on = c.Annotations
	}
	if at, err := readPast(on, since, now); err == nil {
		f.Since = at
	}
	return f
}
