package rotation

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Clamp is what the clamp has taken from one resource of the placeholder (§3.3).
type Clamp struct {
	Resource corev1.ResourceName
	Sum      resource.Quantity // what the pods request
	Limit    resource.Quantity // what is reserved of it

	// Band is by how much the candidate's own node holds more than Karpenter believes a
	// node like it does. A clamp within it loses nothing real.
	Band resource.Quantity
}

// Shortfall is what is not reserved.
func (c Clamp) Shortfall() resource.Quantity {
	short := c.Sum.DeepCopy()
	short.Sub(c.Limit)
	return short
}

// Exceeded reports a clamp that the difference between belief and node does not explain.
func (c Clamp) Exceeded() bool {
	short := c.Shortfall()
	return short.Cmp(c.Band) > 0
}

func clamps(z Sizing, c *NodeClaim, n Node) []Clamp {
	if !z.Clamped {
		return nil
	}
	var cs []Clamp
	for _, name := range names(z.Sum) {
		if sum, limit := z.Sum[name], z.Requests[name]; limit.Cmp(sum) < 0 {
			cs = append(cs, Clamp{Resource: name, Sum: sum, Limit: limit, Band: band(name, c, n)})
		}
	}
	return cs
}

// band is the measured difference for one resource, zero where either side is silent or
// the node holds less.
func band(name corev1.ResourceName, c *NodeClaim, n Node) resource.Quantity {
	real, ok := n.Allocatable[name]
	belief, reported := c.Allocatable[name]
	if !ok || !reported || real.Cmp(belief) <= 0 {
		return resource.Quantity{}
	}
	real = real.DeepCopy()
	real.Sub(belief)
	return real
}

// ClampNotice is what there is to say about the size of a placeholder: the reason of the
// Event and its text, empty when there is nothing. All but SurgeClamped are Warnings.
func (spec *PlaceholderSpec) ClampNotice() (code, message string) {
	z := spec.Sizing
	if name := z.Refused; name != "" {
		sum, overhead := z.Sum[name], z.Overhead[name]
		return "SurgeClampRefused", fmt.Sprintf(
			"the pods request %s of %s, of which a node like this one has none left beside its DaemonSets (%s) by Karpenter's estimate: the placeholder keeps the full requests, and may fit nowhere",
			sum.String(), name, overhead.String())
	}
	code = "SurgeClamped"
	var parts []string
	for _, c := range spec.Clamps {
		if c.Exceeded() {
			code = "SurgeClampBandExceeded"
		}
		short := c.Shortfall()
		parts = append(parts, fmt.Sprintf("%s %s of %s (short by %s, measured band %s)", c.Resource, c.Limit.String(), c.Sum.String(), short.String(), c.Band.String()))
	}
	if len(parts) == 0 {
		return "", ""
	}
	return code, "the placeholder reserves what Karpenter believes a node like this one can hold: " + strings.Join(parts, ", ")
}
