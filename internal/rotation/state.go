package rotation

import (
	"errors"
	"fmt"
	"strconv"
	"time"
)

// The annotations that hold the state of a rotation (§5.3). There is no other store.
const (
	prefix = "noderotation.io/"

	// On the NodePool.
	AnnotationActive       = prefix + "active-rotation"       // NodeClaim name: the anchor
	AnnotationActiveState  = prefix + "active-rotation-state" // "draining"
	AnnotationDrainingAt   = prefix + "draining-at"           // RFC 3339
	AnnotationSurgeWait    = prefix + "surge-wait"            // Go duration
	AnnotationSurgePath    = prefix + "surge-path"            // "provisioned" or "absorbed"
	AnnotationMode         = prefix + "rotation-mode"         // "forceful-fallback"; absent for a surge
	AnnotationLastRotation = prefix + "last-rotation-at"      // RFC 3339
	AnnotationLastFailure  = prefix + "last-failure-at"       // RFC 3339
	AnnotationWindowOpened = prefix + "window-opened-at"      // RFC 3339, until the occurrence is judged
	AnnotationFreeze       = prefix + "freeze"                // RFC 3339, written by operators

	// On the NodeClaim that is being replaced.
	AnnotationState      = prefix + "state"       // pending, draining, failed, expired
	AnnotationStartedAt  = prefix + "started-at"  // RFC 3339, once per attempt
	AnnotationFailedAt   = prefix + "failed-at"   // RFC 3339
	AnnotationRetryCount = prefix + "retry-count" // integer
	AnnotationSurgeClaim = prefix + "surge-claim" // NodeClaim name
	AnnotationRollbackAt = prefix + "rollback-at" // RFC 3339: the attempt is given up, and its surge reaped

	// On the frozen Nodes, and surge-for alone on the placeholder.
	AnnotationSurgeFor          = prefix + "surge-for"            // NodeClaim name
	AnnotationDoNotDisrupt      = "karpenter.sh/do-not-disrupt"   // "true"
	AnnotationDoNotDisruptOwned = prefix + "do-not-disrupt-owned" // "true"
	AnnotationCordoned          = prefix + "cordoned"             // "true"
)

const (
	labelNodePool = "karpenter.sh/nodepool"
	labelHostname = "kubernetes.io/hostname"
	taintDisrupt  = "karpenter.sh/disrupted"
)

// The states of a NodeClaim in rotation. The empty state is a claim never touched.
const (
	StatePending  = "pending"
	StateDraining = "draining"
	StateFailed   = "failed"
	StateExpired  = "expired" // terminal
)

// The surge paths: whether the surge host's NodeClaim was born within the attempt.
const (
	PathProvisioned = "provisioned"
	PathAbsorbed    = "absorbed"
)

// The modes of a rotation: with a surge, or without one because no time is left for it.
const (
	ModeSurge    = "surge"
	ModeFallback = "forceful-fallback"
)

// anchorSet is what ends with a rotation, in one write.
var anchorSet = []string{
	AnnotationActive, AnnotationActiveState, AnnotationDrainingAt, AnnotationSurgeWait, AnnotationSurgePath, AnnotationMode,
}

// attemptSet is what ends with an attempt.
var attemptSet = []string{AnnotationStartedAt, AnnotationSurgeClaim, AnnotationRollbackAt}

// stamp writes an instant the way every annotation holds it: UTC, whole seconds.
func stamp(t time.Time) string { return t.UTC().Truncate(time.Second).Format(time.RFC3339) }

// readStamp reads an instant. A missing annotation is the zero time; one that cannot be
// read is an error that names the key and quotes the value, and the caller must not start
// anything on it.
func readStamp(annotations map[string]string, key string) (time.Time, error) {
	v, ok := annotations[key]
	if !ok {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339, v)
	if err != nil {
		return time.Time{}, fmt.Errorf("annotation %s is %q, which is not an RFC 3339 time: correct it or remove it", key, v)
	}
	return t, nil
}

// skew is how far the clocks of two controllers may be apart.
const skew = 2 * time.Minute

// readPast reads an instant at which something has happened. One that is yet to come cannot be
// true, and is read as one that cannot be read, until it is skew away.
func readPast(annotations map[string]string, key string, now time.Time) (time.Time, error) {
	t, err := readStamp(annotations, key)
	if err == nil && now.Before(t.Add(-skew)) {
		return time.Time{}, notYetPast{key, t}
	}
	return t, err
}

type notYetPast struct {
	key string
	at  time.Time
}

func (e notYetPast) Error() string {
	return fmt.Sprintf("annotation %s is %q, which is yet to come: correct it, remove it, or set the clock of the controller", e.key, stamp(e.at))
}

// readable is when an instant that readPast has refused can be read, zero if never by itself.
func readable(err error) time.Time {
	if e := (notYetPast{}); errors.As(err, &e) {
		return e.at.Add(-skew)
	}
	return time.Time{}
}

// mostRetries is where the count of failed attempts ends.
const mostRetries = 1_000_000

// retries reads the number of failed attempts. A value that cannot be read counts as the
// longest backoff.
func (c *NodeClaim) retries() int {
	v := c.Annotations[AnnotationRetryCount]
	if v == "" {
		return 0
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < 0 {
		return backoffSteps
	}
	return min(n, mostRetries)
}

// checkRetries is the error of a retry-count that cannot be read.
func (c *NodeClaim) checkRetries() error {
	v := c.Annotations[AnnotationRetryCount]
	if v == "" {
		return nil
	}
	if n, err := strconv.Atoi(v); err != nil || n < 0 {
		return fmt.Errorf("annotation %s is %q, which is not a count: correct it or remove it", AnnotationRetryCount, v)
	}
	return nil
}

func (c *NodeClaim) state() string { return c.Annotations[AnnotationState] }

// startedAt returns when the attempt began; zero when it has not, or when the annotation
// cannot be read.
func (c *NodeClaim) startedAt(now time.Time) time.Time {
	t, err := readPast(c.Annotations, AnnotationStartedAt, now)
	if err != nil {
		return time.Time{}
	}
	return t
}

// bornWithin reports whether the claim was created in the attempt that began at start,
// which decides both the surge path and whether a rollback may reap it.
func (c *NodeClaim) bornWithin(start time.Time) bool {
	return !start.IsZero() && !c.Created.Before(start)
}

func (n *Node) disrupted() bool {
	for _, t := range n.Taints {
		if t.Key == taintDisrupt {
			return true
		}
	}
	return false
}

// optedOut reports an operator's own do-not-disrupt: exactly "true", and not ours.
func (n *Node) optedOut() bool {
	return n.Annotations[AnnotationDoNotDisrupt] == "true" && n.Annotations[AnnotationDoNotDisruptOwned] != "true"
}
