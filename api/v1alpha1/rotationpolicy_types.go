package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// RotationPolicy says how the nodes of the Karpenter NodePools that it selects are
// replaced before they expire: when a rotation may start, how early, and how it takes
// place.
//
// Of the policies that select a NodePool the one with the most label constraints governs
// it. Two that tie govern nothing: the pool is not rotated until the tie is resolved. A
// NodePool that no policy selects is never touched.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,path=rotationpolicies,singular=rotationpolicy,shortName=rotpol
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Matched",type=integer,JSONPath=`.status.matchedNodePools`,description="NodePools that this policy governs"
// +kubebuilder:printcolumn:name="Rotating",type=integer,JSONPath=`.status.rotatingNodePools`,description="governed NodePools with a rotation under way"
// +kubebuilder:printcolumn:name="Age-Threshold",type=string,JSONPath=`.spec.ageThreshold`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Feasible",type=string,JSONPath=`.status.conditions[?(@.type=="Feasible")].reason`,priority=1,description="NoFindings, or what keeps a governed NodePool from rotating"
// +kubebuilder:printcolumn:name="Sound",type=string,JSONPath=`.status.conditions[?(@.type=="Sound")].reason`,priority=1,description="NoFindings, or what works less well than it seems to"
// +kubebuilder:printcolumn:name="Throughput",type=string,JSONPath=`.status.conditions[?(@.type=="ThroughputSufficient")].reason`,priority=1,description="NoFindings, or why the windows do not hold what becomes due"
// +kubebuilder:printcolumn:name="Lead",type=string,JSONPath=`.status.conditions[?(@.type=="LeadSufficient")].reason`,priority=1,description="NoFindings, or ShortLead if a NodeClaim lives too short"
// +kubebuilder:printcolumn:name="Chances",type=integer,JSONPath=`.spec.minRotationChances`,priority=1
// +kubebuilder:printcolumn:name="Windows",type=string,JSONPath=`.spec.maintenanceWindows`,priority=1
type RotationPolicy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec RotationPolicySpec `json:"spec"`

	// +optional
	Status RotationPolicyStatus `json:"status,omitzero"`
}

// RotationPolicyList is a list of RotationPolicies.
//
// +kubebuilder:object:root=true
type RotationPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []RotationPolicy `json:"items"`
}

// AgeThresholdAuto is the ageThreshold that is derived per NodeClaim (§3.2).
const AgeThresholdAuto = "auto"

// RotationPolicySpec is what the operator wants.
// ---
// It implements §5.4.
type RotationPolicySpec struct {
	// nodePoolSelector selects NodePools by their labels. Empty selects all of them, and
	// yields to every policy whose selector has a constraint.
	//
	// +required
	NodePoolSelector NodePoolSelector `json:"nodePoolSelector"`

	// ageThreshold is the age from which a node is a candidate. "auto" derives it for each
	// NodeClaim as expireAfter - (minRotationChances x longest window period + the bound of
	// one rotation), so that the promised number of windows lies before the deadline. A
	// duration replaces that.
	//
	// +optional
	// +kubebuilder:default=auto
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self == 'auto' || (self.matches('^([0-9]{1,5}([.][0-9]{1,3})?[hms]|[0-9]{1,5}ms)+$') && duration(self) > duration('0s') && duration(self) <= duration('8760h'))",message="write auto, or a duration longer than 0 and at most 8760h, such as 120h (there is no unit for days: 5 days are 120h)"
	AgeThreshold string `json:"ageThreshold,omitempty"`

	// minRotationChances is K: how many maintenance windows every node has between becoming
	// a candidate and its deadline. At least 1; with 1 a missed window leaves no second try.
	//
	// +optional
	// +kubebuilder:default=2
	// +kubebuilder:validation:XValidation:rule="self >= 1 && self <= 1000",message="write at least 1 (2 leaves a second window if the first is missed) and at most 1000"
	MinRotationChances int32 `json:"minRotationChances,omitempty"`

	// maintenanceWindows say when a rotation may start; one under way may finish outside.
	// The policy is open whenever one of them is. 1 to 64 entries.
	//
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:XValidation:rule="self.size() > 0",message="write at least one window: without one, no rotation can ever start"
	MaintenanceWindows []MaintenanceWindow `json:"maintenanceWindows"`

	// surge says how a node is replaced.
	//
	// +optional
	// +kubebuilder:default={}
	Surge Surge `json:"surge,omitzero"`

	// prePull is reserved for a later version and has to stay off.
	//
	// +optional
	// +kubebuilder:default={}
	PrePull PrePull `json:"prePull,omitzero"`
}

// PrePull would pull images onto the new node before the drain. It is reserved.
type PrePull struct {
	// enabled must be false in this version.
	//
	// +optional
	// +kubebuilder:default=false
	// +kubebuilder:validation:XValidation:rule="!self",message="pre-pulling images is not available in v1alpha1: write enabled: false, or leave prePull out"
	Enabled bool `json:"enabled"`
}
