package rotator

import (
	"context"
	"fmt"
	"os"
	"reflect"
	"time"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	karpapis "sigs.k8s.io/karpenter/pkg/apis"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/tasuki-io/tasuki/api/v1alpha1"
)

// Options are what the command line sets.
type Options struct {
	Namespace                string // of the placeholders and the leader election lease
	PlaceholderImage         string
	PlaceholderPriorityClass string
	MetricsAddress           string // "0" serves none
	ProbeAddress             string // "0" serves none
	LeaderElect              bool
}

// workers is how many pools are reconciled at once. They mostly wait for the API server.
const workers = 32

// Scheme knows the kinds that the controller reads and writes, and those that inquiries do.
func Scheme() *runtime.Scheme {
	s := runtime.NewScheme()
	karpenter := schema.GroupVersion{Group: karpapis.Group, Version: "v1"}
	metav1.AddToGroupVersion(s, karpenter)
	s.AddKnownTypes(karpenter, &karpv1.NodePool{}, &karpv1.NodePoolList{}, &karpv1.NodeClaim{}, &karpv1.NodeClaimList{})
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, eventsv1.AddToScheme, v1alpha1.AddToScheme, policyv1.AddToScheme, authenticationv1.AddToScheme,
	} {
		if err := add(s); err != nil {
			panic(err) // two kinds of one name: a mistake in the build
		}
	}
	return s
}

// Run runs the controller until ctx ends; it then finishes the steps in hand and gives
// the lease back.
func Run(ctx context.Context, config *rest.Config, o Options) error {
	scheme := Scheme()
	// The manager does not wait for an API server that is not up yet; preflight does.
	direct, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return fmt.Errorf("set up the client: %w", err)
	}
	r := &Rotator{
		Client: direct, Live: direct, Now: time.Now, policies: &policies{},
		Namespace: o.Namespace, PlaceholderImage: o.PlaceholderImage, PlaceholderPriorityClass: o.PlaceholderPriorityClass,
	}
	if err := r.preflight(ctx); err != nil {
		return err
	}
	lock, err := leaderLock(config, o.Namespace)
	if err != nil {
		return err
	}
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:                        scheme,
		Cache:                         cacheOptions(o.Namespace),
		Metrics:                       metricsserver.Options{BindAddress: o.MetricsAddress},
		HealthProbeBindAddress:        o.ProbeAddress,
		LeaderElection:                o.LeaderElect,
		LeaderElectionReleaseOnCancel: true,
		LeaseDuration:                 new(leaseDuration),

		LeaderElectionResourceLockInterface: lock,
	})
	if err != nil {
		return fmt.Errorf("set up the controller: %w", err)
	}
	host, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("name this instance in Events: %w", err)
	}
	if err := watchEarly(ctx, mgr.GetCache()); err != nil {
		return fmt.Errorf("set up the watch caches: %w", err)
	}
	if o.LeaderElect {
		r.leads = lock.holds
	}
	swept := make(chan struct{})
	r.swept, r.Client, r.Live = swept, indexed{mgr.GetClient()}, patient{mgr.GetAPIReader()}
	r.announce = newAnnouncer(eventWriter{mgr.GetClient(), host}, newMetrics(ctrlmetrics.Registry))
	if err := r.watch(mgr); err != nil {
		return fmt.Errorf("set up the watches: %w", err)
	}
	if err := (&statusReconciler{Client: mgr.GetClient(), Now: time.Now, policies: r.policies}).watch(mgr); err != nil {
		return fmt.Errorf("set up the policy status: %w", err)
	}
	if err := mgr.Add(&sweeper{Rotator: r, done: swept}); err != nil {
		return fmt.Errorf("set up the sweep: %w", err)
	}
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return err
	}
	if err := mgr.AddReadyzCheck("caches", synced(mgr.GetCache())); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// leaderLock is the lease of the leader, without the Events that the default lock would
// write in the legacy API group, to which the controller has no right.
func leaderLock(config *rest.Config, namespace string) (*lead, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("name this replica in the lease: %w", err)
	}
	lock, err := resourcelock.NewFromKubeconfig(resourcelock.LeasesResourceLock, namespace, controllerName,
		resourcelock.ResourceLockConfig{Identity: host + "_" + string(uuid.NewUUID())}, config, renewDeadline)
	if err != nil {
		return nil, fmt.Errorf("set up leader election: %w", err)
	}
	return &lead{Interface: lock, now: time.Now}, nil
}

// renewDeadline is how long a leader tries to renew before it gives up, as is usual.
const renewDeadline = 10 * time.Second

// watch wakes a pool when something that its snapshot holds has changed.
func (r *Rotator) watch(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("rotation").
		For(&karpv1.NodePool{}, builder.WithPredicates(poolChanged)).
		Watches(&karpv1.NodeClaim{}, handler.EnqueueRequestsFromMapFunc(poolOfLabel), builder.WithPredicates(claimChanged)).
		Watches(&corev1.Node{}, handler.EnqueueRequestsFromMapFunc(poolOfLabel), builder.WithPredicates(nodeChanged)).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(poolOfPlaceholder)).
		Watches(&v1alpha1.RotationPolicy{}, handler.EnqueueRequestsFromMapFunc(r.everyPool), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WithOptions(options(mgr.GetLogger())).
		Complete(r)
}

// options are those of the passes over pools.
func options(log logr.Logger) controller.Options {
	return controller.Options{
		MaxConcurrentReconciles: workers,
		// What fails is tried again within the short backstop, lest readyTimeout pass unseen.
		RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](again, shortBackstop),
		LogConstructor: func(req *reconcile.Request) logr.Logger {
			if req == nil {
				return log
			}
			return log.WithValues("nodepool", req.Name)
		},
	}
}

// What wakes a pool: a change of anything that its snapshot holds, but of no version alone.
var (
	poolChanged = changed(func(p *karpv1.NodePool) any {
		v := nodePoolFrom(p)
		v.Version = ""
		return []any{v, p.Labels}
	})
	claimChanged = changed(func(c *karpv1.NodeClaim) any {
		v := nodeClaimFrom(c)
		v.Version = ""
		return v
	})
	nodeChanged = changed(func(n *corev1.Node) any {
		v := nodeFrom(n)
		v.Version = ""
		return v
	})
)

// changed lets an update pass only when what is read of the object is different.
func changed[T client.Object](read func(T) any) predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok1 := e.ObjectOld.(T)
		after, ok2 := e.ObjectNew.(T)
		return !ok1 || !ok2 || !reflect.DeepEqual(read(before), read(after))
	}}
}

func poolOfLabel(_ context.Context, o client.Object) []reconcile.Request {
	return request(o.GetLabels()[karpv1.NodePoolLabelKey])
}

func poolOfPlaceholder(_ context.Context, o client.Object) []reconcile.Request {
	if p, ok := o.(*corev1.Pod); ok {
		return request(p.Spec.NodeSelector[karpv1.NodePoolLabelKey])
	}
	return nil
}

func request(pool string) []reconcile.Request {
	if pool == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: pool}}}
}

// everyPool wakes all pools: one policy can change which policy wins on any of them.
func (r *Rotator) everyPool(ctx context.Context, _ client.Object) []reconcile.Request {
	var pools karpv1.NodePoolList
	if err := r.Client.List(ctx, &pools); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "list NodePools after a RotationPolicy changed; they follow at their backstop")
		return nil
	}
	var out []reconcile.Request
	for i := range pools.Items {
		out = append(out, request(pools.Items[i].Name)...)
	}
	return out
}
