package executortest

import (
	"math/rand/v2"
	"net/netip"
	"os"
	"testing"
	"time"
)

// EC2 is a fake of the EC2 query API, version 2016-11-15, as far as addresses of network
// interfaces go, and of the instance metadata service (IMDSv2) that tells a host its region
// and its credentials. Both are at one URL. Its methods may be called at any time, and from
// several goroutines.
type EC2 struct {
	fake
	region string
	world  timeline[*state]
	tokens map[string]bool // of sessions with the metadata service
	role   string
	secret Credentials
}

// Credentials are those that the metadata service hands out.
type Credentials struct{ AccessKeyID, SecretAccessKey, Token string }

// Option sets up a fake.
type Option func(*EC2)

// WithClock has the fake live by a clock other than the machine's.
func WithClock(c *Clock) Option { return func(f *EC2) { f.now = c.Now } }

// WithSeed has what happens by chance happen by this seed.
func WithSeed(seed uint64) Option {
	return func(f *EC2) { f.random = rand.New(rand.NewPCG(seed, seed)) }
}

// NewEC2 returns a fake of the region eu-test-1 without any NIC.
func NewEC2(options ...Option) *EC2 {
	f := &EC2{
		region: "eu-test-1",
		world:  newTimeline(&state{map[string]Interface{}, map[eip]netip.Addr{}}, (*state).clone),
		tokens: map[string]bool{},
		role:   "tasuki-agent",
		secret: Credentials{AccessKeyID: "ASIAFAKEFAKEFAKEFAKE", SecretAccessKey: "fake-secret-access-key", Token: "fake-session-token"},
	}
	f.begin(f, nil)
	for _, o := range options {
		o(f)
	}
	return f
}

// StartEC2 serves a fake on loopback until the test is over.
func StartEC2(t testing.TB, options ...Option) *EC2 {
	t.Helper()
	f := NewEC2(options...)
	f.start(t)
	return f
}

// Environment is what lets an SDK find the metadata service, and no identity but that of the
// fake, as NAME=value.
func (f *EC2) Environment() []string {
	return []string{
		"AWS_EC2_METADATA_SERVICE_ENDPOINT=" + f.url, "AWS_EC2_METADATA_DISABLED=",
		"AWS_CONFIG_FILE=" + os.DevNull, "AWS_SHARED_CREDENTIALS_FILE=" + os.DevNull, "AWS_PROFILE=",
		"AWS_REGION=", "AWS_ACCESS_KEY_ID=", "AWS_SECRET_ACCESS_KEY=", "AWS_SESSION_TOKEN=",
		"AWS_ROLE_ARN=", "AWS_WEB_IDENTITY_TOKEN_FILE=", "AWS_CONTAINER_CREDENTIALS_FULL_URI=", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI=",
	}
}

// Identity sets the role and the credentials of the host; no role is a host without any.
func (f *EC2) Identity(role string, c Credentials) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.role, f.secret = role, c
}

// Lag has what is accepted take effect so much later, and reads show the world as it was so
// long ago.
func (f *EC2) Lag(effects, reads time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.world.effects, f.world.reads = effects, reads
}

func (f *EC2) settle() { f.world.settle(f.now(), f.calls) }

// accept plans a change that a call asks for.
func (f *EC2) accept(c *Call, apply func(*state)) {
	c.Accepted = true
	f.world.accept(f.now(), c.N, apply)
}
