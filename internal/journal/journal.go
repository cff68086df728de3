package journal

import (
	"errors"
	"time"

	"github.com/tasuki-io/tasuki/internal/capture"
)

// Why a call did nothing; the error around it names the row.
var (
	ErrNoAction     = errors.New("no such action")
	ErrNotStartable = errors.New("only an approved or failed action begins")
	ErrGivenUp      = errors.New("the attempt was given up before it ended")
)

// Contents is everything that the decisions of an agent rest on.
type Contents struct {
	// Known holds the last epoch that this agent knew of each key.
	Known map[capture.Key]capture.Claim
	// Actions are the rows in the order in which they were last written.
	Actions []capture.Action
	Markers []capture.Marker
}

// Receipt says what a transaction has done, for the view and for what is announced.
type Receipt struct {
	Actions  []capture.Action // the rows as they are now, in the order of the writes
	Marked   []capture.Marker
	Unmarked []capture.Marker
	Fenced   []capture.Skip // what the gate did not let in; no row is written for it
}

// Ending is how an attempt ended.
type Ending struct {
	// State is Succeeded, Failed, Skipped when the gate refused before the provider was asked,
	// or Approved when the attempt is to be repeated and counts as no failure.
	State     capture.State
	Code      string // the provider's
	Reason    string // for people
	NotBefore time.Time
	// Answered is whether the provider has answered, so that nothing of the attempt can still
	// take effect. Unasked is whether it was never asked: the attempt does not count.
	Answered, Unasked bool
}

// Row is an action with its history, for people.
type Row struct {
	capture.Action
	Created time.Time
	Code    string // of the last failure
	// Superseded marks a success that came after the epoch had moved on.
	Superseded bool
}

// Event is one change of a row.
type Event struct {
	At       time.Time
	ID       string
	From, To capture.State
	Attempt  int
	Detail   string
}
