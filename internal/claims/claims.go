package claims

import (
	"context"
	"errors"
	"time"

	"github.com/tasuki-io/tasuki/internal/capture"
)

// Store is a claims store. Its methods may be called at once from several goroutines, and the
// same store from several processes. An error leaves the caller not knowing whether a write
// was done: it reads again.
type Store interface {
	// Changes returns what has changed since a revision, in no time if nothing has. The zero
	// revision asks for everything.
	Changes(ctx context.Context, since Revision) (Changes, error)
	// Wait returns as soon as something has changed since a revision, or when the nodes that
	// are alive are not those any more of which the last Changes told. It returns an error when
	// ctx ends.
	Wait(ctx context.Context, since Revision) error
	// Claim reads one claim. It sees every write that was acknowledged before the call.
	Claim(ctx context.Context, k capture.Key) (capture.Claim, error)
	// Bump performs each bump whose claim is still what its From says. It returns which were
	// done, and durable; the others change nothing. A bump that would not raise its epoch, or
	// that the store cannot count up to, is an error beside what was done. After any other
	// error, those that are not said to be done are unknown.
	Bump(ctx context.Context, bumps []capture.Bump) ([]bool, error)
	// Drain takes a node out of every placement at run time, or lets it back. What is so
	// already, here and in Own, is no change.
	Drain(ctx context.Context, node string, drained bool) error
	// Own says where an address lives. Its epoch rises by one when that is a change.
	Own(ctx context.Context, h capture.Home, owner capture.Location) (AddressLease, error)
	// Renew keeps a node alive for a TTL; of one that is alive it is no change. It returns when
	// the lease could end at the earliest, by this process's monotonic clock. Whoever renews
	// later than that begins anew, and may have lost meanwhile what it held. The error is an
	// ErrRival while another agent keeps the node alive, if the store can tell them apart.
	Renew(ctx context.Context, node string, ttl time.Duration) (time.Time, error)
	Close() error
}

// ErrRival says that the node is renewed by another agent: one of the two has its name by mistake.
var ErrRival = errors.New("another agent keeps the node alive")

// Revision is a point in the history of a store. Revisions of one store compare; what is
// stored there is opaque.
type Revision struct {
	Store string
	N     uint64
}

// Changes is what has changed in a store.
type Changes struct {
	Revision Revision // ask from here next time
	// Reset says that this is everything there is, rather than what has changed: the store
	// could not go on from the revision that it was asked from. A claim that is not in it is
	// the zero Claim, whatever it was before.
	Reset  bool
	Claims map[capture.Key]capture.Claim
	Leases []AddressLease

	Drained []string // every node that is drained at run time, in order
	Alive   []string // every node whose lease has not ended, in order
}

// AddressLease is where an address lives, as somebody has said at run time. Its epoch counts
// the changes of its owner from 1; it has nothing to do with captureEpoch. An owner without a
// site lives nowhere.
type AddressLease struct {
	capture.Home
	Owner capture.Location
	Epoch uint64
}
