package rotation

import (
	"fmt"
	"slices"
	"strconv"
	"time"
)

// advance carries the anchored rotation on by the state of its claim (§5.2). Every branch
// asserts what its state wants, so it may run any number of times.
func (s *Snapshot) advance(p *Policy, name string, now time.Time) Decision {
	c := s.claim(name)
	if c == nil {
		return s.complete(name, now)
	}
	switch state := c.state(); {
	case state == StateDraining:
		return s.drain(c, now)
	case state == StateExpired:
		return s.end(c, Facts{NodeClaim: name, Outcome: Gone})
	case state != "" && state != StatePending && state != StateFailed:
		return s.end(c, Facts{NodeClaim: name}) // nobody here has written it: nothing may be built on it
	case s.mode() == ModeFallback:
		return s.forceful(c)
	case state == StateFailed:
		return s.failed(p, c, now)
	}
	if !c.Deleting.IsZero() {
		return s.expire(c)
	}
	return s.surge(p, c, s.survey(p, now), now)
}

// surge brings the capacity up and, once it is there, releases it to the drain: state
// none or pending; first is what has to be written before.
func (s *Snapshot) surge(p *Policy, c *NodeClaim, v survey, now time.Time, first ...Step) Decision {
	d := Decision{Active: c.Name, Reason: ReasonAwaitingSurge, Plan: first}
	start, err := readPast(c.Annotations, AnnotationStartedAt, now)
	begun := c.state() == StatePending && (err != nil || !start.IsZero())
	if !begun {
		d.Plan = append(slices.Grow(d.Plan, 3), s.markPending(c, now))
		start = now.Truncate(time.Second) // as the annotation holds it
	}
	// A started-at that cannot be read ends the attempt: it can no longer be timed.
	deadline := start.Add(p.ReadyTimeout)
	_, givenUp := c.Annotations[AnnotationRollbackAt]
	host, missing := s.surgeHost(c)
	frozen := s.freezeGate(now)
	// A surge that is there when its time is up is not given away: what came late is the news
	// of it, to a cache that lags or a controller that was away. t_rot has a buffer for that.
	there := missing == "" && frozen.Reason == "" && now.Before(deadline.Add(buffer))
	if begun && (givenUp || err != nil || !now.Before(deadline) && !there) {
		return s.rollback(p, c, now)
	}
	d.Wake = deadline

	if n, ok := s.Nodes[c.NodeName]; ok {
		if step, missing := freeze(n, c.Name, true); missing {
			d.Plan = append(d.Plan, step)
		}
	}
	// An operator's freeze stops escalation alone: no placeholder, no drain (§3.1).
	if frozen.Reason != "" {
		d.Plan = s.recordSurgeClaim(d.Plan, c)
		d.Reason, d.Detail = frozen.Reason, frozen.Detail
		d.Wake = earliest(d.Wake, frozen.Opens)
		return d
	}
	if p := s.Placeholder; p != nil && useless(p, c) {
		// The first is replaced at once. One that fares no better waits as long as the attempt
		// has already taken, up to a limit: what is wrong is not going to mend within a second.
		if next := p.Created.Add(min(p.Created.Sub(start), pace)); !p.Created.IsZero() && now.Before(next) {
			d.Plan = s.recordSurgeClaim(d.Plan, c)
			d.Detail, d.Wake = missing, earliest(d.Wake, next)
			return d
		}
		d.Plan = append(d.Plan, s.deletePlaceholder(c.Name))
	}
	if s.Placeholder == nil || useless(s.Placeholder, c) {
		spec := s.placeholder(p, c, v.pastDue)
		d.Plan = append(d.Plan, Step{
			Act: ActCreatePlaceholder, On: Object{Kind: KindPlaceholder, Name: spec.Name},
			Create: &spec, Facts: Facts{NodeClaim: c.Name, Node: c.NodeName},
		})
		return d
	}
	if missing != "" {
		d.Plan = s.recordSurgeClaim(d.Plan, c)
		d.Detail = missing
		if w := s.Placeholder.Waiting; s.Placeholder.NodeName == "" && w != (Waiting{}) {
			d.Unscheduled = w
			// That it fits nowhere yet is how every surge begins: it is worth a warning when a
			// new node should have been there by now.
			if late := start.Add(p.provisioning()); now.Before(late) {
				d.Wake = earliest(d.Wake, late)
			} else {
				d.Warnings = append(d.Warnings, Warning{On: c.Object, Code: "SurgeUnschedulable", Moving: true, Message: fmt.Sprintf(
					"placeholder %s fits no node yet (%s: %s), and none has come up within %s: its own Events say why Karpenter launches none; the attempt ends at %s",
					s.Placeholder.Name, w.Reason, w.Message, p.provisioning(), stamp(deadline))})
			}
		}
		return d
	}
	d.Plan = s.handOver(d.Plan, c, host, start, now)
	d.Reason = ReasonAwaitingDrain
	return d
}

// pace is the longest pause between two placeholders of which the first was of no use.
const pace = 30 * time.Second

// useless reports a placeholder that can no longer hold room for the drain: one that has
// ended, or that a scheduler which had not yet heard of the cordon put on the candidate.
func useless(p *Placeholder, c *NodeClaim) bool {
	return !p.Deleting && (p.Phase == "Failed" || p.Phase == "Succeeded" || p.NodeName != "" && p.NodeName == c.NodeName)
}

func (s *Snapshot) markPending(c *NodeClaim, now time.Time) Step {
	return Step{
		Act: ActMarkPending, On: c.Object,
		Set:   map[string]string{AnnotationState: StatePending, AnnotationStartedAt: stamp(now)},
		Facts: Facts{NodeClaim: c.Name, Node: c.NodeName},
	}
}

// hold asserts the state that the claim is seen in. It changes nothing, and precedes steps
// on other objects that a claim which has moved on must not suffer: a view that lags is
// refused here, before the surge of a drain under way is reaped.
func hold(c *NodeClaim) Step {
	return Step{
		Act: ActHoldClaim, On: c.Object, Set: map[string]string{AnnotationState: c.state()},
		Facts: Facts{NodeClaim: c.Name, Node: c.NodeName},
	}
}

// giveUp makes durable that an attempt ends, and which surge is reaped: the placeholder that
// proves whose it is goes first. Holding is not enough: the transition to draining may be on
// its way to the API server, from a leader that was or out of a request that was given up, and
// would still fit the version that was held.
func giveUp(c, surge *NodeClaim, now time.Time) Step {
	return Step{
		Act: ActGiveUp, On: c.Object, Set: map[string]string{AnnotationRollbackAt: stamp(now), AnnotationSurgeClaim: surge.Name},
		Facts: Facts{NodeClaim: c.Name, Node: c.NodeName, SurgeNode: surge.NodeName},
	}
}

// recordSurgeClaim remembers which NodeClaim the placeholder was bound to, so that a
// rollback after a crash still knows what it may reap.
func (s *Snapshot) recordSurgeClaim(plan []Step, c *NodeClaim) []Step {
	b := s.boundClaim(c)
	if b == nil || c.Annotations[AnnotationSurgeClaim] == b.Name {
		return plan
	}
	return append(plan, Step{
		Act: ActRecordSurgeClaim, On: c.Object, Set: map[string]string{AnnotationSurgeClaim: b.Name},
		Facts: Facts{NodeClaim: c.Name, SurgeNode: b.NodeName},
	})
}

// handOver releases the capacity to the drain: the transition is written, pool first,
// then the placeholder goes, and only once it is gone the NodeClaim. Kept through the
// drain, the placeholder would make Karpenter plan a second node for the evicted pods.
func (s *Snapshot) handOver(plan []Step, c *NodeClaim, host Node, start, now time.Time) []Step {
	plan = slices.Grow(plan, 5)
	if step, missing := freeze(host, c.Name, false); missing {
		plan = append(plan, step)
	}
	wait := max(0, now.Sub(start).Truncate(time.Second))
	// The births are by the clock of the API server, and so is that of a placeholder. One that
	// was created again is younger than what the first has brought into being.
	path := s.surgePath(host, earliest(start, s.Placeholder.Created))
	facts := Facts{NodeClaim: c.Name, Node: c.NodeName, Mode: ModeSurge, SurgeNode: host.Name, SurgeWait: wait, SurgePath: path}
	if s.NodePool.Annotations[AnnotationActiveState] != StateDraining {
		set := map[string]string{
			AnnotationActiveState: StateDraining,
			AnnotationDrainingAt:  stamp(now),
			AnnotationSurgeWait:   wait.String(),
		}
		if path != "" {
			set[AnnotationSurgePath] = path
		}
		plan = append(plan, Step{Act: ActRecordDraining, On: s.NodePool.Object, Set: set, Facts: facts})
	}
	mark := map[string]string{AnnotationState: StateDraining}
	if b := s.boundClaim(c); b != nil && c.Annotations[AnnotationSurgeClaim] != b.Name {
		mark[AnnotationSurgeClaim] = b.Name
	}
	return append(plan,
		Step{Act: ActMarkDraining, On: c.Object, Set: mark, Facts: facts},
		s.deletePlaceholder(c.Name),
		Step{Act: ActDeleteNodeClaim, On: c.Object, Facts: facts},
	)
}

// complete ends the rotation of a claim that is gone. The mirror on the pool decides the
// outcome, in the very write that releases the anchor (§5.2).
func (s *Snapshot) complete(name string, now time.Time) Decision {
	a := s.NodePool.Annotations
	d := Decision{Active: name, Plan: s.cleanup(name)}
	if a[AnnotationActiveState] != StateDraining {
		d.Plan = append(d.Plan, s.releaseAnchor(nil, Facts{NodeClaim: name, Outcome: Gone}))
		return d
	}
	f := Facts{NodeClaim: name, Outcome: Success, Mode: s.mode(), SurgePath: a[AnnotationSurgePath]}
	for _, step := range d.Plan {
		if step.Act == ActReleaseNode && s.Nodes[step.On.Name].Claim != name { // its own Node can be there still
			f.SurgeNode = step.On.Name
		}
	}
	// A duration that cannot be read is left out of the report; the outcome stands.
	wait, _ := time.ParseDuration(a[AnnotationSurgeWait])
	f.SurgeWait = max(0, wait)
	if at, err := readPast(a, AnnotationDrainingAt, now); err == nil && !at.IsZero() {
		f.Drain = max(0, now.Sub(at))
	}
	d.Plan = append(d.Plan, s.releaseAnchor(map[string]string{AnnotationLastRotation: stamp(now)}, f))
	return d
}

// expire gives the rotation up to Karpenter's own expiry, which deleted the claim before
// the surge was ready. The state is claimed before any cleanup; the outcome is told by the
// write that releases the anchor, which happens once however often the cleanup is repeated.
func (s *Snapshot) expire(c *NodeClaim) Decision {
	d := s.end(c, Facts{NodeClaim: c.Name, Outcome: Gone})
	d.Plan = append([]Step{{
		Act: ActMarkExpired, On: c.Object, Set: map[string]string{AnnotationState: StateExpired},
		Clear: present(c.Annotations, attemptSet...), Facts: Facts{NodeClaim: c.Name, Node: c.NodeName},
	}}, d.Plan...)
	return d
}

// end cleans up and clears the anchor.
func (s *Snapshot) end(c *NodeClaim, f Facts) Decision {
	return Decision{Active: c.Name, Plan: append(s.cleanup(c.Name), s.releaseAnchor(nil, f))}
}

// rollback ends an attempt that was not ready in time (§3.8): the placeholder goes and the
// surge is reaped, in that order, as Karpenter would launch anew for a placeholder whose
// node is being deleted; the nodes are given back, and the failure is counted on the claim
// and then on the pool.
func (s *Snapshot) rollback(p *Policy, c *NodeClaim, now time.Time) Decision {
	surge, kept := s.reapable(c, now)
	first, ends := hold(c), present(c.Annotations, attemptSet...)
	if _, givenUp := c.Annotations[AnnotationRollbackAt]; surge != nil && !givenUp {
		first, ends = giveUp(c, surge, now), attemptSet
	}
	d := Decision{Active: c.Name, Plan: []Step{first}}
	if s.Placeholder != nil {
		d.Plan = append(d.Plan, s.deletePlaceholder(c.Name))
	}
	if surge != nil {
		d.Plan = append(d.Plan, Step{Act: ActReapSurgeClaim, On: surge.Object, Empty: s.nodesOf(surge), Facts: Facts{NodeClaim: c.Name, SurgeNode: surge.NodeName}})
	}
	_, reason := s.surgeHost(c)
	host := reason == ""
	if host {
		reason = "the surge was not accepted in time"
	}
	if s.Placeholder == nil && s.Trouble != "" {
		reason = s.Trouble
	}
	if g := s.freezeGate(now); g.Reason != "" && (host || s.Placeholder == nil) {
		reason = g.Detail // it alone was in the way
	}
	if _, err := readPast(c.Annotations, AnnotationStartedAt, now); err != nil {
		reason = err.Error()
	}
	retries := c.retries() + 1
	at := now.UTC().Truncate(time.Second) // as the annotation holds it
	d.Plan = s.releaseNodes(d.Plan, c.Name)
	d.Plan = append(d.Plan,
		Step{
			Act: ActMarkFailed, On: c.Object,
			Set: map[string]string{
				AnnotationState: StateFailed, AnnotationFailedAt: stamp(now), AnnotationRetryCount: strconv.Itoa(retries),
			},
			Clear: append(slices.Clone(ends), present(c.Annotations, requestSet...)...),
			Facts: Facts{
				NodeClaim: c.Name, Node: c.NodeName, Outcome: Failure, Reason: reason, Kept: kept, Timeout: p.ReadyTimeout,
				RetryCount: retries, BackoffUntil: at.Add(p.backoff(at, retries, now)),
			},
		},
		s.releaseAnchor(map[string]string{AnnotationLastFailure: stamp(now)}, Facts{NodeClaim: c.Name}),
	)
	return d
}

// failed meets a claim that failed while the anchor stayed, after a crash between the two
// writes: the claim may already be on its way out, or due again, or the pool still has to
// hear of the failure. A retry is a new attempt and passes every gate that one passes. An
// attempt that had begun its transition has left that on the pool, and the next one would take
// it for its own: it is released instead.
func (s *Snapshot) failed(p *Policy, c *NodeClaim, now time.Time) Decision {
	if !c.Deleting.IsZero() {
		return s.expire(c)
	}
	v := s.survey(p, now)
	standing, _, _ := s.standing(p, c, now)
	clean := s.NodePool.Annotations[AnnotationActiveState] == ""
	if clean && standing == Eligible && s.startGate(p, c, now).Reason == "" {
		if d := s.attempt(p, c, v, now); d.Reason != ReasonInsufficientHeadroom {
			return d
		}
	}
	failed, err := readPast(c.Annotations, AnnotationFailedAt, now)
	if err != nil || failed.IsZero() {
		failed = now
	}
	last, err := readPast(s.NodePool.Annotations, AnnotationLastFailure, now)
	if err == nil && last.After(failed) {
		failed = last
	}
	d := s.end(c, Facts{NodeClaim: c.Name})
	d.Plan[len(d.Plan)-1].Set = map[string]string{AnnotationLastFailure: stamp(failed)}
	d.Plan = append([]Step{hold(c)}, d.Plan...)
	return d
}
