package rotator

import (
	"context"
	"slices"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/tasuki-io/tasuki/internal/rotation"
)

// A pass that its own writes have woken asks the API server for nothing until the cache has heard
// of them, or has had the time to.
func TestAPassWaitsForTheCacheToHearOfTheLastOne(t *testing.T) {
	lists := 0
	hooks := interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, l client.ObjectList, opts ...client.ListOption) error {
		lists++
		return c.List(ctx, l, opts...)
	}}
	objects := []client.Object{web(), pool(nil), claim("a", 300*time.Hour, nil), node("a", nil)}
	at, live := now, apiServer(hooks, objects...)
	r := newRotator(apiServer(interceptor.Funcs{}, objects...), live, &spoken{})
	r.Now = func() time.Time { return at }
	asked := func() bool {
		lists = 0
		pass(t, r)
		return lists > 0
	}
	for _, step := range []struct {
		after time.Duration
		asks  bool
	}{{0, true}, {0, false}, {again, false}, {heard - again - 1, false}, {1, true}, {-time.Minute, true}} {
		at = at.Add(step.after)
		if got := asked(); got != step.asks {
			t.Errorf("after %s the API server is asked: %t, want %t", at.Sub(now), got, step.asks)
		}
	}
}

// A placeholder that somebody deletes is missed again a moment after it was created.
func TestAPlaceholderIsCreatedAgain(t *testing.T) {
	w := &writes{}
	at, live := now, apiServer(w.hooks(), web(), pool(nil), claim("a", 300*time.Hour, nil), node("a", nil))
	r := newRotator(live, live, &spoken{})
	r.Now = func() time.Time { return at }
	pass(t, r)
	placeholder := placeholderOn("")
	for _, after := range []time.Duration{0, again} {
		if err := client.IgnoreNotFound(live.Delete(t.Context(), placeholder)); err != nil {
			t.Fatal(err)
		}
		w.made = nil
		at = now.Add(after)
		pass(t, r)
		created := slices.Contains(w.made, "create "+rotation.PlaceholderName("a"))
		if want := after == again; created != want {
			t.Errorf("%s after it was created the placeholder is created again: %t, want %t (%q)", after, created, want, w.made)
		}
	}
}

// A write that only holds an object to its version outdates nothing that is decided on it.
func TestAHeldClaimIsNotOutdated(t *testing.T) {
	live := apiServer(interceptor.Funcs{Patch: func(_ context.Context, _ client.WithWatch, o client.Object, _ client.Patch, _ ...client.PatchOption) error {
		o.SetResourceVersion("7") // the fake one gives every patch a new one
		return nil
	}}, claim("a", time.Hour, nil))
	r := newRotator(live, live, &spoken{})
	held := rotation.Step{Act: rotation.ActHoldClaim, On: rotation.Object{Kind: rotation.KindNodeClaim, Name: "a", UID: "a", Version: "7"}}
	if err := r.act(t.Context(), []rotation.Step{held}, silent); err != nil {
		t.Fatal(err)
	}
	if r.recent.outdates([]rotation.Step{held}, now) {
		t.Error("the claim counts as written")
	}
}
