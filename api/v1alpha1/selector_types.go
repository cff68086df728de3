package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// NodePoolSelector selects NodePools by their labels: all of its constraints hold.
// ---
// It has the form and the meaning of a metav1.LabelSelector. Unlike that type it is
// bounded, which is what lets admission look into it: whatever is stored can be parsed.
type NodePoolSelector struct {
	// matchLabels are labels that a NodePool has with exactly this value. At most 32.
	//
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.matches('^([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-_.A-Za-z0-9]{0,61}[A-Za-z0-9])?$') && k.indexOf('/') <= 253)",message="write label keys, such as workload or example.com/team"
	MatchLabels map[string]LabelValue `json:"matchLabels,omitempty"`

	// matchExpressions are constraints with an operator. At most 32.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	MatchExpressions []NodePoolSelectorRequirement `json:"matchExpressions,omitempty"`
}

// NodePoolSelectorRequirement is one constraint on one label.
//
// +kubebuilder:validation:XValidation:rule="!(self.operator in ['In', 'NotIn']) || (has(self.values) && self.values.size() > 0)",fieldPath=".values",messageExpression="'operator ' + self.operator + ' needs at least one value'",message="In and NotIn need at least one value"
// +kubebuilder:validation:XValidation:rule="!(self.operator in ['Exists', 'DoesNotExist']) || !has(self.values) || self.values.size() == 0",fieldPath=".values",messageExpression="'operator ' + self.operator + ' takes no values: remove them, or write In or NotIn'",message="Exists and DoesNotExist take no values"
type NodePoolSelectorRequirement struct {
	// key is the label.
	//
	// +required
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:XValidation:rule="self.matches('^([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-_.A-Za-z0-9]{0,61}[A-Za-z0-9])?$') && self.indexOf('/') <= 253",message="write a label key, such as workload or example.com/team"
	Key string `json:"key"`

	// operator is In, NotIn, Exists or DoesNotExist.
	//
	// +required
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self in ['In', 'NotIn', 'Exists', 'DoesNotExist']",message="write In, NotIn, Exists or DoesNotExist"
	Operator metav1.LabelSelectorOperator `json:"operator"`

	// values are what In and NotIn compare with; Exists and DoesNotExist take none. At
	// most 64.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Values []LabelValue `json:"values,omitempty"`
}

// LabelValue is the value of a label; it may be empty.
//
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:XValidation:rule="self.matches('^([A-Za-z0-9]([-_.A-Za-z0-9]*[A-Za-z0-9])?)?$')",message="write a label value: letters, digits, '-', '_' and '.', with a letter or digit at both ends"
type LabelValue string

// AsSelector returns the selector. A selector that admission took never fails.
func (s NodePoolSelector) AsSelector() (labels.Selector, error) {
	out := metav1.LabelSelector{MatchLabels: make(map[string]string, len(s.MatchLabels))}
	for key, value := range s.MatchLabels {
		out.MatchLabels[key] = string(value)
	}
	for _, e := range s.MatchExpressions {
		values := make([]string, len(e.Values))
		for i, value := range e.Values {
			values[i] = string(value)
		}
		out.MatchExpressions = append(out.MatchExpressions,
			metav1.LabelSelectorRequirement{Key: e.Key, Operator: e.Operator, Values: values})
	}
	return metav1.LabelSelectorAsSelector(&out)
}

// Specificity is the number of constraints. Of the policies that select a NodePool the one
// with the highest governs it (§5.4).
func (s NodePoolSelector) Specificity() int {
	return len(s.MatchLabels) + len(s.MatchExpressions)
}
