package rotation

import "fmt"

// A person may ask for one node out of turn. The request is an annotation on its NodeClaim, it
// is for one attempt, and the rotation takes the same path as any other.
const (
	AnnotationRequested   = prefix + "rotate-requested"    // "true" for the next window, "now" for outside of windows, too
	AnnotationRequestedBy = prefix + "rotate-requested-by" // who asked, for people
)

// What a request asks for. Neither passes the freeze, a pause, the backoff, the one disruption
// per pool, the deadline order or the limits.
const (
	RequestWindow = "true" // in a window, whatever the age
	RequestNow    = "now"  // outside of windows, too
)

// requestSet is what ends with a request.
var requestSet = []string{AnnotationRequested, AnnotationRequestedBy}

// requested reads what is asked for, "" for nothing. What cannot be read asks for nothing.
func (c *NodeClaim) requested() string {
	if v := c.Annotations[AnnotationRequested]; v == RequestWindow || v == RequestNow {
		return v
	}
	return ""
}

// checkRequest is the error of a request that cannot be read.
func (c *NodeClaim) checkRequest() error {
	v := c.Annotations[AnnotationRequested]
	if v == "" || c.requested() != "" {
		return nil
	}
	return fmt.Errorf("annotation %s is %q: write %q for the next window, %q for now, or remove it", AnnotationRequested, v, RequestWindow, RequestNow)
}
