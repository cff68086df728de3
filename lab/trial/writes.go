package trial

import "github.com/tasuki-io/tasuki/lab"

// OfRotation keeps of a controller's writes those that carry a rotation: not Events, not
// the lease, not the status of a policy.
func OfRotation(all []lab.AuditEvent) []lab.AuditEvent {
	var kept []lab.AuditEvent
	for _, e := range all {
		switch {
		case e.Resource == "events", e.Group == "coordination.k8s.io",
			e.Resource == "rotationpolicies" && e.Subresource == "status":
			continue
		}
		kept = append(kept, e)
	}
	return kept
}
