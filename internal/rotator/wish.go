package rotator

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/tasuki-io/tasuki/internal/rotation"
)

// Annotate writes the annotations of a step that no rotation, but a person takes: for the version
// of the object that it was made for, and no other.
func Annotate(ctx context.Context, to client.Writer, step rotation.Step) error {
	body, err := patchBody(step)
	if err != nil {
		return err
	}
	err = to.Patch(ctx, (&Rotator{}).target(step.On), client.RawPatch(types.MergePatchType, body))
	switch {
	case apierrors.IsConflict(err):
		return fmt.Errorf("%s %s has changed meanwhile, and nothing is written: run this again", step.On.Kind, step.On.Name)
	case err != nil:
		return fmt.Errorf("annotate %s %s: %w", step.On.Kind, step.On.Name, err)
	}
	return nil
}

// ReadPool is a NodePool as the core reads it.
func (q *Inquiry) ReadPool(ctx context.Context, name string) (rotation.NodePool, error) {
	var pool karpv1.NodePool
	err := q.Live.Get(ctx, client.ObjectKey{Name: name}, &pool)
	switch {
	case apierrors.IsNotFound(err):
		return rotation.NodePool{}, notThere{"NodePool", name}
	case err != nil:
		return rotation.NodePool{}, fmt.Errorf("read NodePool %s: %w", name, err)
	}
	return nodePoolFrom(&pool), nil
}
