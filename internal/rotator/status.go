package rotator

import (
	"context"
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/tasuki-io/tasuki/api/v1alpha1"
	"github.com/tasuki-io/tasuki/internal/rotation"
)

// statusReconciler shows on every RotationPolicy what it governs (§5.4). Nothing is decided
// by what it writes, so it reads the caches alone.
type statusReconciler struct {
	Client   client.Client
	Now      func() time.Time
	policies *policies
}

// Reconcile writes the status of one policy if it has changed.
func (r *statusReconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	var all v1alpha1.RotationPolicyList
	var pools karpv1.NodePoolList
	if err := r.Client.List(ctx, &all); err != nil {
		return reconcile.Result{}, fmt.Errorf("list RotationPolicies: %w", err)
	}
	if err := r.Client.List(ctx, &pools); err != nil {
		return reconcile.Result{}, fmt.Errorf("list NodePools: %w", err)
	}
	var claims karpv1.NodeClaimList
	if err := r.Client.List(ctx, &claims); err != nil {
		return reconcile.Result{}, fmt.Errorf("list NodeClaims: %w", err)
	}
	i := slices.IndexFunc(all.Items, func(p v1alpha1.RotationPolicy) bool { return p.Name == req.Name })
	if i < 0 {
		return reconcile.Result{}, nil
	}
	now := r.Now()
	policy := all.Items[i].DeepCopy()
	status := statusOf(policy, r.policies.read(policy, now), all.Items, pools.Items, claims.Items, now)
	if equality.Semantic.DeepEqual(status, policy.Status) {
		return reconcile.Result{}, nil
	}
	policy.Status = status
	err := r.Client.Status().Update(ctx, policy)
	if apierrors.IsConflict(err) { // somebody was faster; the cache will show it
		return reconcile.Result{RequeueAfter: again}, nil
	}
	return reconcile.Result{}, client.IgnoreNotFound(err)
}

// statusOf is the status of a policy among all others, on these pools with their claims. A policy
// that cannot be used, at all or on a pool that it governs, is Invalid before it is in Conflict.
func statusOf(p *v1alpha1.RotationPolicy, read *rotation.Policy, all []v1alpha1.RotationPolicy, pools []karpv1.NodePool, claims []karpv1.NodeClaim, now time.Time) v1alpha1.RotationPolicyStatus {
	out := v1alpha1.RotationPolicyStatus{ObservedGeneration: p.Generation, Conditions: slices.Clone(p.Status.Conditions)}
	invalid := unusable(read)
	var ties []string
	found := newVerdicts(read)
	ofPool := byPool(claims, func(c *karpv1.NodeClaim) string { return c.Labels[karpv1.NodePoolLabelKey] })
	pools = slices.Clone(pools)
	sort.Slice(pools, func(i, j int) bool { return pools[i].Name < pools[j].Name })
	for i := range pools {
		pool := &pools[i]
		top := mostSpecific(pool.Labels, all)
		switch {
		case !slices.ContainsFunc(top, func(o *v1alpha1.RotationPolicy) bool { return o.Name == p.Name }):
			continue
		case len(top) > 1:
			ties = append(ties, fmt.Sprintf("NodePool %s is selected with equal specificity by %s", pool.Name, strings.Join(policyNames(top), ", ")))
			continue
		}
		out.MatchedNodePools++
		if pool.Annotations[rotation.AnnotationActive] != "" {
			out.RotatingNodePools++
		}
		found.add(pool, ofPool[pool.Name], now)
		if why := infeasible(read, nodePoolFrom(pool)); why != "" && invalid == "" {
			invalid = fmt.Sprintf("NodePool %s: %s", pool.Name, why)
		}
	}
	ready := metav1.Condition{
		Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonAccepted, ObservedGeneration: p.Generation,
		Message: "the policy is valid, and no other one ties with it", LastTransitionTime: metav1.NewTime(now),
	}
	switch {
	case invalid != "":
		ready.Status, ready.Reason, ready.Message = metav1.ConditionFalse, v1alpha1.ReasonInvalid, invalid
	case len(ties) > 0:
		ready.Status, ready.Reason = metav1.ConditionFalse, v1alpha1.ReasonConflict
		ready.Message = strings.Join(ties, "; ") + ": narrow one of the selectors"
	}
	meta.SetStatusCondition(&out.Conditions, ready)
	for _, c := range found.conditions() {
		c.ObservedGeneration, c.LastTransitionTime = p.Generation, metav1.NewTime(now)
		meta.SetStatusCondition(&out.Conditions, c)
	}
	return out
}

// unusable says why a policy can govern no pool at all.
func unusable(read *rotation.Policy) string {
	if read.Invalid != "" {
		return read.Invalid
	}
	return infeasible(read, rotation.NodePool{})
}

// infeasible is the first fatal finding of a policy on a pool.
func infeasible(read *rotation.Policy, pool rotation.NodePool) string {
	for _, f := range read.Findings(pool, nil) {
		if f.Severity == rotation.Fatal {
			return f.Code + ": " + f.Message + "; " + f.Remedy
		}
	}
	return ""
}

// watch wakes every policy when one of them changes, as another may now tie with it or no
// longer do, and when a pool changes in what the status is made of.
func (r *statusReconciler) watch(mgr ctrl.Manager) error {
	everyPolicy := handler.EnqueueRequestsFromMapFunc(r.everyPolicy)
	return ctrl.NewControllerManagedBy(mgr).
		Named("policy-status").
		For(&v1alpha1.RotationPolicy{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&v1alpha1.RotationPolicy{}, everyPolicy, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&karpv1.NodePool{}, everyPolicy, builder.WithPredicates(changed(func(p *karpv1.NodePool) any {
			v := nodePoolFrom(p)
			return []any{p.Labels, p.Annotations[rotation.AnnotationActive], v.ExpireAfter, v.GracePeriod, v.Static}
		}))).
		Watches(&karpv1.NodeClaim{}, everyPolicy, builder.WithPredicates(changed(func(c *karpv1.NodeClaim) any {
			v := nodeClaimFrom(c)
			return []any{c.Labels[karpv1.NodePoolLabelKey], v.ExpireAfter, v.GracePeriod, v.Deleting.IsZero()}
		}))).
		Complete(r)
}

func (r *statusReconciler) everyPolicy(ctx context.Context, _ client.Object) []reconcile.Request {
	var all v1alpha1.RotationPolicyList
	if err := r.Client.List(ctx, &all); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "list RotationPolicies for their status; they follow at the next change")
		return nil
	}
	var out []reconcile.Request
	for i := range all.Items {
		out = append(out, request(all.Items[i].Name)...)
	}
	return out
}
