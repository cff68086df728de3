package rotator

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/tasuki-io/tasuki/internal/rotation"
)

func TestAnEventFitsWhatTheAPIServerTakes(t *testing.T) {
	if got := len(shorten(strings.Repeat("x", 2000))); got != 1024 {
		t.Errorf("a note of %d bytes", got)
	}
	if got := len(eventName(strings.Repeat("x", 253), now)); got > 253 {
		t.Errorf("a name of %d bytes", got)
	}
}

// The last write of a leader that has been told to stop is announced like any other.
func TestAnEventOutlivesItsContext(t *testing.T) {
	live := apiServer(interceptor.Funcs{Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		return c.Create(ctx, o, opts...)
	}})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	on := claimRef(rotation.Object{Kind: rotation.KindNodePool, Name: "web"})
	eventWriter{live, "here"}.record(ctx, on, corev1.EventTypeNormal, "RotationStarted", "Rotate", "note")
	var events eventsv1.EventList
	if err := live.List(t.Context(), &events); err != nil || len(events.Items) != 1 {
		t.Errorf("%v, %d Events; want 1", err, len(events.Items))
	}
}
