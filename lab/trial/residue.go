package trial

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/tasuki-io/tasuki/internal/rotation"
	"github.com/tasuki-io/tasuki/internal/rotator"
	"github.com/tasuki-io/tasuki/lab"
)

// markerPrefix is what all annotations of the controller begin with.
const markerPrefix = "noderotation.io/"

// Residue returns every mark that a rotation has left in the lab, one line each; none while
// no rotation runs, in a lab where nobody else cordons or protects nodes.
func Residue(ctx context.Context, l *lab.Lab) ([]string, error) {
	config, err := l.RESTConfig()
	if err != nil {
		return nil, err
	}
	c, err := client.New(config, client.Options{Scheme: rotator.Scheme()})
	if err != nil {
		return nil, fmt.Errorf("look for residue: %w", err)
	}
	var found remains
	for _, list := range []struct {
		what client.ObjectList
		in   []client.ListOption
	}{
		{&found.pools, nil}, {&found.claims, nil}, {&found.nodes, nil},
		{&found.placeholders, []client.ListOption{
			client.InNamespace(Namespace), client.MatchingLabels{rotation.LabelPlaceholder: "true"},
		}},
	} {
		if err := c.List(ctx, list.what, list.in...); err != nil {
			return nil, fmt.Errorf("look for residue: %w", err)
		}
	}
	return found.lines(), nil
}

// remains is where marks can be.
type remains struct {
	pools        karpv1.NodePoolList
	claims       karpv1.NodeClaimList
	nodes        corev1.NodeList
	placeholders corev1.PodList
}

// ofPool ends with a rotation, ofClaim with an attempt. What stays on purpose (the time of
// the last rotation, the count of failures) is in neither.
var (
	ofPool = []string{
		rotation.AnnotationActive, rotation.AnnotationActiveState, rotation.AnnotationDrainingAt,
		rotation.AnnotationSurgeWait, rotation.AnnotationSurgePath,
	}
	ofClaim = []string{rotation.AnnotationStartedAt, rotation.AnnotationSurgeClaim}
)

func (r *remains) lines() []string {
	var out []string
	left := func(kind, name, mark string) { out = append(out, fmt.Sprintf("%s %s: %s", kind, name, mark)) }
	for _, n := range r.nodes.Items {
		for _, k := range slices.Sorted(maps.Keys(n.Annotations)) {
			if k == rotation.AnnotationDoNotDisrupt || strings.HasPrefix(k, markerPrefix) {
				left("Node", n.Name, k+"="+n.Annotations[k])
			}
		}
		if n.Spec.Unschedulable {
			left("Node", n.Name, "cordoned")
		}
	}
	for _, p := range r.placeholders.Items {
		left("Pod", p.Namespace+"/"+p.Name, "placeholder")
	}
	for _, p := range r.pools.Items {
		for _, k := range ofPool {
			if v, ok := p.Annotations[k]; ok {
				left("NodePool", p.Name, k+"="+v)
			}
		}
	}
	for _, c := range r.claims.Items {
		for _, k := range ofClaim {
			if v, ok := c.Annotations[k]; ok {
				left("NodeClaim", c.Name, k+"="+v)
			}
		}
		if s := c.Annotations[rotation.AnnotationState]; s == rotation.StatePending || s == rotation.StateDraining {
			left("NodeClaim", c.Name, rotation.AnnotationState+"="+s)
		}
	}
	return out
}
