package azure

import (
	"cmp"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	armpolicy "github.com/Azure/azure-sdk-for-go/sdk/azcore/arm/policy"
	armruntime "github.com/Azure/azure-sdk-for-go/sdk/azcore/arm/runtime"
	sdk "github.com/Azure/azure-sdk-for-go/sdk/azcore/cloud"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/google/uuid"

	"github.com/tasuki-io/tasuki/internal/executor/cloud"
)

// clouds are Microsoft's own. The public one comes first.
var clouds = []sdk.Configuration{sdk.AzurePublic, sdk.AzureGovernment, sdk.AzureChina}

// place is the cloud that a profile leads to.
type place struct {
	endpoint, audience string
	authority          string // that gives tokens to workload identities
	own                bool   // the authority is one of Microsoft's own
}

// find finds the cloud of an endpoint of ARM, "" for the public one. Audience and authority are
// those of the cloud; an endpoint in none of Microsoft's own is its own audience, and
// AZURE_AUTHORITY_HOST names the authority.
func find(endpoint string) (place, error) {
	if err := cloud.SafeEndpoint(endpoint); err != nil {
		return place{}, err
	}
	endpoint = strings.TrimRight(endpoint, "/")
	p := place{endpoint: endpoint, audience: endpoint, authority: os.Getenv("AZURE_AUTHORITY_HOST")}
	for _, c := range clouds {
		arm := c.Services[sdk.ResourceManager]
		if at := hostOf(endpoint); endpoint == "" || at == hostOf(arm.Endpoint) || strings.HasSuffix(at, "."+hostOf(arm.Endpoint)) {
			p.endpoint, p.audience = cmp.Or(endpoint, arm.Endpoint), arm.Audience
			p.authority = cmp.Or(p.authority, c.ActiveDirectoryAuthorityHost)
			break
		}
	}
	p.authority = cmp.Or(p.authority, clouds[0].ActiveDirectoryAuthorityHost)
	for _, c := range clouds {
		p.own = p.own || hostOf(p.authority) == hostOf(c.ActiveDirectoryAuthorityHost)
	}
	return p, nil
}

func hostOf(endpoint string) string {
	u, err := url.Parse(endpoint)
	if err != nil {
		return ""
	}
	return strings.ToLower(u.Hostname())
}

func (p place) scope() string { return p.audience + "/.default" }

func (p place) configuration() sdk.Configuration {
	return sdk.Configuration{
		ActiveDirectoryAuthorityHost: p.authority,
		Services: map[sdk.ServiceName]sdk.ServiceConfiguration{
			sdk.ResourceManager: {Endpoint: p.endpoint, Audience: p.audience},
		},
	}
}

// connect returns a client of ARM whose requests are counted by w. It repeats reads a little.
func (p place) connect(credential *tokens, w *cloud.Wire, id string) (*client, error) {
	w.Send = (&http.Client{Transport: http.DefaultTransport.(*http.Transport).Clone()}).Do
	pipeline, err := armruntime.NewPipeline("tasuki", "v1", credential, runtime.PipelineOptions{}, &armpolicy.ClientOptions{
		DisableRPRegistration: true, // it would be a change of the subscription
		ClientOptions: azcore.ClientOptions{
			Cloud:                           p.configuration(),
			Transport:                       w,
			Retry:                           policy.RetryOptions{MaxRetries: 2, RetryDelay: 200 * time.Millisecond, MaxRetryDelay: 500 * time.Millisecond},
			PerCallPolicies:                 []policy.Policy{correlation(id)},
			InsecureAllowCredentialWithHTTP: strings.HasPrefix(p.endpoint, "http:"), // to loopback: see cloud.SafeEndpoint
		},
	})
	if err != nil {
		return nil, err
	}
	return &client{pipeline: pipeline, endpoint: p.endpoint, tokens: credential}, nil
}

// correlation has every request of an idempotencyKey carry the same correlation ID.
type correlation string

// Do adds it to a request.
func (c correlation) Do(r *policy.Request) (*http.Response, error) {
	if c != "" {
		r.Raw().Header.Set("x-ms-correlation-request-id", correlated(string(c)))
	}
	return r.Next()
}

// correlated is what the activity log shows of an idempotencyKey.
func correlated(id string) string { return uuid.NewSHA1(uuid.NameSpaceURL, []byte(id)).String() }
