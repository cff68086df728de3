package azure

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"

	"github.com/tasuki-io/tasuki/internal/executor"
	"github.com/tasuki-io/tasuki/internal/executor/cloud"
)

// identityTime is how long the host's identity may take to be told.
const identityTime = 10 * time.Second

// identify finds the host's identity in a cloud, or says in a result why there is none. ARM has
// not been asked for anything then.
func identify(ctx context.Context, q executor.Request, w *cloud.Wire) (*client, executor.Result) {
	where, err := find(q.Profile.Endpoint)
	if err != nil {
		return nil, executor.Resultf(executor.OutcomeRefused, "", "profile %s: %v", q.Profile.Name, err)
	}
	of, err := credential(where)
	if err != nil {
		return nil, nobody(err)
	}
	held := &tokens{inner: of}
	ctx, cancel := context.WithTimeout(ctx, identityTime)
	defer cancel()
	if _, err := held.GetToken(ctx, policy.TokenRequestOptions{Scopes: []string{where.scope()}}); err != nil {
		return nil, nobody(err)
	}
	c, err := where.connect(held, w, q.ID)
	if err != nil {
		return nil, executor.Resultf(executor.OutcomeRefused, "", "profile %s: %v", q.Profile.Name, err)
	}
	return c, executor.Result{}
}

// credential is the identity of a host: a workload identity where the host has been given the
// file of one, else the managed identity of the instance. AZURE_CLIENT_ID says which one.
func credential(where place) (azcore.TokenCredential, error) {
	options := azcore.ClientOptions{Cloud: where.configuration(), Retry: policy.RetryOptions{MaxRetries: 2, RetryDelay: 300 * time.Millisecond, MaxRetryDelay: time.Second}}
	if os.Getenv("AZURE_FEDERATED_TOKEN_FILE") != "" {
		return azidentity.NewWorkloadIdentityCredential(&azidentity.WorkloadIdentityCredentialOptions{
			ClientOptions:            options,
			DisableInstanceDiscovery: !where.own, // Microsoft's own authority knows no other
		})
	}
	m, err := newMetadata(os.Getenv("AZURE_POD_IDENTITY_AUTHORITY_HOST"))
	if err != nil {
		return nil, err
	}
	options.Transport = m
	managed := azidentity.ManagedIdentityCredentialOptions{ClientOptions: options}
	if id := os.Getenv("AZURE_CLIENT_ID"); id != "" {
		managed.ID = azidentity.ClientID(id)
	}
	return azidentity.NewManagedIdentityCredential(&managed)
}

// nobody is the result of a host without an identity. It may come by itself when whoever
// tells it was only slow, or ill.
func nobody(err error) executor.Result {
	outcome := executor.OutcomePermanent
	var failed *azidentity.AuthenticationFailedError
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		outcome = executor.OutcomeRetry
	case errors.As(err, &failed) && (failed.RawResponse == nil || failed.RawResponse.StatusCode >= 500 || failed.RawResponse.StatusCode == http.StatusTooManyRequests):
		outcome = executor.OutcomeRetry
	}
	return executor.Resultf(outcome, "", "this host has no Azure identity: give the instance a managed identity, or the executor a workload identity: %v", err)
}

// metadata is the way to the metadata service of the instance. It leads past every proxy, which
// would see the token.
type metadata struct {
	at     *url.URL
	client http.Client
}

const metadataAddress = "169.254.169.254"

// newMetadata returns the way to the service, or to what stands in for it.
func newMetadata(standIn string) (*metadata, error) {
	if standIn == "" {
		standIn = "http://" + metadataAddress
	} else if err := cloud.SafeEndpoint(standIn); err != nil {
		return nil, fmt.Errorf("AZURE_POD_IDENTITY_AUTHORITY_HOST: %w", err)
	}
	at, err := url.Parse(standIn)
	if err != nil {
		return nil, err
	}
	direct := http.DefaultTransport.(*http.Transport).Clone()
	direct.Proxy = nil
	return &metadata{at: at, client: http.Client{Transport: direct}}, nil
}

// Do sends a request to the service.
func (m *metadata) Do(r *http.Request) (*http.Response, error) {
	if r.URL.Host == metadataAddress {
		r = r.Clone(r.Context())
		r.URL.Scheme, r.URL.Host, r.Host = m.at.Scheme, m.at.Host, m.at.Host
	}
	return m.client.Do(r)
}

// tokens remembers what a credential has told, for redact.
type tokens struct {
	inner azcore.TokenCredential
	mu    sync.Mutex
	told  []string
}

// GetToken is that of the credential.
func (t *tokens) GetToken(ctx context.Context, o policy.TokenRequestOptions) (azcore.AccessToken, error) {
	token, err := t.inner.GetToken(ctx, o)
	if token.Token != "" {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.told = append(t.told, token.Token)
	}
	return token, err
}

// redact takes the tokens out of a text.
func (c *client) redact(s string) string {
	c.tokens.mu.Lock()
	defer c.tokens.mu.Unlock()
	return executor.Redact(s, c.tokens.told...)
}
