package rotation

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Examine is everything that can be said of the pool before anything moves: the findings about
// its policy, and what else keeps rotations from starting or makes them unsure. Unlike the gates
// it does not stop at the first.
func Examine(s Snapshot, now time.Time) []Finding {
	if names := s.Governance.Conflict; len(names) > 0 {
		return []Finding{tie(names)}
	}
	p := s.Governance.Policy
	if p == nil {
		return nil
	}
	if p.Invalid != "" { // findings about what is left of it would mislead
		return []Finding{{Code: "PolicyInvalid", Severity: Fatal, Message: p.Invalid, Remedy: "correct the field that the message names"}}
	}
	var fs []Finding
	if s.NodePool.Static {
		fs = append(fs, StaticPool)
	}
	if _, err := readStamp(s.NodePool.Annotations, AnnotationFreeze); err != nil {
		fs = append(fs, unreadable("FreezeInvalid", Fatal, err)) // frozen for good
	}
	fs = append(fs, p.Findings(s.NodePool, s.NodePool.Fleet(s.NodeClaims, now))...)
	fatal := slices.ContainsFunc(fs, func(f Finding) bool { return f.Severity == Fatal })
	if c := s.soonest(); c != nil && s.NodePool.Annotations[AnnotationActive] == "" {
		if f, short := s.tooLittle(p, c); short {
			fs = append(fs, f)
		}
	}
	for _, key := range []string{AnnotationLastRotation, AnnotationLastFailure} {
		if _, err := readPast(s.NodePool.Annotations, key, now); err != nil {
			fs = append(fs, unreadable("AnnotationInvalid", Warn, err))
		}
	}
	for i := range s.NodeClaims {
		c := &s.NodeClaims[i]
		_, _, err := s.standing(p, c, now)
		if err == nil {
			err = c.checkRetries()
		}
		if err != nil {
			fs = append(fs, ofClaim(c.Name, unreadable("AnnotationInvalid", Warn, err)))
		}
	}
	if !fatal { // which says more, and has another remedy
		fs = append(fs, p.ShortLeads(s.NodeClaims)...)
	}
	return fs
}

// tie is the finding of a pool that two policies select with as many constraints.
func tie(names []string) Finding {
	return Finding{
		Code: "PolicyConflict", Severity: Fatal, Remedy: "narrow one of their selectors",
		Message: fmt.Sprintf("RotationPolicies %v select this NodePool with equal specificity", names),
	}
}

// StaticPool is the finding of a pool with a fixed number of nodes.
var StaticPool = Finding{
	Code: "StaticNodePool", Severity: Fatal,
	Message: "spec.replicas is set: Karpenter keeps the number of nodes fixed, so no surge can come up in this NodePool, and its nodes are left to expire",
	Remedy:  "move the workload to a NodePool without spec.replicas, or take this one out of the RotationPolicy's selector",
}

// tooLittle reports a limit of the pool that leaves no room for the surge for c.
func (s *Snapshot) tooLittle(p *Policy, c *NodeClaim) (Finding, bool) {
	if len(s.NodePool.Limits) == 0 {
		return Finding{}, false
	}
	short, ok := headroom(s.NodePool, size(c, s.Pods[c.NodeName], p.WholeNodeReservation))
	if ok {
		return Finding{}, false
	}
	return warning("InsufficientHeadroom", "raise the limit",
		"the surge for NodeClaim %s wants %s of %s, of which spec.limits of NodePool %s (%s) leaves %s",
		c.Name, short.Want.String(), short.Resource, s.NodePool.Name, short.Limit.String(), short.Remaining.String()), true
}

// unreadable is the finding of an annotation, whose error says what to do after its last colon.
func unreadable(code string, severity Severity, err error) Finding {
	text := err.Error()
	at := strings.LastIndex(text, ": ")
	return Finding{Code: code, Severity: severity, Message: text[:at], Remedy: text[at+2:]}
}

func ofClaim(name string, f Finding) Finding {
	f.Message = "NodeClaim " + name + ": " + f.Message
	return f
}

// soonest is the claim with the earliest deadline of those that stay.
func (s *Snapshot) soonest() *NodeClaim {
	var first *NodeClaim
	for i := range s.NodeClaims {
		c := &s.NodeClaims[i]
		if c.ExpireAfter != nil && c.Deleting.IsZero() && (first == nil || before(c, first)) {
			first = c
		}
	}
	return first
}
