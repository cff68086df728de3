package rotator

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

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

// It pushes nobody aside, gives way to everybody, stays in its pool, and may do nothing.
func TestThePlaceholderGivesWayAndAsksForNothing(t *testing.T) {
	gpu := corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1")}
	r := &Rotator{PlaceholderPriorityClass: "noderotation-placeholder"}
	spec := r.placeholderPod(&rotation.PlaceholderSpec{NodePool: "web", Requests: gpu, Limits: gpu}).Spec
	if spec.PriorityClassName != "noderotation-placeholder" || spec.PreemptionPolicy == nil || *spec.PreemptionPolicy != corev1.PreemptNever {
		t.Errorf("priority %q, preemption %v", spec.PriorityClassName, spec.PreemptionPolicy)
	}
	if diff := cmp.Diff(map[string]string{"karpenter.sh/nodepool": "web"}, spec.NodeSelector); diff != "" {
		t.Errorf("node selector (-want +got):\n%s", diff)
	}
	if spec.AutomountServiceAccountToken == nil || *spec.AutomountServiceAccountToken {
		t.Error("it gets a token")
	}
	c := spec.Containers[0]
	if s := c.SecurityContext; s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation {
		t.Error("it may escalate")
	}
	if diff := cmp.Diff(corev1.ResourceRequirements{Requests: gpu, Limits: gpu}, c.Resources); diff != "" {
		t.Errorf("resources (-want +got):\n%s", diff)
	}
}
