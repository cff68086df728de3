package charts_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
)

// rights is all that the controller may do. A verb that is missing here is missing on
// purpose: no NodeClaim is ever created, no Secret read, no pod of a user deleted.
const rights = `
cluster                karpenter.sh         nodeclaims               delete get list patch update watch
cluster                karpenter.sh         nodepools                get list patch update watch
cluster                core                 nodes                    get list patch update watch
cluster                core                 pods                     get list watch
cluster                events.k8s.io        events                   create patch
cluster                noderotation.io      rotationpolicies         get list watch
cluster                noderotation.io      rotationpolicies/status  get patch update
node-rotation-system   core                 pods                     create delete
node-rotation-system   coordination.k8s.io  leases                   create get update
`

func TestRights(t *testing.T) {
	got := map[string][]string{} // scope, group and resource -> verbs
	grant := func(scope string, rules []rbacv1.PolicyRule) {
		for _, rule := range rules {
			if len(rule.ResourceNames) > 0 || len(rule.NonResourceURLs) > 0 {
				t.Errorf("%s: the table does not cover resourceNames or nonResourceURLs: %v", scope, rule)
			}
			for _, group := range rule.APIGroups {
				if group == "" {
					group = "core"
				}
				for _, resource := range rule.Resources {
					key := strings.Join([]string{scope, group, resource}, " ")
					got[key] = append(got[key], rule.Verbs...)
				}
			}
		}
	}
	for _, o := range objects(t) {
		switch o.GetKind() {
		case "ClusterRole":
			r := as[rbacv1.ClusterRole](t, o)
			if r.AggregationRule != nil || strings.Contains(fmt.Sprint(r.Labels), "aggregate-to") {
				t.Errorf("ClusterRole %s: aggregation gives rights that this table does not see", r.Name)
			}
			grant("cluster", r.Rules)
		case "Role":
			grant(o.GetNamespace(), as[rbacv1.Role](t, o).Rules)
		}
	}
	var lines []string
	for key, verbs := range got {
		slices.Sort(verbs)
		lines = append(lines, key+" "+strings.Join(verbs, " "))
	}
	var want []string
	for line := range strings.Lines(strings.TrimSpace(rights)) {
		want = append(want, strings.Join(strings.Fields(line), " "))
	}
	slices.Sort(lines)
	slices.Sort(want)
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("rights of the controller (-table +chart):\n%s", diff)
	}
}

// The rights go to the one ServiceAccount and to nobody else.
func TestRightsGoToTheController(t *testing.T) {
	want := []rbacv1.Subject{{Kind: "ServiceAccount", Name: "tasuki-controller", Namespace: "node-rotation-system"}}
	bound := 0
	for _, o := range objects(t) {
		if kind := o.GetKind(); kind != "ClusterRoleBinding" && kind != "RoleBinding" {
			continue
		}
		bound++
		b := as[rbacv1.ClusterRoleBinding](t, o) // the two kinds have the same form
		ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: strings.TrimSuffix(o.GetKind(), "Binding"), Name: "tasuki-controller"}
		if diff := cmp.Diff(ref, b.RoleRef); diff != "" {
			t.Errorf("%s %s (-want +got):\n%s", o.GetKind(), b.Name, diff)
		}
		if diff := cmp.Diff(want, b.Subjects); diff != "" {
			t.Errorf("%s %s (-want +got):\n%s", o.GetKind(), b.Name, diff)
		}
	}
	if bound != 2 {
		t.Errorf("%d bindings, want one per role", bound)
	}
}

// The chart is exactly these objects.
func TestObjects(t *testing.T) {
	var got []string
	for _, o := range objects(t) {
		got = append(got, strings.TrimSpace(o.GetKind()+" "+o.GetNamespace()+" "+o.GetName()))
	}
	slices.Sort(got)
	want := []string{
		"ClusterRole  tasuki-controller",
		"ClusterRoleBinding  tasuki-controller",
		"CustomResourceDefinition  rotationpolicies.noderotation.io",
		"Deployment node-rotation-system tasuki-controller",
		"Namespace  node-rotation-system",
		"PodDisruptionBudget node-rotation-system tasuki-controller",
		"PriorityClass  noderotation-placeholder",
		"Role node-rotation-system tasuki-controller",
		"RoleBinding node-rotation-system tasuki-controller",
		"Service node-rotation-system tasuki-controller",
		"ServiceAccount node-rotation-system tasuki-controller",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("objects (-want +chart):\n%s", diff)
	}
}

// A placeholder loses to every workload and displaces none.
func TestPlaceholderPriority(t *testing.T) {
	class := as[schedulingv1.PriorityClass](t, object(t, "PriorityClass noderotation-placeholder"))
	if class.Value != -10 || class.GlobalDefault || class.PreemptionPolicy == nil || *class.PreemptionPolicy != corev1.PreemptNever {
		t.Errorf("value %d, globalDefault %v, preemptionPolicy %v: want -10, false, Never", class.Value, class.GlobalDefault, class.PreemptionPolicy)
	}
}

func TestNamespaceIsRestricted(t *testing.T) {
	const label = "pod-security.kubernetes.io/enforce"
	if got := object(t, "Namespace node-rotation-system").GetLabels()[label]; got != "restricted" {
		t.Errorf("%s is %q, want restricted", label, got)
	}
}
