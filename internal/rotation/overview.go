package rotation

import "time"

// Overview is a NodePool in one row.
type Overview struct {
	NodePool string `json:"nodePool"`
	Policy   string `json:"policy,omitempty"`

	Reason string `json:"reason"` // as Decide has it; empty if something is about to be written
	Detail string `json:"detail,omitempty"`

	WindowOpen bool      `json:"windowOpen"`
	Window     Window    `json:"window"` // the open one, or else the next
	Frozen     time.Time `json:"frozenUntil,omitzero"`

	Census   Census    `json:"census"` // NodeClaims by Standing
	Rotation *UnderWay `json:"rotation"`
	Last     *Result   `json:"last"`

	Wake time.Time `json:"wake,omitzero"` // when the answer can change by itself
}

// Result is how the last rotation of a pool ended.
type Result struct {
	Outcome Outcome   `json:"outcome"` // Success or Failure
	At      time.Time `json:"at"`
}

// Summarize is the overview of a pool.
func Summarize(s Snapshot, e Evidence, now time.Time) Overview {
	s.Unswept = true
	d := Decide(s, now)
	o := Overview{
		NodePool: s.NodePool.Name, Reason: string(d.Reason), Detail: d.Detail, WindowOpen: d.Gauges.WindowOpen, Frozen: d.Gauges.FreezeUntil,
		Census: d.Gauges.Census, Rotation: s.underWay(d, e, now), Last: s.last(now), Wake: d.Wake,
	}
	if o.Census == nil {
		o.Census = Census{}
	}
	p := s.Governance.Policy
	switch {
	case o.Rotation != nil:
		b := o.Rotation.blocker(d)
		o.Reason, o.Detail = b.Reason, b.Detail
	case o.Reason == string(ReasonAwaitingSurge), o.Reason == string(ReasonAwaitingDrain): // of one that is about to begin
		o.Reason, o.Detail = free.Reason, free.Detail
	}
	if p == nil {
		return o
	}
	o.Policy = p.Name
	w, open := p.Windows.At(now)
	if !open {
		w, _ = p.Windows.Next(now)
	}
	o.Window = Window(w)
	return o
}

// last is the later one of the last success and the last failure, nil if none is known.
func (s *Snapshot) last(now time.Time) *Result {
	a := s.NodePool.Annotations
	won, _ := readPast(a, AnnotationLastRotation, now) // what cannot be read is a finding of its own
	lost, _ := readPast(a, AnnotationLastFailure, now)
	switch {
	case won.IsZero() && lost.IsZero():
		return nil
	case lost.After(won):
		return &Result{Failure, lost}
	}
	return &Result{Success, won}
}
