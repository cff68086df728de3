package azure

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/arm"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
)

// apiVersion is that of Microsoft.Network. What a version does not know it does not show, and a
// put in it may erase: so it is a recent one.
const apiVersion = "2025-05-01"

// client talks to ARM.
type client struct {
	pipeline runtime.Pipeline
	endpoint string
	tokens   *tokens
}

// readTime is how long ARM may take to answer a read: one that hangs leaves time for others.
const readTime = 5 * time.Second

// get reads a resource.
func (c *client) get(ctx context.Context, id *arm.ResourceID, query url.Values) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	r, err := c.request(ctx, http.MethodGet, id, query)
	if err != nil {
		return nil, err
	}
	answer, err := c.pipeline.Do(r)
	if err != nil {
		return nil, err
	}
	if !runtime.HasStatusCode(answer, http.StatusOK) {
		return nil, runtime.NewResponseError(answer)
	}
	return runtime.Payload(answer)
}

// put replaces a resource that is as its etag says, and sends that once.
func (c *client) put(ctx context.Context, id *arm.ResourceID, etag string, document []byte) (*operation, error) {
	r, err := c.request(policy.WithRetryOptions(ctx, policy.RetryOptions{MaxRetries: -1}), http.MethodPut, id, nil)
	if err != nil {
		return nil, err
	}
	r.Raw().Header.Set("If-Match", etag)
	if err := r.SetBody(streaming.NopCloser(bytes.NewReader(document)), "application/json"); err != nil {
		return nil, err
	}
	answer, err := c.pipeline.Do(r)
	if err != nil {
		return nil, err
	}
	if !runtime.HasStatusCode(answer, http.StatusOK, http.StatusCreated, http.StatusAccepted) {
		return nil, runtime.NewResponseError(answer)
	}
	return c.operation(answer), nil
}

func (c *client) request(ctx context.Context, method string, id *arm.ResourceID, query url.Values) (*policy.Request, error) {
	r, err := runtime.NewRequest(ctx, method, c.endpoint)
	if err != nil {
		return nil, err
	}
	u := r.Raw().URL
	u.Path += id.String()
	q := url.Values{"api-version": {apiVersion}}
	for name, values := range query {
		q[name] = values
	}
	u.RawQuery = q.Encode()
	r.Raw().Header.Set("Accept", "application/json")
	return r, nil
}

// said is what ARM has said about a failure, without the request.
func said(err error) string {
	var answer *responseError
	if !errors.As(err, &answer) || answer.RawResponse == nil {
		return err.Error()
	}
	body, _ := runtime.Payload(answer.RawResponse)
	var from struct {
		Error struct {
			Message string `json:"message"`
			Details []struct {
				Code    string `json:"code"`
				Message string `json:"message"`
			} `json:"details"`
		} `json:"error"`
	}
	if json.Unmarshal(body, &from) != nil || from.Error.Message == "" {
		return fmt.Sprintf("%s: %s", answer.RawResponse.Status, body)
	}
	text := answer.ErrorCode + ": " + from.Error.Message
	for _, d := range from.Error.Details {
		text += fmt.Sprintf(" (%s: %s)", d.Code, d.Message)
	}
	return text
}
