package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ConditionReady is True if a policy rules every NodePool for which it is the most specific.
const ConditionReady = "Ready"

// The other conditions are about the findings on the governed NodePools, one for each class
// (§3.2). True is as it should be: the reason is NoFindings. False has the code of the first
// finding as its reason, and the findings in its message. Unknown: the policy cannot be used.
const (
	// ConditionFeasible: no finding keeps a NodePool from rotating at all.
	ConditionFeasible = "Feasible"
	// ConditionSound: nothing works less well than it seems to.
	ConditionSound = "Sound"
	// ConditionThroughputSufficient: the windows hold what becomes due.
	ConditionThroughputSufficient = "ThroughputSufficient"
	// ConditionLeadSufficient: every NodeClaim lives long enough for its chances.
	ConditionLeadSufficient = "LeadSufficient"
)

// ReasonNoFindings is the reason of a condition with nothing to say.
const ReasonNoFindings = "NoFindings"

// Reasons of the Ready condition. Invalid outranks Conflict.
const (
	// ReasonAccepted: the policy is valid and nothing ties with it.
	ReasonAccepted = "Accepted"
	// ReasonInvalid: the controller cannot use the policy although admission took it.
	ReasonInvalid = "Invalid"
	// ReasonConflict: another policy with as many constraints selects the same NodePool.
	ReasonConflict = "Conflict"
)

// RotationPolicyStatus is what the controller last saw. It is for reading: nothing is
// decided by it.
// ---
// It implements §5.4.
type RotationPolicyStatus struct {
	// observedGeneration is the generation of the spec that the rest of the status is about.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// matchedNodePools is how many NodePools this policy governs.
	//
	// +optional
	MatchedNodePools int32 `json:"matchedNodePools"`

	// rotatingNodePools is how many of those have a rotation under way.
	//
	// +optional
	RotatingNodePools int32 `json:"rotatingNodePools"`

	// conditions are Ready, which says whether the policy governs, and one for each class of
	// findings: Feasible, Sound, ThroughputSufficient, LeadSufficient.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}
