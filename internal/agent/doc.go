// Package agent is the shell around package capture on one host. It moves the addresses of
// its node: observe, decide, act, announce.
//
//	observe   what changed in the claims store, what the journal proves, what the NICs show
//	decide    capture.Decide
//	act       the steps of the plan in order; an attempt is begun in the journal, asks the
//	          store and the gate once more, and only then starts an executor
//	announce  receipts, as log lines and metrics
//
// It promises: nothing is asked of a provider but what the gate passes at the claim that was
// read last; what is begun is journalled before, and how it ended after; a pass that finds
// nothing to do writes nothing; and its memory holds nothing that the journal, the store and the
// provider could not give back (ADR 0008 §3-§5).
package agent
