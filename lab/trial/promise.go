package trial

import (
	"fmt"
	"strings"
	"time"
)

// What a rotation of case r01 promises.
const (
	MostClaims   = 1               // NodeClaims created
	MostUnready  = 1               // workload pods not Ready at once
	MostWrites   = 13              // API writes of the controller
	LongestTotal = 6 * time.Minute // from the start of a rotation to its end
)

// Broken names what of its promise the rotation broke, with the values; none is a promise
// kept. What could no longer be seen, as the controller's process had ended, is not held
// against the rotation besides that.
func Broken(a Account) []string {
	var broken []string
	breach := func(format string, args ...any) { broken = append(broken, fmt.Sprintf(format, args...)) }
	if a.ControllerEnded != "" {
		breach("the controller's process ended by itself: %s", a.ControllerEnded)
	}
	switch {
	case a.Started.IsZero():
		if a.ControllerEnded == "" {
			breach("the node is due, and no rotation has started")
		}
		return broken
	case a.Ended.IsZero():
		if a.ControllerEnded == "" {
			breach("the rotation of NodeClaim %s (node %s) did not finish within %s", a.Claim, a.OldNode, LongestTotal)
		}
	case a.Outcome != Success:
		breach("the rotation of NodeClaim %s ended with outcome %s", a.Claim, a.Outcome)
	case a.Drained.IsZero():
		breach("the rotation has ended, and NodeClaim %s (node %s) is still there", a.Claim, a.OldNode)
	case a.Total > LongestTotal:
		breach("the rotation of NodeClaim %s took %s; at most %s is promised", a.Claim, a.Total.Round(time.Second), LongestTotal)
	}
	broken = append(broken, a.Disorder...)
	if n := len(a.ClaimsCreated); n > MostClaims {
		breach("%d NodeClaims were created; at most %d is promised: %s", n, MostClaims, strings.Join(a.ClaimsCreated, ", "))
	}
	if a.MostNotReady > MostUnready {
		breach("%d of %d pods were not Ready at once; at most %d is promised", a.MostNotReady, a.Replicas, MostUnready)
	}
	broken = append(broken, a.Waited...)
	for _, pod := range a.Unbound {
		breach("pod %s is still unbound", pod)
	}
	if !a.Ended.IsZero() && a.Unready > 0 {
		breach("%d of %d pods are not Ready after the rotation", a.Unready, a.Replicas)
	}
	if n := len(a.Writes); n > MostWrites {
		breach("the controller made %d API writes; at most %d are promised", n, MostWrites)
	}
	for _, mark := range a.Residue {
		breach("a mark is left behind: %s", mark)
	}
	return broken
}
