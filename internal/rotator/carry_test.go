package rotator

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/tasuki-io/tasuki/api/v1alpha1"
	"github.com/tasuki-io/tasuki/internal/rotation"
)

// goneWorld is a rotation of which the drain is over.
func goneWorld() []client.Object {
	return []client.Object{
		web(), pool(anchored(map[string]string{rotation.AnnotationActiveState: rotation.StateDraining})),
		claim("b", 30*time.Second, nil), node("b", surgeFor(nil)),
	}
}

// A rotation that has begun is carried to its end object by object, in a pool of any size: no
// list of the API server is waited for.
func TestARotationIsCarriedOnWithoutAList(t *testing.T) {
	for name, tt := range map[string]struct {
		world []client.Object
		want  []string
	}{
		"the hand-over": {readyWorld(), []string{"patch node-a", "patch node-b", "patch web", "patch a", "delete noderotation-surge-a", "delete a"}},
		"the end":       {goneWorld(), []string{"patch node-b", "patch web"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := &writes{}
			hooks := w.hooks()
			hooks.List = func(_ context.Context, _ client.WithWatch, l client.ObjectList, _ ...client.ListOption) error {
				t.Errorf("%T was asked for", l)
				return nil
			}
			pass(t, newRotator(apiServer(interceptor.Funcs{}, tt.world...), apiServer(hooks, tt.world...), &spoken{}))
			if diff := cmp.Diff(tt.want, w.made); diff != "" {
				t.Errorf("writes (-want +got):\n%s", diff)
			}
		})
	}
}

// Whatever the cache has not heard of, what carries a rotation on writes what a look at the whole
// pool would write.
func TestACacheThatLagsCarriesNothingOn(t *testing.T) {
	edit := func(world []client.Object, by func(client.Object)) []client.Object {
		for _, o := range world {
			by(o)
		}
		return world
	}
	policies := func(by func(*v1alpha1.RotationPolicy)) func(client.Object) {
		return func(o client.Object) {
			if p, ok := o.(*v1alpha1.RotationPolicy); ok {
				by(p)
			}
		}
	}
	named := func(name string, by func(client.Object)) func(client.Object) {
		return func(o client.Object) {
			if o.GetName() == name {
				by(o)
			}
		}
	}
	marked := func(name, key, value string) func(client.Object) {
		return named(name, func(o client.Object) {
			if a := o.GetAnnotations(); a != nil {
				a[key] = value
			}
		})
	}
	placeholder := rotation.PlaceholderName("a")
	bare := func(world []client.Object) []client.Object {
		return edit(world, named("node-a", func(o client.Object) { o.SetAnnotations(nil) }))
	}
	begun := []client.Object{
		web(), pool(anchored(map[string]string{rotation.AnnotationActiveState: rotation.StateDraining})),
		claim("a", 300*time.Hour, pending(time.Minute, map[string]string{rotation.AnnotationState: rotation.StateDraining})), node("a", nil),
	}
	elsewhere := func(on string, ready corev1.ConditionStatus) []client.Object {
		third := node("c", nil)
		third.Status.Conditions[0].Status = ready
		return append(readyWorld()[:6], placeholderOn(on), claim("c", 30*time.Second, nil), third)
	}
	for _, tt := range []struct {
		name        string
		cache, live []client.Object
	}{
		{"nothing", readyWorld(), readyWorld()},
		{"the surge is no longer Ready", readyWorld(), edit(readyWorld(), named("node-b", func(o client.Object) { o.(*corev1.Node).Status.Conditions[0].Status = corev1.ConditionFalse }))},
		{"the surge is cordoned", readyWorld(), edit(readyWorld(), named("node-b", func(o client.Object) { o.(*corev1.Node).Spec.Unschedulable = true }))},
		{"the surge is of another pool by now", readyWorld(), edit(readyWorld(), named("node-b", func(o client.Object) { o.GetLabels()[karpv1.NodePoolLabelKey] = "green" }))},
		{"the NodeClaim is of another pool by now", readyWorld(), edit(readyWorld(), named("a", func(o client.Object) { o.GetLabels()[karpv1.NodePoolLabelKey] = "green" }))},
		{"the attempt has failed", readyWorld(), edit(readyWorld(), marked("a", rotation.AnnotationState, rotation.StateFailed))},
		{"the placeholder is on another node", readyWorld(), append(edit(readyWorld(), named(placeholder, func(o client.Object) { o.(*corev1.Pod).Spec.NodeName = "node-c" })), claim("c", time.Hour, nil), node("c", nil))},
		{"the placeholder is on another node, which is not Ready", elsewhere("node-b", corev1.ConditionTrue), elsewhere("node-c", corev1.ConditionFalse)},
		{"the placeholder waits again, and its time is up", readyWorld(), append(edit(readyWorld(), func(o client.Object) {
			named(placeholder, func(o client.Object) { o.(*corev1.Pod).Status.Phase = corev1.PodPending })(o)
			marked("a", rotation.AnnotationStartedAt, now.Add(-time.Hour).Format(time.RFC3339))(o)
		}), pod("p", "node-b", "1"))},
		{"the placeholder waits again", readyWorld(), edit(readyWorld(), named(placeholder, func(o client.Object) { o.(*corev1.Pod).Status.Phase = corev1.PodPending }))},
		{"the placeholder is gone", readyWorld(), readyWorld()[:6]},
		{"the placeholder is of another pool", readyWorld(), edit(readyWorld(), named(placeholder, func(o client.Object) { o.(*corev1.Pod).Spec.NodeSelector[karpv1.NodePoolLabelKey] = "green" }))},
		{"the pool is frozen", readyWorld(), edit(readyWorld(), marked("web", rotation.AnnotationFreeze, now.Add(time.Hour).Format(time.RFC3339)))},
		{"the pool is on another rotation", readyWorld(), edit(readyWorld(), marked("web", rotation.AnnotationActive, "b"))},
		{"the pool is on another rotation, which drains", bare(readyWorld()), edit(bare(readyWorld()), func(o client.Object) {
			marked("web", rotation.AnnotationActive, "b")(o)
			named("a", func(o client.Object) { o.SetAnnotations(nil) })(o)
			named("b", func(o client.Object) {
				o.SetAnnotations(map[string]string{rotation.AnnotationState: rotation.StateDraining})
			})(o)
		})},
		{"the policy is gone", readyWorld(), readyWorld()[1:]},
		{"the policy selects others", readyWorld(), edit(readyWorld(), policies(func(p *v1alpha1.RotationPolicy) { p.Spec.NodePoolSelector.MatchLabels["workload"] = "batch" }))},
		{"the policy has less patience", readyWorld(), edit(readyWorld(), policies(func(p *v1alpha1.RotationPolicy) { p.Generation, p.Spec.Surge.ReadyTimeout.Duration = 2, time.Second }))},
		{"a second policy has begun to roll it back", begun, append(begun[:len(begun):len(begun)], policy("rival", map[string]string{"workload": "web"}))},
		{"the drain is over", goneWorld(), goneWorld()},
		{"the NodeClaim is there still", goneWorld(), append(goneWorld(), claim("a", 300*time.Hour, pending(time.Minute, map[string]string{rotation.AnnotationState: rotation.StateDraining})), node("a", surgeFor(nil)))},
		{"the surge is frozen", edit(goneWorld(), named("node-b", func(o client.Object) { o.SetAnnotations(nil) })), goneWorld()},
		{"the policy is gone at the end", goneWorld(), goneWorld()[1:]},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var made [2][]string
			for i := range made {
				w := &writes{}
				r := newRotator(apiServer(interceptor.Funcs{}, tt.cache...), apiServer(w.hooks(), tt.live...), &spoken{})
				if i == 0 {
					pass(t, r)
				} else if _, err := r.pass(t.Context(), "web", nil); err != nil {
					t.Fatal(err)
				}
				made[i] = w.made
			}
			if diff := cmp.Diff(made[1], made[0]); diff != "" {
				t.Errorf("writes (-by the whole pool +on the cache):\n%s", diff)
			}
		})
	}
}

// The API server does not serve NodeClaims for a moment, as when their definition is replaced, and
// says that the page is not found. No rotation is over by that.
func TestAKindThatIsNotServedEndsNoRotation(t *testing.T) {
	w, s := &writes{}, &spoken{}
	hooks := w.hooks()
	hooks.Get = func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
		if _, ok := o.(*karpv1.NodeClaim); ok {
			return apierrors.NewGenericServerResponse(http.StatusNotFound, "get", schema.GroupResource{}, "", "404 page not found", 0, true)
		}
		return c.Get(ctx, key, o, opts...)
	}
	r := newRotator(apiServer(interceptor.Funcs{}, goneWorld()...), apiServer(hooks, goneWorld()...), s)
	if _, err := r.Reconcile(t.Context(), request("web")[0]); err == nil || len(w.made)+len(s.events) > 0 {
		t.Errorf("error %v; wrote %q and said %q", err, w.made, s.events)
	}
}

// A person has anchored a pool on what cannot be the name of anything. A real client refuses to
// ask for it.
func TestAnAnchorThatIsNoNameIsReleased(t *testing.T) {
	w := &writes{}
	hooks := w.hooks()
	hooks.Get = func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
		if strings.Contains(key.Name, "/") {
			return fmt.Errorf("invalid resource name %q", key.Name)
		}
		return c.Get(ctx, key, o, opts...)
	}
	live := apiServer(hooks, web(), pool(map[string]string{rotation.AnnotationActive: "a/b"}))
	pass(t, newRotator(live, live, &spoken{}))
	if diff := cmp.Diff([]string{"patch web"}, w.made); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
}
