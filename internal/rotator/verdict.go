package rotator

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/tasuki-io/tasuki/api/v1alpha1"
	"github.com/tasuki-io/tasuki/internal/rotation"
)

// verdicts are the conditions of a policy that its findings come to, one for each class.
type verdicts struct {
	policy  *rotation.Policy
	said    map[string][]verdict // by the type of the condition
	general map[string]bool      // codes that are about every pool
}

type verdict struct{ code, text string }

// classes are the types of these conditions, in their order, and what is said without a finding.
var classes = []struct{ condition, well string }{
	{v1alpha1.ConditionFeasible, "no finding keeps a governed NodePool from rotating"},
	{v1alpha1.ConditionSound, "there is no warning about the policy on the NodePools that it governs"},
	{v1alpha1.ConditionThroughputSufficient, "the windows hold the rotations that become due"},
	{v1alpha1.ConditionLeadSufficient, "every NodeClaim lives long enough for the chances that the policy promises"},
}

func newVerdicts(p *rotation.Policy) *verdicts {
	v := &verdicts{policy: p, said: map[string][]verdict{}, general: map[string]bool{}}
	for _, f := range p.Judge(rotation.NodePool{}, nil).Fatal {
		v.general[f.Code] = true
		v.said[v1alpha1.ConditionFeasible] = append(v.said[v1alpha1.ConditionFeasible], verdict{f.Code, f.Code + ": " + f.String()})
	}
	return v
}

// add judges a pool that the policy governs. A pool with a fixed number of nodes is not rotated,
// whatever the policy says.
func (v *verdicts) add(pool *karpv1.NodePool, claims []karpv1.NodeClaim, now time.Time) {
	p := nodePoolFrom(pool)
	var cs []rotation.NodeClaim
	for i := range claims {
		cs = append(cs, nodeClaimFrom(&claims[i]))
	}
	j := v.policy.Judge(p, p.Fleet(cs, now))
	if p.Static {
		j.Fatal = append(j.Fatal, rotation.StaticPool)
	}
	for condition, fs := range map[string][]rotation.Finding{
		v1alpha1.ConditionFeasible: j.Fatal, v1alpha1.ConditionSound: j.Doubts,
		v1alpha1.ConditionThroughputSufficient: j.Bottlenecks, v1alpha1.ConditionLeadSufficient: v.policy.ShortLeads(cs),
	} {
		for _, f := range fs {
			if v.general[f.Code] {
				continue
			}
			v.said[condition] = append(v.said[condition], verdict{f.Code, fmt.Sprintf("NodePool %s: %s: %s", pool.Name, f.Code, f)})
		}
	}
}

// mostFindings is how many a condition quotes.
const mostFindings = 5

func (v *verdicts) conditions() []metav1.Condition {
	var out []metav1.Condition
	for _, class := range classes {
		c := metav1.Condition{Type: class.condition, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonNoFindings, Message: class.well}
		said := v.said[class.condition]
		switch {
		case v.policy.Invalid != "": // findings about what is left of it would mislead
			c.Status, c.Reason, c.Message = metav1.ConditionUnknown, v1alpha1.ReasonInvalid, v.policy.Invalid
		case len(said) > 0:
			c.Status, c.Reason = metav1.ConditionFalse, said[0].code
			var texts []string
			for i, s := range said {
				if i == mostFindings {
					texts = append(texts, fmt.Sprintf("and %d more", len(said)-i))
					break
				}
				texts = append(texts, s.text)
			}
			c.Message = strings.Join(texts, "; ")
		}
		out = append(out, c)
	}
	return out
}
