package trial

import (
	"math/big"
	"reflect"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/tasuki-io/tasuki/internal/rotation"
)

// role is what an object is to the witness.
type role string

const (
	rolePool        role = "NodePool"
	roleClaim       role = "NodeClaim"
	roleNode        role = "Node"
	rolePod         role = "Pod" // of the workload
	rolePlaceholder role = "placeholder"
)

// seen is what the witness keeps of an object: what a rotation changes, and nothing that
// a heartbeat does.
type seen struct {
	role        role
	name        string
	created     time.Time
	leaving     bool              // it carries a deletionTimestamp
	annotations map[string]string // those that a rotation writes
	node        string            // a pod is bound to it, a NodeClaim has become it
	ready       bool              // a node, or a pod
	running     bool              // a pod's phase
	cordoned    bool              // a node
	requests    corev1.ResourceList
}

// sighting is one version of an object, and when the witness heard of it.
type sighting struct {
	seen
	at      time.Time
	version string
	gone    bool
}

// look keeps of an API object what the ledger needs, and tells whether it is of interest.
func (s Subject) look(o client.Object) (seen, bool) {
	v := seen{
		name: o.GetName(), created: o.GetCreationTimestamp().Time,
		leaving: o.GetDeletionTimestamp() != nil, annotations: ours(o.GetAnnotations()),
	}
	switch o := o.(type) {
	case *karpv1.NodePool:
		v.role = rolePool
		return v, o.Name == s.NodePool
	case *karpv1.NodeClaim:
		v.role, v.node = roleClaim, o.Status.NodeName
	case *corev1.Node:
		v.role, v.cordoned = roleNode, o.Spec.Unschedulable
		for _, c := range o.Status.Conditions {
			v.ready = v.ready || c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
		}
	case *corev1.Pod:
		v.role, v.node, v.running = rolePod, o.Spec.NodeName, o.Status.Phase == corev1.PodRunning
		for _, c := range o.Status.Conditions {
			v.ready = v.ready || c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
		}
		if o.Namespace == Namespace && o.Labels[rotation.LabelPlaceholder] == "true" {
			v.role, v.requests = rolePlaceholder, o.Spec.Containers[0].Resources.Requests
			return v, o.Spec.NodeSelector[karpv1.NodePoolLabelKey] == s.NodePool
		}
	default:
		return v, false
	}
	return v, true
}

func ours(all map[string]string) map[string]string {
	var kept map[string]string
	for k, v := range all {
		if k == rotation.AnnotationDoNotDisrupt || strings.HasPrefix(k, markerPrefix) {
			if kept == nil {
				kept = map[string]string{}
			}
			kept[k] = v
		}
	}
	return kept
}

// same tells that nothing the witness keeps has changed.
func (s sighting) same(o sighting) bool { return s.gone == o.gone && reflect.DeepEqual(s.seen, o.seen) }

// compareVersions orders the writes of all objects: their resourceVersions are revisions
// of the lab's one etcd. Versions that are no numbers stay as they came.
func compareVersions(a, b sighting) int {
	x, ok := new(big.Int).SetString(a.version, 10)
	y, ok2 := new(big.Int).SetString(b.version, 10)
	if !ok || !ok2 {
		return 0
	}
	return x.Cmp(y)
}
