package rotator

import (
	"context"
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// failing answers each read with the next of its errors.
type failing struct {
	client.Reader
	errs  []error
	reads int
}

func (f *failing) List(context.Context, client.ObjectList, ...client.ListOption) error {
	f.reads++
	return f.errs[min(f.reads, len(f.errs))-1]
}

func (f *failing) Get(ctx context.Context, _ client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
	return f.List(ctx, nil)
}

// A read that failed on its way, or in the server, is repeated; an answer is an answer.
func TestAReadThatFailsIsRepeated(t *testing.T) {
	broken := errors.New("stream error")
	internal := apierrors.NewInternalError(broken)
	resource := schema.GroupResource{Resource: "nodepools"}
	for name, c := range map[string]struct {
		errs  []error
		reads int
		last  error
	}{
		"the first answers":        {[]error{nil}, 1, nil},
		"the third answers":        {[]error{broken, internal, nil}, 3, nil},
		"none answers":             {[]error{broken}, 3, broken},
		"it is not there":          {[]error{apierrors.NewNotFound(resource, "a")}, 1, apierrors.NewNotFound(resource, "a")},
		"it is not for us to read": {[]error{apierrors.NewForbidden(resource, "a", nil)}, 1, apierrors.NewForbidden(resource, "a", nil)},
	} {
		t.Run(name, func(t *testing.T) {
			for _, read := range []func(client.Reader) error{
				func(r client.Reader) error { return r.List(t.Context(), &karpv1.NodePoolList{}) },
				func(r client.Reader) error {
					return r.Get(t.Context(), client.ObjectKey{Name: "a"}, &karpv1.NodePool{})
				},
			} {
				f := &failing{errs: c.errs}
				err := read(patient{f})
				if f.reads != c.reads || (err == nil) != (c.last == nil) || err != nil && err.Error() != c.last.Error() {
					t.Errorf("%d reads end with %v, want %d and %v", f.reads, err, c.reads, c.last)
				}
			}
		})
	}
	t.Run("the controller ends", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		f := &failing{errs: []error{context.Canceled}}
		if err := (patient{f}).List(ctx, nil); f.reads != 1 || err == nil {
			t.Errorf("%d reads end with %v", f.reads, err)
		}
	})
}
