package rotator

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/tasuki-io/tasuki/internal/rotation"
)

// Two bounds on one key are one preference: a node that keeps only one of them is not half
// as good.
func TestTwoBoundsAreOnePreference(t *testing.T) {
	above := corev1.NodeSelectorRequirement{Key: "cpu", Operator: corev1.NodeSelectorOpGt, Values: []string{"3"}}
	below := corev1.NodeSelectorRequirement{Key: "cpu", Operator: corev1.NodeSelectorOpLt, Values: []string{"9"}}
	host := corev1.NodeSelectorRequirement{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpNotIn, Values: []string{"a"}}
	a := affinity(&rotation.PlaceholderSpec{Preferred: []corev1.NodeSelectorRequirement{above, below, host}})
	var got [][]corev1.NodeSelectorRequirement
	for _, p := range a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution {
		got = append(got, p.Preference.MatchExpressions)
	}
	if diff := cmp.Diff([][]corev1.NodeSelectorRequirement{{above, below}, {host}}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
