// Package scale measures the controller in a cluster of a given size: a lab's API server
// holds the nodes, their claims and pods, the controller's own process is looked at from
// outside, its metrics say what it asked for, and the API server's audit log when it wrote.
// Nothing of the cluster moves but by this package: every other component of the lab is
// stopped.
//
//	go test ./test/scale -run '^$' -bench . -benchtime 1x -timeout 30m
package scale
