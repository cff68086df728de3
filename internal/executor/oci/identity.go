package oci

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/oracle/oci-go-sdk/v65/common"
	"github.com/oracle/oci-go-sdk/v65/common/auth"
	"github.com/oracle/oci-go-sdk/v65/core"

	"github.com/tasuki-io/tasuki/internal/executor"
	"github.com/tasuki-io/tasuki/internal/executor/cloud"
)

// identity is that of the instance, with the place where it is used.
type identity struct {
	common.ConfigurationProvider
	endpoint string
	token    string // the security token that requests are signed in the name of
}

// identify gets the identity of the instance, or says in a result why there is none: its
// certificate from the metadata service, and for that a security token from the Auth service.
// The Core API has not been asked for anything then.
func identify(ctx context.Context, p executor.Profile, limit time.Duration) (*identity, executor.Result) {
	endpoint, err := safeEndpoint(p.Endpoint)
	if err != nil {
		return nil, executor.Resultf(executor.OutcomeRefused, "", "profile %s: %v", p.Name, err)
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	// The SDK takes no context, and asks a metadata service that does not answer for minutes.
	ask := &asking{ctx: ctx, stop: make(chan struct{})}
	id, failed := make(chan *identity, 1), make(chan error, 1)
	go func() {
		var region common.Region
		if p.Region != "" {
			region = common.StringToRegion(p.Region)
		}
		provider, err := auth.InstancePrincipalConfigurationForRegionWithCustomClient(region, ask.instead)
		if err != nil {
			failed <- err
			return
		}
		token, err := provider.KeyID()
		if err != nil {
			failed <- err
			return
		}
		id <- &identity{provider, endpoint, strings.TrimPrefix(token, "ST$")}
	}()
	select {
	case found := <-id:
		return found, executor.Result{}
	case err = <-failed:
	case <-ask.stop:
	case <-ctx.Done():
		err = ctx.Err()
	}
	ask.given.Store(true)
	return nil, ask.nobody(err)
}

// asking is the way to the metadata service and to the Auth service. It knows how the last
// request to them ended.
type asking struct {
	ctx   context.Context
	stop  chan struct{} // closed when the metadata service has refused
	given atomic.Bool   // given up

	mu     sync.Mutex
	status int // 0 is without an answer
	err    error
}

func (a *asking) instead(common.HTTPRequestDispatcher) (common.HTTPRequestDispatcher, error) {
	return a, nil
}

// Do sends a request.
func (a *asking) Do(r *http.Request) (*http.Response, error) {
	if a.given.Load() {
		runtime.Goexit() // the SDK would go on for minutes
	}
	client := http.Client{Transport: transport, CheckRedirect: stay}
	answer, err := client.Do(r.WithContext(a.ctx))
	if a.ctx.Err() != nil {
		return answer, err // it is given up; the one before tells more
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.status, a.err = 0, err
	if err != nil {
		return nil, err
	}
	if a.status = answer.StatusCode; a.status >= 400 {
		a.err = fmt.Errorf("%s %s: %s", r.Method, r.URL.Redacted(), answer.Status)
	}
	if r.Method == http.MethodGet && a.refused() {
		select {
		case <-a.stop:
		default:
			close(a.stop)
		}
	}
	return answer, nil
}

// refused reports an answer that will not be another one by itself.
func (a *asking) refused() bool {
	return a.status >= 400 && a.status < 500 && a.status != http.StatusTooManyRequests && a.status != http.StatusRequestTimeout
}

// nobody is the result of a host without an identity. It may come by itself when whoever
// tells it was only slow, or ill.
func (a *asking) nobody(err error) executor.Result {
	a.mu.Lock()
	defer a.mu.Unlock()
	outcome := executor.OutcomeRetry
	if a.refused() {
		outcome = executor.OutcomePermanent
	}
	if err == nil {
		err = a.err
	} else if a.err != nil {
		err = fmt.Errorf("%w; %w", err, a.err)
	}
	return executor.Resultf(outcome, "", "this host has no OCI identity: it has to be an OCI instance that reaches its metadata service and the Auth service of its region, with its clock right: %v", err)
}

// safeEndpoint is an endpoint as the SDK takes it, or says why signed requests, and the
// security token in them, are not to be sent there.
func safeEndpoint(endpoint string) (string, error) {
	endpoint = strings.TrimSuffix(endpoint, "/")
	if err := cloud.SafeEndpoint(endpoint); err != nil {
		return "", err
	}
	if u, err := url.Parse(endpoint); err != nil || u.Path != "" || u.RawQuery != "" || u.Fragment != "" {
		return "", fmt.Errorf("endpoint %s: write https:// and the name of a host alone; the path of the API is added", endpoint)
	}
	return endpoint, nil
}

// keys hides that an identity can be had anew: the SDK would send a request again, a change
// too, when it is told that it is not known.
type keys struct{ common.ConfigurationProvider }

// client returns a client of the Core API over w that repeats nothing by itself. The ID of the
// request is in the user agent, which the Audit service keeps.
func (id *identity) client(w *cloud.Wire, q executor.Request) (core.VirtualNetworkClient, error) {
	net, err := core.NewVirtualNetworkClientWithConfigurationProvider(keys{id.ConfigurationProvider})
	if err != nil {
		return net, err
	}
	if id.endpoint != "" {
		net.Host = id.endpoint
	}
	once := common.NoRetryPolicy()
	net.HTTPClient, net.Configuration.RetryPolicy, net.Configuration.CircuitBreaker = w, &once, nil
	net.UserAgent += " tasuki"
	if q.ID != "" {
		net.UserAgent += "/" + unfit.ReplaceAllString(q.ID, "-")
	}
	return net, nil
}

// unfit is what has no place in a part of a user agent.
var unfit = regexp.MustCompile("[^0-9A-Za-z!#$%&'*+.^_`|~-]")

// token is what OCI knows a request by, as its opc-request-id and its opc-retry-token: its ID
// and what that is about. Both have less room than an ID needs.
func token(q executor.Request) string {
	sum := sha256.Sum256([]byte(q.ID + "\n" + q.NIC + "\n" + q.Address.String()))
	return strings.ToUpper(hex.EncodeToString(sum[:16]))
}

// redact takes the security token out of a text: some errors repeat the request that they are
// about.
func (id *identity) redact(s string) string { return executor.Redact(s, id.token) }
