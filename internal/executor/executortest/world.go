package executortest

import (
	"net/netip"
	"testing"
	"time"

	"github.com/tasuki-io/tasuki/internal/executor"
)

// World is a fake of a provider as the suite needs it. It has at least two NICs in one
// subnet, and lets what the suite does show at once unless it is told to lag.
type World interface {
	// Profile leads an executor to the fake, and Environment to the host's identity there.
	Profile() executor.Profile
	Environment() []string
	// NICs are those of this host and of another one, and one that there is not.
	NICs() (here, there, nowhere string)
	// Address is one of the subnet that no NIC has, Address6 an IPv6 one.
	Address() netip.Addr
	Address6() netip.Addr

	Place(nic string, a netip.Addr)
	// Double puts an address on a NIC, and leaves it where else it is.
	Double(nic string, a netip.Addr)
	Holders(a netip.Addr) []string
	Forwards(nic string) bool
	// Fill leaves a NIC no room for another address.
	Fill(nic string)
	// Lag has reads show the world as it was so long ago.
	Lag(reads time.Duration)
	// Throttle refuses so many of the next changes, LoseAnswers carries them out and cuts the
	// connection, and Hold has them wait until the returned function is called.
	Throttle(changes int)
	LoseAnswers(changes int)
	Hold() (held <-chan struct{}, release func())
	// Changes counts the changes that the provider was asked for, and those that it accepted.
	Changes() (asked, accepted int)
	// IDs are those that the provider could see of the requests, each once.
	IDs() []string
}

// Provider is an executor and the fake of its provider.
type Provider struct {
	New     func(t *testing.T) World
	Execute executor.Execute // in this process
	// Visible is what the provider can see of an ID.
	Visible func(id string) string
}
