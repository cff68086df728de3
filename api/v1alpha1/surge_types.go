package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Surge says how one node is replaced: a placeholder pod reserves room for the pods of the
// old node, and only then is the old node drained.
// ---
// It implements §3.3.
type Surge struct {
	// maxUnavailable is how many nodes of a NodePool are replaced at a time. Only 1.
	//
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:XValidation:rule="self == 1",message="nodes of a NodePool are replaced one at a time: write 1, or leave maxUnavailable out"
	MaxUnavailable int32 `json:"maxUnavailable,omitempty"`

	// readyTimeout bounds the wait for the reserved room, counted from the start of an
	// attempt. After it the attempt is rolled back.
	//
	// +optional
	// +kubebuilder:default="15m"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,5}([.][0-9]{1,3})?[hms]|[0-9]{1,5}ms)+$') && duration(self) > duration('0s') && duration(self) <= duration('8760h')",message="write a duration longer than 0 and at most 8760h, such as 15m, 1h30m or 1.5h"
	ReadyTimeout metav1.Duration `json:"readyTimeout,omitzero"`

	// cooldownAfter is the pause of a NodePool after a successful rotation. 0s is none.
	// ---
	// It is always written, so a Go client that leaves it zero asks for no pause.
	//
	// +optional
	// +kubebuilder:default="10m"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^(0|([0-9]{1,5}([.][0-9]{1,3})?[hms]|[0-9]{1,5}ms)+)$') && duration(self) <= duration('8760h')",message="write a duration from 0s (no pause) to 8760h, such as 10m, 1h30m or 1.5h"
	CooldownAfter metav1.Duration `json:"cooldownAfter"`

	// failurePause is the pause of a NodePool after a failed attempt. Unset, it is 10m or
	// cooldownAfter, whichever is longer.
	//
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,5}([.][0-9]{1,3})?[hms]|[0-9]{1,5}ms)+$') && duration(self) > duration('0s') && duration(self) <= duration('8760h')",message="write a duration longer than 0 and at most 8760h, such as 15m, 1h30m or 1.5h; or leave it out for the longer of 10m and cooldownAfter"
	FailurePause *metav1.Duration `json:"failurePause,omitempty"`

	// drainEstimate is how long a drain is expected to take. It serves the estimate of
	// throughput, never a deadline. Unset, it is the NodePool's terminationGracePeriod, at
	// most 10m.
	//
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,5}([.][0-9]{1,3})?[hms]|[0-9]{1,5}ms)+$') && duration(self) > duration('0s') && duration(self) <= duration('8760h')",message="write a duration longer than 0 and at most 8760h, such as 15m, 1h30m or 1.5h; or leave it out for terminationGracePeriod, at most 10m"
	DrainEstimate *metav1.Duration `json:"drainEstimate,omitempty"`

	// provisioningEstimate is how long a new node is expected to take. It serves the
	// estimate of throughput, never a deadline. Unset, it is readyTimeout, at most 5m.
	//
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,5}([.][0-9]{1,3})?[hms]|[0-9]{1,5}ms)+$') && duration(self) > duration('0s') && duration(self) <= duration('8760h')",message="write a duration longer than 0 and at most 8760h, such as 15m, 1h30m or 1.5h; or leave it out for readyTimeout, at most 5m"
	ProvisioningEstimate *metav1.Duration `json:"provisioningEstimate,omitempty"`

	// retryBackoff is how long a node waits after its first failed attempt. It doubles with
	// every further failure, to at most eight times this, and never past the close of the window in
	// which the failure happened as long as an earlier step of it fits.
	//
	// +optional
	// +kubebuilder:default="30m"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,5}([.][0-9]{1,3})?[hms]|[0-9]{1,5}ms)+$') && duration(self) > duration('0s') && duration(self) <= duration('8760h')",message="write a duration longer than 0 and at most 8760h, such as 15m, 1h30m or 1.5h"
	RetryBackoff metav1.Duration `json:"retryBackoff,omitzero"`

	// matchNodeRequirements are the node labels that the replacement has to share with the
	// old node.
	//
	// +optional
	// +kubebuilder:default={}
	MatchNodeRequirements MatchNodeRequirements `json:"matchNodeRequirements,omitzero"`

	// forcefulFallback lets a node that can no longer be replaced in time be drained inside
	// the window without waiting for a replacement.
	//
	// +optional
	// +kubebuilder:default={}
	ForcefulFallback ForcefulFallback `json:"forcefulFallback,omitzero"`

	// wholeNodeReservation reserves the room of a whole node instead of the sum of the pods,
	// for pods that refuse to share a host.
	//
	// +optional
	// +kubebuilder:default={}
	WholeNodeReservation WholeNodeReservation `json:"wholeNodeReservation,omitzero"`
}

// MatchNodeRequirements are label keys whose value on the old node is asked of its
// replacement. A key that the node does not have is skipped.
// ---
// It implements §3.7. A nil list is left to the default; an empty one stays empty.
//
// +kubebuilder:validation:XValidation:rule="!has(self.required) || !has(self.preferred) || !self.preferred.exists(k, k in self.required)",fieldPath=".preferred",messageExpression="self.preferred.filter(k, k in self.required)[0] + ' is in required too: remove it from one of the two'",message="a key is either required or preferred: remove it from one of the two"
type MatchNodeRequirements struct {
	// required are the labels without whose value there is no replacement. Without
	// topology.kubernetes.io/zone a pod with a zonal volume may be left without a node.
	//
	// +optional
	// +listType=set
	// +kubebuilder:default={"topology.kubernetes.io/zone","kubernetes.io/arch","karpenter.sh/capacity-type"}
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=317
	// +kubebuilder:validation:items:XValidation:rule="self.matches('^([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-_.A-Za-z0-9]{0,61}[A-Za-z0-9])?$') && self.indexOf('/') <= 253",message="write a label key, such as topology.kubernetes.io/zone or example.com/rack"
	// +kubebuilder:validation:items:XValidation:rule="self != 'kubernetes.io/hostname'",message="remove it: it names the very node that is replaced, and Karpenter refuses a pod that requires it"
	// +kubebuilder:validation:items:XValidation:rule="self != 'karpenter.sh/nodepool'",message="remove it: the replacement always comes from the node's own NodePool"
	Required []string `json:"required,omitzero"`

	// preferred are labels whose value is given up when capacity is short.
	//
	// +optional
	// +listType=set
	// +kubebuilder:default={}
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=317
	// +kubebuilder:validation:items:XValidation:rule="self.matches('^([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-_.A-Za-z0-9]{0,61}[A-Za-z0-9])?$') && self.indexOf('/') <= 253",message="write a label key, such as topology.kubernetes.io/zone or example.com/rack"
	// +kubebuilder:validation:items:XValidation:rule="self != 'kubernetes.io/hostname'",message="remove it: it names the very node that is replaced, and Karpenter refuses a pod that requires it"
	// +kubebuilder:validation:items:XValidation:rule="self != 'karpenter.sh/nodepool'",message="remove it: the replacement always comes from the node's own NodePool"
	Preferred []string `json:"preferred,omitzero"`
}

// ForcefulFallback is a rotation without surge, for a node whose deadline is nearer than
// the bound of one rotation. PodDisruptionBudgets still hold.
// ---
// It implements §3.6.
type ForcefulFallback struct {
	// enabled turns it on.
	//
	// +optional
	// +kubebuilder:default=false
	Enabled bool `json:"enabled"`
}

// WholeNodeReservation raises the placeholder to what the old node can hold, so that the
// pods find a node that is empty or nearly so. It may cost one more node per rotation.
// ---
// It implements §3.3.
type WholeNodeReservation struct {
	// enabled turns it on.
	//
	// +optional
	// +kubebuilder:default=false
	Enabled bool `json:"enabled"`
}
