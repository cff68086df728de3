// Package scenario holds the workloads and policies that the demo and the end-to-end
// tests start from.
package scenario

import _ "embed"

// R01 is the workload of case r01: a full node, a budget of one pod, slow pods.
//
//go:embed r01.yaml
var R01 []byte

// Policy governs R01's NodePool with an always open window and a threshold of a minute.
//
//go:embed policy.yaml
var Policy []byte
