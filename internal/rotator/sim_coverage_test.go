package rotator

import "slices"

// simActs is everything that the controller writes, by what it does.
var simActs = []string{
	"claimAnchor", "mark pending", "holdClaim", "freezeNode", "createPlaceholder", "recordSurgeClaim", "recordDraining",
	"mark draining", "deletePlaceholder", "deleteNodeClaim", "giveUp", "reapSurgeClaim", "releaseNode", "mark failed", "mark expired",
	"stampWindow", "judgeWindow", "releaseAnchor",
}

// simMust is what a long simulation has to come to, lest it silently stop testing it.
var simMust = func() []string {
	must := []string{
		"outcome success", "outcome failure", "outcome expired", "success provisioned", "success absorbed", "undisturbed success",
		"fallback", "governance lost", "retry under the old anchor", "forgetAttempt", "failOrphan", "clearOrphan", "drain stuck",
		"kills", "calls refused", "outage", "leader changes", "writes of a leader that was", "conflict",
		"preemption", "bound to a node just cordoned", "karpenter disrupt", "karpenter expire",
		"event WindowMissed", "event GovernanceLost", "event ForcefulFallback", "event FreezeInvalid", "event AnnotationInvalid",
		"person cordon", "person protect", "person freeze", "person withdraw", "person rival", "person edit", "person static",
		"person limit", "person odd", "requested true", "requested now", "person unanchor", "person delete", "person hold",
	}
	for _, reason := range []string{
		"ungoverned", "policyConflict", "policyInvalid", "static", "infeasible", "outOfWindow", "frozen", "cooldownAfterSuccess",
		"failurePause", "disruptionInProgress", "noCandidate", "insufficientHeadroom",
	} {
		must = append(must, "reason "+reason)
	}
	for _, act := range simActs {
		must = append(must, act, "interrupted "+act)
	}
	return must
}()

// missed lists what a simulation has not come to.
func missed(seen map[string]int) []string {
	return slices.DeleteFunc(slices.Clone(simMust), func(what string) bool { return seen[what] > 0 })
}
