package rotation

import (
	"slices"
	"sort"
	"strconv"

	corev1 "k8s.io/api/core/v1"
)

// replicate turns keys of matchNodeRequirements into node selector requirements that
// bring the surge to a place like the candidate's (§3.7). For each key the Node's label
// is the truth; a key that is no label falls back to the In values of the claim, and then to
// its numeric bounds; a key that none of them knows is skipped. What the NodePool no longer
// permits is left out, because no node of the pool could carry it; a key of which nothing is
// left is returned in dropped instead, for the caller to say so.
func replicate(keys []string, n Node, c *NodeClaim, pool NodePool) (kept []corev1.NodeSelectorRequirement, dropped []string) {
	for _, key := range keys {
		like, known := requirementsLike(key, n, c, pool)
		if known && len(like) == 0 {
			dropped = append(dropped, key)
		}
		kept = append(kept, like...)
	}
	return kept, dropped
}

// requirementsLike says of one key what the replacement has to be like, and whether the
// candidate says anything at all. What the pool excludes with NotIn is left to the pool.
func requirementsLike(key string, n Node, c *NodeClaim, pool NodePool) (like []corev1.NodeSelectorRequirement, known bool) {
	if v, ok := n.Labels[key]; ok {
		return oneOf(key, []string{v}, pool.Requirements), true
	}
	both := append(slices.Clone(c.Requirements), pool.Requirements...)
	if values := valuesIn(key, c.Requirements); values != nil {
		return oneOf(key, values, both), true
	}
	b, bounded := boundsOf(key, c.Requirements)
	if !bounded {
		return nil, false
	}
	if values := valuesIn(key, pool.Requirements); values != nil {
		return oneOf(key, values, both), true
	}
	if !may(key, pool.Requirements) {
		return nil, true
	}
	b.narrow(key, pool.Requirements)
	return b.requirements(key), true
}

// oneOf asks for one of the values that the requirements permit, if there is any.
func oneOf(key string, values []string, rs []Requirement) []corev1.NodeSelectorRequirement {
	permitted := slices.DeleteFunc(values, func(v string) bool { return !permits(rs, key, v) })
	if len(permitted) == 0 {
		return nil
	}
	return []corev1.NodeSelectorRequirement{{Key: key, Operator: corev1.NodeSelectorOpIn, Values: permitted}}
}

// valuesIn returns a sorted copy of the first list of values, nil if there is none.
func valuesIn(key string, rs []Requirement) []string {
	for _, r := range rs {
		if r.Key == key && r.Operator == "In" {
			values := slices.Clone(r.Values)
			sort.Strings(values)
			return values
		}
	}
	return nil
}

// may reports whether a node may carry the key at all.
func may(key string, rs []Requirement) bool {
	return !slices.ContainsFunc(rs, func(r Requirement) bool { return r.Key == key && r.Operator == "DoesNotExist" })
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
	bound, ok := r.bound()
	if err != nil || !ok {
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
