package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ConditionReady is the one condition of a policy: True if it rules every NodePool for
// which it is the most specific.
const ConditionReady = "Ready"

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

	// conditions has one entry, of type Ready.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}
