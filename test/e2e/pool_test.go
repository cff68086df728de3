package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/tasuki-io/tasuki/api/v1alpha1"
	"github.com/tasuki-io/tasuki/lab"
	"github.com/tasuki-io/tasuki/lab/trial"
)

// The contract that the tests hold the controller to, written out here so that a change
// of the implementation cannot change it unnoticed.
const (
	activeRotation   = "noderotation.io/active-rotation"
	surgePath        = "noderotation.io/surge-path"
	lastRotationAt   = "noderotation.io/last-rotation-at"
	lastFailureAt    = "noderotation.io/last-failure-at"
	windowOpenedAt   = "noderotation.io/window-opened-at"
	claimState       = "noderotation.io/state"
	startedAt        = "noderotation.io/started-at"
	failedAt         = "noderotation.io/failed-at"
	retryCount       = "noderotation.io/retry-count"
	surgeFor         = "noderotation.io/surge-for"
	cordonedByUs     = "noderotation.io/cordoned"
	doNotDisruptOurs = "noderotation.io/do-not-disrupt-owned"
	doNotDisrupt     = "karpenter.sh/do-not-disrupt"
)

const (
	workloads = metav1.NamespaceDefault // where the pods of the tests run
	poolLabel = "e2e-pool"              // on a NodePool, for its policy, and on its pods

	zoneA, zoneB = "test-zone-a", "test-zone-b"
	fourCPU      = "c-4x-amd64-linux"
	fourCPUOneGP = "g-4x-amd64-linux"
)

// pool is one NodePool and what a test puts around it, all of it named after the pool.
type pool struct {
	t       *testing.T
	name    string
	created []client.Object // go when the test ends, the last first
}

// newPool creates a NodePool for this test and reports on it should the test fail.
func newPool(t *testing.T, name string, changes ...func(*karpv1.NodePool)) *pool {
	t.Helper()
	p := (&pool{name: name}).in(t)
	p.create(nodePoolOf(name, changes...))
	return p
}

// in hands the pool to a test that reports on it, and removes what it has put around it.
func (p *pool) in(t *testing.T) *pool {
	q := &pool{t: t, name: p.name}
	t.Cleanup(func() {
		if t.Failed() {
			q.testify()
		}
		q.remove()
	})
	return q
}

// nodePoolOf is a NodePool of on-demand nodes of 4 cpu in zone a, which nothing but a
// rotation replaces within the life of the lab. It is not governed yet.
func nodePoolOf(name string, changes ...func(*karpv1.NodePool)) *karpv1.NodePool {
	np := &karpv1.NodePool{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{poolLabel: name}},
		Spec: karpv1.NodePoolSpec{
			Template: karpv1.NodeClaimTemplate{Spec: karpv1.NodeClaimTemplateSpec{
				ExpireAfter:            karpv1.MustParseNillableDuration("2h"),
				TerminationGracePeriod: &metav1.Duration{Duration: 10 * time.Minute},
				NodeClassRef:           &karpv1.NodeClassReference{Group: "karpenter.kwok.sh", Kind: "KWOKNodeClass", Name: "default"},
				Requirements: []karpv1.NodeSelectorRequirementWithMinValues{
					{Key: corev1.LabelInstanceTypeStable, Operator: corev1.NodeSelectorOpIn, Values: []string{fourCPU}},
					{Key: karpv1.CapacityTypeLabelKey, Operator: corev1.NodeSelectorOpIn, Values: []string{karpv1.CapacityTypeOnDemand}},
					{Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn, Values: []string{zoneA}},
				},
			}},
			Disruption: karpv1.Disruption{
				ConsolidationPolicy: karpv1.ConsolidationPolicyWhenEmpty,
				ConsolidateAfter:    karpv1.MustParseNillableDuration(karpv1.Never),
			},
		},
	}
	for _, change := range changes {
		change(np)
	}
	return np
}

func require(key string, values ...string) func(*karpv1.NodePool) {
	return func(np *karpv1.NodePool) {
		rs := np.Spec.Template.Spec.Requirements
		for i := range rs {
			if rs[i].Key == key {
				rs[i].Values = values
			}
		}
	}
}

func limit(name corev1.ResourceName, quantity string) func(*karpv1.NodePool) {
	return func(np *karpv1.NodePool) { np.Spec.Limits = karpv1.Limits{name: resource.MustParse(quantity)} }
}

// create creates an object, which goes when the test ends.
func (p *pool) create(o client.Object) {
	p.t.Helper()
	if err := world.client.Create(world.ctx, o); err != nil {
		p.t.Fatalf("create %T %s: %v", o, o.GetName(), err)
	}
	p.created = append(p.created, o)
}

// remove deletes what the test has created, and waits for none of it.
func (p *pool) remove() {
	for _, o := range slices.Backward(p.created) {
		err := world.client.Delete(world.ctx, o, client.PropagationPolicy(metav1.DeletePropagationBackground))
		if client.IgnoreNotFound(err) != nil {
			p.t.Errorf("delete %T %s: %v", o, o.GetName(), err)
		}
	}
}

// patch merges a change into an object, as an operator's kubectl would.
func (p *pool) patch(o client.Object, change string) {
	p.t.Helper()
	if err := world.client.Patch(world.ctx, o, client.RawPatch(types.MergePatchType, []byte(change))); err != nil {
		p.t.Fatalf("patch %T %s: %v", o, o.GetName(), err)
	}
}

// annotate sets an annotation, as an operator would.
func (p *pool) annotate(o client.Object, key, value string) {
	p.t.Helper()
	change, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{key: value}}})
	if err != nil {
		p.t.Fatal(err)
	}
	p.patch(o, string(change))
}

// cordon cordons a node, as an operator would.
func (p *pool) cordon(node string) {
	p.t.Helper()
	p.patch(p.node(node), `{"spec": {"unschedulable": true}}`)
}

// govern puts the pool under a policy that is always open and that finds every node of
// the pool due, so that a rotation starts at once, and returns when that was. After a
// success the pool rests for the remainder of the test.
func (p *pool) govern(changes ...func(*v1alpha1.RotationPolicy)) time.Time {
	p.t.Helper()
	rp := &v1alpha1.RotationPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: p.name},
		Spec: v1alpha1.RotationPolicySpec{
			NodePoolSelector: v1alpha1.NodePoolSelector{MatchLabels: map[string]v1alpha1.LabelValue{poolLabel: v1alpha1.LabelValue(p.name)}},
			AgeThreshold:     "1s",
			MaintenanceWindows: []v1alpha1.MaintenanceWindow{{
				Timezone: "UTC", Days: []v1alpha1.Weekday{"Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"}, Start: "00:00", End: "24:00",
			}},
			MinRotationChances: 1,
			Surge: v1alpha1.Surge{
				ReadyTimeout:  metav1.Duration{Duration: 5 * time.Minute},
				CooldownAfter: metav1.Duration{Duration: time.Hour},
				RetryBackoff:  metav1.Duration{Duration: 30 * time.Minute},
			},
		},
	}
	for _, change := range changes {
		change(rp)
	}
	began := time.Now()
	p.create(rp)
	return began
}

func readyWithin(d time.Duration) func(*v1alpha1.RotationPolicy) {
	return func(rp *v1alpha1.RotationPolicy) { rp.Spec.Surge.ReadyTimeout.Duration = d }
}

// deploy runs a workload on the pool: one container per pod that requests this much.
func (p *pool) deploy(name string, replicas int32, requests corev1.ResourceList, changes ...func(*corev1.PodTemplateSpec)) *appsv1.Deployment {
	p.t.Helper()
	app := p.name + "-" + name
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: workloads, Name: app},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}},
			Template: p.template(requests, changes...),
		},
	}
	d.Spec.Template.Labels["app"] = app
	p.create(d)
	return d
}

// template is a pod for the pool that counts as its workload.
func (p *pool) template(requests corev1.ResourceList, changes ...func(*corev1.PodTemplateSpec)) corev1.PodTemplateSpec {
	atOnce := int64(1)
	pod := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{poolLabel: p.name}},
		Spec: corev1.PodSpec{
			NodeSelector:                  map[string]string{karpv1.NodePoolLabelKey: p.name},
			TerminationGracePeriodSeconds: &atOnce,
			Containers: []corev1.Container{{
				Name: "app", Image: "example.com/app",
				Resources: corev1.ResourceRequirements{Requests: maps.Clone(requests)},
			}},
		},
	}
	for _, change := range changes {
		change(&pod)
	}
	return pod
}

func slow(pod *corev1.PodTemplateSpec) { pod.Labels[lab.SlowLabel] = "true" }

func limited(pod *corev1.PodTemplateSpec) {
	r := &pod.Spec.Containers[0].Resources
	r.Limits = r.Requests
}

// notWorkload keeps a pod out of the count of the pool's workload.
func notWorkload(pod *corev1.PodTemplateSpec) { delete(pod.Labels, poolLabel) }

// budget allows this many of a deployment's pods to be unavailable.
func (p *pool) budget(d *appsv1.Deployment, maxUnavailable int) {
	p.t.Helper()
	unavailable := intstr.FromInt32(int32(maxUnavailable))
	p.create(&policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: workloads, Name: d.Name},
		Spec:       policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &unavailable, Selector: d.Spec.Selector},
	})
}

func cpu(quantity string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(quantity)}
}

func and(list corev1.ResourceList, name corev1.ResourceName, quantity string) corev1.ResourceList {
	out := corev1.ResourceList{}
	maps.Copy(out, list)
	out[name] = resource.MustParse(quantity)
	return out
}

// ownNodeClass gives the pool a node class of its own, whose nodes come up at once until
// stall is called.
func ownNodeClass(t *testing.T, name string) func(*karpv1.NodePool) {
	t.Helper()
	applyNodeClass(t, name, 0)
	return func(np *karpv1.NodePool) { np.Spec.Template.Spec.NodeClassRef.Name = name }
}

// stall makes every node of this node class that Karpenter launches from now on register
// long after the tests are over.
func stall(t *testing.T, nodeClass string) {
	t.Helper()
	applyNodeClass(t, nodeClass, 3*time.Hour)
}

func applyNodeClass(t *testing.T, name string, delay time.Duration) {
	t.Helper()
	manifest := fmt.Sprintf(`
apiVersion: karpenter.kwok.sh/v1alpha1
kind: KWOKNodeClass
metadata: {name: %s}
spec: {nodeRegistrationDelay: %s}
`, name, delay)
	if err := world.lab.Apply(world.ctx, []byte(manifest)); err != nil {
		t.Fatal(err)
	}
}

// Which objects belong to the pool.

func (p *pool) owns(c *karpv1.NodeClaim) bool { return c.Labels[karpv1.NodePoolLabelKey] == p.name }

func (p *pool) ownsNode(n *corev1.Node) bool { return n.Labels[karpv1.NodePoolLabelKey] == p.name }

func (p *pool) ownsPod(pod *corev1.Pod) bool {
	return pod.Namespace == workloads && pod.Labels[poolLabel] == p.name
}

func (p *pool) ownsPlaceholder(pod *corev1.Pod) bool {
	return pod.Namespace == trial.Namespace && pod.Spec.NodeSelector[karpv1.NodePoolLabelKey] == p.name &&
		strings.HasPrefix(pod.Name, "noderotation-surge-")
}
