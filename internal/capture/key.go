package capture

import (
	"cmp"
	"fmt"
	"net/netip"
	"strings"
)

// Epoch is the fencing token of a Key (captureEpoch, ADR 0008 §1). It begins at 1 and rises
// by one with every change of the desired holder. Zero is an epoch that nobody knows.
type Epoch uint64

// Holder is the node that holds an address. None is a holder like any other: a change to or
// from it raises the epoch.
type Holder string

// None is the holder of an address that nobody is to hold.
const None Holder = ""

// Unknown is the holder of an epoch of which only a release tells.
const Unknown Holder = "?"

// String is the node's name, or "none".
func (h Holder) String() string { return cmp.Or(string(h), "none") }

// Domain is the scope in which an address has one holder (captureDomain).
type Domain string

// Key names one line of epochs (captureKey). An address has one per domain. A NIC has one
// for its forwarding, with the zero Address and no pool: it belongs to all pools that use it.
type Key struct {
	Pool    string
	Address netip.Addr
	Domain  Domain
}

// String renders the key as "pool/address@domain".
func (k Key) String() string {
	return fmt.Sprintf("%s/%s@%s", cmp.Or(k.Pool, nothing), k.address(), k.Domain)
}

// nothing stands for a part that a key does not have.
const nothing = "-"

func (k Key) address() string {
	if !k.Address.IsValid() {
		return nothing
	}
	return k.Address.String()
}

// Compare orders keys by pool, address and domain.
func (k Key) Compare(o Key) int {
	return cmp.Or(strings.Compare(k.Pool, o.Pool), k.Address.Compare(o.Address), cmp.Compare(k.Domain, o.Domain))
}

// Claim is the current holder of a Key and the epoch since which it holds. The zero value
// is a key that was never claimed.
type Claim struct {
	Epoch  Epoch
	Holder Holder
}

// String renders the claim as "holder (epoch N)".
func (c Claim) String() string { return fmt.Sprintf("%s (epoch %d)", c.Holder, c.Epoch) }

// Tells reports whether a claim that was once current tells more than another of its key: a
// higher epoch, or the holder of one whose holder is unknown.
func (c Claim) Tells(than Claim) bool {
	return c.Epoch > than.Epoch || c.Epoch == than.Epoch && than.Holder == Unknown && c.Holder != Unknown
}
