package rotation

import (
	"slices"
	"sort"
	"strconv"

	corev1 "k8s.io/api/core/v1"
)

// replicate turns keys of matchNodeRequirements into node selector requirements that
// bring the surge to a place like the candidate's (§3.7). For each key the Node's label
// is the truth; a key that is no label falls back to the In values of the claim; a key
// that neither knows is skipped. Values that the NodePool no longer permits are left out,
// because no node of the pool could carry them; a key that loses all of them is returned
// in dropped instead, for the caller to say so.
func replicate(keys []string, n Node, c *NodeClaim, pool NodePool) (kept []corev1.NodeSelectorRequirement, dropped []string) {
	for _, key := range keys {
		values := valuesOf(key, n, c)
		if len(values) == 0 {
			continue
		}
		permitted := slices.DeleteFunc(values, func(v string) bool { return !permits(pool.Requirements, key, v) })
		if len(permitted) == 0 {
			dropped = append(dropped, key)
			continue
		}
		kept = append(kept, corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpIn, Values: permitted})
	}
	return kept, dropped
}

func valuesOf(key string, n Node, c *NodeClaim) []string {
	if v, ok := n.Labels[key]; ok {
		return []string{v}
	}
	for _, r := range c.Requirements {
		if r.Key == key && r.Operator == "In" {
			values := slices.Clone(r.Values)
			sort.Strings(values)
			return values
		}
	}
	return nil
}

// permits reports whether every requirement on the key accepts the value.
func permits(rs []Requirement, key, value string) bool {
	for _, r := range rs {
		if r.Key == key && !r.accepts(value) {
			return false
		}
	}
	return true
}

func (r Requirement) accepts(value string) bool {
	switch r.Operator {
	case "In":
		return slices.Contains(r.Values, value)
	case "NotIn":
		return !slices.Contains(r.Values, value)
	case "Exists":
		return true
	case "DoesNotExist":
		return false
	}
	v, err := strconv.Atoi(value)
	if err != nil || len(r.Values) != 1 {
		return false
	}
	bound, err := strconv.Atoi(r.Values[0])
	if err != nil {
		return false
	}
	switch r.Operator {
	case "Gt":
		return v > bound
	case "Gte":
		return v >= bound
	case "Lt":
		return v < bound
	case "Lte":
		return v <= bound
	}
	return false
}
