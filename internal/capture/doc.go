// Package capture decides who holds a mobile address, and what this node has to do about it.
//
// A mobile address has exactly one holder per captureDomain. Desired derives that holder
// from the configuration, the drains and where the address lives; whenever it changes, the
// captureEpoch of the address rises by one (ADR 0008 §1). Every provider action carries the
// epoch and the holder that it was planned for, and Gate, the one gate, refuses it as soon
// as either is not the current one any more (§4). Nothing is ever cancelled: what has to be
// released is a projection of what was captured and what is desired, computed anew on every
// pass (§3).
//
// The package is pure: no I/O, no clock, no logger, no randomness.
//
// # Order of effects
//
// The caller performs the steps of a plan in order. An epoch is bumped by comparison with
// the claim that was read; a marker and the row of its release become durable in one
// transaction; a row is claimed and the gate is asked in one transaction, and only then is
// the provider called. A refused step ends the plan for its key, and the next pass decides
// anew.
package capture
