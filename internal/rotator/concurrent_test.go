package rotator

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/tasuki-io/tasuki/internal/rotation"
)

// The API server does not answer for one pool. All others begin their rotations meanwhile.
func TestASlowPoolDelaysNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := scale{4, 4}
		objects := s.objects()
		live := apiServer(interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if _, ok := o.(*karpv1.NodePool); ok && key.Name == s.pool(0) {
				<-ctx.Done()
				return ctx.Err()
			}
			return c.Get(ctx, key, o, opts...)
		}}, objects...)
		r := newRotator(apiServer(interceptor.Funcs{}, objects...), live, &spoken{})
		r.Now = func() time.Time { return now.Add(300 * time.Hour) } // all are due
		o := options(logr.Discard())
		o.Reconciler, o.SkipNameValidation = r, new(true)
		passes, err := controller.NewUnmanaged("rotation", o)
		if err != nil {
			t.Fatal(err)
		}
		err = passes.Watch(source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
			for i := range s.pools { // the slow one first
				queue.Add(request(s.pool(i))[0])
			}
			return nil
		}))
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- passes.Start(ctx) }()
		time.Sleep(time.Minute)
		synctest.Wait()

		var claims karpv1.NodeClaimList
		if err := live.List(ctx, &claims); err != nil {
			t.Fatal(err)
		}
		var begun []string
		for i := range claims.Items {
			if c := &claims.Items[i]; c.Annotations[rotation.AnnotationState] == rotation.StatePending {
				begun = append(begun, c.Labels[karpv1.NodePoolLabelKey])
			}
		}
		slices.Sort(begun)
		if diff := cmp.Diff([]string{"pool-1", "pool-2", "pool-3"}, begun); diff != "" {
			t.Errorf("pools on rotation (-want +got):\n%s", diff)
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// Each list of the API server may take 100 ms. Those of a pass take that together, and those of
// another reader, as the simulation has, one after the other.
func TestTheListsOfAPassWaitTogether(t *testing.T) {
	const wait = 100 * time.Millisecond
	for name, c := range map[string]struct {
		from func(client.Client) client.Reader
		want time.Duration
	}{
		"the API server": {func(c client.Client) client.Reader { return patient{c} }, wait},
		"another":        {func(c client.Client) client.Reader { return c }, 5 * wait},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				live := apiServer(interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
					time.Sleep(wait)
					return c.List(ctx, list, opts...)
				}}, web(), pool(nil), claim("a", time.Hour, nil), node("a", nil))
				begun := time.Now()
				s, err := newRotator(live, live, &spoken{}).observe(t.Context(), c.from(live), "web", now, "node-a")
				if err != nil {
					t.Fatal(err)
				}
				if took := time.Since(begun); took != c.want {
					t.Errorf("it took %s, want %s", took, c.want)
				}
				if pods, read := s.Pods["node-a"]; len(s.NodeClaims) != 1 || len(s.Nodes) != 1 || !read || pods == nil {
					t.Errorf("the snapshot is of %d NodeClaims, %d Nodes and the pods %v", len(s.NodeClaims), len(s.Nodes), s.Pods)
				}
			})
		})
	}
}
