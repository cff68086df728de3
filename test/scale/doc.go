// Package scale measures the controller in a cluster of a given size: a lab's API server
// holds the nodes, their claims and pods, the controller's own process is looked at from
// outside, and the API server's audit log says what it wrote. Nothing of the cluster moves:
// every other component of the lab is stopped.
//
//	go test ./test/scale -run '^$' -bench . -benchtime 1x -timeout 30m
package scale
