package executortest

import (
	"net/http"
	"testing"
	"time"

	"github.com/tasuki-io/tasuki/internal/executor"
)

// ARM is a fake of Azure Resource Manager, as far as NICs and the addresses of their subnet go,
// and of the instance metadata service that tells a host its token. Both are at one URL. A NIC
// is a whole document: what a put leaves out is gone, as is everything that another writer has
// put there. Its methods may be called at any time, and from several goroutines.
type ARM struct {
	fake
	token    string // of the host; "" is a host without an identity
	tokenFor string // the audience that it is told for

	history    history[map[string]*armNIC] // by the lower case of IDs
	operations []*armOperation
	failing    []*refusal // what the next operations end with
	limits     map[string]int
	etags      int
	effects    time.Duration
	reads      time.Duration
}

// The place of what is given to a fake by name.
const (
	armSubscription = "00000000-0000-4000-8000-00000000000a"
	armGroup        = "edge"
	armSubnet       = "/subscriptions/" + armSubscription + "/resourceGroups/" + armGroup + "/providers/Microsoft.Network/virtualNetworks/vnet/subnets/mobile"
)

// StartARM serves a fake without any NIC on loopback until the test is over. It lives by a clock,
// or, if that is nil, by that of the machine.
func StartARM(t testing.TB, clock *Clock) *ARM {
	t.Helper()
	f := &ARM{
		token:   "fake-access-token",
		history: history[map[string]*armNIC]{{state: map[string]*armNIC{}}},
		limits:  map[string]int{},
	}
	f.begin(f, clock)
	f.start(t)
	f.tokenFor = f.url
	return f
}

// Profile leads an executor to the fake.
func (f *ARM) Profile() executor.Profile {
	return executor.Profile{Name: "fake", Provider: "azure", Subscription: armSubscription, ResourceGroup: armGroup, Endpoint: f.url}
}

// Environment is what lets the SDK find the metadata service, and no identity but that of the
// fake, as NAME=value.
func (f *ARM) Environment() []string {
	return []string{
		"AZURE_POD_IDENTITY_AUTHORITY_HOST=" + f.url,
		"AZURE_CLIENT_ID=", "AZURE_TENANT_ID=", "AZURE_AUTHORITY_HOST=", "AZURE_FEDERATED_TOKEN_FILE=",
		"IDENTITY_ENDPOINT=", "IMDS_ENDPOINT=", "MSI_ENDPOINT=",
	}
}

// Identity sets the token of the host; none is a host without an identity.
func (f *ARM) Identity(token string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.token = token
}

// TokensFor has the metadata service tell tokens for another audience than the fake.
func (f *ARM) TokensFor(audience string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.tokenFor = audience
}

// Lag has operations take so long, and reads of resources show the world as it was so long ago.
func (f *ARM) Lag(effects, reads time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.effects, f.reads = effects, reads
}

// Fail has the next operation that is accepted end with an error. The NIC shows what was to be
// all the same, as Failed.
func (f *ARM) Fail(code, format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.failing = append(f.failing, refuse(http.StatusOK, code, format, args...))
}
