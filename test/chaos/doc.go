// Package chaos runs three agents as processes of their own, with executors and a cluster of
// etcd that are real, against the fake of EC2, and does to them what one seed says: it kills,
// pauses, cuts off, throttles and sets clocks. After each round it holds what the fake has
// recorded, what the cluster was told and what the agents have logged against the invariants
// of capture.
//
//	go test ./test/chaos -run TestChaos -v -timeout 30m -chaos.for 10m -chaos.seed 7
//	go test ./test/chaos -run '^$' -bench Seize -benchtime 1x -timeout 30m
package chaos
