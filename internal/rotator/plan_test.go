package rotator

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/tasuki-io/tasuki/deploy"
	"github.com/tasuki-io/tasuki/internal/manifest"
	"github.com/tasuki-io/tasuki/internal/rotation"
)

// A cluster is read, and planned for, without a single write: the node that is past its
// threshold goes now, and the other one once it is. Pods of no rotation are not taken for
// placeholders.
func TestPlansOfACluster(t *testing.T) {
	stray := pod("web-1", "node-a", "1")
	stray.Spec.NodeSelector = map[string]string{karpv1.NodePoolLabelKey: "web"}
	limited := pool(nil)
	limited.Spec.Limits = karpv1.Limits{corev1.ResourceCPU: resource.MustParse("100")}
	refuse := func(what string) { t.Errorf("a plan writes: %s", what) }
	server := apiServer(interceptor.Funcs{
		Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
			refuse("create")
			return nil
		},
		Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
			refuse("patch")
			return nil
		},
	}, web(), limited, claim("a", 48*time.Hour, nil), node("a", nil), claim("b", 12*time.Hour, nil), node("b", nil), stray)
	o, err := Observe(context.Background(), server)
	if err != nil {
		t.Fatal(err)
	}
	if len(o.Pods) != 1 {
		t.Errorf("with a limit on cpu all pods count, but %d were read", len(o.Pods))
	}
	plans := o.Plans(now, now.Add(13*time.Hour))
	if len(plans) != 1 || plans[0].Policy == nil || *plans[0].Policy != "web" {
		t.Fatalf("plans: %+v", plans)
	}
	from := now // an open window that does not close has the edges of the plan
	want := []PlanTurn{{"a", &from, "288h0m0s"}, {"b", &from, "312h0m0s"}}
	if diff := cmp.Diff(want, plans[0].Forecast); diff != "" {
		t.Errorf("forecast (-want +got):\n%s", diff)
	}
	if plans[0].Fatal() || plans[0].Loses() {
		t.Errorf("nothing is fatal and none is lost: %+v", plans[0])
	}
}

// Without the creationTimestamp there is no age.
func TestANodeClaimHasToHaveAnAge(t *testing.T) {
	r, err := manifest.NewReader(Kinds(deploy.CRD())...)
	if err != nil {
		t.Fatal(err)
	}
	read, err := r.ReadFiles([]manifest.File{{Name: "claims.yaml", Text: []byte(`apiVersion: karpenter.sh/v1
kind: NodeClaim
metadata: {name: a}
spec:
  nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}
  requirements: []
`)}})
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = ObjectsOf(read)
	want := "claims.yaml: document 1, line 1: NodeClaim a: metadata.creationTimestamp is missing, and with it the age of the node"
	if err == nil || err.Error() != want {
		t.Errorf("error is %v, want %s", err, want)
	}
}

// What files leave out is taken to be well, and what they say is believed.
func TestWhatFilesLeaveOut(t *testing.T) {
	bare := claim("bare", time.Hour, nil)
	bare.Status = karpv1.NodeClaimStatus{}
	sick := claim("sick", time.Hour, nil)
	sick.StatusConditions().SetFalse("Ready", "Sick", "")
	sick.Status.Capacity = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4")}
	read := func(more ...any) Objects {
		var objects []manifest.Object
		for _, v := range append(more, pool(nil), bare.DeepCopy(), sick.DeepCopy()) {
			objects = append(objects, manifest.Object{Value: v})
		}
		o, notes, err := ObjectsOf(objects)
		if err != nil || len(notes) > 0 {
			t.Fatalf("%v, notes %q", err, notes)
		}
		return o
	}
	o := read(web())
	if c := nodeClaimFrom(&o.NodeClaims[0]); !c.Ready || c.NodeName != "bare" {
		t.Errorf("a NodeClaim without a status is not well: %+v", c)
	}
	if c := nodeClaimFrom(&o.NodeClaims[1]); c.Ready {
		t.Errorf("one that says that it is not Ready is taken to be: %+v", c)
	}
	if len(o.Nodes) != 2 {
		t.Errorf("%d nodes are assumed, want one for each NodeClaim", len(o.Nodes))
	}
	used := o.NodePools[0].Status.Resources
	if nodes, cpu := used["nodes"], used[corev1.ResourceCPU]; nodes.String() != "2" || cpu.String() != "4" {
		t.Errorf("in use are %v", used)
	}
	if o = read(web(), node("sick", nil)); len(o.Nodes) != 1 {
		t.Errorf("nodes are assumed although they are known: %d", len(o.Nodes))
	}
}

// What a page carries of a cluster comes to the same plans, and is without what pods are made of.
func TestDocumentsComeToTheSamePlans(t *testing.T) {
	limited := pool(map[string]string{"note": "private"})
	limited.Spec.Limits = karpv1.Limits{corev1.ResourceCPU: resource.MustParse("10")}
	limited.Status.Resources = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("9")}
	limited.Spec.Template.Spec.NodeClassRef = &karpv1.NodeClassReference{Group: "karpenter.kwok.sh", Kind: "KWOKNodeClass", Name: "default"}
	limited.Spec.Template.Spec.Requirements = []karpv1.NodeSelectorRequirementWithMinValues{{Key: "kubernetes.io/arch", Operator: "In", Values: []string{"amd64"}}}
	busy := pod("web-1", "node-a", "2")
	busy.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "PASSWORD", Value: "private"}}
	busy.Spec.Containers[0].Args = []string{"private"}
	daemon := pod("log-1", "node-b", "4")
	daemon.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "log", UID: "log"}}
	sick := claim("c", 300*time.Hour, nil)
	sick.StatusConditions().SetFalse("Ready", "Sick", "")
	server := apiServer(interceptor.Funcs{}, web(), limited, claim("a", 300*time.Hour, nil), node("a", nil),
		claim("b", 290*time.Hour, map[string]string{rotation.AnnotationState: rotation.StateFailed, rotation.AnnotationFailedAt: "2026-03-04T02:00:00Z"}), node("b", map[string]string{karpv1.DoNotDisruptAnnotationKey: "true"}),
		sick, node("c", nil), busy, daemon)
	o, err := Observe(context.Background(), server)
	if err != nil {
		t.Fatal(err)
	}
	for i := range o.NodeClaims { // as the API server would have it
		o.NodeClaims[i].Spec.NodeClassRef = limited.Spec.Template.Spec.NodeClassRef
	}
	policies, others, err := o.Documents()
	if err != nil {
		t.Fatal(err)
	}
	if text := string(policies) + string(others); strings.Contains(text, "private") || strings.Contains(text, "PASSWORD") {
		t.Errorf("what no decision reads is written:\n%s", text)
	}
	r, err := manifest.NewReader(Kinds(deploy.CRD())...)
	if err != nil {
		t.Fatal(err)
	}
	read, err := r.ReadFiles([]manifest.File{{Name: "policies.yaml", Text: policies}, {Name: "cluster.yaml", Text: others}})
	if err != nil {
		t.Fatal(err)
	}
	again, notes, err := ObjectsOf(read)
	if err != nil || len(notes) > 0 {
		t.Fatalf("%v, notes %q", err, notes)
	}
	want, got := o.Plans(now, now.AddDate(0, 0, 20)), again.Plans(now, now.AddDate(0, 0, 20))
	if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b *time.Location) bool { return a.String() == b.String() })); diff != "" {
		t.Errorf("plans (-of the cluster +of what is written):\n%s", diff)
	}
	if lost := len(want[0].Turns); lost == 0 {
		t.Error("nothing happens in these plans, so that they say nothing")
	}
}
