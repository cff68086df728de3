package executor

import (
	"net/netip"
	"time"

	"github.com/tasuki-io/tasuki/internal/capture"
)

// Version is the version of the protocol that this build speaks.
const Version = 1

// The verbs that read, and change nothing: Describe a NIC, and Locate also where in its subnet
// addresses are.
const (
	Describe capture.Verb = "describe"
	Locate   capture.Verb = "locate"
)

// Reads reports a verb that changes nothing.
func Reads(v capture.Verb) bool { return v == Describe || v == Locate }

// MaxLocated is for how many addresses one Locate asks at most. No NIC has so many.
const MaxLocated = 1000

// Request is what an executor is asked.
type Request struct {
	Version int          `json:"version"`
	ID      string       `json:"id"` // the idempotencyKey, for the provider's own log
	Verb    capture.Verb `json:"verb"`
	Profile Profile      `json:"profile"`
	NIC     string       `json:"nic"`
	Address netip.Addr   `json:"address,omitzero"` // of assign and unassign

	// Addresses are those that a Locate asks for.
	Addresses []netip.Addr `json:"addresses,omitempty"`

	// Reassign lets an assign take the address from whichever NIC has it.
	Reassign bool `json:"reassign,omitempty"`
	// ReadFirst is set when an earlier attempt may have taken effect: what is already so is
	// not asked for again.
	ReadFirst bool `json:"readFirst,omitempty"`
	// DryRun asks the provider whether it would, as far as the provider can tell.
	DryRun bool `json:"dryRun,omitempty"`
	// Silent lets an assign on a LAN (linux) announce nothing.
	Silent bool `json:"silent,omitempty"`
}

// Profile is a CloudProviderProfile: where the provider is. It holds no credentials: an
// executor uses the host's own cloud identity.
type Profile struct {
	Name          string `json:"name"`
	Provider      string `json:"provider"` // aws, azure, oci, or linux: this host itself
	Region        string `json:"region,omitempty"`
	Subscription  string `json:"subscription,omitempty"`
	ResourceGroup string `json:"resourceGroup,omitempty"`
	Compartment   string `json:"compartment,omitempty"`
	// Endpoint overrides that of the provider's API, for sovereign clouds and tests.
	Endpoint string `json:"endpoint,omitempty"`
}

// Result is what an executor answers. Its exit code is that of its outcome.
type Result struct {
	Version int     `json:"version"`
	Outcome Outcome `json:"outcome"`
	// Code is the provider's own word for an error, Message what a person needs to know.
	Code    string `json:"code,omitempty"`
	Message string `json:"message,omitempty"`
	// RetryAfter is how many seconds the provider wants to be left alone, of OutcomeThrottled, if it
	// has said so.
	RetryAfter int `json:"retryAfter,omitempty"`
	// Calls is how many requests were sent to the provider, reads and retries included.
	Calls int `json:"calls"`
	// NIC is what a Describe or a Locate has seen, of a Locate perhaps without its success.
	NIC *NIC `json:"nic,omitempty"`
	// Places are where a Locate that is done has seen the addresses that it was asked for, each
	// once.
	Places []Place `json:"places,omitempty"`
}

// Wish is how long the provider wants to be left alone.
func (r *Result) Wish() time.Duration { return time.Duration(r.RetryAfter) * time.Second }

// Place is where a provider shows an address: on which NICs of the subnet, in order. That of the
// request has the name that the request has for it.
type Place struct {
	Address netip.Addr `json:"address"`
	NICs    []string   `json:"nics"`
}

// NIC is what a provider shows of a network interface.
type NIC struct {
	Primary   netip.Addr   `json:"primary,omitzero"` // the IPv4 one
	Addresses []netip.Addr `json:"addresses"`        // the secondary ones, and every IPv6 one
	Forwards  bool         `json:"forwards"`
}

// Outcome says how an action ended.
type Outcome string

// The outcomes.
const (
	OutcomeDone      Outcome = "done"      // it is done, and was seen to be
	OutcomeAlready   Outcome = "already"   // it was so before; nothing was changed
	OutcomeAgain     Outcome = "again"     // a part is done: ask the gate, and ask again
	OutcomeThrottled Outcome = "throttled" // the provider asks for patience
	OutcomeRetry     Outcome = "retry"     // it failed, and may not fail the next time
	OutcomePermanent Outcome = "permanent" // it fails until somebody changes something
	OutcomeUnknown   Outcome = "unknown"   // the provider has not answered; it may be done yet
	OutcomeRefused   Outcome = "refused"   // the request is not one that this executor serves
)

// ExitCode is the exit code of an executor with this outcome.
func (o Outcome) ExitCode() int {
	switch o {
	case OutcomeDone, OutcomeAlready:
		return 0
	case OutcomeAgain:
		return 3
	case OutcomeThrottled:
		return 4
	case OutcomeRetry:
		return 5
	case OutcomePermanent:
		return 6
	case OutcomeUnknown:
		return 7
	}
	return 2
}
