package rotator

import (
	"context"
	"fmt"
	"strings"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// recorder writes one Event.
type recorder interface {
	record(ctx context.Context, on *metav1.PartialObjectMetadata, kind, reason, action, note string)
}

const controllerName = "tasuki-controller"

// eventWriter writes every Event as an object of its own. The usual recorder folds what
// repeats within minutes into a series that keeps the text of the first, and so would show
// the second rotation of a pool, or the second failure of a node, under the words of the
// first. What repeats is told apart before it gets here.
type eventWriter struct {
	client   client.Client
	instance string // of the controller
}

func (w eventWriter) record(ctx context.Context, on *metav1.PartialObjectMetadata, kind, reason, action, note string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	now := time.Now()
	namespace := on.Namespace
	if namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	event := &eventsv1.Event{
		ObjectMeta:          metav1.ObjectMeta{Namespace: namespace, Name: eventName(on.Name, now)},
		EventTime:           metav1.NewMicroTime(now),
		ReportingController: controllerName,
		ReportingInstance:   w.instance,
		Action:              action,
		Reason:              reason,
		Type:                kind,
		Note:                shorten(note),
	}
	event.Regarding.APIVersion, event.Regarding.Kind = on.GroupVersionKind().ToAPIVersionAndKind()
	event.Regarding.Name, event.Regarding.UID = on.Name, types.UID(on.UID)
	if err := w.client.Create(ctx, event); err != nil {
		log.FromContext(ctx).Error(err, "an Event is lost", "reason", reason, "note", note)
	}
}

// eventName is unique per object and nanosecond, and within the length of a name.
func eventName(object string, at time.Time) string {
	const longest = 253 - len(".0123456789abcdef")
	return fmt.Sprintf("%s.%x", object[:min(len(object), longest)], at.UnixNano())
}

// shorten keeps a note within what events.k8s.io/v1 takes.
func shorten(note string) string {
	const longest = 1024
	if len(note) > longest {
		return strings.ToValidUTF8(note[:longest-3], "") + "..."
	}
	return note
}
