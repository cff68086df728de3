package rotator

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/tasuki-io/tasuki/internal/rotation"
)

// deletions is an API server that remembers under which options it was asked to delete.
func deletions(asked *client.DeleteOptions, objects ...client.Object) client.WithWatch {
	return apiServer(interceptor.Funcs{Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
		asked.ApplyOptions(opts)
		return c.Delete(ctx, o, opts...)
	}}, objects...)
}

func silent(rotation.Step) {}

// The NodeClaim is marked and then deleted in the version that the mark has made, so that an
// edit in between, or another NodeClaim of the same name, keeps it from being deleted.
func TestANodeClaimIsDeletedInTheVersionDecidedOn(t *testing.T) {
	var asked client.DeleteOptions
	live := deletions(&asked, claim("a", 0, nil))
	on := rotation.Object{Kind: rotation.KindNodeClaim, Name: "a", UID: "a", Version: "999"}
	marked := ""
	err := newRotator(live, live, &spoken{}).act(t.Context(), []rotation.Step{
		{Act: rotation.ActMarkDraining, On: on, Set: map[string]string{rotation.AnnotationState: rotation.StateDraining}},
		{Act: rotation.ActDeleteNodeClaim, On: on},
	}, func(st rotation.Step) {
		var c karpv1.NodeClaim
		if st.Act == rotation.ActMarkDraining {
			if err := live.Get(t.Context(), client.ObjectKey{Name: "a"}, &c); err != nil {
				t.Fatal(err)
			}
			marked = c.ResourceVersion
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	p := asked.Preconditions
	if p == nil || p.UID == nil || *p.UID != "a" || p.ResourceVersion == nil || *p.ResourceVersion != marked {
		t.Errorf("deleted under %+v, want uid a and version %s", p, marked)
	}
}

func TestAPatchCarriesTheLifeOfItsObject(t *testing.T) {
	got, err := patchBody(rotation.Step{
		On:  rotation.Object{Kind: rotation.KindNode, Name: "n", UID: "u", Version: "7"},
		Set: map[string]string{"k": "v"}, Clear: []string{"gone"},
	})
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"metadata":{"annotations":{"gone":null,"k":"v"},"resourceVersion":"7","uid":"u"}}`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestAnObjectThatIsGoneRefuses(t *testing.T) {
	live := apiServer(interceptor.Funcs{})
	step := rotation.Step{Act: rotation.ActMarkPending, On: rotation.Object{Kind: rotation.KindNodeClaim, Name: "a", UID: "a", Version: "1"}}
	if err := newRotator(live, live, &spoken{}).act(t.Context(), []rotation.Step{step}, silent); !errors.Is(err, errRefused) {
		t.Errorf("%v, want a refusal", err)
	}
}

// SIGTERM arrives while the request is on its way to the API server.
func TestTheEndOfALeaderDoesNotCutAWriteShort(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	live := apiServer(interceptor.Funcs{Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
		cancel()
		if err := ctx.Err(); err != nil {
			return err
		}
		return c.Patch(ctx, o, p, opts...)
	}}, pool(nil))
	step := rotation.Step{Act: rotation.ActClaimAnchor, On: rotation.Object{Kind: rotation.KindNodePool, Name: "web", UID: "pool", Version: "999"}}
	if err := newRotator(live, live, &spoken{}).act(ctx, []rotation.Step{step}, silent); err != nil {
		t.Errorf("the write is lost: %v", err)
	}
}

func deletePlaceholder(uid string) []rotation.Step {
	return []rotation.Step{{Act: rotation.ActDeletePlaceholder, On: rotation.Object{Kind: rotation.KindPlaceholder, Name: rotation.PlaceholderName("a"), UID: uid}}}
}

// The room has to be free at once, and a placeholder of the same name that another leader
// has created meanwhile is not the one that was decided on.
func TestAPlaceholderGoesAtOnceAndInItsOwnLife(t *testing.T) {
	var asked client.DeleteOptions
	p := placeholderOn("node-b")
	live := deletions(&asked, p)
	if err := newRotator(live, live, &spoken{}).act(t.Context(), deletePlaceholder(string(p.UID)), silent); err != nil {
		t.Fatal(err)
	}
	if asked.GracePeriodSeconds == nil || *asked.GracePeriodSeconds != 0 {
		t.Errorf("deleted with a grace period of %v, want 0", asked.GracePeriodSeconds)
	}
	if asked.Preconditions == nil || asked.Preconditions.UID == nil || *asked.Preconditions.UID != p.UID {
		t.Errorf("deleted under %+v, want its uid", asked.Preconditions)
	}
}

// Somebody's finalizer holds a placeholder that was deleted before.
func TestAPlaceholderThatIsHeldIsDeletedOnce(t *testing.T) {
	w := &writes{}
	held := placeholderOn("node-b")
	held.Finalizers, held.DeletionTimestamp = []string{"example.com/audit"}, &metav1.Time{Time: now}
	live := apiServer(w.hooks(), held)
	r := newRotator(live, live, &spoken{})
	if err := r.act(t.Context(), deletePlaceholder(string(held.UID)), silent); !errors.Is(err, errNotYet) {
		t.Errorf("%v, want it to wait", err)
	}
	if err := r.act(t.Context(), deletePlaceholder("an earlier one"), silent); err != nil {
		t.Errorf("%v, although the one that was decided on is gone", err)
	}
	if len(w.made) > 0 {
		t.Errorf("wrote %q", w.made)
	}
}
