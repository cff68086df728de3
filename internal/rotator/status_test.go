package rotator

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/tasuki-io/tasuki/api/v1alpha1"
)

func TestStatusOfAPolicy(t *testing.T) {
	named := func(name string, labels, annotations map[string]string) karpv1.NodePool {
		p := pool(annotations)
		p.Name, p.Labels = name, labels
		return *p
	}
	webLabels := map[string]string{"workload": "web", "team": "a"}
	pools := []karpv1.NodePool{named("web-2", webLabels, anchored(nil)), named("web-1", webLabels, nil), named("api", map[string]string{"workload": "api"}, anchored(nil))}
	short := named("web-short", webLabels, nil)
	short.Spec.Template.Spec.ExpireAfter = karpv1.MustParseNillableDuration("25h")
	broken, negative := web(), web()
	broken.Spec.MaintenanceWindows[0].Timezone = "Mars/Olympus"
	negative.Spec.MinRotationChances = 0
	catchAll := policy("catch-all", nil)
	for _, tt := range []struct {
		name              string
		policy            *v1alpha1.RotationPolicy
		others            []*v1alpha1.RotationPolicy
		pools             []karpv1.NodePool
		matched, rotating int32
		reason, message   string
	}{
		{"it governs two, of which one rotates", web(), nil, pools, 2, 1, "Accepted", "the policy is valid, and no other one ties with it"},
		{"no pool at all", web(), nil, nil, 0, 0, "Accepted", "the policy is valid, and no other one ties with it"},
		{"a more specific one takes its pools", web(), []*v1alpha1.RotationPolicy{policy("both", webLabels)}, pools, 0, 0, "Accepted", "the policy is valid, and no other one ties with it"},
		{"a catch-all keeps the rest", catchAll, []*v1alpha1.RotationPolicy{web()}, pools, 1, 1, "Accepted", "the policy is valid, and no other one ties with it"},
		{"R21: a tie", web(), []*v1alpha1.RotationPolicy{policy("team", map[string]string{"team": "a"})}, pools, 0, 0, "Conflict",
			"NodePool web-1 is selected with equal specificity by team, web; NodePool web-2 is selected with equal specificity by team, web: narrow one of the selectors"},
		{"unusable, and it ties", broken, []*v1alpha1.RotationPolicy{policy("team", map[string]string{"team": "a"})}, pools, 0, 0, "Invalid",
			PolicyFrom(broken, now).Invalid},
		{"unusable on any pool", negative, nil, nil, 0, 0, "Invalid", "KBelowOne: minRotationChances is 0; set minRotationChances to 1 or more"},
		{"unusable on one pool", web(), nil, append(pools, short), 3, 1, "Invalid",
			"NodePool web-short: OverrideGBelowOne: ageThreshold 24h0m0s leaves floor((expireAfter 25h0m0s - t_rot 1h17m0s - 24h0m0s) / window period 1m0s) = -17 whole window periods before the deadline; lower ageThreshold or set it to auto"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			all := []v1alpha1.RotationPolicy{*tt.policy}
			for _, o := range tt.others {
				all = append(all, *o)
			}
			status := metav1.ConditionFalse
			if tt.reason == v1alpha1.ReasonAccepted {
				status = metav1.ConditionTrue
			}
			want := v1alpha1.RotationPolicyStatus{
				ObservedGeneration: 1, MatchedNodePools: tt.matched, RotatingNodePools: tt.rotating,
				Conditions: []metav1.Condition{{Type: "Ready", Status: status, Reason: tt.reason, Message: tt.message, ObservedGeneration: 1, LastTransitionTime: metav1.NewTime(now)}},
			}
			got := statusOf(tt.policy, PolicyFrom(tt.policy, now), all, tt.pools, nil, now)
			governs := *got.DeepCopy()
			governs.Conditions = governs.Conditions[:1] // the others are about findings
			if diff := cmp.Diff(want, governs, cmpopts.IgnoreFields(metav1.Condition{}, "LastTransitionTime")); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			// Later, with the same to say, nothing in it moves.
			shown := tt.policy.DeepCopy()
			shown.Status = got
			if diff := cmp.Diff(got, statusOf(shown, PolicyFrom(shown, now), all, tt.pools, nil, now.Add(time.Hour))); diff != "" {
				t.Errorf("an hour later (-then +now):\n%s", diff)
			}
		})
	}
}

func TestTheStatusIsWrittenWhenItChanges(t *testing.T) {
	updates, fail := 0, error(nil)
	hooks := interceptor.Funcs{SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, o client.Object, opts ...client.SubResourceUpdateOption) error {
		updates++
		if fail != nil {
			return fail
		}
		return c.SubResource(sub).Update(ctx, o, opts...)
	}}
	live := apiServer(hooks, web(), pool(nil))
	r := &statusReconciler{Client: live, Now: func() time.Time { return now }, policies: &policies{}}
	reconcileStatus := func(name string) reconcile.Result {
		t.Helper()
		res, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: name}})
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	reconcileStatus("web")
	reconcileStatus("web")
	reconcileStatus("gone")
	if updates != 1 {
		t.Errorf("%d writes, want 1", updates)
	}
	var p v1alpha1.RotationPolicy
	if err := live.Get(t.Context(), client.ObjectKey{Name: "web"}, &p); err != nil || p.Status.MatchedNodePools != 1 || len(p.Status.Conditions) != 5 {
		t.Errorf("%v: %+v", err, p.Status)
	}
	rotating := pool(nil)
	if err := live.Get(t.Context(), client.ObjectKey{Name: "web"}, rotating); err != nil {
		t.Fatal(err)
	}
	rotating.Annotations = anchored(nil)
	if err := live.Update(t.Context(), rotating); err != nil {
		t.Fatal(err)
	}
	fail = apierrors.NewConflict(schema.GroupResource{Resource: "rotationpolicies"}, "web", errors.New("moved on"))
	if res := reconcileStatus("web"); res.RequeueAfter != again {
		t.Errorf("requeue after %s on a conflict, want %s", res.RequeueAfter, again)
	}
	fail = nil
	reconcileStatus("web")
	if err := live.Get(t.Context(), client.ObjectKey{Name: "web"}, &p); err != nil || p.Status.RotatingNodePools != 1 {
		t.Errorf("%v: %+v", err, p.Status)
	}
	if got := r.everyPolicy(t.Context(), nil); len(got) != 1 || got[0].Name != "web" {
		t.Errorf("a pool wakes %v", got)
	}
}

// Each class of findings is a condition of its own, with the code of the first finding.
func TestConditionsOfAPolicy(t *testing.T) {
	sound := func() *v1alpha1.RotationPolicy {
		p := web()
		p.Spec.MaintenanceWindows[0].Days, p.Spec.MaintenanceWindows[0].End = []v1alpha1.Weekday{"Wed", "Sat"}, "02:00"
		p.Spec.AgeThreshold = "auto"
		return p
	}
	many := func(n int) (all []karpv1.NodeClaim) {
		for i := range n {
			all = append(all, *claim(fmt.Sprint("c", i), time.Hour, nil))
		}
		return all
	}
	short := claim("short", time.Hour, nil)
	short.Spec.ExpireAfter = karpv1.MustParseNillableDuration("48h")
	for _, tt := range []struct {
		name   string
		change func(*v1alpha1.RotationPolicy, *karpv1.NodePool)
		claims []karpv1.NodeClaim
		want   string // Feasible, Sound, ThroughputSufficient, LeadSufficient
		says   string // in the message of one of them
	}{
		{"all is well", func(*v1alpha1.RotationPolicy, *karpv1.NodePool) {}, many(2), "True NoFindings, True NoFindings, True NoFindings, True NoFindings", "the windows hold"},
		{"it cannot keep its promise", func(_ *v1alpha1.RotationPolicy, p *karpv1.NodePool) {
			p.Spec.Template.Spec.ExpireAfter = karpv1.MustParseNillableDuration("48h")
		}, nil, "False ANonPositive, True NoFindings, True NoFindings, True NoFindings", "NodePool web: ANonPositive: ageThreshold = expireAfter 48h0m0s - "},
		{"a fixed number of nodes", func(_ *v1alpha1.RotationPolicy, p *karpv1.NodePool) { p.Spec.Replicas = new(int64(2)) }, nil,
			"False StaticNodePool, True NoFindings, True NoFindings, True NoFindings", "spec.replicas is set"},
		{"nothing bounds a drain", func(_ *v1alpha1.RotationPolicy, p *karpv1.NodePool) {
			p.Spec.Template.Spec.TerminationGracePeriod = nil
		}, nil,
			"True NoFindings, False TGPUnset, True NoFindings, True NoFindings", "set terminationGracePeriod"},
		{"more nodes than windows", func(*v1alpha1.RotationPolicy, *karpv1.NodePool) {}, many(40),
			"True NoFindings, True NoFindings, False ThroughputBelowArrival, True NoFindings", "ThroughputBurstShortfall"},
		{"a life too short", func(*v1alpha1.RotationPolicy, *karpv1.NodePool) {}, []karpv1.NodeClaim{*short},
			"True NoFindings, True NoFindings, True NoFindings, False ShortLead", "NodeClaim short: expireAfter 48h0m0s"},
		{"unreadable", func(p *v1alpha1.RotationPolicy, _ *karpv1.NodePool) {
			p.Spec.MaintenanceWindows[0].Timezone = "Mars/Olympus"
		}, nil,
			"Unknown Invalid, Unknown Invalid, Unknown Invalid, Unknown Invalid", "Mars/Olympus"},
		{"of no use on any pool", func(p *v1alpha1.RotationPolicy, pool *karpv1.NodePool) {
			p.Spec.MinRotationChances, pool.Labels = 0, nil
		}, nil, "False KBelowOne, True NoFindings, True NoFindings, True NoFindings", "minRotationChances is 0"},
		{"nor on this one, and that is said once", func(p *v1alpha1.RotationPolicy, _ *karpv1.NodePool) { p.Spec.MinRotationChances = 0 }, nil,
			"False KBelowOne, True NoFindings, True NoFindings, True NoFindings", "KBelowOne: minRotationChances is 0"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, np := sound(), pool(nil)
			tt.change(p, np)
			var got, said []string
			for _, c := range statusOf(p, PolicyFrom(p, now), []v1alpha1.RotationPolicy{*p}, []karpv1.NodePool{*np}, tt.claims, now).Conditions {
				if c.Type != v1alpha1.ConditionReady {
					got, said = append(got, string(c.Status)+" "+c.Reason), append(said, c.Message)
				}
			}
			if text := strings.Join(said, "\n") + "\n"; strings.Join(got, ", ") != tt.want || !strings.Contains(text, tt.says) || strings.Count(text, "KBelowOne") > 1 {
				t.Errorf("%s\nwant %s\n%s", strings.Join(got, ", "), tt.want, text)
			}
		})
	}
}
