package rotation

import (
	"fmt"
	"strings"
	"time"
)

// UnderWay is a rotation under way.
type UnderWay struct {
	NodeClaim string    `json:"nodeClaim"`
	Node      string    `json:"node,omitempty"`
	Phase     Phase     `json:"phase"`
	Mode      string    `json:"mode"` // ModeSurge or ModeFallback
	Since     time.Time `json:"since,omitzero"`

	// Until is when the phase ends at the latest: that of a surge by readyTimeout, that of a drain
	// by force, at the NodeClaim's terminationGracePeriod. Zero: nothing bounds it.
	Until time.Time `json:"until,omitzero"`
	Stuck time.Time `json:"stuckAt,omitzero"` // of a drain: from when on it counts as stuck

	Waits string   `json:"waitsFor"`
	Pods  []string `json:"pods"` // that are left on the node which drains
	Holds []Hold   `json:"holds"`
}

// Phase is a part of a rotation.
type Phase string

// The phases.
const (
	PhaseSurge  Phase = "surge"  // the capacity comes up
	PhaseDrain  Phase = "drain"  // Karpenter drains the node
	PhaseFinish Phase = "finish" // what the rotation holds is given back
)

// Hold is an object that a rotation waits for, and why.
type Hold struct {
	Kind string `json:"kind"`
	Name string `json:"name"` // with its namespace, if it has one
	Why  string `json:"why"`
}

func (h Hold) String() string { return h.Kind + " " + h.Name + ": " + h.Why }

// Evidence is what an explanation reads beyond a Snapshot.
type Evidence struct {
	Budgets    []Budget
	Unread     []string               // namespaces whose budgets may not be read
	Conditions map[string][]Condition // of NodeClaims by name: those that are not True
}

// Condition is one of a NodeClaim that is not True.
type Condition struct{ Type, Status, Reason, Message string }

func (c Condition) String() string {
	text := "not " + c.Type
	if c.Status == "Unknown" {
		text = c.Type + " is not known yet"
	}
	if c.Reason != "" && c.Reason != c.Type {
		text += ", " + c.Reason
	}
	if c.Message != "" && c.Message != c.Reason {
		text += ": " + c.Message
	}
	return text
}

// underWay is the rotation under way, nil if there is none.
func (s *Snapshot) underWay(d Decision, e Evidence, now time.Time) *UnderWay {
	active := s.NodePool.Annotations[AnnotationActive]
	if active == "" {
		return nil
	}
	f := &UnderWay{NodeClaim: active, Phase: PhaseFinish, Mode: s.mode(), Waits: d.Detail, Pods: []string{}, Holds: []Hold{}}
	c, p := s.claim(active), s.Governance.Policy
	if c == nil || p == nil {
		if f.Waits == "" {
			f.Waits = "the NodeClaim is gone; what the rotation holds is given back"
		}
		return f
	}
	f.Node = c.NodeName
	switch {
	case d.Reason == ReasonAwaitingDrain:
		s.drainOf(c, e, f, now)
	case d.Reason == ReasonAwaitingSurge, d.Reason == ReasonFrozen:
		s.surgeOf(p, c, e, f, now)
	default:
		f.Waits = "the attempt has ended; what it holds is given back"
	}
	return f
}

func (s *Snapshot) surgeOf(p *Policy, c *NodeClaim, e Evidence, f *UnderWay, now time.Time) {
	f.Phase, f.Since = PhaseSurge, c.startedAt(now)
	if f.Since.IsZero() {
		f.Since = now
	}
	f.Until = f.Since.Add(p.ReadyTimeout)
	if _, missing := s.surgeHost(c); f.Waits == "" {
		f.Waits = missing
	}
	pl := s.Placeholder
	if pl == nil {
		return
	}
	if w := pl.Waiting; pl.NodeName == "" && w != (Waiting{}) {
		f.Holds = append(f.Holds, Hold{"Pod", pl.Name, w.Reason + ": " + w.Message})
	}
	if host := s.claimOn(pl.NodeName); host != nil { // it has its node already
		f.Holds = append(f.Holds, e.unready(host)...)
		return
	}
	born := false
	for i := range s.NodeClaims {
		if o := &s.NodeClaims[i]; o.Name != c.Name && o.bornWithin(f.Since) && o.Deleting.IsZero() {
			born = true
			f.Holds = append(f.Holds, e.unready(o)...)
		}
	}
	if !born && pl.NodeName == "" {
		f.Holds = append(f.Holds, Hold{string(KindNodePool), s.NodePool.Name, "Karpenter has created no NodeClaim since " + stamp(f.Since) + "; the Events of the placeholder say why, if it cannot"})
	}
}

// unready is what a NodeClaim that comes up still lacks.
func (e Evidence) unready(c *NodeClaim) []Hold {
	var lacks []string
	for _, cond := range e.Conditions[c.Name] {
		if cond.Type == "Launched" || cond.Type == "Registered" || cond.Type == "Initialized" {
			lacks = append(lacks, cond.String())
		}
	}
	if len(lacks) == 0 {
		return nil
	}
	return []Hold{{string(KindNodeClaim), c.Name, strings.Join(lacks, "; ")}}
}

func (s *Snapshot) drainOf(c *NodeClaim, e Evidence, f *UnderWay, now time.Time) {
	f.Phase, f.Since = PhaseDrain, c.Deleting
	if c.Deleting.IsZero() {
		f.Since, _ = readPast(s.NodePool.Annotations, AnnotationDrainingAt, now)
		if f.Waits == "" {
			f.Waits = "the deletion of the NodeClaim is what the controller writes next"
		}
		return
	}
	f.Stuck = c.Deleting.Add(plus(grace(c.GracePeriod), buffer))
	if c.GracePeriod != nil {
		f.Until = c.Deleting.Add(*c.GracePeriod)
	}
	left := s.remaining(c.NodeName)
	for _, pod := range left {
		f.Pods = append(f.Pods, pod.Namespace+"/"+pod.Name)
	}
	f.Holds = append(f.Holds, holds(left, e.Budgets, now)...)
	for _, namespace := range e.Unread {
		f.Holds = append(f.Holds, Hold{"PodDisruptionBudget", namespace + "/*", "those of this namespace may not be read: they may be in the way, or not"})
	}
	if len(left) > 0 {
		return
	}
	for _, cond := range e.Conditions[c.Name] { // Karpenter's own account of the end of a node
		if cond.Type == "Drained" || cond.Type == "VolumesDetached" || cond.Type == "InstanceTerminating" {
			f.Holds = append(f.Holds, Hold{string(KindNodeClaim), c.Name, cond.String()})
		}
	}
}

// mostHolds is how many an answer in one sentence names.
const mostHolds = 3

// blocker is the rotation as the answer to why it does not go on.
func (f *UnderWay) blocker(d Decision) Blocker {
	b := Blocker{Reason: string(d.Reason), Detail: f.Waits, Opens: f.Until}
	switch {
	case d.Reason == "":
		b.Reason = string(ReasonFinishing)
	case d.Reason == ReasonFrozen: // the surge is held until then, or given up
		b.Detail = fmt.Sprintf("%s; the surge is held, and given up at %s", d.Detail, stamp(f.Until))
	}
	for i, h := range f.Holds {
		if i == mostHolds {
			b.Detail += fmt.Sprintf("; and %d more", len(f.Holds)-i)
			break
		}
		b.Detail += "; " + h.String()
	}
	return b
}
