package oci

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptrace"
	"net/url"

	"github.com/tasuki-io/tasuki/internal/executor/cloud"
)

// newWire returns the way to OCI. Deadlines are its own: see unhurried.
func newWire(ctx context.Context, l limits) *cloud.Wire {
	return &cloud.Wire{Send: func(r *http.Request) (*http.Response, error) {
		client := http.Client{Transport: transport, CheckRedirect: stay, Timeout: l.change}
		if r.Method == http.MethodGet {
			client.Timeout = l.read
		}
		return client.Do(r.WithContext(httptrace.WithClientTrace(ctx, httptrace.ContextClientTrace(r.Context()))))
	}}
}

// unhurried is the context of every call of the SDK, which does not wait for what it has begun
// once its context is done. The requests of the call have that of the wire.
var unhurried = context.Background()

// stay follows no redirect: whoever sends a change on sends it twice.
func stay(r *http.Request, _ []*http.Request) error {
	return errors.New("redirected to " + r.URL.Host + ", where it is not sent")
}

// transport asks no proxy for plain http, which is for the metadata service and loopback.
var transport = func() *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.Proxy = func(r *http.Request) (*url.URL, error) {
		if r.URL.Scheme == "http" {
			return nil, nil
		}
		return http.ProxyFromEnvironment(r)
	}
	return t
}()
