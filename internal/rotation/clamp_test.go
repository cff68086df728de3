package rotation

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

// The pods request 4 cpu and 8Gi. What Karpenter believes of the node, and what the node
// says of itself, decide what is said of the clamp.
func TestTheClampIsJudgedByItsBand(t *testing.T) {
	const believes = "the placeholder reserves what Karpenter believes a node like this one can hold: "
	for _, tt := range []struct {
		name          string
		belief, node  corev1.ResourceList
		code, message string
	}{
		{name: "it fits", belief: list("cpu", "4", "memory", "8Gi")},
		{name: "no belief at all"},
		{name: "within the band", belief: list("cpu", "3900m"), node: list("cpu", "4"),
			code: "SurgeClamped", message: believes + "cpu 3900m of 4 (short by 100m, measured band 100m)"},
		{name: "beyond the band", belief: list("cpu", "3900m"), node: list("cpu", "3999m"),
			code: "SurgeClampBandExceeded", message: believes + "cpu 3900m of 4 (short by 100m, measured band 99m)"},
		{name: "the node does not say", belief: list("cpu", "3900m"),
			code: "SurgeClampBandExceeded", message: believes + "cpu 3900m of 4 (short by 100m, measured band 0)"},
		{name: "the node holds less than is believed", belief: list("cpu", "3900m"), node: list("cpu", "3800m"),
			code: "SurgeClampBandExceeded", message: believes + "cpu 3900m of 4 (short by 100m, measured band 0)"},
		{name: "one of two resources is enough", belief: list("cpu", "3900m", "memory", "7Gi"), node: list("cpu", "4", "memory", "7168Mi"),
			code: "SurgeClampBandExceeded", message: believes + "cpu 3900m of 4 (short by 100m, measured band 100m), memory 7Gi of 8Gi (short by 1Gi, measured band 0)"},
		{name: "refused", belief: list("cpu", "3900m", "memory", "0"), node: list("cpu", "4"),
			code: "SurgeClampRefused", message: "the pods request 8Gi of memory, of which a node like this one has none left beside its DaemonSets (0) by Karpenter's estimate: the placeholder keeps the full requests, and may fit nowhere"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(date(t, "2026-06-10T02:00:00Z"))
			w.join(NodeClaim{Object: Object{Name: "blue-a"}, NodeName: "node-a", Ready: true, Allocatable: tt.belief})
			w.change("node-a", func(n *Node) { n.Allocatable = tt.node })
			w.Pods["node-a"] = []*corev1.Pod{runningPod("a", "cpu", "4", "memory", "8Gi")}
			spec := w.placeholder(&Policy{}, w.claim("blue-a"), nil)
			code, message := spec.ClampNotice()
			if diff := cmp.Diff([]string{tt.code, tt.message}, []string{code, message}); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if spec.For != w.claim("blue-a").Object {
				t.Errorf("it is for %v", spec.For)
			}
		})
	}
}
