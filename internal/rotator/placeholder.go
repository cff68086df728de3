package rotator

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/tasuki-io/tasuki/internal/rotation"
)

// placeholderKey is where the placeholder of a rotation is found, by its NodeClaim.
func (r *Rotator) placeholderKey(claim string) client.ObjectKey {
	return client.ObjectKey{Namespace: r.Namespace, Name: rotation.PlaceholderName(claim)}
}

// placeholderPod is the pod for a placeholder that the core has sized and placed. It meets
// the restricted Pod Security Standard and runs nothing.
func (r *Rotator) placeholderPod(spec *rotation.PlaceholderSpec) *corev1.Pod {
	yes, no, nobody, atOnce := true, false, int64(65535), int64(0)
	never := corev1.PreemptNever
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:   r.Namespace,
			Name:        spec.Name,
			Labels:      map[string]string{rotation.LabelPlaceholder: "true", "app.kubernetes.io/name": "tasuki-placeholder"},
			Annotations: map[string]string{rotation.AnnotationSurgeFor: spec.SurgeFor},
		},
		Spec: corev1.PodSpec{
			PriorityClassName:             r.PlaceholderPriorityClass,
			PreemptionPolicy:              &never,
			NodeSelector:                  map[string]string{karpv1.NodePoolLabelKey: spec.NodePool},
			Affinity:                      affinity(spec),
			Tolerations:                   spec.Tolerations,
			RestartPolicy:                 corev1.RestartPolicyAlways,
			TerminationGracePeriodSeconds: &atOnce,
			AutomountServiceAccountToken:  &no,
			EnableServiceLinks:            &no,
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot: &yes, RunAsUser: &nobody, RunAsGroup: &nobody,
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			Containers: []corev1.Container{{
				Name:      "pause",
				Image:     r.PlaceholderImage,
				Resources: corev1.ResourceRequirements{Requests: spec.Requests, Limits: spec.Limits},
				SecurityContext: &corev1.SecurityContext{
					AllowPrivilegeEscalation: &no, ReadOnlyRootFilesystem: &yes,
					Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
				},
			}},
		},
	}
	if spec.For.UID != "" { // it goes with the NodeClaim, should nobody else take it away
		pod.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: kinds[spec.For.Kind].GroupVersion().String(), Kind: string(spec.For.Kind), Name: spec.For.Name, UID: types.UID(spec.For.UID),
		}}
	}
	return pod
}

func affinity(spec *rotation.PlaceholderSpec) *corev1.Affinity {
	if len(spec.Required) == 0 && len(spec.Preferred) == 0 {
		return nil
	}
	a := &corev1.NodeAffinity{}
	if len(spec.Required) > 0 {
		a.RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: spec.Required}},
		}
	}
	for i, p := range spec.Preferred {
		if i > 0 && p.Key == spec.Preferred[i-1].Key { // two bounds of one preference
			last := &a.PreferredDuringSchedulingIgnoredDuringExecution[len(a.PreferredDuringSchedulingIgnoredDuringExecution)-1]
			last.Preference.MatchExpressions = append(last.Preference.MatchExpressions, p)
			continue
		}
		a.PreferredDuringSchedulingIgnoredDuringExecution = append(a.PreferredDuringSchedulingIgnoredDuringExecution,
			corev1.PreferredSchedulingTerm{
				Weight:     100,
				Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{p}},
			})
	}
	return &corev1.Affinity{NodeAffinity: a}
}
