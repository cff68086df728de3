package rotation

import (
	"time"
)

// Decision is the answer for one pool at one instant.
type Decision struct {
	Active string // the NodeClaim on the rotation, empty when none is
	Plan   []Step

	Reason Reason // why nothing more is written now
	Detail string // Reason for people, with its values

	// Unscheduled is the scheduler's word while the placeholder fits nowhere.
	Unscheduled Waiting

	// Stuck is what a drain past its bound waits for. It is read from pods, so the cached
	// answer does not know it.
	Stuck Stuck

	// Wake is the earliest instant at which this answer can change by itself; zero when
	// only an event changes it.
	Wake time.Time

	Warnings []Warning
	Gauges   Gauges
}

// Warning is a Warning Event. Code is its reason.
type Warning struct {
	On            Object // what it is about; zero for the NodePool
	Code, Message string

	// Moving: the message holds values that move while what it warns of stays the same.
	Moving bool
	// Once: it is told once in the life of its object, even if it goes away in between.
	Once bool
}

// Gauges are the values of a governed pool that metrics show.
type Gauges struct {
	Governed    bool
	Conflict    bool
	InProgress  bool // the pool is anchored
	Census      Census
	WindowOpen  bool
	FreezeUntil time.Time // zero when not frozen

	FreezeUnreadable bool // frozen until somebody corrects the annotation
	Retries          int
	Period           time.Duration
	Terms            Terms      // of the NodePool's template
	Throughput       Throughput // of the template; zero for expireAfter Never
	DrainStuck       bool       // a drain of ours is past its bound
	ShortLead        int        // claims whose own terms leave too little lead
}

// Decide returns what to write next for the pool, in the order of §5.2: what became of the
// last window; then a rotation under way, which is carried on before anything else is asked;
// then the gates; then a candidate.
func Decide(s Snapshot, now time.Time) Decision {
	d := s.decide(now)
	if p := s.Governance.Policy; p != nil {
		v := s.survey(p, now)
		o, open := p.Windows.At(now)
		until, err := readStamp(s.NodePool.Annotations, AnnotationFreeze)
		if err != nil { // told at once, not when a window opens
			d.Warnings = append(d.Warnings, Warning{Code: "FreezeInvalid", Message: err.Error()})
		}
		if !now.Before(until) {
			until = time.Time{}
		}
		d.Gauges = Gauges{
			Governed: true, InProgress: s.NodePool.Annotations[AnnotationActive] != "", Census: v.census, WindowOpen: open, FreezeUntil: until, FreezeUnreadable: err != nil, Retries: v.retries,
			DrainStuck: !d.Stuck.Since.IsZero(),
			Period:     p.Measure.Period, Terms: p.Terms(s.NodePool.ExpireAfter, s.NodePool.GracePeriod),
		}
		if d.Gauges.Terms.Expires {
			d.Gauges.Throughput = p.Throughput(s.NodePool.GracePeriod)
		}
		if open {
			d.Wake = earliest(d.Wake, o.End)
		}
		edge, next := s.windowEdge(p, v, now)
		d.Plan, d.Wake = withEdge(edge, d.Plan), earliest(d.Wake, next)
		d.Warnings = append(d.Warnings, v.warn...)
		if p.Invalid != "" { // findings about what is left of it would mislead
			d.Warnings = append(d.Warnings, Warning{Code: "PolicyInvalid", Message: p.Invalid})
			return d
		}
		fatal := false
		for _, f := range p.Findings(s.NodePool, s.NodePool.Fleet(s.NodeClaims, now)) {
			w := f.warning()
			w.Moving = true
			d.Warnings = append(d.Warnings, w)
			fatal = fatal || f.Severity == Fatal
		}
		for _, f := range s.shortLeads(p) {
			d.Gauges.ShortLead++
			if fatal { // which says more, and has another remedy
				continue
			}
			w := f.warning()
			w.On = f.claim
			d.Warnings = append(d.Warnings, w)
		}
	}
	d.Gauges.Conflict = len(s.Governance.Conflict) > 0
	return d
}

func (s *Snapshot) decide(now time.Time) Decision {
	active := s.NodePool.Annotations[AnnotationActive]
	if strays := s.strays(now); len(strays) > 0 && !s.Unswept {
		return Decision{Active: active, Reason: ReasonSweeping, Plan: strays}
	}
	p := s.Governance.Policy
	if p == nil {
		return s.ungoverned(active)
	}
	if active != "" {
		return s.advance(p, active, now)
	}
	v := s.survey(p, now)
	if g := s.startGate(p, v.first, now); g.Reason != "" {
		d := Decision{Reason: g.Reason, Detail: g.Detail, Wake: g.Opens, Warnings: g.Warn}
		if g.Reason == ReasonOutOfWindow {
			d.Wake = earliest(d.Wake, v.asked)
		}
		return d
	}
	if v.first == nil {
		return Decision{Reason: ReasonNoCandidate, Detail: v.census.String(), Wake: v.next}
	}
	anchor := Step{
		Act: ActClaimAnchor, On: s.NodePool.Object, Set: map[string]string{AnnotationActive: v.first.Name},
		Clear: present(s.NodePool.Annotations, anchorSet[1:]...), // what could not be swept is not taken for its own
		Facts: Facts{
			NodeClaim: v.first.Name, Node: v.first.NodeName, Mode: ModeSurge, Age: now.Sub(v.first.Created),
			Eligible: v.census[Eligible], Deadline: v.deadline,
			Requested: v.first.requested(), RequestedBy: v.first.Annotations[AnnotationRequestedBy],
		},
	}
	var d Decision
	if p.surgeless(v.first, now) {
		d = s.fallBack(v.first, anchor, now)
	} else if d = s.attempt(p, v.first, v, now, anchor); p.ForcefulFallback {
		d.Wake = earliest(d.Wake, v.deadline.Add(1-p.terms(v.first).TRot)) // from then on without a surge
	}
	d.Wake = earliest(d.Wake, v.next) // from then on another may go first
	return d
}

// attempt begins an attempt on c if the pool's limits leave room for its surge; first is
// what has to be written before the claim is touched.
func (s *Snapshot) attempt(p *Policy, c *NodeClaim, v survey, now time.Time, first ...Step) Decision {
	if f, short := s.tooLittle(p, c); short {
		w := f.warning()
		w.Moving = true
		return Decision{Reason: ReasonInsufficientHeadroom, Detail: f.String(), Warnings: []Warning{w}}
	}
	return s.surge(p, c, v, now, first...)
}

// ungoverned is the answer for a pool without a governing policy, or with more than one:
// nothing starts, and a rotation under way is rolled back in an order that a crash can
// interrupt anywhere: the anchor goes last, as it alone leads back here (§5.4).
func (s *Snapshot) ungoverned(active string) Decision {
	d := Decision{Active: active, Reason: ReasonUngoverned, Detail: "no RotationPolicy selects this NodePool"}
	if names := s.Governance.Conflict; len(names) > 0 {
		d.Reason = ReasonPolicyConflict
		f := tie(names)
		d.Detail, d.Warnings = f.String(), []Warning{f.warning()}
	}
	if active == "" {
		return d
	}
	d.Plan = s.cleanup(active)
	if c := s.claim(active); c != nil && c.Deleting.IsZero() && (c.state() == StatePending || c.state() == StateDraining) {
		d.Plan = append(d.Plan, Step{
			Act: ActForgetAttempt, On: c.Object, Facts: Facts{NodeClaim: active},
			Clear: present(c.Annotations, append([]string{AnnotationState}, attemptSet...)...),
		})
	}
	release := s.releaseAnchor(nil, Facts{NodeClaim: active, Reason: string(d.Reason)})
	release.Clear = append(release.Clear, present(s.NodePool.Annotations, AnnotationWindowOpened)...) // nobody judges it any more
	d.Plan = append(d.Plan, release)
	return d
}
