package trial

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Kind is what has happened, in one word.
type Kind string

// What a witness tells.
const (
	RotationStarted    Kind = "RotationStarted"    // the anchor names Claim
	NodeProtected      Kind = "NodeProtected"      // the controller's marks are on Node; Cordoned tells the candidate
	PlaceholderCreated Kind = "PlaceholderCreated" // Pod, with Requests
	ClaimLaunched      Kind = "ClaimLaunched"      // a new NodeClaim
	NodeAppeared       Kind = "NodeAppeared"       // a new Node
	NodeReady          Kind = "NodeReady"
	PlaceholderBound   Kind = "PlaceholderBound" // Pod, to Node
	CapacityReady      Kind = "CapacityReady"    // the placeholder runs on Node, which is Ready and not the candidate
	PlaceholderGone    Kind = "PlaceholderGone"  // after the NodePool said that the drain is next
	PlaceholderLost    Kind = "PlaceholderLost"  // before it did: somebody else deleted it, or the rotation was given up
	ClaimDeleted       Kind = "ClaimDeleted"     // Claim carries a deletionTimestamp: Karpenter drains Node
	PodLeaving         Kind = "PodLeaving"       // Pod carries a deletionTimestamp
	PodCreated         Kind = "PodCreated"
	PodBound           Kind = "PodBound" // Pod, to Node, Pending long after its creation
	PodReady           Kind = "PodReady"
	NodeGone           Kind = "NodeGone"
	ClaimGone          Kind = "ClaimGone"
	NodeReleased       Kind = "NodeReleased"  // the controller's marks are off Node
	RotationEnded      Kind = "RotationEnded" // the anchor is gone; Outcome tells how
)

// Happening is one thing that happened to the subject. Fields that its Kind does not
// mention are empty.
type Happening struct {
	At       time.Time // when the witness heard of it
	Kind     Kind
	Claim    string
	Node     string
	Pod      string
	Requests corev1.ResourceList
	Cordoned bool
	Pending  time.Duration
	Outcome  Outcome
	Ready    int // workload pods that are Ready and stay, after this
}

// String is the happening as a failed test shows it.
func (h Happening) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s", h.At.UTC().Format("15:04:05.000"), h.Kind)
	for _, f := range []struct{ key, value string }{
		{"claim", h.Claim}, {"node", h.Node}, {"pod", h.Pod}, {"outcome", string(h.Outcome)},
	} {
		if f.value != "" {
			fmt.Fprintf(&b, " %s=%s", f.key, f.value)
		}
	}
	fmt.Fprintf(&b, " ready=%d", h.Ready)
	return b.String()
}
