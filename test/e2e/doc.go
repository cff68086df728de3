// Package e2e tests the rotation of nodes on a real control plane: kube-apiserver,
// scheduler and Karpenter in a lab, and the controller's own binary under its own
// ServiceAccount with precisely the rights that the chart grants.
//
// Each test owns a NodePool, a RotationPolicy that selects it alone and a workload, so
// that the tests run side by side under one controller. Those that kill a controller run
// before all others, with one of their own. What a test claims about the past ("never",
// "exactly one") it reads from a history of every version of every object, not from
// looking every so often.
//
// The tests need a quarter of an hour on two cores:
//
//	go test ./test/e2e -timeout 30m
//
// They are skipped under -short.
package e2e
