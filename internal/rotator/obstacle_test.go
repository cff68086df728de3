package rotator

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/tasuki-io/tasuki/internal/rotation"
)

// spend lets the pool have its passes for a while, as the queue would, and counts them. A pass
// that fails is tried again after the longest pause there is.
func spend(t *testing.T, r *Rotator, a time.Duration) (passes int, last error) {
	t.Helper()
	at := r.Now()
	r.Now = func() time.Time { return at }
	for end := at.Add(a); at.Before(end); passes++ {
		res, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "web"}})
		if last = err; err != nil {
			res.RequeueAfter = shortBackstop
		}
		at = at.Add(max(time.Millisecond, res.RequeueAfter))
	}
	return passes, last
}

// The namespace of the placeholders is deleted under the controller: the API server does not
// find it, which is not the refusal of a plan that deciding anew would mend.
func TestANamespaceThatIsGoneIsAnErrorAndSaidSo(t *testing.T) {
	w, s := &writes{}, &spoken{}
	w.fail = func(verb string, o client.Object) error {
		if verb == "create" {
			return apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "node-rotation-system")
		}
		return nil
	}
	live := apiServer(w.hooks(), web(), pool(nil), claim("a", 300*time.Hour, nil), node("a", nil))
	r := newRotator(live, live, s)
	if passes, err := spend(t, r, time.Minute); err == nil || passes > 3 {
		t.Errorf("%d passes in a minute, all of them in vain, and the error %v", passes, err)
	}
	spend(t, r, 15*time.Minute)
	if last := s.events[len(s.events)-1]; !strings.Contains(last, "RotationFailed") || !strings.Contains(last, `"node-rotation-system" not found`) {
		t.Errorf("the last Event is %q, want a failure that says what is missing", last)
	}
}

// Somebody took the label off the placeholder. It is still the one: it is not created again,
// and it goes with its rotation.
func TestAPlaceholderWithoutItsLabelIsFoundByItsName(t *testing.T) {
	w, s := &writes{}, &spoken{}
	p := placeholderOn("")
	p.Labels, p.Status.Phase = nil, corev1.PodPending
	live := apiServer(w.hooks(), web(), pool(anchored(nil)),
		claim("a", 300*time.Hour, pending(time.Minute, nil)), node("a", surgeFor(map[string]string{rotation.AnnotationCordoned: "true"})), p)
	r := newRotator(live, live, s)
	if passes, err := spend(t, r, time.Minute); err != nil || passes > 3 || strings.Contains(strings.Join(w.made, " "), "create") {
		t.Errorf("%d passes in a minute, writes %q, %v", passes, w.made, err)
	}
	spend(t, r, 15*time.Minute)
	var np karpv1.NodePool
	if err := live.Get(t.Context(), client.ObjectKey{Name: "web"}, &np); err != nil || np.Annotations[rotation.AnnotationActive] != "" {
		t.Fatalf("%v: the rotation has not ended: %v", err, np.Annotations)
	}
	if err := live.Get(t.Context(), client.ObjectKeyFromObject(p), &corev1.Pod{}); !apierrors.IsNotFound(err) {
		t.Errorf("the rotation has ended, and its placeholder is still there (%v)", err)
	}
}

// Another pod has the name. It is not ours to take away: the attempt ends in time, and says why.
func TestANameThatIsTakenIsWaitedForAndSaidSo(t *testing.T) {
	w, s := &writes{}, &spoken{}
	p := placeholderOn("")
	p.Labels, p.Annotations, p.Spec.NodeSelector = nil, nil, nil
	live := apiServer(w.hooks(), web(), pool(nil), claim("a", 300*time.Hour, nil), node("a", nil), p)
	r := newRotator(live, live, s)
	if passes, err := spend(t, r, time.Minute); err != nil || passes > 3 {
		t.Errorf("%d passes in a minute, all of them in vain (%v)", passes, err)
	}
	spend(t, r, 15*time.Minute)
	if last := s.events[len(s.events)-1]; !strings.Contains(last, "RotationFailed") || !strings.Contains(last, "already exists") {
		t.Errorf("the last Event is %q, want a failure that says what is in the way", last)
	}
	if err := live.Get(t.Context(), client.ObjectKeyFromObject(p), &corev1.Pod{}); err != nil {
		t.Errorf("somebody's pod: %v", err)
	}
}

// denies is a webhook that lets nothing of this verb happen to an object.
func denies(verb, name string) func(string, client.Object) error {
	return func(v string, o client.Object) error {
		if v == verb && o.GetName() == name {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "objects"}, name, errors.New("denied the request: locked"))
		}
		return nil
	}
}

// A webhook does not let go of a node with a stray mark. The other strays go, and then the
// rotation of a, which is over: its claim is gone, and node-b waits to be released.
func TestAStrayThatIsHeldDoesNotStopThePool(t *testing.T) {
	w := &writes{fail: denies("patch", "node-y")}
	stray := func(of string) client.Object {
		n := node(of, map[string]string{rotation.AnnotationCordoned: "true"})
		n.Spec.Unschedulable = true
		return n
	}
	live := apiServer(w.hooks(), web(), pool(anchored(map[string]string{rotation.AnnotationActiveState: "draining"})),
		claim("b", time.Hour, nil), node("b", surgeFor(nil)), claim("y", time.Hour, nil), stray("y"), claim("z", time.Hour, nil), stray("z"))
	r := newRotator(live, live, &spoken{})
	for range 3 {
		pass(t, r)
	}
	if diff := cmp.Diff([]string{"patch node-z", "patch node-b", "patch web"}, w.made); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
	w.fail = nil
	pass(t, r)
	if last := w.made[len(w.made)-1]; last != "patch node-y" {
		t.Errorf("let go of, the mark is still there; the last write is %q", last)
	}
}

// Between the deletion of the placeholder and that of its node a pod moves in. The node stays,
// and the failure says why.
func TestANodeThatAPodHasMovedOntoIsNotReaped(t *testing.T) {
	w, s := &writes{}, &spoken{}
	hooks := w.hooks()
	remove := hooks.Delete
	hooks.Delete = func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
		if err := remove(ctx, c, o, opts...); err != nil || o.GetName() != "noderotation-surge-a" {
			return err
		}
		return c.Create(ctx, pod("api", "node-b", "1"))
	}
	objects := readyWorld()
	objects[1] = pool(anchored(map[string]string{rotation.AnnotationFreeze: now.Add(time.Hour).Format(time.RFC3339)}))
	objects[2] = claim("a", 300*time.Hour, pending(20*time.Minute, map[string]string{rotation.AnnotationSurgeClaim: "b"}))
	objects[4] = claim("b", 19*time.Minute, nil)
	live := apiServer(hooks, objects...)
	r := newRotator(live, live, s)
	for range 3 {
		pass(t, r)
	}
	if strings.Contains(strings.Join(w.made, ","), "delete b") {
		t.Errorf("NodeClaim b is reaped, and its node runs default/api: %q", w.made)
	}
	if last := s.events[len(s.events)-1]; !strings.Contains(last, "RotationFailed") || !strings.Contains(last, "surge node node-b already runs default/api: it stays") {
		t.Errorf("the last Event is %q", last)
	}
}

// A webhook locks the NodeClaim. The gauge is raised when the drain should have ended, and the
// log has what is in the way.
func TestADrainThatIsNotLetBeginIsToldOnce(t *testing.T) {
	w, log := &writes{fail: denies("delete", "a")}, &written{}
	live := apiServer(w.hooks(), readyWorld()...)
	r := newRotator(live, live, &spoken{})
	at := now
	r.Now = func() time.Time { return at }
	for at.Before(now.Add(2 * time.Hour)) { // the grace period is an hour
		if _, err := r.Reconcile(log.in(t.Context()), reconcile.Request{NamespacedName: types.NamespacedName{Name: "web"}}); err == nil {
			t.Fatal("no error, although the deletion was refused")
		}
		stuck := testutil.ToFloat64(r.announce.metrics.gauges["drain_stuck"].WithLabelValues("web"))
		if want := at.Sub(now) >= time.Hour+2*time.Minute; (stuck == 1) != want {
			t.Fatalf("%s after the transition drain_stuck is %v", at.Sub(now), stuck)
		}
		at = at.Add(shortBackstop)
	}
	var told []string
	for _, l := range log.lines {
		if strings.Contains(l, "drain is stuck") {
			told = append(told, l)
		}
	}
	if len(told) != 1 || !strings.Contains(told[0], "denied the request: locked") {
		t.Errorf("the log has %q", told)
	}
}
