package rotator

import (
	"context"
	"fmt"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/tasuki-io/tasuki/api/v1alpha1"
	"github.com/tasuki-io/tasuki/internal/rotation"
)

const preflightTimeout = 30 * time.Second

// preflight refuses to start on a cluster that the controller cannot work on: one that
// does not serve the kinds it needs, does not let it read them (§5.1), or would not admit a
// placeholder, which a dry run finds out. An API server that does not answer is asked again
// until the timeout.
func (r *Rotator) preflight(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, preflightTimeout)
	defer cancel()
	for _, need := range []struct {
		what, remedy string
		list         client.ObjectList
		in           client.InNamespace
	}{
		{"nodepools.karpenter.sh/v1", "install Karpenter 1.0 or later", &karpv1.NodePoolList{}, ""},
		{"nodeclaims.karpenter.sh/v1", "install Karpenter 1.0 or later", &karpv1.NodeClaimList{}, ""},
		{"rotationpolicies.noderotation.io/v1alpha1", "apply the CustomResourceDefinition of this release", &v1alpha1.RotationPolicyList{}, ""},
		{"nodes/v1", "", &corev1.NodeList{}, ""},
		{"pods/v1", "", &corev1.PodList{}, ""},
		{"pods/v1 in namespace " + r.Namespace, "", &corev1.PodList{}, client.InNamespace(r.Namespace)},
	} {
		var last error
		err := wait.PollUntilContextCancel(ctx, time.Second, true, func(ctx context.Context) (bool, error) {
			last = r.Live.List(ctx, need.list, client.Limit(1), need.in)
			return last == nil || final(last), nil
		})
		switch {
		case last == nil && err == nil:
		case meta.IsNoMatchError(last), apierrors.IsNotFound(last):
			return fmt.Errorf("preflight: the cluster does not serve %s: %s", need.what, need.remedy)
		case apierrors.IsForbidden(last), apierrors.IsUnauthorized(last):
			return fmt.Errorf("preflight: not allowed to list %s: grant the controller's ServiceAccount the rights of this release: %w", need.what, last)
		case last == nil:
			return fmt.Errorf("preflight: interrupted while listing %s: %w", need.what, err)
		default:
			return fmt.Errorf("preflight: no answer for %s within %s: %w", need.what, preflightTimeout, last)
		}
	}
	probe := r.placeholderPod(&rotation.PlaceholderSpec{Name: rotation.PlaceholderName("preflight"), NodePool: "preflight"})
	if err := r.Client.Create(ctx, probe, client.DryRunAll); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("preflight: the cluster would not admit a placeholder pod in namespace %s: check that the namespace and the PriorityClass %s exist, and that nothing there forbids the pod: %w",
			r.Namespace, r.PlaceholderPriorityClass, err)
	}
	return nil
}

// final reports an error that asking again does not mend.
func final(err error) bool {
	return meta.IsNoMatchError(err) || apierrors.IsNotFound(err) || apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err)
}

// synced is ready once every watch has delivered its first list.
func synced(c cache.Cache) healthz.Checker {
	return func(req *http.Request) error {
		ctx, cancel := context.WithTimeout(req.Context(), time.Second)
		defer cancel()
		if !c.WaitForCacheSync(ctx) {
			return fmt.Errorf("the watch caches are not filled yet")
		}
		return nil
	}
}
