// Package v1alpha1 is the API of node rotation: RotationPolicy, group noderotation.io
// (§5.4).
//
// A policy is what an operator wants and nothing else. The state of a rotation lives in
// annotations on NodePool, NodeClaim and Node; the status here is for reading only, and
// no decision depends on it.
//
// # What admission promises
//
// An object that the API server accepts has every default filled in, and every value in
// it can be read by the controller. Whatever can be judged without knowing the cluster is
// judged there, by the schema and its CEL rules, so that a mistake is answered by kubectl
// and not by a condition that nobody reads. What is left for the controller is the
// question whether a policy is feasible for a NodePool (§3.2).
//
// Three fields stay unset on purpose, because unset means "derive it": failurePause,
// drainEstimate and provisioningEstimate.
//
// # Durations
//
// A duration is a Go duration of hours, minutes, seconds and milliseconds: 15m, 1h30m,
// 1.5h. There is no unit for days. Admission accepts numbers of at most five digits and
// three decimals, and values of at most 8760h (one year); every accepted value is still
// accepted after a client has read it and written it back.
//
// +kubebuilder:object:generate=true
// +groupName=noderotation.io
package v1alpha1
