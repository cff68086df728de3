package rotator

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/tasuki-io/tasuki/api/v1alpha1"
)

// Feed is a cache of what the controller reads, and the news of it.
type Feed struct {
	client.Reader
	Changed <-chan struct{} // something may have changed since it was last received from

	mu    sync.Mutex
	fault error // of the watches
	at    time.Time
}

// faultLasts is for how long a fault of a watch counts: it is tried again sooner than that.
const faultLasts = time.Minute

// Fault is why the cache may be out of date, nil if it is not known to be.
func (f *Feed) Fault(now time.Time) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fault != nil && now.Before(f.at.Add(faultLasts)) {
		return f.fault
	}
	return nil
}

func (f *Feed) note(err error, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fault, f.at = err, now
}

// Follow fills a cache and keeps it filled until ctx ends. A right that is missing at the start
// is an error.
func Follow(ctx context.Context, config *rest.Config, namespace string) (*Feed, error) {
	changed := make(chan struct{}, 1)
	f := &Feed{Changed: changed}
	filling, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	options := cacheOptions(namespace)
	options.Scheme = Scheme()
	options.DefaultWatchErrorHandler = func(_ context.Context, _ *toolscache.Reflector, err error) {
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), apierrors.IsResourceExpired(err), apierrors.IsGone(err):
			return // it is watched anew
		case apierrors.IsForbidden(err):
			cancel(err)
		}
		f.note(err, time.Now())
	}
	c, err := cache.New(config, options)
	if err != nil {
		return nil, fmt.Errorf("set up the watch caches: %w", err)
	}
	f.Reader = c
	news := func() {
		f.note(nil, time.Time{})
		select {
		case changed <- struct{}{}:
		default:
		}
	}
	for _, kind := range []client.Object{&karpv1.NodePool{}, &karpv1.NodeClaim{}, &corev1.Node{}, &corev1.Pod{}, &v1alpha1.RotationPolicy{}} {
		informer, err := c.GetInformer(ctx, kind, cache.BlockUntilSynced(false))
		if err != nil {
			return nil, fmt.Errorf("watch %T: %w", kind, err)
		}
		if _, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc: func(any) { news() }, UpdateFunc: func(any, any) { news() }, DeleteFunc: func(any) { news() },
		}); err != nil {
			return nil, fmt.Errorf("watch %T: %w", kind, err)
		}
	}
	go func() { _ = c.Start(ctx) }() // it ends with ctx
	if !c.WaitForCacheSync(filling) {
		return nil, fmt.Errorf("watch the cluster: %w", context.Cause(filling))
	}
	return f, nil
}
