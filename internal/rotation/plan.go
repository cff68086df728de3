package rotation

import (
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"
)

// Act is what a step means in the life of a rotation.
type Act string

// The acts.
const (
	ActClaimAnchor       Act = "claimAnchor"       // NodePool: the rotation exists from here on
	ActMarkPending       Act = "markPending"       // NodeClaim: an attempt begins
	ActHoldClaim         Act = "holdClaim"         // NodeClaim: changes nothing; refused if the claim has moved on
	ActFreezeNode        Act = "freezeNode"        // Node: do-not-disrupt, and cordon for the candidate
	ActCreatePlaceholder Act = "createPlaceholder" // Pod
	ActRecordSurgeClaim  Act = "recordSurgeClaim"  // NodeClaim
	ActRecordDraining    Act = "recordDraining"    // NodePool: the mirror that decides success
	ActMarkDraining      Act = "markDraining"      // NodeClaim
	ActDeletePlaceholder Act = "deletePlaceholder" // Pod: zero grace; done only once it is gone
	ActDeleteNodeClaim   Act = "deleteNodeClaim"   // NodeClaim: Karpenter drains from here on
	ActGiveUp            Act = "giveUp"            // NodeClaim: the attempt can only be rolled back from here on
	ActReapSurgeClaim    Act = "reapSurgeClaim"    // NodeClaim of a surge that failed
	ActReleaseNode       Act = "releaseNode"       // Node: what we put on it, and nothing else
	ActMarkFailed        Act = "markFailed"        // NodeClaim
	ActMarkExpired       Act = "markExpired"       // NodeClaim: terminal
	ActForgetAttempt     Act = "forgetAttempt"     // NodeClaim: back to never touched
	ActStampWindow       Act = "stampWindow"       // NodePool: a window is open, with something to rotate
	ActSettleWindow      Act = "settleWindow"      // NodePool: it closed, and there is nothing to say
	ActMissWindow        Act = "missWindow"        // NodePool: it closed, and nothing was rotated
	ActFailOrphan        Act = "failOrphan"        // NodeClaim in flight that no pool is anchored on
	ActClearOrphan       Act = "clearOrphan"       // NodePool: what has outlived its anchor
	ActReleaseAnchor     Act = "releaseAnchor"     // NodePool: the rotation has ended
)

// Step is one conditional write. It is valid for the version of On that the snapshot
// showed, or that an earlier step of the same plan returned; for any other version it is
// refused, and the plan ends there.
type Step struct {
	Act   Act
	On    Object
	Set   map[string]string // annotations to set
	Clear []string          // annotations to remove

	Unschedulable *bool            // Node only: spec.unschedulable
	Create        *PlaceholderSpec // ActCreatePlaceholder only

	// Empty are nodes on which nothing may run that Occupies them: ActReapSurgeClaim only. The
	// step is refused for a pod that has come since the decision, as one may once the placeholder
	// has left its room.
	Empty []string

	Facts Facts // what may be announced once the step is durable
}

// Facts are the values that an announcement quotes. Each act fills those that it knows.
type Facts struct {
	NodeClaim    string
	Node         string
	Outcome      Outcome
	Mode         string // ModeSurge or ModeFallback
	Reason       string // of a failure
	Kept         string // why a rollback left the surge in place
	SurgeNode    string
	SurgePath    string
	SurgeWait    time.Duration
	Drain        time.Duration
	Age          time.Duration
	Requested    string // RequestWindow or RequestNow, if a person has asked for it
	RequestedBy  string
	Eligible     int
	InBackoff    int
	WindowOpened time.Time
	Deadline     time.Time
	RetryCount   int
	BackoffUntil time.Time
	Timeout      time.Duration // readyTimeout
}

// Outcome is how a rotation ended, the label of completed_total.
type Outcome string

// The outcomes. A rotation that ended because its pool lost its policy has none.
const (
	Success Outcome = "success"
	Failure Outcome = "failure"
	Gone    Outcome = "expired" // Karpenter's expiry took the node first
)

// String is the step as a transcript shows it.
func (st Step) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s/%s", st.Act, st.On.Kind, st.On.Name)
	keys := make([]string, 0, len(st.Set))
	for k := range st.Set {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	for _, k := range keys {
		fmt.Fprintf(&b, " %s=%s", short(k), st.Set[k])
	}
	for _, k := range st.Clear {
		fmt.Fprintf(&b, " -%s", short(k))
	}
	if st.Unschedulable != nil {
		fmt.Fprintf(&b, " unschedulable=%t", *st.Unschedulable)
	}
	return b.String()
}

func short(key string) string { return strings.TrimPrefix(key, prefix) }

func present(annotations map[string]string, keys ...string) []string {
	var out []string
	for _, k := range keys {
		if _, ok := annotations[k]; ok {
			out = append(out, k)
		}
	}
	return out
}

func ptr[T any](v T) *T { return &v }

// freeze protects a node of the surge pair from Karpenter's optimizers, and cordons the
// candidate, in one write (§3.4). What an operator has put there stays theirs. It
// returns false when nothing is missing.
func freeze(n Node, claim string, cordon bool) (Step, bool) {
	set := map[string]string{}
	if n.Annotations[AnnotationSurgeFor] != claim {
		set[AnnotationSurgeFor] = claim
	}
	if n.Annotations[AnnotationDoNotDisrupt] != "true" {
		set[AnnotationDoNotDisrupt] = "true"
		if n.Annotations[AnnotationDoNotDisruptOwned] != "true" {
			set[AnnotationDoNotDisruptOwned] = "true"
		}
	}
	st := Step{Act: ActFreezeNode, On: n.Object, Set: set, Facts: Facts{NodeClaim: claim, Node: n.Name}}
	if cordon && !n.Unschedulable {
		st.Unschedulable = ptr(true)
		if n.Annotations[AnnotationCordoned] != "true" {
			set[AnnotationCordoned] = "true"
		}
	}
	return st, len(set) > 0 || st.Unschedulable != nil
}

// release takes back what freeze put on the node, judged by its own markers.
func release(n Node, claim string) Step {
	st := Step{Act: ActReleaseNode, On: n.Object, Facts: Facts{NodeClaim: claim, Node: n.Name}}
	st.Clear = present(n.Annotations, AnnotationSurgeFor, AnnotationDoNotDisruptOwned, AnnotationCordoned)
	if n.Annotations[AnnotationDoNotDisruptOwned] == "true" {
		st.Clear = append(st.Clear, present(n.Annotations, AnnotationDoNotDisrupt)...)
	}
	if n.Annotations[AnnotationCordoned] == "true" && n.Unschedulable {
		st.Unschedulable = ptr(false)
	}
	return st
}

// cleanup ends what a rotation holds at run time: the placeholder, then every node that
// carries its surge-for. It is safe to repeat.
func (s *Snapshot) cleanup(claim string) []Step {
	var plan []Step
	if s.Placeholder != nil {
		plan = append(plan, s.deletePlaceholder(claim))
	}
	return s.releaseNodes(plan, claim)
}

// releaseNodes gives back every node that carries the rotation's surge-for.
func (s *Snapshot) releaseNodes(plan []Step, claim string) []Step {
	frozen := make([]string, 0, 2)
	for name, n := range s.Nodes {
		if n.Annotations[AnnotationSurgeFor] == claim {
			frozen = append(frozen, name)
		}
	}
	sort.Strings(frozen)
	plan = slices.Grow(plan, len(frozen)+1) // and, mostly, the release of the anchor
	for _, name := range frozen {
		plan = append(plan, release(s.Nodes[name], claim))
	}
	return plan
}

func (s *Snapshot) deletePlaceholder(claim string) Step {
	return Step{Act: ActDeletePlaceholder, On: s.Placeholder.Object, Facts: Facts{NodeClaim: claim}}
}

// releaseAnchor ends the rotation in one write of the NodePool.
func (s *Snapshot) releaseAnchor(set map[string]string, f Facts) Step {
	return Step{
		Act: ActReleaseAnchor, On: s.NodePool.Object, Set: set,
		Clear: present(s.NodePool.Annotations, anchorSet...), Facts: f,
	}
}
