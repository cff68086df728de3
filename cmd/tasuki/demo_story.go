package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/tasuki-io/tasuki/lab/trial"
)

// The phases of the demo, as the narration and the stepper name them.
const (
	phaseSetup    = "setup"
	phaseWait     = "wait"
	phaseSurge    = "surge"
	phaseHandOver = "hand-over"
	phaseDrain    = "drain"
	phaseRelease  = "release"
	phaseDone     = "done"
)

// phaseOf tells how far a rotation is.
func phaseOf(a trial.Account) string {
	switch {
	case a.Started.IsZero():
		return phaseWait
	case !a.Ended.IsZero():
		return phaseDone
	case !a.Drained.IsZero():
		return phaseRelease
	case !a.Deleted.IsZero():
		return phaseDrain
	case !a.Capacity.IsZero():
		return phaseHandOver
	}
	return phaseSurge
}

// story turns happenings into sentences. It remembers how far the rotation is, and calls
// its two nodes the old and the new one, as their names are long.
type story struct {
	started, ended bool
	old, new       string
}

// tell returns the phase and the sentence; no sentence for what is not worth one.
func (s *story) tell(h trial.Happening, replicas int) (phase, text string) {
	switch h.Kind {
	case trial.RotationStarted:
		*s = story{started: true, old: h.Node}
	case trial.PlaceholderBound:
		if h.Node != s.old {
			s.new = h.Node
		}
	case trial.RotationEnded:
		s.ended = true
	}
	phase, text = s.sentence(h, replicas)
	switch {
	case !s.started:
		if h.Kind == trial.PodBound || h.Kind == trial.PodReady { // of every pod: the scene tells
			return "", ""
		}
		return phaseSetup, text
	case s.ended:
		return phaseDone, text
	}
	return phase, text
}

// call names a node.
func (s *story) call(node string) string {
	switch node {
	case "":
		return "a node"
	case s.old:
		return "the old node"
	case s.new:
		return "the new node"
	}
	return "node " + node
}

func (s *story) sentence(h trial.Happening, replicas int) (phase, text string) {
	node := s.call(h.Node)
	switch h.Kind {
	case trial.RotationStarted:
		return phaseSurge, fmt.Sprintf("anchor claimed: NodeClaim %s is on the rotation, and so is its node, now the old one", h.Claim)
	case trial.NodeProtected:
		if h.Cordoned {
			return phaseSurge, node + " is cordoned and protected: it takes no new pod, and nobody else disrupts it"
		}
		return phaseHandOver, node + " is protected: Karpenter will not consolidate it away"
	case trial.PlaceholderCreated:
		return phaseSurge, fmt.Sprintf("placeholder created, requesting %s: the room that the pods will need", quantities(h.Requests))
	case trial.ClaimLaunched:
		return phaseSurge, fmt.Sprintf("Karpenter launches NodeClaim %s", h.Claim)
	case trial.NodeAppeared:
		return phaseSurge, fmt.Sprintf("node %s registers%s", h.Node, of(h.Claim))
	case trial.NodeReady:
		return phaseSurge, fmt.Sprintf("node %s is Ready%s", h.Node, of(h.Claim))
	case trial.PlaceholderBound:
		return phaseSurge, fmt.Sprintf("placeholder is bound to %s", node)
	case trial.CapacityReady:
		return phaseSurge, fmt.Sprintf("placeholder runs on %s: the capacity is really there", node)
	case trial.PlaceholderGone:
		return phaseHandOver, fmt.Sprintf("placeholder gone: its room on %s is free", node)
	case trial.PlaceholderLost:
		return phaseSurge, fmt.Sprintf("placeholder lost on %s: it was deleted before the hand-over", node)
	case trial.ClaimDeleted:
		return phaseHandOver, fmt.Sprintf("NodeClaim %s deleted: Karpenter drains %s", h.Claim, node)
	case trial.PodLeaving:
		return phaseDrain, fmt.Sprintf("pod %s evicted from %s", h.Pod, node)
	case trial.PodBound:
		return phaseDrain, fmt.Sprintf("pod %s bound to %s, %s after its creation", h.Pod, node, lasted(h.Pending))
	case trial.PodReady:
		return phaseDrain, fmt.Sprintf("pod %s Ready on %s (%d of %d)", h.Pod, node, h.Ready, replicas)
	case trial.NodeGone:
		return phaseDrain, fmt.Sprintf("%s is gone", node)
	case trial.ClaimGone:
		return phaseDrain, fmt.Sprintf("NodeClaim %s is gone", h.Claim)
	case trial.NodeReleased:
		return phaseRelease, fmt.Sprintf("%s is released: an ordinary node from now on", node)
	case trial.RotationEnded:
		if h.Outcome == trial.Success {
			return phaseDone, fmt.Sprintf("rotation of NodeClaim %s complete", h.Claim)
		}
		return phaseDone, fmt.Sprintf("rotation of NodeClaim %s ended: %s", h.Claim, h.Outcome)
	}
	return "", ""
}

func of(claim string) string {
	if claim == "" {
		return ""
	}
	return fmt.Sprintf(" (NodeClaim %s)", claim)
}

// quantities lists requests by name.
func quantities(l corev1.ResourceList) string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(l)) {
		q := l[name]
		out = append(out, fmt.Sprintf("%s %s", name, q.String()))
	}
	return strings.Join(out, ", ")
}
