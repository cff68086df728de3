package capture

import (
	"strconv"
	"strings"
	"time"
)

// State is where an action is in its life, as the journal has it.
type State string

// The states. A failed action is tried again on the same row; a skipped or succeeded one
// never is.
const (
	Pending    State = "pending"
	Approved   State = "approved"
	Running    State = "running"
	Succeeded  State = "succeeded"
	Failed     State = "failed"
	Skipped    State = "skipped"
	RolledBack State = "rolledBack"
)

// Open reports a state in which the provider may still be called for the action.
func (s State) Open() bool { return s == Pending || s == Approved || s == Running || s == Failed }

// Action is a row of the journal: one thing that this node asks of a provider.
type Action struct {
	Token
	Target
	Reassign bool // Assign: take it from whichever NIC has it
	// Repair counts the actions at one epoch that drift has made necessary again, from 1.
	Repair int
	// Approver is who has approved it: ByPolicy, or a person.
	Approver string
	// Undoes is the ID of the succeeded action that this one takes back, on somebody's demand.
	Undoes string

	State    State
	Attempts int
	// Unanswered counts the attempts of whose end nothing is known.
	Unanswered int
	// NotBefore is when the next attempt may begin: after one that failed or was throttled, its
	// backoff.
	NotBefore time.Time
	// Deadline is when a running attempt has certainly ended.
	Deadline time.Time
	// Reason is why it failed or was skipped.
	Reason string
	// Updated is when its state last changed.
	Updated time.Time
}

// ByPolicy is the approver of what the policy lets begin without anybody.
const ByPolicy = "policy"

// Target is the NIC that an action is about.
type Target struct {
	Provider    string // aws, azure, oci, or Linux
	ProviderRef string // none of Linux
	NIC         string
}

// underWay reports an attempt that may still be going on.
func (a *Action) underWay(now time.Time) bool { return a.State == Running && now.Before(a.Deadline) }

// throttled reports an action whose provider has asked for patience: nothing of it has failed.
func (a *Action) throttled() bool {
	return a.State == Approved && a.Attempts > 0 && !a.NotBefore.IsZero()
}

// trace tells the action apart from others of its verb and key, as its ID does.
func (a *Action) trace() Trace { return Trace{a.Epoch, a.Target, a.Repair, a.Undoes != ""} }

// ID is the action's idempotencyKey. What succeeded never runs again, so a repair and an undo
// have one of their own.
func (a Action) ID() string {
	id := a.IdempotencyKey(a.Provider, a.NIC)
	if a.Repair > 0 {
		id += ":repair:" + strconv.Itoa(a.Repair)
	}
	if a.Undoes != "" {
		id += ":undo"
	}
	return id
}

// Undo is the action that takes back one that has succeeded, under the claim that is current.
// It is a row like any other: the gate lets it pass only if it takes for the holder, or from
// somebody who is not.
func (a Action) Undo(current Claim) Action {
	undo := Action{
		Token:  Token{Verb: a.Verb.reverse(), Key: a.Key, Epoch: current.Epoch, Holder: a.Holder},
		Target: a.Target, Repair: a.Repair, Undoes: a.ID(), State: Pending,
	}
	undo.Reassign = undo.Verb == Assign && (undo.Epoch > 1 || undo.Repair > 0)
	return undo
}

// effect is what a success leaves behind, given what an earlier one has. The repairs of an
// epoch go on counting when an undo, which is none, comes between them.
func (a *Action) effect(before Effect) Effect {
	now := Effect{Epoch: a.Epoch, Target: a.Target, Repair: a.Repair, At: a.Updated}
	if now.Epoch == before.Epoch {
		now.Streak = now.streak(before)
		now.Repair = max(now.Repair, before.Repair)
	}
	return now
}

// Marker is an entry of the outbox: this node has to release what Token names. It is there
// until the release has succeeded or is stale.
type Marker struct {
	Token
	Target
	Repair int
}

// ID is the idempotencyKey of the release that the marker stands for.
func (m Marker) ID() string {
	return Action{Token: m.Token, Target: m.Target, Repair: m.Repair}.ID()
}

func (m *Marker) trace() Trace { return Trace{m.Epoch, m.Target, m.Repair, false} }

// forwarding is the key of what the NIC forwards.
func (t Target) forwarding() Key {
	return Key{Domain: Domain("provider:" + t.ProviderRef + ":nic:" + t.NIC)}
}

// onNIC reports the forwarding key of a NIC, by whichever profile.
func (k *Key) onNIC(nic string) bool {
	return !k.Address.IsValid() && strings.HasSuffix(string(k.Domain), ":nic:"+nic)
}
