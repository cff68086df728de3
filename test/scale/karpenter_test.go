package scale

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/tasuki-io/tasuki/internal/rotation"
	"github.com/tasuki-io/tasuki/lab"
	"github.com/tasuki-io/tasuki/lab/trial"
)

// karpenter plays the scheduler, the kubelets and Karpenter until a rotation has ended well in
// every pool: a placeholder runs at once on another node of its pool, and a NodeClaim that is
// deleted goes with its Node.
func karpenter(ctx context.Context, c client.Client, s size) error {
	rotated := 0
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, 10*time.Minute, true, func(ctx context.Context) (bool, error) {
		var pods corev1.PodList
		if err := c.List(ctx, &pods, client.InNamespace(trial.Namespace), client.MatchingLabels{rotation.LabelPlaceholder: "true"}); err != nil {
			return false, err
		}
		for i := range pods.Items {
			if pods.Items[i].Spec.NodeName != "" {
				continue
			}
			if err := run(ctx, c, &pods.Items[i], s); err != nil {
				return false, err
			}
		}
		var claims karpv1.NodeClaimList
		if err := c.List(ctx, &claims); err != nil {
			return false, err
		}
		for i := range claims.Items {
			if claims.Items[i].DeletionTimestamp == nil {
				continue
			}
			if err := terminate(ctx, c, &claims.Items[i]); err != nil {
				return false, err
			}
		}
		var pools karpv1.NodePoolList
		if err := c.List(ctx, &pools); err != nil {
			return false, err
		}
		rotated = len(slices.DeleteFunc(pools.Items, func(p karpv1.NodePool) bool {
			return p.Annotations[rotation.AnnotationLastRotation] == "" || p.Annotations[rotation.AnnotationActive] != ""
		}))
		return rotated == s.pools, nil
	})
	if err != nil {
		return fmt.Errorf("%d of %d pools have rotated: %w", rotated, s.pools, err)
	}
	return nil
}

// run has a placeholder run on the next node of its pool.
func run(ctx context.Context, c client.Client, pod *corev1.Pod, s size) error {
	_, number, _ := strings.Cut(pod.Annotations[rotation.AnnotationSurgeFor], "-claim-")
	on, err := strconv.Atoi(number)
	if err != nil {
		return fmt.Errorf("placeholder %s is for no NodeClaim of this cluster: %w", pod.Name, err)
	}
	if on += s.pools; on >= s.nodes {
		on -= 2 * s.pools
	}
	if err := c.SubResource("binding").Create(ctx, pod, &corev1.Binding{Target: corev1.ObjectReference{Kind: "Node", Name: nodeName(on)}}); err != nil {
		return err
	}
	if err := c.Get(ctx, client.ObjectKeyFromObject(pod), pod); err != nil {
		return err
	}
	pod.Status.Phase, pod.Status.StartTime = corev1.PodRunning, &metav1.Time{Time: time.Now()}
	return c.Status().Update(ctx, pod)
}

// terminate ends a NodeClaim whose node is drained.
func terminate(ctx context.Context, c client.Client, claim *karpv1.NodeClaim) error {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: claim.Status.NodeName}}
	if err := client.IgnoreNotFound(c.Delete(ctx, node)); err != nil {
		return err
	}
	claim.Finalizers = nil
	return client.IgnoreNotFound(c.Update(ctx, claim))
}

// reactions are the times from what happened to a pool to the controller's next write of its
// NodePool, by the clock of the API server: from the opening of its window to the anchor, from
// its placeholder being reported as running to the transition, and from its NodeClaim being gone
// to the release of the anchor. Each is the first or the second write that follows.
func reactions(all []lab.AuditEvent, opens time.Time) (opened, running, gone spread) {
	slices.SortFunc(all, func(a, b lab.AuditEvent) int { return a.Time.Compare(b.Time) })
	type cause struct {
		of *[]time.Duration
		at time.Time
	}
	var ofOpened, ofRunning, ofGone []time.Duration
	waits, begun := map[string]cause{}, map[string]bool{}
	for _, e := range all {
		pool, _, _ := strings.Cut(strings.TrimPrefix(e.Name, rotation.PlaceholderName("")), "-claim-")
		switch {
		case e.Code >= 300, e.Time.Before(opens):
		case e.User != trial.User && e.Resource == "pods" && e.Subresource == "status":
			waits[pool] = cause{&ofRunning, e.Time}
		case e.User != trial.User && e.Resource == "nodeclaims":
			waits[pool] = cause{&ofGone, e.Time}
		case e.User != trial.User, e.Resource != "nodepools":
		case !begun[pool]:
			begun[pool] = true
			ofOpened = append(ofOpened, e.Time.Sub(opens))
		case waits[pool].of != nil:
			w := waits[pool]
			delete(waits, pool)
			*w.of = append(*w.of, e.Time.Sub(w.at))
		}
	}
	return spreadOf(ofOpened), spreadOf(ofRunning), spreadOf(ofGone)
}
