package v1alpha1_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tasuki-io/tasuki/api/v1alpha1"
)

func TestScheme(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"RotationPolicy", "RotationPolicyList"} {
		if !scheme.Recognizes(v1alpha1.GroupVersion.WithKind(kind)) {
			t.Errorf("%s is not registered", kind)
		}
	}
}

func TestSelector(t *testing.T) {
	type (
		selector    = v1alpha1.NodePoolSelector
		requirement = v1alpha1.NodePoolSelectorRequirement
	)
	pool := labels.Set{"workload": "api", "tier": "1"}
	for name, c := range map[string]struct {
		selector    selector
		matches     bool
		specificity int
	}{
		"empty selects all": {selector{}, true, 0},
		"a label":           {selector{MatchLabels: map[string]v1alpha1.LabelValue{"workload": "api"}}, true, 1},
		"another value":     {selector{MatchLabels: map[string]v1alpha1.LabelValue{"workload": "web"}}, false, 1},
		"labels and expressions": {selector{
			MatchLabels: map[string]v1alpha1.LabelValue{"workload": "api", "tier": "1"},
			MatchExpressions: []requirement{
				{Key: "tier", Operator: metav1.LabelSelectorOpIn, Values: []v1alpha1.LabelValue{"1", "2"}},
				{Key: "team", Operator: metav1.LabelSelectorOpDoesNotExist},
			},
		}, true, 4},
		"an expression that fails": {selector{
			MatchExpressions: []requirement{{Key: "tier", Operator: metav1.LabelSelectorOpNotIn, Values: []v1alpha1.LabelValue{"1"}}},
		}, false, 1},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := c.selector.AsSelector()
			if err != nil {
				t.Fatal(err)
			}
			if got.Matches(pool) != c.matches {
				t.Errorf("%s matches %s: %v, want %v", got, pool, !c.matches, c.matches)
			}
			if n := c.selector.Specificity(); n != c.specificity {
				t.Errorf("specificity %d, want %d", n, c.specificity)
			}
		})
	}
}
