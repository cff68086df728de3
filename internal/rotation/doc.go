// Package rotation decides. Given one Snapshot of a NodePool and an instant, Decide
// returns what has to be written next (an ordered Plan), why nothing more can be
// written (a typed Reason), and the earliest instant at which that answer can change
// (Wake). It implements §3 and §5.2 of the rotation design.
//
// The package is pure: no I/O, no clock, no logger, no randomness. The same snapshot
// and instant always give the same decision, which is why every decision can be
// replayed from a text file (testdata) and explained by day.
//
// # Order of effects
//
// The caller performs the steps of a plan in order and stops at the first one that is
// refused. Each step is one write that is only valid for the object version that the
// snapshot showed (Step.On). What a step announces is announced after the step is
// durable, before the next step is tried, and never otherwise.
//
// A plan that would act on other objects first begins with holdClaim, which changes
// nothing and is refused once the claim has moved on. So a plan made on a view that lags
// ends before it does harm. One that reaps a surge begins with giveUp, which is a write: what
// was decided before it is refused even if it arrives after it.
//
// # The rotation, as writes
//
//	start      NodePool  anchor, window-opened-at   nothing else exists before it
//	           NodeClaim state=pending, started-at
//	           Node      do-not-disrupt, cordon
//	           Pod       placeholder created
//	bound      NodeClaim surge-claim
//	surge      Node      surge host: do-not-disrupt
//	ready      NodePool  state mirror, draining-at, surge-wait, surge-path
//	           NodeClaim state=draining
//	           Pod       placeholder deleted, seen gone
//	           NodeClaim deleted; Karpenter drains
//	finalized  Node      surge host released
//	           NodePool  last-rotation-at; anchor cleared
//
// Twelve writes; every prefix of them resumes after a crash. One more, after the window,
// clears window-opened-at.
package rotation
