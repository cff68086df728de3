package trial

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/tasuki-io/tasuki/internal/rotation"
)

func named(name string, annotations map[string]string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Annotations: annotations}
}

func TestResidueOfACleanEnd(t *testing.T) {
	// The time of the last rotation, a freeze and the count of failures stay on purpose.
	r := remains{
		pools: karpv1.NodePoolList{Items: []karpv1.NodePool{{ObjectMeta: named("web", map[string]string{
			rotation.AnnotationLastRotation: "2026-03-01T12:00:00Z", rotation.AnnotationFreeze: "2026-03-02T12:00:00Z",
			"karpenter.sh/nodepool-hash": "1",
		})}}},
		claims: karpv1.NodeClaimList{Items: []karpv1.NodeClaim{{ObjectMeta: named("web-b", map[string]string{
			rotation.AnnotationState: rotation.StateFailed, rotation.AnnotationRetryCount: "1",
		})}}},
		nodes: corev1.NodeList{Items: []corev1.Node{{ObjectMeta: named("node-b", map[string]string{"kwok.x-k8s.io/node": "fake"})}}},
	}
	if got := r.lines(); got != nil {
		t.Errorf("residue = %q, want none", got)
	}
}

func TestResidueNamesEveryMark(t *testing.T) {
	pool := map[string]string{}
	for _, k := range ofPool {
		pool[k] = "x"
	}
	r := remains{
		pools: karpv1.NodePoolList{Items: []karpv1.NodePool{{ObjectMeta: named("web", pool)}}},
		claims: karpv1.NodeClaimList{Items: []karpv1.NodeClaim{{ObjectMeta: named("web-a", map[string]string{
			rotation.AnnotationState: rotation.StateDraining, rotation.AnnotationStartedAt: "t", rotation.AnnotationSurgeClaim: "web-b",
		})}}},
		nodes: corev1.NodeList{Items: []corev1.Node{{
			ObjectMeta: named("node-a", map[string]string{
				rotation.AnnotationSurgeFor: "web-a", rotation.AnnotationCordoned: "true",
				rotation.AnnotationDoNotDisrupt: "true", rotation.AnnotationDoNotDisruptOwned: "true",
			}),
			Spec: corev1.NodeSpec{Unschedulable: true},
		}}},
		placeholders: corev1.PodList{Items: []corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: "noderotation-surge-web-a"}}}},
	}
	want := []string{
		"Node node-a: karpenter.sh/do-not-disrupt=true",
		"Node node-a: noderotation.io/cordoned=true",
		"Node node-a: noderotation.io/do-not-disrupt-owned=true",
		"Node node-a: noderotation.io/surge-for=web-a",
		"Node node-a: cordoned",
		"Pod node-rotation-system/noderotation-surge-web-a: placeholder",
		"NodePool web: noderotation.io/active-rotation=x",
		"NodePool web: noderotation.io/active-rotation-state=x",
		"NodePool web: noderotation.io/draining-at=x",
		"NodePool web: noderotation.io/surge-wait=x",
		"NodePool web: noderotation.io/surge-path=x",
		"NodeClaim web-a: noderotation.io/started-at=t",
		"NodeClaim web-a: noderotation.io/surge-claim=web-b",
		"NodeClaim web-a: noderotation.io/state=draining",
	}
	if diff := cmp.Diff(want, r.lines()); diff != "" {
		t.Errorf("residue (-want +got):\n%s", diff)
	}
}
