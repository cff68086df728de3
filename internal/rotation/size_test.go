package rotation

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func runningPod(name string, requests ...string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{container(requests...)}},
		Status:     corev1.PodStatus{Phase: corev1.PodRunning},
	}
}

func container(requests ...string) corev1.Container {
	return corev1.Container{Name: "main", Resources: corev1.ResourceRequirements{Requests: list(requests...)}}
}

func podWith(edit func(*corev1.Pod), requests ...string) *corev1.Pod {
	pod := runningPod("pod", requests...)
	edit(pod)
	return pod
}

func owned(kind string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.OwnerReferences = []metav1.OwnerReference{{Kind: kind}} }
}

func onHost(terms ...corev1.NodeSelectorTerm) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: terms},
		}}
	}
}

func TestR10PodsThatNeedNoNewHome(t *testing.T) {
	host := corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: labelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{"node-a"}}}}
	field := corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{"node-a"}}}}
	zone := corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn, Values: []string{"a"}}}}
	away := corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: labelHostname, Operator: corev1.NodeSelectorOpNotIn, Values: []string{"node-b"}}}}
	going := func(kind string) func(*corev1.Pod) {
		return func(p *corev1.Pod) { owned(kind)(p); p.DeletionTimestamp = &metav1.Time{} }
	}
	for _, tt := range []struct {
		name     string
		pod      *corev1.Pod
		counts   bool
		occupies bool // a rollback must not take it down
	}{
		{"a Deployment's", podWith(owned("ReplicaSet")), true, true},
		{"a bare pod", runningPod("bare"), true, true},
		{"a Job's, running", podWith(owned("Job")), true, true},
		{"a Job's, succeeded", podWith(func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }), false, false},
		{"a Job's, failed", podWith(func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }), false, false},
		{"a DaemonSet's", podWith(owned("DaemonSet")), false, false},
		{"a mirror pod", podWith(func(p *corev1.Pod) { p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"} }), false, false},
		{"a static pod", podWith(owned("Node")), false, false},
		{"a placeholder", podWith(func(p *corev1.Pod) { p.Labels = map[string]string{LabelPlaceholder: "true"} }), false, false},
		{"pinned by its selector", podWith(func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{labelHostname: "node-a"} }), false, true},
		{"pinned by its affinity", podWith(onHost(host)), false, true},
		{"pinned by a field", podWith(onHost(field)), false, true},
		{"pinned by every term", podWith(onHost(host, field)), false, true},
		{"pinned by one of two terms", podWith(onHost(host, zone)), true, true},
		{"bound to a zone", podWith(onHost(zone)), true, true},
		{"kept away from another host", podWith(onHost(away)), true, true},
		{"with an affinity of no terms", podWith(onHost()), true, true},
		{"with an affinity for pods alone", podWith(func(p *corev1.Pod) { p.Spec.Affinity = &corev1.Affinity{} }), true, true},
		{"with preferences alone", podWith(func(p *corev1.Pod) { p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{}} }), true, true},
		{"a Deployment's, terminating", podWith(going("ReplicaSet")), false, true},
		{"a StatefulSet's, terminating", podWith(going("StatefulSet")), true, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := reschedulable(tt.pod); got != tt.counts {
				t.Errorf("needs a new home: %t, want %t", got, tt.counts)
			}
			if got := Occupies(tt.pod); got != tt.occupies {
				t.Errorf("is somebody's workload: %t, want %t", got, tt.occupies)
			}
		})
	}
}

func TestAPodCountsAsTheSchedulerCountsIt(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	sidecar := container("cpu", "50m")
	sidecar.RestartPolicy = &always
	pod := runningPod("pod", "cpu", "200m", "memory", "100Mi")
	pod.Spec.Containers = append(pod.Spec.Containers, container("cpu", "100m", "example.com/none", "0"))
	pod.Spec.InitContainers = []corev1.Container{container("cpu", "1", "memory", "10Mi"), sidecar}
	pod.Spec.Overhead = list("cpu", "10m", "memory", "20Mi")
	// cpu: the init container alone asks for more than the containers and the sidecar do.
	got := size(&NodeClaim{}, []*corev1.Pod{pod}, false).Requests
	if diff := cmp.Diff(list("cpu", "1010m", "memory", "120Mi"), got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	pod.Spec.InitContainers = []corev1.Container{sidecar}
	got = size(&NodeClaim{}, []*corev1.Pod{pod}, false).Requests
	if diff := cmp.Diff(list("cpu", "360m", "memory", "120Mi"), got); diff != "" {
		t.Errorf("with the sidecar (-want +got):\n%s", diff)
	}
	pod = runningPod("resized", "cpu", "1")
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", Resources: &corev1.ResourceRequirements{Requests: list("cpu", "2")}}}
	got = size(&NodeClaim{}, []*corev1.Pod{pod}, false).Requests
	if diff := cmp.Diff(list("cpu", "2"), got); diff != "" {
		t.Errorf("while it is resized (-want +got):\n%s", diff)
	}
}

func TestSize(t *testing.T) {
	exporter := podWith(owned("DaemonSet"), "cpu", "200m", "memory", "100Mi")
	for _, tt := range []struct {
		name        string
		allocatable corev1.ResourceList
		pods        []*corev1.Pod
		want        Sizing
	}{
		{
			name: "an empty node", allocatable: list("cpu", "4"),
			want: Sizing{Sum: list(), Overhead: list(), Requests: list()},
		},
		{
			name: "the sum of the pods", allocatable: list("cpu", "4", "memory", "8Gi"),
			pods: []*corev1.Pod{runningPod("a", "cpu", "600m"), runningPod("b", "cpu", "600m", "memory", "1Gi"), exporter},
			want: Sizing{Pods: 2, Sum: list("cpu", "1200m", "memory", "1Gi"), Overhead: list("cpu", "200m", "memory", "100Mi"), Requests: list("cpu", "1200m", "memory", "1Gi")},
		},
		{
			name: "exactly at the ceiling is not clamped", allocatable: list("cpu", "4"),
			pods: []*corev1.Pod{runningPod("a", "cpu", "3800m"), exporter},
			want: Sizing{Pods: 1, Sum: list("cpu", "3800m"), Overhead: list("cpu", "200m", "memory", "100Mi"), Requests: list("cpu", "3800m")},
		},
		{
			name: "one resource above the ceiling, one below", allocatable: list("cpu", "4", "memory", "8Gi"),
			pods: []*corev1.Pod{runningPod("a", "cpu", "3900m", "memory", "1Gi"), exporter},
			want: Sizing{Pods: 1, Sum: list("cpu", "3900m", "memory", "1Gi"), Overhead: list("cpu", "200m", "memory", "100Mi"), Requests: list("cpu", "3800m", "memory", "1Gi"), Clamped: true},
		},
		{
			name: "no estimate, no clamp",
			pods: []*corev1.Pod{runningPod("a", "cpu", "64"), exporter},
			want: Sizing{Pods: 1, Sum: list("cpu", "64"), Overhead: list("cpu", "200m", "memory", "100Mi"), Requests: list("cpu", "64")},
		},
		{
			name: "a ceiling of zero refuses, and nothing at all is clamped", allocatable: list("cpu", "4", "memory", "100Mi"),
			pods: []*corev1.Pod{runningPod("a", "cpu", "5", "memory", "1Gi"), exporter},
			want: Sizing{Pods: 1, Sum: list("cpu", "5", "memory", "1Gi"), Overhead: list("cpu", "200m", "memory", "100Mi"), Requests: list("cpu", "5", "memory", "1Gi"), Refused: "memory"},
		},
		{
			name: "the first refusal by name", allocatable: list("cpu", "100m", "memory", "50Mi"),
			pods: []*corev1.Pod{runningPod("a", "memory", "1Gi", "cpu", "1"), exporter},
			want: Sizing{Pods: 1, Sum: list("cpu", "1", "memory", "1Gi"), Overhead: list("cpu", "200m", "memory", "100Mi"), Requests: list("cpu", "1", "memory", "1Gi"), Refused: "cpu"},
		},
		{
			name: "a ceiling that the drain does not ask for refuses nothing", allocatable: list("cpu", "4", "memory", "50Mi"),
			pods: []*corev1.Pod{runningPod("a", "cpu", "1"), exporter},
			want: Sizing{Pods: 1, Sum: list("cpu", "1"), Overhead: list("cpu", "200m", "memory", "100Mi"), Requests: list("cpu", "1")},
		},
		{
			name: "pods that ask for nothing still need a home", allocatable: list("cpu", "4"),
			pods: []*corev1.Pod{runningPod("a"), runningPod("b")},
			want: Sizing{Pods: 2, Sum: list(), Overhead: list(), Requests: list()},
		},
		{
			name: "a finished DaemonSet pod is no overhead", allocatable: list("cpu", "4"),
			pods: []*corev1.Pod{podWith(func(p *corev1.Pod) { owned("DaemonSet")(p); p.Status.Phase = corev1.PodFailed }, "cpu", "1")},
			want: Sizing{Sum: list(), Overhead: list(), Requests: list()},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, size(&NodeClaim{Allocatable: tt.allocatable}, tt.pods, false)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestR02LimitsEqualRequestsWhereTheAPIServerDemandsIt(t *testing.T) {
	w := newWorld(time.Now())
	w.NodePool.Name = "blue"
	w.join(NodeClaim{Object: Object{Name: "blue-a"}, NodeName: "node-a", Ready: true})
	w.Pods["node-a"] = []*corev1.Pod{runningPod("train", "cpu", "2", "memory", "1Gi", "ephemeral-storage", "1Gi", "nvidia.com/gpu", "1", "hugepages-2Mi", "64Mi")}
	spec := w.placeholder(&Policy{}, w.claim("blue-a"), nil)
	if diff := cmp.Diff(list("nvidia.com/gpu", "1", "hugepages-2Mi", "64Mi"), spec.Limits); diff != "" {
		t.Errorf("limits (-want +got):\n%s", diff)
	}
	for name, limit := range spec.Limits {
		if request := spec.Requests[name]; limit.Cmp(request) != 0 {
			t.Errorf("%s: limit %s, request %s", name, limit.String(), request.String())
		}
	}
	w.Pods["node-a"] = []*corev1.Pod{runningPod("web", "cpu", "2")}
	if spec = w.placeholder(&Policy{}, w.claim("blue-a"), nil); spec.Limits != nil {
		t.Errorf("cpu needs no limit: %v", spec.Limits)
	}
}

func TestIndivisible(t *testing.T) {
	for name, want := range map[corev1.ResourceName]bool{
		"cpu": false, "memory": false, "ephemeral-storage": false, "pods": false,
		"hugepages-1Gi": true, "nvidia.com/gpu": true, "vpc.amazonaws.com/pod-eni": true,
		"kubernetes.io/batch": false, "requests.nvidia.com/gpu": false,
	} {
		if got := indivisible(name); got != want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestR11R12Headroom(t *testing.T) {
	want := Sizing{Requests: list("cpu", "600m", "memory", "1Gi")}
	for _, tt := range []struct {
		name          string
		limits, inUse corev1.ResourceList
		short         string // resource want remaining limit
	}{
		{name: "no limits"},
		{name: "room", limits: list("cpu", "8"), inUse: list("cpu", "7")},
		{name: "exactly enough", limits: list("cpu", "8"), inUse: list("cpu", "7400m")},
		{name: "a millicore short", limits: list("cpu", "8"), inUse: list("cpu", "7401m"), short: "cpu 600m 599m 8"},
		{name: "over the limit already", limits: list("cpu", "8"), inUse: list("cpu", "9"), short: "cpu 600m -1 8"},
		{name: "memory", limits: list("cpu", "8", "memory", "2Gi"), inUse: list("cpu", "1", "memory", "1536Mi"), short: "memory 1Gi 512Mi 2Gi"},
		{name: "the first by name", limits: list("memory", "1Mi", "cpu", "1m"), short: "cpu 600m 1m 1m"},
		{name: "a limit on what nobody asks for", limits: list("nvidia.com/gpu", "0")},
		{name: "nothing in use", limits: list("cpu", "600m")},
		{name: "r12: no node left", limits: list("nodes", "3"), inUse: list("nodes", "3"), short: "nodes 1 0 3"},
		{name: "r12: one node left", limits: list("nodes", "3"), inUse: list("nodes", "2")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, ok := headroom(NodePool{Limits: tt.limits, InUse: tt.inUse}, want)
			if ok != (tt.short == "") {
				t.Fatalf("%t %+v", ok, got)
			}
			if ok {
				return
			}
			if s := string(got.Resource) + " " + got.Want.String() + " " + got.Remaining.String() + " " + got.Limit.String(); s != tt.short {
				t.Errorf("short of %s, want %s", s, tt.short)
			}
		})
	}
}

// The clamped size is what has to fit, not what the pods ask for.
func TestHeadroomAsksForTheClampedSize(t *testing.T) {
	pods := []*corev1.Pod{runningPod("a", "cpu", "4")}
	if _, ok := headroom(NodePool{Limits: list("cpu", "3900m")}, size(&NodeClaim{Allocatable: list("cpu", "3900m")}, pods, false)); !ok {
		t.Error("the clamped size fits")
	}
}

func TestAWholeNodeIsReservedOnRequest(t *testing.T) {
	exporter := podWith(owned("DaemonSet"), "cpu", "200m", "memory", "100Mi")
	for _, tt := range []struct {
		name        string
		allocatable corev1.ResourceList
		pods        []*corev1.Pod
		requests    corev1.ResourceList
		raised      bool
		clamped     bool
		refused     corev1.ResourceName
	}{
		{
			name: "cpu and memory are raised even if the drain asks for cpu alone", allocatable: list("cpu", "4", "memory", "8Gi", "ephemeral-storage", "20Gi"),
			pods: []*corev1.Pod{runningPod("a", "cpu", "1"), exporter}, requests: list("cpu", "3800m", "memory", "8092Mi"), raised: true,
		},
		{
			name: "another resource is raised only if the drain asks for it", allocatable: list("cpu", "4", "memory", "8Gi", "nvidia.com/gpu", "2"),
			pods: []*corev1.Pod{runningPod("a", "nvidia.com/gpu", "1")}, requests: list("cpu", "4", "memory", "8Gi", "nvidia.com/gpu", "2"), raised: true,
		},
		{
			name: "pods that ask for nothing hold a node as well", allocatable: list("cpu", "4", "memory", "8Gi"),
			pods: []*corev1.Pod{runningPod("a")}, requests: list("cpu", "4", "memory", "8Gi"), raised: true,
		},
		{
			name: "without a pod to move nothing is reserved", allocatable: list("cpu", "4", "memory", "8Gi"),
			pods: []*corev1.Pod{exporter}, requests: list(),
		},
		{
			name: "a drain above the ceiling is clamped, not raised", allocatable: list("cpu", "2"),
			pods: []*corev1.Pod{runningPod("a", "cpu", "3")}, requests: list("cpu", "2"), clamped: true,
		},
		{
			name: "a ceiling that is not positive is left to the refusal", allocatable: list("cpu", "200m", "memory", "8Gi"),
			pods: []*corev1.Pod{runningPod("a", "cpu", "1"), exporter}, requests: list("cpu", "1"), refused: "cpu",
		},
		{
			name: "and raises nothing where the drain does not ask", allocatable: list("cpu", "4", "memory", "100Mi"),
			pods: []*corev1.Pod{runningPod("a", "cpu", "1"), exporter}, requests: list("cpu", "3800m"), raised: true,
		},
		{
			name: "what the claim does not report is not raised", allocatable: list("memory", "8Gi"),
			pods: []*corev1.Pod{runningPod("a", "cpu", "1")}, requests: list("cpu", "1", "memory", "8Gi"), raised: true,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			z := size(&NodeClaim{Allocatable: tt.allocatable}, tt.pods, true)
			if diff := cmp.Diff(tt.requests, z.Requests); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
			if z.Raised != tt.raised || z.Clamped != tt.clamped || z.Refused != tt.refused {
				t.Errorf("raised %t, clamped %t, refused %q; want %t, %t, %q", z.Raised, z.Clamped, z.Refused, tt.raised, tt.clamped, tt.refused)
			}
		})
	}
}

// What the surge wants moves with every pod; the warning stays the same one.
func TestTooLittleHeadroomIsOneWarning(t *testing.T) {
	w := oldNode(t)
	w.NodePool.Limits = list("cpu", "500m")
	d := w.decide()
	i := slices.IndexFunc(d.Warnings, func(w Warning) bool { return w.Code == "InsufficientHeadroom" })
	if i < 0 || !d.Warnings[i].Moving {
		t.Errorf("%s: %v", d.Reason, d.Warnings)
	}
}
