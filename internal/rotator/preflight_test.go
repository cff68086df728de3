package rotator

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/tasuki-io/tasuki/api/v1alpha1"
)

func TestPreflightSaysWhatTheClusterLacks(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", nil)
	for name, tc := range map[string]struct {
		fails func(client.ObjectList) error
		want  string
	}{
		"nothing": {func(client.ObjectList) error { return nil }, ""},
		"no Karpenter": {func(l client.ObjectList) error {
			if _, ok := l.(*karpv1.NodePoolList); ok {
				return &meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: "karpenter.sh", Kind: "NodePool"}}
			}
			return nil
		}, "does not serve nodepools.karpenter.sh/v1: install Karpenter"},
		"no CRD of ours": {func(l client.ObjectList) error {
			if _, ok := l.(*v1alpha1.RotationPolicyList); ok {
				return apierrors.NewNotFound(schema.GroupResource{Resource: "rotationpolicies"}, "")
			}
			return nil
		}, "does not serve rotationpolicies.noderotation.io/v1alpha1: apply the CustomResourceDefinition"},
		"no rights": {func(l client.ObjectList) error {
			if _, ok := l.(*corev1.PodList); ok {
				return forbidden
			}
			return nil
		}, "not allowed to list pods/v1"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := apiServer(interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, l client.ObjectList, opts ...client.ListOption) error {
					if err := tc.fails(l); err != nil {
						return err
					}
					return c.List(ctx, l, opts...)
				}})
				err := newRotator(c, c, &spoken{}).preflight(t.Context())
				switch {
				case tc.want == "" && err != nil:
					t.Errorf("refused a cluster that has everything: %v", err)
				case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
					t.Errorf("got %v, want %q", err, tc.want)
				}
			})
		})
	}
}

func TestPreflightEndsWithItsContext(t *testing.T) {
	c := apiServer(interceptor.Funcs{List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
		return apierrors.NewServiceUnavailable("starting")
	}})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := newRotator(c, c, &spoken{}).preflight(ctx); err == nil {
		t.Error("no error although the API server never answered")
	}
}

// An API server that has just started denies what it has not yet read the rights for, and
// may answer reads a moment before writes.
func TestPreflightOutlastsTheStartOfAnAPIServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lists, creates := 0, 0
		c := apiServer(interceptor.Funcs{
			List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
				if lists++; lists < refusals {
					return apierrors.NewForbidden(schema.GroupResource{Resource: "nodepools"}, "", nil)
				}
				return nil
			},
			Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
				if creates++; creates == 1 {
					return apierrors.NewServiceUnavailable("starting")
				}
				return nil
			},
		})
		if err := newRotator(c, c, &spoken{}).preflight(t.Context()); err != nil {
			t.Errorf("gave up after %d lists and %d creations: %v", lists, creates, err)
		}
	})
}

func TestPreflightTriesAPlaceholderWithoutLeavingOne(t *testing.T) {
	dry := false
	c := apiServer(interceptor.Funcs{Create: func(_ context.Context, _ client.WithWatch, o client.Object, opts ...client.CreateOption) error {
		var all client.CreateOptions
		all.ApplyOptions(opts)
		dry = len(all.DryRun) == 1
		return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, o.GetName(), errors.New("no PriorityClass with name nope was found"))
	}})
	var err error
	synctest.Test(t, func(t *testing.T) { err = newRotator(c, c, &spoken{}).preflight(t.Context()) })
	if !dry {
		t.Error("the probe was no dry run")
	}
	if err == nil || !strings.Contains(err.Error(), "PriorityClass noderotation-placeholder") || !strings.Contains(err.Error(), "name nope was found") {
		t.Errorf("got %v, want the PriorityClass named and the API server quoted", err)
	}
}

// The placeholder of the rotation under way uses up the quota, and the controller is restarted.
func TestPreflightKeepsNobodyFromARotationUnderWay(t *testing.T) {
	full := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", errors.New("exceeded quota: placeholders"))
	for name, tc := range map[string]struct {
		pool   map[string]string
		starts bool
	}{
		"a rotation is under way": {anchored(nil), true},
		"none is":                 {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := apiServer(interceptor.Funcs{Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
					return full
				}}, pool(tc.pool))
				if err := newRotator(c, c, &spoken{}).preflight(t.Context()); (err == nil) != tc.starts {
					t.Errorf("preflight ends with %v", err)
				}
			})
		})
	}
}

func TestAnErrorThatAskingAgainDoesNotMendIsFinal(t *testing.T) {
	missing := apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, "")
	if !final(missing) || final(apierrors.NewServiceUnavailable("starting")) || final(errors.New("connection refused")) {
		t.Error("want a missing kind to be final, and an API server that is not up not to be")
	}
}
