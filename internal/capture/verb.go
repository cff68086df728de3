package capture

import (
	"cmp"
	"strconv"
)

// Verb is what a provider is asked to do.
type Verb string

// The verbs.
const (
	Assign            Verb = "assign-secondary-ip"
	Unassign          Verb = "unassign-secondary-ip"
	EnableForwarding  Verb = "ensure-forwarding-enabled"
	DisableForwarding Verb = "ensure-forwarding-disabled"
)

// Verbs lists all verbs.
func Verbs() []Verb { return []Verb{Assign, Unassign, EnableForwarding, DisableForwarding} }

// Acquires reports a verb that takes something for the holder, rather than from a departing
// one.
func (v Verb) Acquires() bool { return v == Assign || v == EnableForwarding }

// reverse is what takes a verb back.
func (v Verb) reverse() Verb {
	return map[Verb]Verb{Assign: Unassign, Unassign: Assign, EnableForwarding: DisableForwarding, DisableForwarding: EnableForwarding}[v]
}

// Token is the stamp of an action: what it is for, and under which claim it was planned
// (§2). The holder of an acquiring action is the one that acquires; that of a releasing one
// is the one that departs.
type Token struct {
	Verb   Verb
	Key    Key
	Epoch  Epoch
	Holder Holder
}

// IdempotencyKey is the name of the action on a NIC of a provider: one per epoch, and the
// same on every pass within it (§2).
func (t Token) IdempotencyKey(provider, nic string) string {
	return "mobility:" + cmp.Or(t.Key.Pool, nothing) + ":" + provider + ":" + nic + ":" + string(t.Verb) + ":" +
		t.Key.address() + ":epoch:" + strconv.FormatUint(uint64(t.Epoch), 10)
}
