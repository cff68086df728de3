package rotator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/tasuki-io/tasuki/internal/rotation"
)

// Inquiry asks of a cluster what the controller makes of it now, by the controller's own
// observation and core. It writes nothing.
type Inquiry struct {
	From client.Reader // the API server, or a cache of it
	Live client.Reader // the API server: pods are read there

	Namespace string // of the placeholders
	Now       func() time.Time

	policies policies
}

// ErrNotThere is what the error of an object that does not exist is, as errors.Is has it.
var ErrNotThere = errors.New("not found")

type notThere struct{ kind, name string }

func (e notThere) Error() string      { return fmt.Sprintf("there is no %s %s", e.kind, e.name) }
func (notThere) Is(target error) bool { return target == ErrNotThere }

// PoolOf is the NodePool of a NodeClaim.
func (q *Inquiry) PoolOf(ctx context.Context, claim string) (string, error) {
	var c karpv1.NodeClaim
	err := q.From.Get(ctx, client.ObjectKey{Name: claim}, &c)
	switch {
	case apierrors.IsNotFound(err):
		return "", notThere{"NodeClaim", claim}
	case err != nil:
		return "", fmt.Errorf("read NodeClaim %s: %w", claim, err)
	}
	if pool := c.Labels[karpv1.NodePoolLabelKey]; pool != "" {
		return pool, nil
	}
	return "", fmt.Errorf("NodeClaim %s is of no NodePool, as it has no label %s: nothing rotates it", claim, karpv1.NodePoolLabelKey)
}

// Observe is the snapshot of a pool that a pass of the controller would decide on now.
func (q *Inquiry) Observe(ctx context.Context, pool string) (*rotation.Snapshot, error) {
	r := &Rotator{Namespace: q.Namespace, policies: &q.policies}
	s, err := r.observe(ctx, q.From, pool, q.Now())
	if err != nil {
		return nil, err
	}
	if s == nil {
		return nil, notThere{"NodePool", pool}
	}
	return s, r.observePods(ctx, q.Live, s, q.Now())
}

// Explain answers why a pool or, if claim is not empty, a NodeClaim of it is not rotating, and
// when it will.
func (q *Inquiry) Explain(ctx context.Context, pool, claim string) (rotation.Explanation, error) {
	s, err := q.Observe(ctx, pool)
	if err != nil {
		return rotation.Explanation{}, err
	}
	var nodes []string
	for _, c := range s.NodeClaims {
		// Under a limit the forecast depends on what every node carries.
		if c.NodeName != "" && (c.Name == claim || len(s.NodePool.Limits) > 0) {
			nodes = append(nodes, c.NodeName)
		}
	}
	if err := podsOn(ctx, q.Live, s, nodes); err != nil {
		return rotation.Explanation{}, err
	}
	e, err := q.evidence(ctx, s)
	if err != nil {
		return rotation.Explanation{}, err
	}
	return rotation.Explain(*s, claim, e, q.Now()), nil
}

// Overviews are all pools, or those that are named, in the order of their names.
func (q *Inquiry) Overviews(ctx context.Context, named []string) ([]rotation.Overview, error) {
	pools := slices.Clone(named)
	if len(pools) == 0 {
		var all karpv1.NodePoolList
		if err := q.From.List(ctx, &all); err != nil {
			return nil, fmt.Errorf("list NodePools: %w", err)
		}
		for i := range all.Items {
			pools = append(pools, all.Items[i].Name)
		}
	}
	slices.Sort(pools)
	out := []rotation.Overview{}
	for _, pool := range slices.Compact(pools) {
		s, err := q.Observe(ctx, pool)
		if errors.Is(err, ErrNotThere) && len(named) == 0 {
			continue // since the list
		}
		if err != nil {
			return nil, err
		}
		e, err := q.evidence(ctx, s)
		if err != nil {
			return nil, err
		}
		out = append(out, rotation.Summarize(*s, e, q.Now()))
	}
	return out, nil
}

// Reach is why the API server does not answer, nil if it does.
func (q *Inquiry) Reach(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	if err := q.Live.List(ctx, &karpv1.NodePoolList{}, client.Limit(1)); err != nil {
		return fmt.Errorf("the API server does not answer: %w", err)
	}
	return nil
}

// evidence is what a rotation under way may hang on.
func (q *Inquiry) evidence(ctx context.Context, s *rotation.Snapshot) (rotation.Evidence, error) {
	e := rotation.Evidence{Conditions: map[string][]rotation.Condition{}}
	active := s.NodePool.Annotations[rotation.AnnotationActive]
	if active == "" {
		return e, nil
	}
	var claims karpv1.NodeClaimList
	if err := q.From.List(ctx, &claims, client.MatchingLabels{karpv1.NodePoolLabelKey: s.NodePool.Name}); err != nil {
		return e, fmt.Errorf("list NodeClaims of NodePool %s: %w", s.NodePool.Name, err)
	}
	var left []*corev1.Pod // on the node that drains
	for i := range claims.Items {
		c := &claims.Items[i]
		for _, cond := range c.Status.Conditions {
			if cond.Status != metav1.ConditionTrue {
				e.Conditions[c.Name] = append(e.Conditions[c.Name], rotation.Condition{Type: cond.Type, Status: string(cond.Status), Reason: cond.Reason, Message: cond.Message})
			}
		}
		if c.Name == active && c.DeletionTimestamp != nil {
			left = s.Pods[c.Status.NodeName]
		}
	}
	var err error
	e.Budgets, e.Unread, err = q.budgets(ctx, left)
	return e, err
}

// budgets are those of the namespaces of these pods, and the namespaces of which they may not be
// read.
func (q *Inquiry) budgets(ctx context.Context, pods []*corev1.Pod) (budgets []rotation.Budget, unread []string, err error) {
	byNamespace := byPool(pods, func(p **corev1.Pod) string { return (*p).Namespace })
	for namespace, pods := range byNamespace {
		var l policyv1.PodDisruptionBudgetList
		err := q.Live.List(ctx, &l, client.InNamespace(namespace))
		if apierrors.IsForbidden(err) {
			unread = append(unread, namespace)
			continue
		}
		if err != nil {
			return nil, nil, fmt.Errorf("list PodDisruptionBudgets in namespace %s: %w", namespace, err)
		}
		for i := range l.Items {
			if b := budgetFrom(&l.Items[i], pods); len(b.Pods) > 0 {
				budgets = append(budgets, b)
			}
		}
	}
	slices.Sort(unread)
	return budgets, unread, nil
}

// budgetFrom is a budget, and those of the pods that it selects.
func budgetFrom(b *policyv1.PodDisruptionBudget, pods []*corev1.Pod) rotation.Budget {
	out := rotation.Budget{
		Namespace: b.Namespace, Name: b.Name,
		Allowed: int(b.Status.DisruptionsAllowed), Healthy: int(b.Status.CurrentHealthy), Desired: int(b.Status.DesiredHealthy),
		Unhealthy: b.Spec.UnhealthyPodEvictionPolicy != nil && *b.Spec.UnhealthyPodEvictionPolicy == policyv1.AlwaysAllow,
		Stale:     b.Status.ObservedGeneration < b.Generation,
	}
	selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
	if err != nil { // the API server takes none such
		return out
	}
	for _, pod := range pods {
		if selector.Matches(labels.Set(pod.Labels)) {
			out.Pods = append(out.Pods, pod.Name)
		}
	}
	return out
}
