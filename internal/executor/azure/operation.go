package azure

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"

	"github.com/tasuki-io/tasuki/internal/executor/cloud"
)

// operation is what ARM does about a change after it has accepted it.
type operation struct {
	poller *runtime.Poller[json.RawMessage] // nil when ARM tells no more than the NIC shows
	pause  time.Duration                    // that ARM wants before it is asked
	asked  time.Time                        // the last time; zero is never
}

// operation reads the answer to a change that was accepted.
func (c *client) operation(answer *http.Response) *operation {
	op := &operation{pause: retryAfter(answer)}
	if p, err := runtime.NewPoller[json.RawMessage](answer, c.pipeline, nil); err == nil && !p.Done() {
		op.poller = p
	}
	return op
}

// mute reports that the NIC alone tells how a change goes.
func (o *operation) mute() bool { return o == nil || o.poller == nil }

// failure is why an operation has failed, nil as long as it has not. It asks ARM as seldom as ARM
// wants to be asked, or as soon as the NIC shows that it has.
func (o *operation) failure(ctx context.Context, now time.Time, shown *nic) error {
	if o.mute() {
		return nil
	}
	if o.asked.IsZero() {
		o.asked = now
	}
	shows := shown != nil && shown.state == stateFailed
	if now.Sub(o.asked) < o.pause && !shows {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	o.asked = now
	answer, err := o.poller.Poll(ctx)
	if err != nil {
		return nil // it tells nothing about the change
	}
	o.pause = retryAfter(answer)
	if !o.poller.Done() {
		return nil
	}
	_, err = o.poller.Result(ctx)
	o.poller = nil
	var failed *responseError
	if errors.As(err, &failed) && failed.RawResponse == answer {
		return err
	}
	return nil // what the SDK reads after a success, the NIC tells as well
}

// retryAfter is how long ARM wants to be left alone.
func retryAfter(answer *http.Response) time.Duration {
	seconds, err := strconv.Atoi(answer.Header.Get("Retry-After"))
	if err != nil {
		return cloud.LongestWait
	}
	return time.Duration(seconds) * time.Second
}
