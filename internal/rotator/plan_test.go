package rotator

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/tasuki-io/tasuki/internal/manifest"
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
	c := claim("a", time.Hour, nil)
	c.CreationTimestamp = metav1.Time{}
	_, _, err := ObjectsOf([]manifest.Object{{Kind: "NodeClaim", Name: "a", Place: "claims.yaml: document 1, line 1", Value: c}})
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
