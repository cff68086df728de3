// Package journaltest is what every journal has to pass that an agent decides from, and one in
// memory that passes it.
package journaltest

import (
	"context"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tasuki-io/tasuki/internal/capture"
	"github.com/tasuki-io/tasuki/internal/journal"
)

// Journal is the part of a journal that an agent decides from.
type Journal interface {
	Load(ctx context.Context) (journal.Contents, error)
	Note(ctx context.Context, current map[capture.Key]capture.Claim) error
	Apply(ctx context.Context, plan *capture.Plan, now time.Time) (journal.Receipt, error)
	Begin(ctx context.Context, id string, now, deadline time.Time) (capture.Action, capture.Stale, error)
	End(ctx context.Context, begun capture.Action, e journal.Ending, now time.Time) (capture.Action, error)
}

var _ Journal = (*journal.Journal)(nil)

// Subject is an empty journal.
type Subject struct {
	Journal
	// Again is the journal as the next process opens it.
	Again func(t *testing.T) Journal
}

// Run holds a kind of journal to what the agent relies on. Every call of subject makes a new
// journal.
func Run(t *testing.T, subject func(t *testing.T) Subject) {
	for name, test := range map[string]func(*scene){
		"AnEmptyJournalKnowsNothing":             empty,
		"WhatIsKnownOnlyRises":                   known,
		"AnUnknownEpochFailsClosed":              closed,
		"TheGateDecidesWhatIsImported":           imports,
		"AnActionIsImportedOnce":                 once,
		"AnActionBeginsAsPending":                begins,
		"AMarkerComesWithItsRelease":             marks,
		"AStaleMarkIsNoMarkerAndNoRow":           staleMarks,
		"AMarkerIsDropped":                       drops,
		"ASkipMeetsWhatThePlanHasSeen":           skips,
		"AnEndThatRestsOnALostBumpDoesNotCome":   lostBump,
		"APlanIsWrittenInItsOrder":               order,
		"AnApprovalIsForThePending":              admits,
		"AnAttemptIsResumedByItsNumber":          resumes,
		"ARunningAttemptIsCounted":               counted,
		"OnlyTheApprovedAndTheFailedBegin":       startable,
		"AStaleActionIsSkippedInsteadOfBegun":    staleBegin,
		"AnAttemptEnds":                          ends,
		"AnAttemptThatWasGivenUpDoesNotEnd":      givenUp,
		"WhatIsOverStaysSo":                      over,
		"AnUndoTakesBackWhatItUndoes":            undo,
		"RowsAreInTheOrderOfTheirLastWrite":      written,
		"NoAttemptBeginsAtAnEpochThatHasMovedOn": fence,
	} {
		t.Run(name, func(t *testing.T) {
			s := &scene{T: t, Subject: subject(t), now: time.Date(2026, 3, 4, 2, 0, 0, 123456789, time.UTC)}
			test(s)
			s.durable()
		})
	}
}

// scene is a test under way.
type scene struct {
	*testing.T
	Subject
	now time.Time
}

const domain = "provider:cloud-a:placement:g"

var (
	key    = capture.Key{Pool: "blue", Address: netip.MustParseAddr("10.0.0.1"), Domain: domain}
	other  = capture.Key{Pool: "blue", Address: netip.MustParseAddr("2001:db8::1"), Domain: domain}
	target = capture.Target{Provider: "aws", ProviderRef: "cloud-a", NIC: "eni-a"}
	nic    = capture.Key{Domain: "provider:cloud-a:nic:eni-a"} // its forwarding
)

func claim(e capture.Epoch, h capture.Holder) capture.Claim {
	return capture.Claim{Epoch: e, Holder: h}
}

// action is a new action of node a.
func action(v capture.Verb, k capture.Key, e capture.Epoch) capture.Action {
	return capture.Action{
		Token: capture.Token{Verb: v, Key: k, Epoch: e, Holder: "a"}, Target: target,
		Reassign: v == capture.Assign && e > 1, State: capture.Pending,
	}
}

func mark(a capture.Action) capture.Mark {
	return capture.Mark{Marker: capture.Marker{Token: a.Token, Target: a.Target, Repair: a.Repair}, Action: a}
}

// with is an action in another state.
func with(a capture.Action, s capture.State, more ...func(*capture.Action)) capture.Action {
	a.State = s
	for _, m := range more {
		m(&a)
	}
	return a
}

func attempts(n, unanswered int) func(*capture.Action) {
	return func(a *capture.Action) { a.Attempts, a.Unanswered = n, unanswered }
}

func because(reason string) func(*capture.Action) {
	return func(a *capture.Action) { a.Reason = reason }
}

func (s *scene) note(k capture.Key, c capture.Claim) {
	s.Helper()
	if err := s.Note(s.Context(), map[capture.Key]capture.Claim{k: c}); err != nil {
		s.Fatal(err)
	}
}

// tick lets a second go by.
func (s *scene) tick() time.Time { s.now = s.now.Add(time.Second); return s.now }

func (s *scene) apply(p capture.Plan) journal.Receipt {
	s.Helper()
	r, err := s.Apply(s.Context(), &p, s.tick())
	if err != nil {
		s.Fatal(err)
	}
	return r
}

// approved imports an action and approves it.
func (s *scene) approved(a capture.Action) capture.Action {
	s.Helper()
	r := s.apply(capture.Plan{Imports: []capture.Action{a}, Admits: []capture.Action{a}})
	if len(r.Actions) != 2 {
		s.Fatalf("import and approval of %s: %+v", a.ID(), r)
	}
	return r.Actions[1]
}

func (s *scene) begin(a capture.Action) capture.Action {
	s.Helper()
	begun, stale, err := s.Begin(s.Context(), a.ID(), s.tick(), s.now.Add(capture.ExecutorTime))
	if stale != "" || err != nil {
		s.Fatalf("begin of %s: %q, %v", a.ID(), stale, err)
	}
	return begun
}

func (s *scene) end(begun capture.Action, e journal.Ending) capture.Action {
	s.Helper()
	a, err := s.End(s.Context(), begun, e, s.tick())
	if err != nil {
		s.Fatalf("end of %s: %v", begun.ID(), err)
	}
	return a
}

func (s *scene) load() journal.Contents {
	s.Helper()
	c, err := s.Load(s.Context())
	if err != nil {
		s.Fatal(err)
	}
	return c
}

// has compares the rows with what they should be, in the order of their last writes. The times
// at which they changed are left out.
func (s *scene) has(want ...capture.Action) {
	s.Helper()
	s.same("rows", want, s.load().Actions)
}

func (s *scene) marked(want ...capture.Marker) {
	s.Helper()
	s.same("markers", want, s.load().Markers)
}

func (s *scene) same(what string, want, got any) {
	s.Helper()
	if diff := cmp.Diff(want, got, untimed, cmpopts.EquateEmpty(), comparable); diff != "" {
		s.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

var (
	comparable = cmpopts.EquateComparable(capture.Key{}, capture.Claim{})
	untimed    = cmpopts.IgnoreFields(capture.Action{}, "Updated", "Deadline", "NotBefore", "Approver")
)

// durable checks that the next process finds exactly what this one has left.
func (s *scene) durable() {
	s.Helper()
	want := s.load()
	got, err := s.Again(s.T).Load(s.Context())
	if err != nil {
		s.Fatal(err)
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), comparable); diff != "" {
		s.Errorf("after opening it again (-before +after):\n%s", diff)
	}
}
