package rotation

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Budget is what an explanation reads of a PodDisruptionBudget.
type Budget struct {
	Namespace, Name string

	Pods      []string // names of the pods that it selects
	Allowed   int      // status.disruptionsAllowed
	Healthy   int      // status.currentHealthy
	Desired   int      // status.desiredHealthy
	Unhealthy bool     // unhealthyPodEvictionPolicy: AlwaysAllow
	Stale     bool     // its status is of an earlier generation
}

// protects reports a budget that does not let the pod be evicted now, as the eviction API judges.
func (b Budget) protects(pod *corev1.Pod) bool {
	ready := slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
	if !ready && (b.Unhealthy || b.Desired > 0 && b.Healthy >= b.Desired) {
		return false
	}
	return b.Stale || b.Allowed <= 0
}

// holds are what keeps these pods from leaving their node.
func holds(pods []*corev1.Pod, budgets []Budget, now time.Time) []Hold {
	var out []Hold
	held := map[string][]string{} // the pods of a budget, by its name
	for _, pod := range pods {
		name := pod.Namespace + "/" + pod.Name
		var of []string
		protected := false
		for _, b := range budgets {
			if b.Namespace == pod.Namespace && slices.Contains(b.Pods, pod.Name) {
				of = append(of, b.Namespace+"/"+b.Name)
				protected = b.protects(pod)
			}
		}
		switch {
		case pod.DeletionTimestamp != nil && len(pod.Finalizers) > 0:
			out = append(out, Hold{"Pod", name, "it terminates, and its finalizers hold it: " + strings.Join(pod.Finalizers, ", ")})
		case pod.DeletionTimestamp != nil:
			out = append(out, Hold{"Pod", name, "it terminates, and has until " + stamp(pod.DeletionTimestamp.Time)})
		case undisturbed(pod, now):
			out = append(out, Hold{"Pod", name, fmt.Sprintf("it carries %s=%s, so Karpenter does not evict it", AnnotationDoNotDisrupt, pod.Annotations[AnnotationDoNotDisrupt])})
		case pod.Status.Phase == corev1.PodPending: // which no budget protects
		case len(of) > 1:
			out = append(out, Hold{"Pod", name, "PodDisruptionBudgets " + strings.Join(of, " and ") + " select it, and the eviction API refuses a pod of more than one"})
		case protected:
			held[of[0]] = append(held[of[0]], name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(held)) {
		for _, b := range budgets {
			if b.Namespace+"/"+b.Name == name {
				out = append(out, Hold{"PodDisruptionBudget", name, fmt.Sprintf("it allows no disruption (%d of %d healthy pods that it wants), and protects %s", b.Healthy, b.Desired, strings.Join(held[name], ", "))})
			}
		}
	}
	slices.SortStableFunc(out, func(a, b Hold) int { return -strings.Compare(a.Kind, b.Kind) }) // budgets first
	return out
}

// undisturbed reports a pod that asks Karpenter not to evict it: for good, or in the first time
// of its life.
func undisturbed(pod *corev1.Pod, now time.Time) bool {
	value := pod.Annotations[AnnotationDoNotDisrupt]
	first, err := time.ParseDuration(value)
	return value == "true" || err == nil && (pod.Status.StartTime == nil || now.Before(pod.Status.StartTime.Add(first)))
}
