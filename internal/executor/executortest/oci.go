package executortest

import (
	"testing"
	"time"
)

// OCI is a fake of the OCI Core API, version 20160918, as far as addresses of VNICs go, and of
// what gives an instance its identity: the instance metadata service and the Auth service.
// All are at one URL. Its methods may be called at any time, and from several goroutines.
type OCI struct {
	fake
	region  string
	world   timeline[*ociState]
	numbers int
	retries map[string]ociRetried
	tokens  map[string]ociSession // by security token
	ill     map[string]int        // statuses that "metadata" and "auth" answer with
}

// ociRetried is what an opc-retry-token was used for.
type ociRetried struct {
	ocid string
	at   time.Time
}

// NewOCI returns a fake of the region eu-frankfurt-1 without any VNIC, which lives by a clock;
// nil is that of the machine. What happens by chance does so by one seed.
func NewOCI(clock *Clock) *OCI {
	f := &OCI{
		region:  "eu-frankfurt-1",
		world:   newTimeline(&ociState{map[string]VNIC{}, map[string]IP{}}, (*ociState).clone),
		retries: map[string]ociRetried{},
		tokens:  map[string]ociSession{},
		ill:     map[string]int{},
	}
	f.begin(f, clock)
	return f
}

// StartOCI serves a fake on loopback until the test is over.
func StartOCI(t testing.TB, clock *Clock) *OCI {
	t.Helper()
	f := NewOCI(clock)
	f.start(t)
	return f
}

// Environment is what lets an SDK find the metadata service and the Auth service, as
// NAME=value.
func (f *OCI) Environment() []string {
	return []string{
		"OCI_METADATA_BASE_URL=" + f.url + "/opc/v2", "OCI_SDK_AUTH_CLIENT_REGION_URL=" + f.url,
		"OCI_REGION_METADATA=",
	}
}

// Ail has the "metadata" service, or the "auth" service, answer with a status from now on.
func (f *OCI) Ail(service string, status int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ill[service] = status
}

// Lag has what is accepted take effect so much later, and reads show the world as it was so
// long ago.
func (f *OCI) Lag(effects, reads time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.world.effects, f.world.reads = effects, reads
}

func (f *OCI) settle() { f.world.settle(f.now(), f.calls) }
