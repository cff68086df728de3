package rotator

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// patient repeats a read that the API server failed to answer. A pass is of many reads: were
// each tried only once, then where a share of them fails hardly a pass would come to its end.
type patient struct{ client.Reader }

func (p patient) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	return insist(ctx, func() error { return p.Reader.Get(ctx, key, o, opts...) })
}

func (p patient) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return insist(ctx, func() error { return p.Reader.List(ctx, list, opts...) })
}

// insist tries a read up to three times, until it is answered. (retry.OnError would return nil
// for a read that was interrupted.)
func insist(ctx context.Context, read func() error) error {
	pause := wait.Backoff{Steps: 3, Duration: 50 * time.Millisecond, Factor: 4, Jitter: 0.5}
	for {
		err := read()
		next := pause.Step()
		if err == nil || isAnswer(err) || ctx.Err() != nil || pause.Steps == 0 {
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(next):
		}
	}
}

// isAnswer tells an answer of the API server from a failure of the server or the way to it.
func isAnswer(err error) bool {
	status := apierrors.APIStatus(nil)
	return errors.As(err, &status) && status.Status().Code < 500
}
