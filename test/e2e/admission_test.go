package e2e

import (
	"context"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/yaml"

	"github.com/tasuki-io/tasuki/lab/trial"
)

// A policy that cannot work is refused by the API server, with the field and what to
// write instead, and not found out in the night of the first window.
func TestBrokenPoliciesAreRefused(t *testing.T) {
	needLab(t)
	const good = `{timezone: UTC, days: [Mon], start: "02:00", end: "06:00"}`
	for name, c := range map[string]struct{ windows, more, want string }{
		"wrong zone":         {`[{timezone: JST+9, days: [Mon], start: "02:00", end: "06:00"}]`, ``, `maintenanceWindows[0].timezone: Invalid value: "JST+9": write a name of the IANA time zone database`},
		"an hour too late":   {`[{timezone: UTC, days: [Mon], start: "25:00", end: "06:00"}]`, ``, `maintenanceWindows[0].start: Invalid value: "25:00": write HH:MM from 00:00 to 23:59`},
		"no length":          {`[{timezone: UTC, days: [Mon], start: "02:00", end: "02:00"}]`, ``, `start and end are both 02:00`},
		"unknown day":        {`[{timezone: UTC, days: [Wednesday], start: "02:00", end: "06:00"}]`, ``, `maintenanceWindows[0].days[0]: Invalid value: "Wednesday": write one of Mon, Tue`},
		"no windows":         {`[]`, ``, `write at least one window`},
		"two nodes at once":  {`[` + good + `]`, `surge: {maxUnavailable: 2}`, `surge.maxUnavailable: Invalid value: 2: nodes of a NodePool are replaced one at a time`},
		"pre-pulling images": {`[` + good + `]`, `prePull: {enabled: true}`, `pre-pulling images is not available`},
		"no time":            {`[` + good + `]`, `surge: {readyTimeout: 0s}`, `surge.readyTimeout: Invalid value: "0s": write a duration longer than 0`},
		"negative cooldown":  {`[` + good + `]`, `surge: {cooldownAfter: -5m}`, `surge.cooldownAfter: Invalid value: "-5m": write a duration from 0s`},
		"no chances":         {`[` + good + `]`, `minRotationChances: 0`, `minRotationChances: Invalid value: 0: write at least 1`},
	} {
		t.Run(name, func(t *testing.T) {
			manifest := "apiVersion: noderotation.io/v1alpha1\nkind: RotationPolicy\nmetadata: {generateName: broken-}\n" +
				"spec:\n  nodePoolSelector: {matchLabels: {selects: nothing}}\n  maintenanceWindows: " + c.windows + "\n  " + c.more + "\n"
			var o unstructured.Unstructured
			if err := yaml.UnmarshalStrict([]byte(manifest), &o.Object); err != nil {
				t.Fatalf("%v\n%s", err, manifest)
			}
			err := world.client.Create(world.ctx, &o, client.FieldValidation(metav1.FieldValidationStrict))
			if !apierrors.IsInvalid(err) {
				t.Fatalf("want it refused as invalid, got: %v", err)
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("does not say\n  %s\nbut\n  %v", c.want, err)
			}
		})
	}
}

// controllerClient acts as the controller's ServiceAccount.
func controllerClient(t *testing.T) client.Client {
	t.Helper()
	path, err := world.lab.KubeconfigFor(world.ctx, trial.Namespace, trial.ServiceAccount)
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(config, client.Options{Scheme: world.client.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// The controller's ServiceAccount can launch no node, read no secret and touch no pod but
// its placeholders, whatever the controller's code says.
func TestControllerHasNoOtherRights(t *testing.T) {
	needLab(t)
	c := controllerClient(t)
	const ours, elsewhere, everywhere = trial.Namespace, workloads, ""
	for _, right := range []struct {
		want                             bool
		verb, group, resource, namespace string
	}{
		{false, "create", "karpenter.sh", "nodeclaims", everywhere},
		{false, "create", "karpenter.sh", "nodepools", everywhere},
		{false, "delete", "karpenter.sh", "nodepools", everywhere},
		{false, "create", "", "nodes", everywhere},
		{false, "delete", "", "nodes", everywhere},
		{false, "get", "", "secrets", ours},
		{false, "get", "", "secrets", elsewhere},
		{false, "list", "", "configmaps", ours},
		{false, "create", "", "pods", elsewhere},
		{false, "delete", "", "pods", elsewhere},
		{false, "create", "", "pods/eviction", elsewhere},
		{false, "create", "", "pods/exec", ours},
		{false, "list", "scheduling.k8s.io", "priorityclasses", everywhere},
		{false, "update", "noderotation.io", "rotationpolicies", everywhere},
		{false, "create", "", "serviceaccounts/token", ours},
		{false, "bind", "rbac.authorization.k8s.io", "clusterroles", everywhere},
		{true, "create", "", "pods", ours},
		{true, "delete", "karpenter.sh", "nodeclaims", everywhere},
		{true, "patch", "", "nodes", everywhere},
	} {
		resource, subresource, _ := strings.Cut(right.resource, "/")
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Verb: right.verb, Group: right.group, Resource: resource, Subresource: subresource, Namespace: right.namespace,
			},
		}}
		if err := c.Create(world.ctx, review); err != nil {
			t.Fatal(err)
		}
		if review.Status.Allowed != right.want {
			t.Errorf("%s %s.%s in namespace %q: allowed=%t, want %t", right.verb, right.resource, right.group, right.namespace, review.Status.Allowed, right.want)
		}
	}

	// What the review says is what happens.
	pod := corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "example.com/app"}}}
	for what, attempt := range map[string]func(context.Context) error{
		"create a NodeClaim": func(ctx context.Context) error {
			return c.Create(ctx, &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "rights"}})
		},
		"get a Secret": func(ctx context.Context) error {
			return c.Get(ctx, client.ObjectKey{Namespace: ours, Name: "rights"}, &corev1.Secret{})
		},
		"create a pod elsewhere": func(ctx context.Context) error {
			return c.Create(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: elsewhere, Name: "rights"}, Spec: pod})
		},
		"list PriorityClasses": func(ctx context.Context) error {
			return c.List(ctx, &schedulingv1.PriorityClassList{})
		},
	} {
		if err := attempt(world.ctx); !apierrors.IsForbidden(err) {
			t.Errorf("%s: want it forbidden, got: %v", what, err)
		}
	}
}
