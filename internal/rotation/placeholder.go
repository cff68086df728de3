package rotation

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// LabelPlaceholder marks every placeholder pod; its value is "true".
const LabelPlaceholder = prefix + "placeholder"

const placeholderPrefix = "noderotation-surge-"

// PlaceholderName is the name of the placeholder pod for the rotation of a NodeClaim.
// A claim name too long for a pod name is shortened and kept unique by its hash.
func PlaceholderName(claim string) string {
	const longest = 253
	name := placeholderPrefix + claim
	if len(name) <= longest {
		return name
	}
	sum := sha256.Sum256([]byte(claim))
	tail := "-" + hex.EncodeToString(sum[:8])
	return strings.TrimRight(name[:longest-len(tail)], "-.") + tail
}

// PlaceholderSpec is the placeholder pod to create: a bare pod that holds the room that
// the drain will need, and that gives way to anything (§3.3).
type PlaceholderSpec struct {
	Name     string
	NodePool string
	SurgeFor string
	For      Object // the NodeClaim that SurgeFor names

	Requests    corev1.ResourceList
	Limits      corev1.ResourceList // equal to Requests where the API server demands limits
	Tolerations []corev1.Toleration
	Required    []corev1.NodeSelectorRequirement
	Preferred   []corev1.NodeSelectorRequirement // one preference per key; of two bounds, both

	Sizing  Sizing
	Clamps  []Clamp  // where Sizing has cut, by resource name
	Avoided []string // hostnames that the soft exclusion names
	Dropped []string // keys of which the NodePool permits none of the candidate's values
}

// placeholder describes the placeholder for the candidate. The candidate itself is kept
// away by its cordon; the hostname preference only steers away from nodes that are due
// themselves, and is never required, because Karpenter refuses to provision for a pod
// that requires a hostname.
func (s *Snapshot) placeholder(p *Policy, c *NodeClaim, pastDue []*NodeClaim) PlaceholderSpec {
	node := s.Nodes[c.NodeName]
	spec := PlaceholderSpec{
		Name:     PlaceholderName(c.Name),
		NodePool: s.NodePool.Name,
		SurgeFor: c.Name,
		For:      c.Object,
		Sizing:   size(c, s.Pods[c.NodeName], p.WholeNodeReservation),
	}
	spec.Requests = spec.Sizing.Requests
	spec.Clamps = clamps(spec.Sizing, c, node)
	for _, name := range names(spec.Requests) {
		if indivisible(name) {
			if spec.Limits == nil {
				spec.Limits = corev1.ResourceList{}
			}
			spec.Limits[name] = spec.Requests[name]
		}
	}
	for _, t := range s.NodePool.Taints {
		spec.Tolerations = append(spec.Tolerations, corev1.Toleration{
			Key: t.Key, Operator: corev1.TolerationOpEqual, Value: t.Value, Effect: t.Effect,
		})
	}
	var dropped []string
	spec.Required, spec.Dropped = replicate(p.Required, node, c, s.NodePool)
	spec.Preferred, dropped = replicate(p.Preferred, node, c, s.NodePool)
	spec.Dropped = append(spec.Dropped, dropped...)

	spec.Avoided = s.hostnames(c, pastDue)
	if len(spec.Avoided) > 0 {
		spec.Preferred = append(spec.Preferred, corev1.NodeSelectorRequirement{
			Key: labelHostname, Operator: corev1.NodeSelectorOpNotIn, Values: spec.Avoided,
		})
	}
	return spec
}

// hostnames lists the hostname labels of the candidate's node and of the nodes that are
// past their own threshold.
func (s *Snapshot) hostnames(candidate *NodeClaim, pastDue []*NodeClaim) []string {
	var hosts []string
	seen := map[string]bool{"": true}
	for _, c := range append([]*NodeClaim{candidate}, pastDue...) {
		if h := s.Nodes[c.NodeName].Labels[labelHostname]; !seen[h] {
			seen[h] = true
			hosts = append(hosts, h)
		}
	}
	return hosts
}
