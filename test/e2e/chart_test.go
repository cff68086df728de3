package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tasuki-io/tasuki/charts"
	"github.com/tasuki-io/tasuki/lab/trial"
)

// The chart as helm renders it: the API server takes every object, and admits the pods of its
// Deployment under the restricted Pod Security Standard. With the arguments of that Deployment
// and the rights of its ServiceAccount, and no others, a controller rotates a node.
func TestChartAsHelmRendersIt(t *testing.T) {
	needLab(t)
	alone(t)
	p := newPool(t, "chart")
	manifest, err := charts.Tool("../..", "helm", "template", "tasuki", "charts/tasuki", "-n", trial.Namespace, "--include-crds",
		"--set", "namespace.create=true,networkPolicy.enabled=true,metrics.dashboards.enabled=true",
		"--set", "controller.nodeSelector.e2e=nowhere") // its pods wait, as no node has that
	if err != nil {
		t.Fatal(err)
	}
	meta := metav1.ObjectMeta{Namespace: trial.Namespace, Name: "tasuki-controller"}
	dashboard := metav1.ObjectMeta{Namespace: trial.Namespace, Name: "tasuki-controller-dashboard"}
	deployment := &appsv1.Deployment{ObjectMeta: meta}
	p.created = append(p.created, deployment, &networkingv1.NetworkPolicy{ObjectMeta: meta}, &corev1.ConfigMap{ObjectMeta: dashboard})
	if err := world.lab.Apply(world.ctx, []byte(manifest)); err != nil {
		t.Fatal(err)
	}
	if err := world.client.Get(world.ctx, client.ObjectKeyFromObject(deployment), deployment); err != nil {
		t.Fatal(err)
	}
	p.await("the pods of the Deployment", func() string {
		var pods corev1.PodList
		p.list(&pods, client.InNamespace(trial.Namespace), client.MatchingLabels(deployment.Spec.Selector.MatchLabels))
		if len(pods.Items) != 2 {
			return fmt.Sprintf("%d pods, want 2", len(pods.Items))
		}
		return ""
	})

	args := slices.DeleteFunc(slices.Clone(deployment.Spec.Template.Spec.Containers[0].Args), func(arg string) bool {
		return strings.Contains(arg, "-bind-address=") // of which each process here has its own
	})
	c := startController(t, "", args...)
	t.Cleanup(c.Stop)
	p.deploy("web", 1, cpu("1"))
	p.awaitSettled(1, 1)
	before := p.claimNames()

	p.govern()
	p.awaitRotated()
	p.awaitSettled(1, 1)

	p.rotated(before[0], before, 1)
	p.oneEvent("RotationCompleted")
}
