package scale

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/tasuki-io/tasuki/internal/rotation"
	"github.com/tasuki-io/tasuki/lab"
	"github.com/tasuki-io/tasuki/lab/trial"
)

// karpenter plays the scheduler, the kubelets and Karpenter until a rotation has ended well in
// every pool: a placeholder is bound to another node of its pool after one to four seconds and
// runs after as long, and a NodeClaim that is deleted goes with its Node after as long. It reads from a cache, as its models
// do: lists of the API server, one after the other, would keep those of the controller waiting.
func karpenter(ctx context.Context, config *rest.Config, c client.Client, s size) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	seen, err := cache.New(config, cache.Options{Scheme: c.Scheme(), ByObject: map[client.Object]cache.ByObject{
		&corev1.Pod{}: {Namespaces: map[string]cache.Config{trial.Namespace: {}}},
	}})
	if err != nil {
		return err
	}
	go func() { _ = seen.Start(ctx) }()
	if !seen.WaitForCacheSync(ctx) {
		return ctx.Err()
	}
	turn, dice := map[string]time.Time{}, rand.New(rand.NewPCG(1, 1))
	// due tells once of what is to befall an object that its time has come.
	due := func(what string, o client.Object) bool {
		what += string(o.GetUID())
		at, known := turn[what]
		if !known {
			turn[what] = time.Now().Add(time.Second + time.Duration(dice.Int64N(int64(3*time.Second))))
			return false
		}
		if at.IsZero() || time.Now().Before(at) {
			return false
		}
		turn[what] = time.Time{}
		return true
	}
	rotated := 0
	err = wait.PollUntilContextTimeout(ctx, 10*time.Millisecond, 10*time.Minute, true, func(ctx context.Context) (bool, error) {
		var pods corev1.PodList
		if err := seen.List(ctx, &pods, client.InNamespace(trial.Namespace), client.MatchingLabels{rotation.LabelPlaceholder: "true"}); err != nil {
			return false, err
		}
		for i := range pods.Items {
			p, act := &pods.Items[i], bind
			if p.Spec.NodeName != "" {
				act = run
			}
			if due(p.Spec.NodeName, p) {
				if err := act(ctx, c, p, s); err != nil {
					return false, err
				}
			}
		}
		var claims karpv1.NodeClaimList
		if err := seen.List(ctx, &claims); err != nil {
			return false, err
		}
		for i := range claims.Items {
			if claim := &claims.Items[i]; claim.DeletionTimestamp != nil && due("end", claim) {
				if err := terminate(ctx, c, claim); err != nil {
					return false, err
				}
			}
		}
		var pools karpv1.NodePoolList
		if err := seen.List(ctx, &pools); err != nil {
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

// bind has a placeholder bound to the next node of its pool.
func bind(ctx context.Context, c client.Client, pod *corev1.Pod, s size) error {
	_, number, _ := strings.Cut(pod.Annotations[rotation.AnnotationSurgeFor], "-claim-")
	on, err := strconv.Atoi(number)
	if err != nil {
		return fmt.Errorf("placeholder %s is for no NodeClaim of this cluster: %w", pod.Name, err)
	}
	if on += s.pools; on >= s.nodes {
		on -= 2 * s.pools
	}
	return c.SubResource("binding").Create(ctx, pod, &corev1.Binding{Target: corev1.ObjectReference{Kind: "Node", Name: nodeName(on)}})
}

// run has a placeholder that is bound run.
func run(ctx context.Context, c client.Client, pod *corev1.Pod, _ size) error {
	pod.Status.Phase, pod.Status.StartTime = corev1.PodRunning, &metav1.Time{Time: time.Now()}
	return c.Status().Update(ctx, pod)
}

// terminate ends a NodeClaim whose node is drained.
func terminate(ctx context.Context, c client.Client, claim *karpv1.NodeClaim) error {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: claim.Status.NodeName}}
	if err := client.IgnoreNotFound(c.Delete(ctx, node)); err != nil {
		return err
	}
	free := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
	return client.IgnoreNotFound(c.Patch(ctx, claim, free))
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
