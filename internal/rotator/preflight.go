package rotator

import (
	"cmp"
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
	"sigs.k8s.io/controller-runtime/pkg/log"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/tasuki-io/tasuki/api/v1alpha1"
	"github.com/tasuki-io/tasuki/internal/rotation"
)

const preflightTimeout = 30 * time.Second

// preflight refuses to start on a cluster that the controller cannot work on: one that
// does not serve the kinds it needs, does not let it read them (§5.1), or would not admit a
// placeholder, which a dry run finds out. The last does not keep it from a rotation that is
// under way. An API server that does not answer is asked again
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
		err := ask(ctx, func(ctx context.Context) error { return r.Live.List(ctx, need.list, client.Limit(1), need.in) })
		switch {
		case err == nil:
		case meta.IsNoMatchError(err), apierrors.IsNotFound(err):
			return fmt.Errorf("preflight: the cluster does not serve %s: %s", need.what, need.remedy)
		case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
			return fmt.Errorf("preflight: not allowed to list %s: grant the controller's ServiceAccount the rights of this release: %w", need.what, err)
		default:
			return fmt.Errorf("preflight: no answer for %s within %s: %w", need.what, preflightTimeout, err)
		}
	}
	err := r.probe(ctx)
	if err == nil {
		return nil
	}
	if anchored := r.anchored(ctx); anchored != "" {
		log.FromContext(ctx).Error(err, "preflight: starting all the same, as a rotation is under way", "nodepool", anchored)
		return nil
	}
	return err
}

// probe asks for a placeholder without creating one.
func (r *Rotator) probe(ctx context.Context) error {
	probe := r.placeholderPod(&rotation.PlaceholderSpec{Name: rotation.PlaceholderName("preflight"), NodePool: "preflight"})
	err := ask(ctx, func(ctx context.Context) error { return r.Client.Create(ctx, probe.DeepCopy(), client.DryRunAll) })
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("preflight: the cluster would not admit a placeholder pod in namespace %s: check that the namespace and the PriorityClass %s exist, and that nothing there forbids the pod: %w",
			r.Namespace, r.PlaceholderPriorityClass, err)
	}
	return nil
}

// anchored names a pool with a rotation under way, which a controller that does not start would
// leave with a node that is cordoned. Its placeholder may be the very one that uses the quota up.
func (r *Rotator) anchored(ctx context.Context) string {
	var pools karpv1.NodePoolList
	if err := ask(ctx, func(ctx context.Context) error { return r.Live.List(ctx, &pools) }); err != nil {
		return ""
	}
	for i := range pools.Items {
		if pools.Items[i].Annotations[rotation.AnnotationActive] != "" {
			return pools.Items[i].Name
		}
	}
	return ""
}

// refusals is how often in a row a denied right has to be denied: an API server that has
// just started denies them all until it has read who has which.
const refusals = 5

// ask asks once a second until it has an answer that asking again does not change, and
// returns the last error when ctx ends before.
func ask(ctx context.Context, question func(context.Context) error) error {
	var last error
	refused := 0
	err := wait.PollUntilContextCancel(ctx, time.Second, true, func(ctx context.Context) (bool, error) {
		last = question(ctx)
		if apierrors.IsForbidden(last) || apierrors.IsUnauthorized(last) {
			refused++
			return refused == refusals, nil
		}
		refused = 0
		return last == nil || final(last), nil
	})
	return cmp.Or(last, err)
}

// final reports an error that asking again does not mend.
func final(err error) bool {
	return meta.IsNoMatchError(err) || apierrors.IsNotFound(err) || apierrors.IsAlreadyExists(err) || apierrors.IsInvalid(err)
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
