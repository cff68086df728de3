package rotator

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/yaml"

	"github.com/tasuki-io/tasuki/internal/rotation"
)

// parse reads an object strictly: a field that karpenter.sh/v1 does not have is an error.
func parse(t *testing.T, text string, into any) {
	t.Helper()
	if err := yaml.UnmarshalStrict([]byte(text), into); err != nil {
		t.Fatal(err)
	}
}

// These are all the fields of Karpenter that count. Whatever else is there does not.
func TestWhatIsReadOfKarpenter(t *testing.T) {
	hour, died := time.Hour, time.Date(2026, 6, 10, 3, 0, 0, 0, time.UTC)
	var p karpv1.NodePool
	parse(t, `
metadata: {name: blue, uid: u1, resourceVersion: "7", annotations: {noderotation.io/freeze: x, example.com/owner: y}}
spec:
  replicas: 3
  limits: {cpu: "8", nodes: "3"}
  template:
    spec:
      expireAfter: 336h
      terminationGracePeriod: 1h
      requirements: [{key: zone, operator: In, values: [a]}]
      taints: [{key: dedicated, value: web, effect: NoSchedule}]
      startupTaints: [{key: not-yet, effect: NoSchedule}]
status: {resources: {cpu: "4", nodes: "1"}}
`, &p)
	expire := 336 * hour
	want := rotation.NodePool{
		Object: rotation.Object{Kind: rotation.KindNodePool, Name: "blue", UID: "u1", Version: "7"}, Annotations: map[string]string{"noderotation.io/freeze": "x"},
		Static: true, ExpireAfter: &expire, GracePeriod: &hour,
		Requirements: []rotation.Requirement{{Key: "zone", Operator: "In", Values: []string{"a"}}},
		Taints:       []corev1.Taint{{Key: "dedicated", Value: "web", Effect: corev1.TaintEffectNoSchedule}},
		Limits:       corev1.ResourceList{"cpu": resource.MustParse("8"), "nodes": resource.MustParse("3")},
		InUse:        corev1.ResourceList{"cpu": resource.MustParse("4"), "nodes": resource.MustParse("1")},
	}
	if diff := cmp.Diff(want, nodePoolFrom(&p)); diff != "" {
		t.Errorf("NodePool (-want +got):\n%s", diff)
	}

	var c karpv1.NodeClaim
	parse(t, `
metadata: {name: blue-a, uid: u2, resourceVersion: "8", creationTimestamp: "2026-06-01T00:00:00Z", deletionTimestamp: "2026-06-10T03:00:00Z", annotations: {noderotation.io/state: pending}}
spec:
  expireAfter: Never
  terminationGracePeriod: 1h
  requirements: [{key: cpu, operator: Gt, values: ["3"], minValues: 1}]
status:
  nodeName: node-a
  allocatable: {cpu: 3900m}
  conditions: [{type: Initialized, status: "False"}, {type: Ready, status: "True"}]
`, &c)
	wantClaim := rotation.NodeClaim{
		Object: rotation.Object{Kind: rotation.KindNodeClaim, Name: "blue-a", UID: "u2", Version: "8"}, Annotations: map[string]string{"noderotation.io/state": "pending"},
		Created: time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC), Deleting: died, GracePeriod: &hour,
		Requirements: []rotation.Requirement{{Key: "cpu", Operator: "Gt", Values: []string{"3"}}},
		NodeName:     "node-a", Ready: true, Allocatable: corev1.ResourceList{"cpu": resource.MustParse("3900m")},
	}
	got := nodeClaimFrom(&c)
	got.Created, got.Deleting = got.Created.UTC(), got.Deleting.UTC()
	if diff := cmp.Diff(wantClaim, got); diff != "" {
		t.Errorf("NodeClaim (-want +got):\n%s", diff)
	}
	if bare := nodeClaimFrom(&karpv1.NodeClaim{}); bare.ExpireAfter != nil || bare.GracePeriod != nil || bare.Ready || !bare.Deleting.IsZero() {
		t.Errorf("a NodeClaim that says nothing reads as %+v", bare)
	}
}

func TestWhatIsReadOfNodeAndPlaceholder(t *testing.T) {
	var n corev1.Node
	parse(t, `
metadata:
  name: node-a
  labels: {karpenter.sh/nodepool: blue}
  annotations: {karpenter.sh/do-not-disrupt: "true", noderotation.io/cordoned: "true", example.com/rack: "7"}
  ownerReferences: [{apiVersion: v1, kind: Other, name: x, uid: u}, {apiVersion: karpenter.sh/v1, kind: NodeClaim, name: blue-a, uid: u}]
spec: {unschedulable: true, taints: [{key: karpenter.sh/disrupted, effect: NoSchedule}]}
status: {allocatable: {cpu: "4"}, conditions: [{type: MemoryPressure, status: "False"}, {type: Ready, status: "True"}]}
`, &n)
	want := rotation.Node{
		Object: rotation.Object{Kind: rotation.KindNode, Name: "node-a"}, Labels: map[string]string{"karpenter.sh/nodepool": "blue"},
		Annotations: map[string]string{"karpenter.sh/do-not-disrupt": "true", "noderotation.io/cordoned": "true"},
		Claim:       "blue-a", Taints: n.Spec.Taints, Allocatable: corev1.ResourceList{"cpu": resource.MustParse("4")}, Unschedulable: true, Ready: true,
	}
	if diff := cmp.Diff(want, nodeFrom(&n)); diff != "" {
		t.Errorf("Node (-want +got):\n%s", diff)
	}
	// The cache holds no more of a node than what is read of it, its capacity aside, which is
	// read from the API server when it is needed.
	n.Status.Images, n.Status.NodeInfo.KernelVersion = []corev1.ContainerImage{{SizeBytes: 1}}, "6"
	n.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubelet"}}
	slim, err := slimNode(&n)
	if err != nil {
		t.Fatal(err)
	}
	want.Allocatable = nil
	if diff := cmp.Diff(want, nodeFrom(slim.(*corev1.Node))); diff != "" {
		t.Errorf("Node from the cache (-want +got):\n%s", diff)
	}
	if s := slim.(*corev1.Node); s.Status.Images != nil || s.Status.NodeInfo.KernelVersion != "" || s.ManagedFields != nil || len(s.Status.Conditions) != 1 {
		t.Errorf("the cache keeps %+v", s.Status)
	}

	var pod corev1.Pod
	parse(t, `
metadata: {name: noderotation-surge-a, annotations: {noderotation.io/surge-for: a}, deletionTimestamp: "2026-06-10T03:00:00Z"}
spec: {nodeName: node-b, nodeSelector: {karpenter.sh/nodepool: blue}}
status: {phase: Pending, conditions: [{type: PodScheduled, status: "False", reason: Unschedulable, message: no room}]}
`, &pod)
	wantPod := rotation.Placeholder{
		Object: rotation.Object{Kind: rotation.KindPlaceholder, Name: "noderotation-surge-a"}, NodePool: "blue", SurgeFor: "a", NodeName: "node-b", Phase: corev1.PodPending,
		Deleting: true, Waiting: rotation.Waiting{Reason: "Unschedulable", Message: "no room"},
	}
	if diff := cmp.Diff(wantPod, placeholderFrom(&pod)); diff != "" {
		t.Errorf("placeholder (-want +got):\n%s", diff)
	}
}

// Of all the pods of a cluster the cache holds placeholders alone.
func TestTheCacheHoldsNoPodsButPlaceholders(t *testing.T) {
	for o, by := range cacheOptions("node-rotation-system").ByObject {
		if _, ok := o.(*corev1.Pod); !ok {
			continue
		}
		if len(by.Namespaces) != 1 || by.Label != nil {
			t.Errorf("pods of namespaces %v", by.Namespaces)
		}
		if got := by.Namespaces["node-rotation-system"].LabelSelector.String(); got != "noderotation.io/placeholder=true" {
			t.Errorf("pods with labels %q", got)
		}
		return
	}
	t.Error("nothing is said of pods: all of them would be held")
}

// What a placeholder is made of: it gives way to anything, tolerates what the pool's nodes
// repel, and passes the restricted Pod Security Standard.
func TestThePlaceholderPod(t *testing.T) {
	one := corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1")}
	spec := &rotation.PlaceholderSpec{
		Name: "noderotation-surge-a", NodePool: "web", SurgeFor: "a", For: rotation.Object{Kind: rotation.KindNodeClaim, Name: "a", UID: "u"},
		Requests: one, Limits: one, Tolerations: []corev1.Toleration{{Key: "dedicated", Operator: corev1.TolerationOpEqual, Value: "web", Effect: corev1.TaintEffectNoSchedule}},
		Required: []corev1.NodeSelectorRequirement{{Key: "zone", Operator: corev1.NodeSelectorOpIn, Values: []string{"a"}}},
	}
	var want corev1.Pod
	parse(t, `
metadata:
  name: noderotation-surge-a
  namespace: node-rotation-system
  labels: {noderotation.io/placeholder: "true", app.kubernetes.io/name: tasuki-placeholder}
  annotations: {noderotation.io/surge-for: a}
  ownerReferences: [{apiVersion: karpenter.sh/v1, kind: NodeClaim, name: a, uid: u}]
spec:
  priorityClassName: noderotation-placeholder
  preemptionPolicy: Never
  nodeSelector: {karpenter.sh/nodepool: web}
  affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: zone, operator: In, values: [a]}]}]}}}
  tolerations: [{key: dedicated, operator: Equal, value: web, effect: NoSchedule}]
  restartPolicy: Always
  terminationGracePeriodSeconds: 0
  automountServiceAccountToken: false
  enableServiceLinks: false
  securityContext: {runAsNonRoot: true, runAsUser: 65535, runAsGroup: 65535, seccompProfile: {type: RuntimeDefault}}
  containers:
  - name: pause
    image: pause
    resources: {requests: {nvidia.com/gpu: "1"}, limits: {nvidia.com/gpu: "1"}}
    securityContext: {allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: {drop: [ALL]}}
`, &want)
	if diff := cmp.Diff(&want, newRotator(nil, nil, nil).placeholderPod(spec)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// What an event wakes: the pool that the object belongs to, and all of them for a policy. An
// update that changes nothing that is read wakes nobody.
func TestWhatWakesAPool(t *testing.T) {
	live := apiServer(interceptor.Funcs{}, web(), pool(nil))
	r := newRotator(live, live, nil)
	for _, tt := range []struct {
		what string
		got  []string
		want string
	}{
		{"a NodeClaim", names(poolOfLabel(t.Context(), claim("a", time.Hour, nil))), "web"},
		{"a Node", names(poolOfLabel(t.Context(), node("a", nil))), "web"},
		{"a Node of no pool", names(poolOfLabel(t.Context(), &corev1.Node{})), ""},
		{"a placeholder", names(poolOfPlaceholder(t.Context(), placeholderOn("node-b"))), "web"},
		{"a pod of no pool", names(poolOfPlaceholder(t.Context(), &corev1.Pod{})), ""},
		{"a policy", names(r.everyPool(t.Context(), web())), "web"},
	} {
		if diff := cmp.Diff(tt.want, strings.Join(tt.got, " ")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.what, diff)
		}
	}
	for _, tt := range []struct {
		d    rotation.Decision
		want time.Duration
	}{
		{rotation.Decision{}, time.Minute},
		{rotation.Decision{Wake: now.Add(time.Hour)}, time.Minute},
		{rotation.Decision{Wake: now.Add(time.Second)}, time.Second},
		{rotation.Decision{Active: "a", Wake: now.Add(time.Hour)}, 30 * time.Second},
	} {
		if got := sleep(tt.d, now).RequeueAfter; got != tt.want {
			t.Errorf("without an event it wakes in %s, want %s", got, tt.want)
		}
	}
	read := changed(func(n *corev1.Node) any { v := nodeFrom(n); v.Version = ""; return v })
	before, same, ready := node("a", nil), node("a", nil), node("a", nil)
	same.ResourceVersion, same.Status.Conditions[0].LastHeartbeatTime = "2", metav1.Now()
	ready.Status.Conditions[0].Status = corev1.ConditionFalse
	if read.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: same}) {
		t.Error("a heartbeat of the kubelet wakes the pool")
	}
	if !read.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: ready}) {
		t.Error("a node that is no longer Ready wakes nobody")
	}
}

func names(requests []reconcile.Request) (out []string) {
	for _, r := range requests {
		out = append(out, r.Name)
	}
	return out
}
