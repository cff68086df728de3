package rotator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpapis "sigs.k8s.io/karpenter/pkg/apis"

	"github.com/tasuki-io/tasuki/internal/rotation"
)

// errRefused ends a plan whose precondition no longer holds: the object has changed or is
// gone. Nothing was written, and the next pass decides anew.
var errRefused = errors.New("refused")

// errNotYet ends a plan that waits for an object to be gone.
var errNotYet = errors.New("not yet")

// errTaken ends a plan that wants to create a placeholder where another pod has its name.
// Deciding anew at once would not mend that.
var errTaken = errors.New("the name is taken")

// act performs the steps in order and hands each durable one to done before it tries the
// next. It stops at the first step that is refused or fails. A step in hand when ctx ends is
// finished and announced; no other is begun.
func (r *Rotator) act(ctx context.Context, plan []rotation.Step, done func(rotation.Step)) error {
	written := map[rotation.Object]string{} // what a step of this plan has already moved on
	for _, step := range plan {
		seen := step.On
		if v, ok := written[seen]; ok {
			step.On.Version = v
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if r.leads != nil {
			if err := r.leads(); err != nil {
				return err
			}
		}
		version, err := r.finish(ctx, step)
		if err != nil {
			return fmt.Errorf("%s %s %s: %w", step.Act, step.On.Kind, step.On.Name, refusal(step.Act, err))
		}
		written[seen] = version
		if version != step.On.Version {
			r.recent.note(step.On, r.Now())
		}
		done(step)
	}
	return nil
}

// refusal tells what deciding anew mends from what it does not. A placeholder is not found
// when its namespace is gone.
func refusal(did rotation.Act, err error) error {
	creates := did == rotation.ActCreatePlaceholder
	switch {
	case creates && apierrors.IsAlreadyExists(err):
		return errors.Join(errTaken, err)
	case apierrors.IsConflict(err), apierrors.IsNotFound(err) && !creates:
		return errors.Join(errRefused, err)
	}
	return err
}

// stepTimeout bounds one step.
const stepTimeout = 15 * time.Second

func (r *Rotator) finish(ctx context.Context, step rotation.Step) (string, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stepTimeout)
	defer cancel()
	return r.write(ctx, step)
}

// write performs one step and returns the version of the object that it left behind, none if that
// is on its way out.
func (r *Rotator) write(ctx context.Context, step rotation.Step) (string, error) {
	switch step.Act {
	case rotation.ActCreatePlaceholder:
		pod := r.placeholderPod(step.Create)
		err := r.Client.Create(ctx, pod)
		return pod.ResourceVersion, err
	case rotation.ActDeletePlaceholder:
		return "", r.deletePlaceholder(ctx, step.On)
	case rotation.ActDeleteNodeClaim, rotation.ActReapSurgeClaim:
		if err := r.empty(ctx, step.Empty); err != nil {
			return "", err
		}
		return "", r.Client.Delete(ctx, r.target(step.On), client.Preconditions{
			UID: (*types.UID)(&step.On.UID), ResourceVersion: &step.On.Version,
		})
	}
	body, err := patchBody(step)
	if err != nil {
		return "", err
	}
	o := r.target(step.On)
	err = r.Client.Patch(ctx, o, client.RawPatch(types.MergePatchType, body))
	return o.ResourceVersion, err
}

// empty refuses nodes on which something runs by now.
func (r *Rotator) empty(ctx context.Context, nodes []string) error {
	for _, node := range nodes {
		var pods []*corev1.Pod
		if err := listingPods(node, r.Live, &pods)(ctx); err != nil {
			return err
		}
		for _, p := range pods {
			if rotation.Occupies(p) {
				return fmt.Errorf("%w: node %s runs %s/%s by now", errRefused, node, p.Namespace, p.Name)
			}
		}
	}
	return nil
}

// deletePlaceholder deletes the pod at once and then sees for itself that it is gone:
// what follows in a plan counts on its room being free. One that somebody's finalizer holds
// is not deleted again.
func (r *Rotator) deletePlaceholder(ctx context.Context, on rotation.Object) error {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: on.Name}}
	err := r.Live.Get(ctx, client.ObjectKeyFromObject(pod), pod)
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	if err == nil && pod.DeletionTimestamp == nil {
		err := r.Client.Delete(ctx, pod, client.GracePeriodSeconds(0), client.Preconditions{UID: (*types.UID)(&on.UID)})
		if client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	err = r.Live.Get(ctx, client.ObjectKeyFromObject(pod), pod)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return err
	case string(pod.UID) != on.UID:
		return nil
	}
	return fmt.Errorf("%w: pod %s/%s is still terminating (finalizers %v)", errNotYet, pod.Namespace, pod.Name, pod.Finalizers)
}

var kinds = map[rotation.Kind]schema.GroupVersionKind{
	rotation.KindNodePool:  {Group: karpapis.Group, Version: "v1", Kind: "NodePool"},
	rotation.KindNodeClaim: {Group: karpapis.Group, Version: "v1", Kind: "NodeClaim"},
	rotation.KindNode:      {Version: "v1", Kind: "Node"},
}

func (r *Rotator) target(on rotation.Object) *metav1.PartialObjectMetadata {
	o := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: on.Name}}
	o.SetGroupVersionKind(kinds[on.Kind])
	return o
}

// patchBody is the merge patch of a step. The uid and resourceVersion in it make the API
// server refuse the patch for any other version of the object.
func patchBody(step rotation.Step) ([]byte, error) {
	annotations := map[string]any{}
	for k, v := range step.Set {
		annotations[k] = v
	}
	for _, k := range step.Clear {
		annotations[k] = nil
	}
	body := map[string]any{"metadata": map[string]any{
		"uid": step.On.UID, "resourceVersion": step.On.Version, "annotations": annotations,
	}}
	if step.Unschedulable != nil {
		body["spec"] = map[string]any{"unschedulable": *step.Unschedulable}
	}
	return json.Marshal(body)
}
