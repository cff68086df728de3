package capture

import "time"

// Decision is what a node has to do at one instant.
type Decision struct {
	Plan Plan
	// Held are the live actions that do not begin, and why.
	Held []Held
	// Drifts are what this node is to hold and has placed, and what the provider does not show so.
	Drifts []Drift
	// Contests are what this node and another take from each other.
	Contests []Contest
	// Late says of NICs until when a call of a former holder may yet take from them what was taken
	// from it.
	Late map[Target]time.Time
	// Wake is the earliest instant at which the answer can change by itself; zero when only
	// an event changes it.
	Wake time.Time
}

// Plan is what to write, in this order. A batch is one transaction of its store, in which
// each entry stands for itself: one that is refused does not stop the others, and what
// follows for its key is refused by the gate.
type Plan struct {
	Bumps   []Bump   // the claims store: by comparison
	Skips   []Skip   // the journal
	Drops   []Drop   // the outbox
	Marks   []Mark   // the outbox and the journal, each pair at once
	Imports []Action // the journal
	Admits  []Action // the journal: pending to approved, by policy
	Resumes []Action // the journal: running to approved, past the deadline
	Runs    []Action // claimed one by one, and only then called
}

// Empty reports a plan that writes and calls nothing.
func (p *Plan) Empty() bool {
	return len(p.Bumps)+len(p.Skips)+len(p.Drops)+len(p.Marks)+len(p.Imports)+len(p.Admits)+len(p.Resumes)+len(p.Runs) == 0
}

// Bump changes the holder of a key, and raises its epoch.
type Bump struct {
	Key      Key
	From, To Claim
	Why      Cause
}

// Cause is why an epoch rises.
type Cause string

// The causes.
const (
	CauseFirst  Cause = "first"  // the key was never claimed
	CauseHolder Cause = "holder" // another holder is desired
	CauseReseed Cause = "reseed" // the store knows less than this node does
)

// Skip ends an action that is stale.
type Skip struct {
	Action Action
	Why    Stale
}

// Drop removes a marker whose release has succeeded, or is stale.
type Drop struct {
	Marker Marker
	Why    Stale // "" when it has succeeded
}

// Mark makes the intent of a release durable, and its action with it.
type Mark struct {
	Marker Marker
	Action Action
}

// Held is a live action that does not begin.
type Held struct {
	Action *Action   // as it was decided on, and not to be changed
	Wait   Wait      // what it waits for in the order of things
	Block  Block     // what of the policy blocks it
	Until  time.Time // when that ends; zero when no time ends it
}

// Wait is what an action waits for.
type Wait string

// The waits.
const (
	WaitBackoff  Wait = "backoff"          // the last attempt failed or was throttled
	WaitRunning  Wait = "running"          // an attempt is under way
	WaitPace     Wait = "pace"             // the provider has throttled the profile: one begins after the other
	WaitTakeover Wait = "awaitingTakeover" // the next holder takes it, so that there is no gap
	WaitHold     Wait = "deprovisionHold"  // deprovisionHoldDuration
	WaitAnew     Wait = "capturedAnew"     // this node holds the address under another key
	WaitForwards Wait = "forwardingFirst"  // a host answers only for what it forwards
	WaitCaptured Wait = "addressesRemain"  // captured addresses remain on the NIC
)
