// Package e2e tests the rotation of nodes on a real control plane: kube-apiserver,
// scheduler and Karpenter in a lab, and the controller's own binary under its own
// ServiceAccount with precisely the rights that the chart grants.
//
// Each test owns a NodePool, a RotationPolicy that selects it alone and a workload, so
// that the tests run side by side under one controller. Those that kill a controller, put
// something between it and the API server or disturb the lab run before all others, one
// after the other, with a controller of their own. What a test claims about the past ("never",
// "exactly one") it reads from a history of every version of every object, not from
// looking every so often.
//
// The tests need half an hour on two cores, and half of that in two labs side by side, as
// make test runs them:
//
//	go test ./test/e2e -timeout 40m
//
// They are skipped under -short.
package e2e
