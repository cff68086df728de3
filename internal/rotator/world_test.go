package rotator

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/tasuki-io/tasuki/api/v1alpha1"
	"github.com/tasuki-io/tasuki/internal/rotation"
)

// now is a Wednesday in an always open window.
var now = time.Date(2026, 3, 4, 2, 10, 0, 0, time.UTC)

func apiServer(hooks interceptor.Funcs, objects ...client.Object) client.WithWatch {
	return fake.NewClientBuilder().WithScheme(Scheme()).
		WithIndex(&corev1.Pod{}, "spec.nodeName", func(o client.Object) []string {
			return []string{o.(*corev1.Pod).Spec.NodeName}
		}).
		WithInterceptorFuncs(hooks).WithStatusSubresource(&v1alpha1.RotationPolicy{}).WithObjects(objects...).Build()
}

// spoken records the Events of a test.
type spoken struct {
	mu     sync.Mutex
	events []string
}

func (s *spoken) record(_ context.Context, on *metav1.PartialObjectMetadata, kind, reason, _, note string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events = append(s.events, fmt.Sprintf("%s %s %s: %s", kind, reason, on.Name, note))
}

func newRotator(cache, live client.Client, s *spoken) *Rotator {
	return &Rotator{
		Client: split{Client: live, cache: cache}, Live: live,
		Namespace: "node-rotation-system", PlaceholderImage: "pause", PlaceholderPriorityClass: "noderotation-placeholder",
		Now: func() time.Time { return now }, policies: &policies{}, announce: newAnnouncer(s, newMetrics(prometheus.NewRegistry())),
	}
}

// split is a manager's client: it reads one world, the cache, and writes another.
type split struct {
	client.Client
	cache client.Reader
}

func (s split) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	return s.cache.Get(ctx, key, o, opts...)
}

func (s split) List(ctx context.Context, l client.ObjectList, opts ...client.ListOption) error {
	return s.cache.List(ctx, l, opts...)
}

func pass(t *testing.T, r *Rotator) reconcile.Result {
	t.Helper()
	res, err := r.Reconcile(context.Background(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "web"}})
	if err != nil {
		t.Fatalf("reconcile: %v", err)
	}
	return res
}

func pool(annotations map[string]string) *karpv1.NodePool {
	p := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "web", UID: "pool", Labels: map[string]string{"workload": "web"}, Annotations: annotations}}
	p.Spec.Template.Spec.ExpireAfter = karpv1.MustParseNillableDuration("336h")
	p.Spec.Template.Spec.TerminationGracePeriod = &metav1.Duration{Duration: time.Hour}
	return p
}

func claim(name string, age time.Duration, annotations map[string]string) *karpv1.NodeClaim {
	c := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{
		Name: name, UID: types.UID(name), Labels: map[string]string{karpv1.NodePoolLabelKey: "web"},
		CreationTimestamp: metav1.NewTime(now.Add(-age)), Annotations: annotations,
	}}
	c.Spec.ExpireAfter = karpv1.MustParseNillableDuration("336h")
	c.Spec.TerminationGracePeriod = &metav1.Duration{Duration: time.Hour}
	c.Status.NodeName = "node-" + name
	c.StatusConditions().SetTrue("Ready")
	for _, cond := range []string{"Launched", "Registered", "Initialized"} {
		c.StatusConditions().SetTrue(cond)
	}
	return c
}

func node(of string, annotations map[string]string) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: "node-" + of, UID: types.UID("node-" + of), Annotations: annotations,
			Labels: map[string]string{karpv1.NodePoolLabelKey: "web", "kubernetes.io/hostname": "host-" + of},
		},
		Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
	}
}

func pod(name, on, cpu string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name)},
		Spec: corev1.PodSpec{NodeName: on, Containers: []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)},
		}}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning},
	}
}

// placeholderOn is the placeholder of the rotation of a, running on a node.
func placeholderOn(on string) *corev1.Pod {
	p := pod(rotation.PlaceholderName("a"), on, "1")
	p.Namespace = "node-rotation-system"
	p.Labels = map[string]string{rotation.LabelPlaceholder: "true"}
	p.Annotations = map[string]string{rotation.AnnotationSurgeFor: "a"}
	p.Spec.NodeSelector = map[string]string{karpv1.NodePoolLabelKey: "web"}
	return p
}

// policy is one that is always open and rotates whatever is older than a day.
func policy(name string, selector map[string]string) *v1alpha1.RotationPolicy {
	p := &v1alpha1.RotationPolicy{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Generation: 1}}
	p.Spec.NodePoolSelector.MatchLabels = map[string]v1alpha1.LabelValue{}
	for k, v := range selector {
		p.Spec.NodePoolSelector.MatchLabels[k] = v1alpha1.LabelValue(v)
	}
	p.Spec.AgeThreshold = "24h"
	p.Spec.MinRotationChances = 2
	p.Spec.MaintenanceWindows = []v1alpha1.MaintenanceWindow{{
		Timezone: "UTC", Days: []v1alpha1.Weekday{"Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"}, Start: "00:00", End: "24:00",
	}}
	p.Spec.Surge.ReadyTimeout.Duration = 15 * time.Minute
	p.Spec.Surge.CooldownAfter.Duration = 10 * time.Minute
	p.Spec.Surge.RetryBackoff.Duration = 30 * time.Minute
	p.Spec.Surge.MatchNodeRequirements.Required = []string{corev1.LabelTopologyZone}
	return p
}

func web() *v1alpha1.RotationPolicy { return policy("web", map[string]string{"workload": "web"}) }

// pending are the annotations of a claim whose attempt began this long ago.
func pending(ago time.Duration, more map[string]string) map[string]string {
	a := map[string]string{
		rotation.AnnotationState: rotation.StatePending, rotation.AnnotationStartedAt: now.Add(-ago).Format(time.RFC3339),
	}
	maps.Copy(a, more)
	return a
}

func anchored(more map[string]string) map[string]string {
	a := map[string]string{rotation.AnnotationActive: "a"}
	maps.Copy(a, more)
	return a
}

func surgeFor(more map[string]string) map[string]string {
	a := map[string]string{
		rotation.AnnotationSurgeFor: "a", rotation.AnnotationDoNotDisrupt: "true", rotation.AnnotationDoNotDisruptOwned: "true",
	}
	maps.Copy(a, more)
	return a
}
