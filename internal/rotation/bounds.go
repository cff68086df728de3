package rotation

import (
	"math"
	"strconv"

	corev1 "k8s.io/api/core/v1"
)

// bounds are the integers between gt and lt, both exclusive: what the numeric operators of
// Karpenter come to in the two that node affinity knows.
type bounds struct{ gt, lt int }

// boundsOf intersects the numeric requirements on a key. It reports whether there is one.
func boundsOf(key string, rs []Requirement) (bounds, bool) {
	b := bounds{gt: -1, lt: math.MaxInt} // Karpenter knows no number below zero
	found := b.narrow(key, rs)
	return b, found
}

// narrow applies further requirements. One whose number cannot be read leaves nothing: it
// must not widen what is asked for.
func (b *bounds) narrow(key string, rs []Requirement) (found bool) {
	for _, r := range rs {
		if r.Key != key || !r.numeric() {
			continue
		}
		found = true
		n, ok := r.bound()
		switch {
		case !ok:
			*b = bounds{}
		case r.Operator == "Gt":
			b.gt = max(b.gt, n)
		case r.Operator == "Gte":
			b.gt = max(b.gt, max(n, 0)-1)
		case r.Operator == "Lt":
			b.lt = min(b.lt, n)
		case n < math.MaxInt: // Lte; above that, it bounds nothing
			b.lt = min(b.lt, n+1)
		}
	}
	return found
}

// requirements say the same as node affinity, and nothing if no number is left. Karpenter
// refuses a negative number, and below zero there is nothing: a bound there asks only that
// the label exists.
func (b bounds) requirements(key string) []corev1.NodeSelectorRequirement {
	if b.gt >= b.lt-1 {
		return nil
	}
	var rs []corev1.NodeSelectorRequirement
	if b.gt >= 0 {
		rs = append(rs, corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpGt, Values: []string{strconv.Itoa(b.gt)}})
	}
	if b.lt < math.MaxInt {
		rs = append(rs, corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpLt, Values: []string{strconv.Itoa(b.lt)}})
	}
	if len(rs) == 0 {
		rs = append(rs, corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpExists})
	}
	return rs
}

func (r Requirement) numeric() bool {
	return r.Operator == "Gt" || r.Operator == "Gte" || r.Operator == "Lt" || r.Operator == "Lte"
}

// bound is the number of a numeric requirement.
func (r Requirement) bound() (int, bool) {
	if len(r.Values) != 1 {
		return 0, false
	}
	n, err := strconv.Atoi(r.Values[0])
	return n, err == nil
}
