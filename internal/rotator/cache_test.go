package rotator

import (
	"context"
	"fmt"
	"net/http"
	"reflect"
	"runtime"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/tasuki-io/tasuki/api/v1alpha1"
)

// scale is the size of a cluster of pools that are alike, without their pods: the cache has none.
type scale struct{ pools, nodes int } // nodes are those of all pools

// objects are those of a cluster in which nothing is due.
func (s scale) objects() (all []client.Object) {
	all = append(all, web())
	for i := range s.pools {
		p := pool(nil)
		p.Name, p.UID = s.pool(i), types.UID(s.pool(i))
		all = append(all, p)
	}
	for i := range s.nodes {
		name, labels := fmt.Sprintf("c%05d", i), map[string]string{karpv1.NodePoolLabelKey: s.pool(i % s.pools)}
		c, n := claim(name, time.Hour, map[string]string{"example.com/note": "x"}), node(name, nil)
		c.Labels, n.Labels = labels, labels
		all = append(all, c, n)
	}
	return all
}

func (s scale) pool(i int) string { return fmt.Sprintf("pool-%d", i) }

// still lists objects and never hears of a change.
type still struct{ *toolscache.ListWatch }

// IsWatchListSemanticsUnSupported keeps the reflector from waiting for a stream of what is there.
func (still) IsWatchListSemanticsUnSupported() bool { return true }

// cacheOf is the cache of the controller, filled from objects in memory instead of from an API server.
func cacheOf(tb testing.TB, objects ...client.Object) client.Reader {
	tb.Helper()
	o := cacheOptions("node-rotation-system")
	o.Scheme, o.HTTPClient = Scheme(), &http.Client{}
	mapper := meta.NewDefaultRESTMapper(nil)
	for kind, scope := range map[client.Object]meta.RESTScope{
		&karpv1.NodePool{}: meta.RESTScopeRoot, &karpv1.NodeClaim{}: meta.RESTScopeRoot, &corev1.Node{}: meta.RESTScopeRoot,
		&v1alpha1.RotationPolicy{}: meta.RESTScopeRoot, &corev1.Pod{}: meta.RESTScopeNamespace,
	} {
		kinds, _, err := o.Scheme.ObjectKinds(kind)
		if err != nil {
			tb.Fatal(err)
		}
		mapper.Add(kinds[0], scope)
		mapper.Add(kinds[0].GroupVersion().WithKind(kinds[0].Kind+"List"), scope)
	}
	o.Mapper = mapper
	o.NewInformer = func(_ toolscache.ListerWatcher, kind apiruntime.Object, resync time.Duration, by toolscache.Indexers) toolscache.SharedIndexInformer {
		l := &metav1.List{ListMeta: metav1.ListMeta{ResourceVersion: "1"}}
		for _, o := range objects {
			if reflect.TypeOf(o) == reflect.TypeOf(kind) {
				l.Items = append(l.Items, apiruntime.RawExtension{Object: o})
			}
		}
		return toolscache.NewSharedIndexInformer(still{&toolscache.ListWatch{
			ListWithContextFunc:  func(context.Context, metav1.ListOptions) (apiruntime.Object, error) { return l, nil },
			WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) { return watch.NewFake(), nil },
		}}, kind, resync, by)
	}
	c, err := ctrlcache.New(&rest.Config{Host: "http://127.0.0.1:1"}, o)
	if err != nil {
		tb.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	tb.Cleanup(stop)
	if err := watchEarly(ctx, c); err != nil {
		tb.Fatal(err)
	}
	go func() { _ = c.Start(ctx) }() // ends without an error, with ctx
	if !c.WaitForCacheSync(ctx) {
		tb.Fatal("the cache is not filled")
	}
	return c
}

// cachedPass is one pass over a pool in which nothing is due, as the controller makes it every minute.
func cachedPass(tb testing.TB, s scale) func() {
	r := newRotator(nil, nil, &spoken{})
	r.Client = indexed{split{cache: cacheOf(tb, s.objects()...)}}
	r.Live = r.Client // for what the first pass warns of
	ctx, of := tb.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: s.pool(0)}}
	return func() {
		if res, err := r.Reconcile(ctx, of); err != nil || res.RequeueAfter != backstop {
			tb.Fatalf("a pool at rest: wakes after %s, %v", res.RequeueAfter, err)
		}
	}
}

// allocated is how many bytes one run takes.
func allocated(run func()) float64 {
	const runs = 50
	run() // what is taken once for all
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range runs {
		run()
	}
	runtime.ReadMemStats(&after)
	return float64(after.TotalAlloc-before.TotalAlloc) / runs
}

// A pass is as cheap in a large cluster as in a small one: it sees its own pool alone.
func TestAPassCostsWhatItsPoolCosts(t *testing.T) {
	alone, among := allocated(cachedPass(t, scale{1, 20})), allocated(cachedPass(t, scale{50, 1000}))
	if among > 1.5*alone {
		t.Errorf("a pass over a pool of 20 nodes takes %.0f bytes among 50 such pools, and %.0f bytes alone", among, alone)
	}
}

// The snapshot is made of what is in the cache, not of a copy.
func TestAPassChangesNothingInTheCache(t *testing.T) {
	s := scale{2, 10}
	c := cacheOf(t, s.objects()...)
	state := func() (all []any) {
		var claims karpv1.NodeClaimList
		var nodes corev1.NodeList
		var pools karpv1.NodePoolList
		for _, l := range []client.ObjectList{&claims, &nodes, &pools} {
			if err := c.List(t.Context(), l); err != nil {
				t.Fatal(err)
			}
		}
		for i := range claims.Items {
			all = append(all, claims.Items[i].DeepCopy())
		}
		for i := range nodes.Items {
			all = append(all, nodes.Items[i].DeepCopy())
		}
		for i := range pools.Items {
			all = append(all, pools.Items[i].DeepCopy())
		}
		return all
	}
	byName := cmp.Transformer("byName", func(all []any) map[string]any {
		m := map[string]any{}
		for _, o := range all {
			m[fmt.Sprintf("%T %s", o, o.(client.Object).GetName())] = o
		}
		return m
	})
	before := state()
	live := apiServer(interceptor.Funcs{}, s.objects()...)
	r := newRotator(live, live, &spoken{})
	r.Client = indexed{split{Client: live, cache: c}}
	r.Now = func() time.Time { return now.Add(300 * time.Hour) } // all are due
	if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: s.pool(0)}}); err != nil {
		t.Fatal(err)
	}
	var p karpv1.NodePool
	if err := live.Get(t.Context(), client.ObjectKey{Name: s.pool(0)}, &p); err != nil || len(p.Annotations) == 0 {
		t.Fatalf("no rotation has begun: %v", err)
	}
	if diff := cmp.Diff(before, state(), byName); diff != "" {
		t.Errorf("the cache (-before +after):\n%s", diff)
	}
}

func TestAListOfAPoolHoldsNoOtherPool(t *testing.T) {
	s := scale{3, 9}
	c := indexed{split{cache: cacheOf(t, s.objects()...)}}
	for of, want := range map[string]int{s.pool(1): 3, "": 9, "nobody": 0} {
		var opts []client.ListOption
		if of != "" {
			opts = append(opts, client.MatchingLabels{karpv1.NodePoolLabelKey: of})
		}
		var claims karpv1.NodeClaimList
		var nodes corev1.NodeList
		if err := c.List(t.Context(), &claims, opts...); err != nil {
			t.Fatal(err)
		}
		if err := c.List(t.Context(), &nodes, opts...); err != nil {
			t.Fatal(err)
		}
		if len(claims.Items) != want || len(nodes.Items) != want {
			t.Errorf("pool %q: %d NodeClaims and %d Nodes, want %d", of, len(claims.Items), len(nodes.Items), want)
		}
	}
}

// A NodeClaim has capacity and conditions that nobody here reads, and annotations of others.
func TestTheCacheKeepsOfANodeClaimWhatASnapshotReads(t *testing.T) {
	c := claim("a", time.Hour, pending(time.Minute, map[string]string{"example.com/note": "x"}))
	c.Finalizers, c.DeletionTimestamp = []string{"x"}, &metav1.Time{Time: now}
	c.Spec.Requirements = []karpv1.NodeSelectorRequirementWithMinValues{{Key: "cpu", Operator: corev1.NodeSelectorOpGt, Values: []string{"3"}}}
	c.Status.Allocatable, c.Status.Capacity = corev1.ResourceList{"pods": resource.MustParse("9")}, corev1.ResourceList{"pods": resource.MustParse("9")}
	slim, err := slimClaim(c)
	if err != nil {
		t.Fatal(err)
	}
	kept := slim.(*karpv1.NodeClaim)
	if diff := cmp.Diff(nodeClaimFrom(c), nodeClaimFrom(kept)); diff != "" {
		t.Errorf("read from the cache (-whole +kept):\n%s", diff)
	}
	if kept.Labels[karpv1.NodePoolLabelKey] != "web" {
		t.Error("nobody knows its pool any more")
	}
	if kept.Status.Capacity != nil || len(kept.Status.Conditions) != 1 || kept.Annotations["example.com/note"] != "" {
		t.Errorf("it keeps %+v of %+v", kept.Status, kept.Annotations)
	}
}

// BenchmarkPass is one pass over a pool of 20 nodes in which nothing is due, among 500 such
// pools: all that is done while a cluster rests.
func BenchmarkPass(b *testing.B) {
	pass := cachedPass(b, scale{500, 10_000})
	b.ReportAllocs()
	for b.Loop() {
		pass()
	}
}
