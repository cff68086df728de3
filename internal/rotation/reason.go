package rotation

// Reason says why a decision goes no further. It is the same word in log, metric,
// Event, condition and CLI.
type Reason string

// Why no rotation starts, in the order in which the gates are asked.
const (
	ReasonUngoverned           Reason = "ungoverned"
	ReasonPolicyConflict       Reason = "policyConflict"
	ReasonPolicyInvalid        Reason = "policyInvalid"
	ReasonStatic               Reason = "static"
	ReasonInfeasible           Reason = "infeasible"
	ReasonOutOfWindow          Reason = "outOfWindow"
	ReasonFrozen               Reason = "frozen"
	ReasonCooldown             Reason = "cooldownAfterSuccess"
	ReasonFailurePause         Reason = "failurePause"
	ReasonDisruption           Reason = "disruptionInProgress"
	ReasonNoCandidate          Reason = "noCandidate"
	ReasonInsufficientHeadroom Reason = "insufficientHeadroom"
)

// What a pass does before it decides anything.
const ReasonSweeping Reason = "sweeping" // marks that no rotation owns are taken away

// What a rotation under way waits for.
const (
	ReasonAwaitingSurge Reason = "awaitingSurge" // the placeholder is not yet running on a fit host
	ReasonAwaitingDrain Reason = "awaitingDrain" // Karpenter is draining the old node
)

// What an explanation says where a decision has nothing to say.
const (
	ReasonOther     Reason = "otherInRotation" // of a NodeClaim: another one of the pool is on the rotation
	ReasonNotFirst  Reason = "notFirst"        // of a NodeClaim: another one has the earlier deadline
	ReasonFinishing Reason = "finishing"       // what an ended rotation holds is given back
)
