package e2e

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/tasuki-io/tasuki/api/v1alpha1"
)

// What operators do while a test runs.

// alter changes the NodePool, as kubectl edit would.
func (p *pool) alter(change func(*karpv1.NodePool)) {
	p.t.Helper()
	np := p.nodePool()
	before := np.DeepCopy()
	change(np)
	if err := world.client.Patch(world.ctx, np, client.MergeFrom(before)); err != nil {
		p.t.Fatalf("change NodePool %s: %v", p.name, err)
	}
}

func expireAfter(d string) func(*karpv1.NodePool) {
	return func(np *karpv1.NodePool) {
		np.Spec.Template.Spec.ExpireAfter = karpv1.MustParseNillableDuration(d)
	}
}

func gracePeriod(d time.Duration) func(*karpv1.NodePool) {
	return func(np *karpv1.NodePool) {
		np.Spec.Template.Spec.TerminationGracePeriod = &metav1.Duration{Duration: d}
	}
}

// undisrupted keeps Karpenter from replacing nodes whose template has changed.
func undisrupted(np *karpv1.NodePool) { np.Spec.Disruption.Budgets = []karpv1.Budget{{Nodes: "0"}} }

// drifts is a change of the template that makes every node of the pool out of date.
func drifts(np *karpv1.NodePool) {
	np.Spec.Template.Labels = map[string]string{"example.com/generation": "2"}
}

// relax lets one pod of a deployment with a budget be away from now on.
func (p *pool) relax(d *appsv1.Deployment) {
	p.t.Helper()
	p.patch(&policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: d.Namespace, Name: d.Name}}, `{"spec": {"maxUnavailable": 1}}`)
}

// abandon deletes the pool's policy.
func (p *pool) abandon() {
	p.t.Helper()
	if err := world.client.Delete(world.ctx, &v1alpha1.RotationPolicy{ObjectMeta: metav1.ObjectMeta{Name: p.name}}); err != nil {
		p.t.Fatal(err)
	}
}

// Changes of the policy that govern creates.

func restAfter(d time.Duration) func(*v1alpha1.RotationPolicy) {
	return func(rp *v1alpha1.RotationPolicy) { rp.Spec.Surge.CooldownAfter.Duration = d }
}

func orByForce(rp *v1alpha1.RotationPolicy) { rp.Spec.Surge.ForcefulFallback.Enabled = true }

// openDaily is a window of whole minutes, UTC.
func openDaily(from, to time.Time) func(*v1alpha1.RotationPolicy) {
	return func(rp *v1alpha1.RotationPolicy) {
		w := &rp.Spec.MaintenanceWindows[0]
		w.Start, w.End = from.UTC().Format("15:04"), to.UTC().Format("15:04")
	}
}
