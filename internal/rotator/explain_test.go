package rotator

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/tasuki-io/tasuki/api/v1alpha1"
	"github.com/tasuki-io/tasuki/internal/rotation"
)

func inquiry(c client.Client) *Inquiry {
	return &Inquiry{From: c, Live: c, Namespace: "node-rotation-system", Now: func() time.Time { return now }}
}

// readOnly fails the test if anything is written.
func readOnly(t *testing.T) interceptor.Funcs {
	refuse := func(what string) error { t.Errorf("an inquiry writes: %s", what); return nil }
	return interceptor.Funcs{
		Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
			return refuse("create")
		},
		Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
			return refuse("patch")
		},
		Delete: func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error {
			return refuse("delete")
		},
	}
}

// Under a limit the pods of every node are read, also outside of windows: the forecast depends on
// them. The node that goes first has no room, and so the other one is lost, too.
func TestAnInquiryKnowsThePodsUnderALimit(t *testing.T) {
	limited := pool(nil)
	limited.Spec.Limits = karpv1.Limits{corev1.ResourceCPU: resource.MustParse("10")}
	limited.Status.Resources = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("8")}
	saturdays := web()
	saturdays.Spec.MaintenanceWindows[0].Days = []v1alpha1.Weekday{"Sat"}
	server := apiServer(readOnly(t), saturdays, limited, claim("a", 48*time.Hour, nil), node("a", nil), claim("b", 25*time.Hour, nil), node("b", nil), pod("web-1", "node-a", "3"))
	x, err := inquiry(server).Explain(t.Context(), "web", "b")
	if err != nil || x.Reason != string(rotation.ReasonOutOfWindow) || x.Outlook == nil || x.Outlook.Lost == "" {
		t.Errorf("%v, %s: %s, outlook %+v", err, x.Reason, x.Detail, x.Outlook)
	}
	x, err = inquiry(server).Explain(t.Context(), "web", "")
	if err != nil || len(x.Also) != 1 || x.Also[0].Reason != string(rotation.ReasonInsufficientHeadroom) {
		t.Errorf("%v, of the pool: %+v", err, x)
	}
}

// The budget of a drain is found by its selector, in the namespaces of the pods that are left.
func TestAnInquiryFindsTheBudgetOfADrain(t *testing.T) {
	drains := claim("a", 48*time.Hour, map[string]string{rotation.AnnotationState: rotation.StateDraining})
	drains.DeletionTimestamp, drains.Finalizers = &metav1.Time{Time: now.Add(-time.Minute)}, []string{"karpenter.sh/termination"}
	held := pod("web-1", "node-a", "1")
	held.Labels = map[string]string{"app": "web"}
	budget := func(namespace, name, app string) *policyv1.PodDisruptionBudget {
		return &policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
			Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}},
		}
	}
	forbidden := false
	hooks := readOnly(t)
	hooks.List = func(ctx context.Context, c client.WithWatch, l client.ObjectList, opts ...client.ListOption) error {
		if _, budgets := l.(*policyv1.PodDisruptionBudgetList); budgets && forbidden {
			return apierrors.NewForbidden(schema.GroupResource{Group: "policy", Resource: "poddisruptionbudgets"}, "", errors.New("no such right"))
		}
		return c.List(ctx, l, opts...)
	}
	server := apiServer(hooks, web(), pool(anchored(map[string]string{rotation.AnnotationActiveState: rotation.StateDraining})), drains, node("a", nil), held,
		budget("default", "web", "web"), budget("default", "api", "api"), budget("other", "web", "web"))
	explain := func() string {
		t.Helper()
		x, err := inquiry(server).Explain(t.Context(), "web", "a")
		if err != nil || x.Rotation == nil {
			t.Fatalf("%v, %+v", err, x)
		}
		var names []string
		for _, h := range x.Rotation.Holds {
			names = append(names, h.Kind+" "+h.Name)
		}
		return strings.Join(names, ", ")
	}
	if got := explain(); got != "PodDisruptionBudget default/web" {
		t.Errorf("held by %s", got)
	}
	forbidden = true
	if got := explain(); got != "PodDisruptionBudget default/*" {
		t.Errorf("without the right to read budgets it is held by %s", got)
	}
	all, err := inquiry(server).Overviews(t.Context(), nil)
	if err != nil || len(all) != 1 || all[0].Rotation == nil || all[0].Reason != string(rotation.ReasonAwaitingDrain) {
		t.Errorf("%v, %+v", err, all)
	}
}

// What is not there has an error of its own.
func TestAnInquiryAboutNothing(t *testing.T) {
	stray := claim("stray", time.Hour, nil)
	stray.Labels = nil
	q := inquiry(apiServer(readOnly(t), stray))
	for what, ask := range map[string]func() error{
		"a pool":     func() error { _, err := q.Explain(t.Context(), "web", ""); return err },
		"a claim":    func() error { _, err := q.PoolOf(t.Context(), "a"); return err },
		"some pools": func() error { _, err := q.Overviews(t.Context(), []string{"web"}); return err },
		"its freeze": func() error { _, err := q.ReadPool(t.Context(), "web"); return err },
	} {
		if err := ask(); !errors.Is(err, ErrNotThere) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := q.PoolOf(t.Context(), "stray"); err == nil || !strings.Contains(err.Error(), "of no NodePool") {
		t.Errorf("a claim of no pool: %v", err)
	}
}

// A wish is written for the version that it was made for.
func TestAWishIsForOneVersion(t *testing.T) {
	server := apiServer(interceptor.Funcs{}, pool(nil))
	read, err := inquiry(server).ReadPool(t.Context(), "web")
	if err != nil {
		t.Fatal(err)
	}
	step, _, err := rotation.Freeze(read, now.Add(time.Hour), false, now)
	if err != nil {
		t.Fatal(err)
	}
	if err := Annotate(t.Context(), server, step); err != nil {
		t.Fatal(err)
	}
	var after karpv1.NodePool
	if err := server.Get(t.Context(), client.ObjectKey{Name: "web"}, &after); err != nil || after.Annotations[rotation.AnnotationFreeze] != "2026-03-04T03:10:00Z" {
		t.Errorf("%v, %v", err, after.Annotations)
	}
	if err := Annotate(t.Context(), server, step); err == nil || err.Error() != "NodePool web has changed meanwhile, and nothing is written: run this again" {
		t.Errorf("written twice: %v", err)
	}
}
