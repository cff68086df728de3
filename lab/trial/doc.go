// Package trial runs the product in a lab the way a cluster would: the chart's manifests
// applied, the controller as its own process under its own ServiceAccount with precisely
// the chart's rights, and a witness that sees everything that happens to nodes and pods.
//
//	controller.go  the controller as a process
//	witness.go     watches -> sightings, in the order in which the API server wrote them
//	ledger.go      sightings -> happenings, the scene, the account of each rotation
//	promise.go     account -> what of the promise was broken
//	residue.go     what a rotation has left in the cluster
//
// The witness reads the cluster only. It knows the controller's annotations but none of
// its decisions, so what it says of a rotation is evidence and not an echo.
package trial
