package rotator

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/tasuki-io/tasuki/internal/rotation"
)

// While a pool is being observed another leader starts its rotation. The NodeClaims were
// read before, so there is no mark without an anchor that would be swept.
func TestThePoolIsReadLast(t *testing.T) {
	started := false
	live := apiServer(interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
		err := c.Get(ctx, key, o, opts...)
		if _, ok := o.(*karpv1.NodePool); ok && !started {
			started = true
			for o, set := range map[client.Object]map[string]string{pool(nil): anchored(nil), claim("a", 0, nil): pending(0, nil)} {
				if err := c.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
					return err
				}
				o.SetAnnotations(set)
				if err := c.Update(ctx, o); err != nil {
					return err
				}
			}
		}
		return err
	}}, web(), pool(nil), claim("a", 300*time.Hour, nil), node("a", nil))
	pass(t, newRotator(apiServer(interceptor.Funcs{}, web(), pool(nil), claim("a", 300*time.Hour, nil), node("a", nil)), live, &spoken{}))
	var c karpv1.NodeClaim
	if err := live.Get(t.Context(), client.ObjectKey{Name: "a"}, &c); err != nil || c.Annotations[rotation.AnnotationState] != rotation.StatePending {
		t.Errorf("%v: the rotation of the other leader is %q", err, c.Annotations[rotation.AnnotationState])
	}
}

// The pool is on the rotation of b. A placeholder of a, whose rotation has ended, runs on a
// fit host, and proves nothing for b.
func TestAPlaceholderOfAnEndedRotationIsAStray(t *testing.T) {
	w := &writes{}
	live := apiServer(w.hooks(), web(), pool(map[string]string{rotation.AnnotationActive: "b"}),
		claim("b", 300*time.Hour, pending(time.Minute, nil)), node("b", nil), claim("c", time.Second, nil), node("c", nil), placeholderOn("node-c"))
	pass(t, newRotator(live, live, &spoken{}))
	if diff := cmp.Diff([]string{"delete noderotation-surge-a"}, w.made); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
}

func TestAnIdlePoolAsksTheAPIServerNothing(t *testing.T) {
	asked := 0
	live := apiServer(interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, l client.ObjectList, opts ...client.ListOption) error {
		asked++
		return c.List(ctx, l, opts...)
	}})
	cache := apiServer(interceptor.Funcs{}, web(), pool(nil), claim("a", time.Hour, nil), node("a", nil))
	pass(t, newRotator(cache, live, &spoken{}))
	if asked > 0 {
		t.Errorf("%d lists for a pool in which nothing is due", asked)
	}
}

func TestWhatIsSeenOfAnObject(t *testing.T) {
	leaving, finalizers := &metav1.Time{Time: now}, []string{"x"}
	n := node("a", map[string]string{rotation.AnnotationSurgeFor: "a", "karpenter.sh/do-not-disrupt": "true", "example.com/rack": "7"})
	n.OwnerReferences = []metav1.OwnerReference{{Kind: "Rack", Name: "7"}, {Kind: "NodeClaim", Name: "a"}}
	n.DeletionTimestamp, n.Finalizers = leaving, finalizers
	n.Status.Conditions[0].Status = corev1.ConditionUnknown
	got := nodeFrom(n)
	if got.Ready || !got.Deleting || got.Claim != "a" || len(got.Annotations) != 2 {
		t.Errorf("a Node of a that is not Ready and on its way out is seen as %+v", got)
	}
	c := claim("a", 0, nil)
	c.StatusConditions().SetFalse("Ready", "x", "x")
	c.DeletionTimestamp, c.Finalizers = leaving, finalizers
	if got := nodeClaimFrom(c); got.Ready || !got.Deleting.Equal(now) {
		t.Errorf("a NodeClaim that is not Ready and on its way out is seen as %+v", got)
	}
	p := placeholderOn("node-a")
	p.DeletionTimestamp, p.Finalizers = leaving, finalizers
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, Reason: "x"}}
	if got := placeholderFrom(p); !got.Deleting || got.Waiting != (rotation.Waiting{}) {
		t.Errorf("a placeholder that is bound and on its way out is seen as %+v", got)
	}
}
