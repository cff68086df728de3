package trial

import (
	"time"

	"github.com/tasuki-io/tasuki/lab"
)

// Outcome is how a rotation ended, as the NodePool says.
type Outcome string

// The outcomes.
const (
	Success   Outcome = "success"   // last-rotation-at was written with the end
	Failure   Outcome = "failure"   // last-failure-at was
	Abandoned Outcome = "abandoned" // neither was: expired, or the pool lost its policy
)

// Account is what a witness can testify of one rotation. Instants are when the witness
// heard; an instant that has not come is zero.
type Account struct {
	Replicas int

	Claim   string // the NodeClaim that is replaced
	OldNode string
	NewNode string // where the placeholder ran
	Outcome Outcome

	Started  time.Time // the anchor was set
	Capacity time.Time // the placeholder ran on another Ready node
	Deleted  time.Time // the NodeClaim was deleted
	Drained  time.Time // the NodeClaim was gone
	Ended    time.Time // the anchor was cleared

	SurgePath string        // "provisioned" or "absorbed", as the controller recorded it
	SurgeWait time.Duration // Started to Capacity
	Drain     time.Duration // Deleted to Drained
	Total     time.Duration // Started to Ended

	PlaceholdersLost int // gone before the drain was next; each is made anew and proves anew

	ClaimsCreated  []string // NodeClaims of the pool that appeared since Started
	Evicted        int      // workload pods that left the old node
	MostNotReady   int      // Replicas minus the pods that were Ready and staying, at the worst
	LongestPending time.Duration
	PendingPod     string   // that took so long from its creation to its binding
	Waited         []string // pods that were unbound until a node after the surge node appeared
	Unbound        []string // pods that are unbound still
	Unready        int      // Replicas minus the pods that are Ready and stay, now
	Disorder       []string // what happened before it was allowed to

	// What AwaitRotation adds: the controller's writes since Watch or the last account
	// that was handed out, without Events, leases and policy status; and the marks left
	// in the cluster, unless a rotation runs.
	Writes  []lab.AuditEvent
	Residue []string

	// ControllerEnded is how the controller's process ended, for the caller to fill in.
	ControllerEnded string
}
