// Package rotator is the Kubernetes shell around internal/rotation: it observes a
// NodePool into a snapshot, asks the core what to do, performs the plan step by step, and
// announces what became durable.
//
//	observe.go    API objects -> rotation.Snapshot
//	(decide       internal/rotation)
//	act.go        rotation.Plan -> conditional writes
//	announce.go   receipts -> Events, log lines, metrics
//
// # Caches wake, the API server decides
//
// A pass first decides on the watch cache, which costs nothing. Only when that answer
// contains a write does the pass observe again, from the API server itself, and decide
// anew; that second answer is the one that is acted on. A cache that lags can therefore
// delay a rotation but never start, repeat, roll back or announce anything, and every
// write still carries the resourceVersion that was decided on.
package rotator
