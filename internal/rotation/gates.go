package rotation

import (
	"fmt"
	"iter"
	"slices"
	"time"
)

// A gate is an answer to "may a rotation start now": the zero Reason is yes. Opens is
// the instant at which this gate opens by itself, zero when only an event opens it.
type gate struct {
	Reason Reason
	Detail string
	Opens  time.Time
	Warn   []Warning
}

// startGate returns the first closed gate in front of the choice of a candidate, nothing if all
// are open. The candidate that would be chosen, nil if there is none, matters to the window alone.
func (s *Snapshot) startGate(p *Policy, c *NodeClaim, now time.Time) gate {
	for g := range s.closedGates(p, c, now) {
		return g
	}
	return gate{}
}

// closedGates are the closed ones of all gates, in the order in which they are asked (§5.2,
// steps 1a to 2).
func (s *Snapshot) closedGates(p *Policy, c *NodeClaim, now time.Time) iter.Seq[gate] {
	return func(yield func(gate) bool) {
		for _, ask := range []func() gate{
			func() gate { return policyGate(p) },
			func() gate { return s.staticGate() },
			func() gate { return s.feasibilityGate(p) },
			func() gate { return windowGate(p, c, now) },
			func() gate { return s.freezeGate(now) },
			func() gate { return s.pauseGate(ReasonCooldown, AnnotationLastRotation, p.CooldownAfter, now) },
			func() gate { return s.pauseGate(ReasonFailurePause, AnnotationLastFailure, p.FailurePause, now) },
			func() gate { return s.disruptionGate() },
		} {
			if g := ask(); g.Reason != "" && !yield(g) {
				return
			}
		}
	}
}

// policyGate keeps closed what an unreadable policy governs: doubt stops, it never starts.
func policyGate(p *Policy) gate {
	if p.Invalid != "" {
		return gate{Reason: ReasonPolicyInvalid, Detail: p.Invalid}
	}
	return gate{}
}

// staticGate keeps closed a pool in which no surge can come up (§3.3).
func (s *Snapshot) staticGate() gate {
	if s.NodePool.Static {
		w := StaticPool.warning()
		w.Once = true
		return gate{Reason: ReasonStatic, Detail: StaticPool.Message, Warn: []Warning{w}}
	}
	return gate{}
}

// feasibilityGate keeps closed a pool on which the policy's arithmetic does not work out.
func (s *Snapshot) feasibilityGate(p *Policy) gate {
	if fs := p.fatal(s.NodePool); len(fs) > 0 {
		return gate{Reason: ReasonInfeasible, Detail: fs[0].Code + ": " + fs[0].String()}
	}
	return gate{}
}

// windowGate is open in a maintenance window, and for a candidate that is asked for now.
func windowGate(p *Policy, c *NodeClaim, now time.Time) gate {
	if _, open := p.Windows.At(now); !open && (c == nil || c.requested() != RequestNow) {
		g := gate{Reason: ReasonOutOfWindow}
		if next, ok := p.Windows.Next(now); ok {
			g.Opens = next.Start
			g.Detail = "the next window opens at " + stamp(next.Start)
		}
		return g
	}
	return gate{}
}

// freezeGate reads the operator's freeze (§3.1). A value that cannot be read freezes:
// doubt stops, it never starts.
func (s *Snapshot) freezeGate(now time.Time) gate {
	until, err := readStamp(s.NodePool.Annotations, AnnotationFreeze)
	if err != nil {
		return gate{Reason: ReasonFrozen, Detail: err.Error()}
	}
	if now.Before(until) {
		return gate{Reason: ReasonFrozen, Detail: "frozen until " + stamp(until), Opens: until}
	}
	return gate{}
}

// pauseGate keeps a distance from an earlier end: gate A after a success, gate B after a
// failure (§5.2).
func (s *Snapshot) pauseGate(r Reason, key string, pause time.Duration, now time.Time) gate {
	last, err := readPast(s.NodePool.Annotations, key, now)
	if err != nil {
		return gate{Reason: r, Detail: err.Error(), Opens: readable(err), Warn: []Warning{{Code: "AnnotationInvalid", Message: err.Error()}}}
	}
	if opens := last.Add(pause); !last.IsZero() && now.Before(opens) {
		return gate{Reason: r, Detail: fmt.Sprintf("%s after %s, until %s", pause, stamp(last), stamp(opens)), Opens: opens}
	}
	return gate{}
}

// disruptionGate keeps the pool at one disruption, whoever caused it.
func (s *Snapshot) disruptionGate() gate {
	for i := range s.NodeClaims {
		c := &s.NodeClaims[i]
		if !c.Deleting.IsZero() {
			return gate{Reason: ReasonDisruption, Detail: fmt.Sprintf("NodeClaim %s is being deleted since %s", c.Name, stamp(c.Deleting))}
		}
	}
	var disrupted []string
	for name, n := range s.Nodes {
		if n.disrupted() {
			disrupted = append(disrupted, name)
		}
	}
	slices.Sort(disrupted)
	for _, name := range disrupted {
		if c := s.claimOn(name); c != nil {
			return gate{Reason: ReasonDisruption, Detail: fmt.Sprintf("Node %s of NodeClaim %s carries the taint %s", name, c.Name, taintDisrupt)}
		}
	}
	return gate{}
}
