// Package claimstest is what every claims.Store has to pass.
package claimstest

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tasuki-io/tasuki/internal/capture"
	"github.com/tasuki-io/tasuki/internal/claims"
)

// Subject is an empty store of its own, with nothing in it.
type Subject struct {
	// Open opens another handle onto the store, as another process would. It is closed when
	// the test ends.
	Open func(t *testing.T) claims.Store
	// Now is the clock by which leases are judged, and Pass lets it go on: a test sets its
	// own, unless the leases end by themselves somewhere else.
	Now  func() time.Time
	Pass func(time.Duration)
	// TTL is a lease that no pause of a busy machine outlasts.
	TTL time.Duration
}

// Run holds a kind of store to what claims.Store promises. Every call of subject makes a new
// store.
func Run(t *testing.T, subject func(t *testing.T) Subject) {
	for name, test := range map[string]func(*testing.T, Subject){
		"WhatWasNeverClaimedHasNoEpoch":             neverClaimed,
		"ABumpIsByComparison":                       comparison,
		"EachBumpStandsForItself":                   themselves,
		"AnEpochOnlyRises":                          rises,
		"AThousandBumpsAtOnce":                      thousand,
		"OfManyBumpsAtOnceOneIsDone":                race,
		"AClaimIsReadByOthersOnceAcknowledged":      acknowledged,
		"EveryKeyIsKeptApart":                       keys,
		"ChangesAreWhatIsNew":                       incremental,
		"ChangesBeginAnewWithoutAKnownRevision":     reset,
		"WaitReturnsForWhatOthersWrite":             waits,
		"WaitReturnsForWhatIsThereAlready":          waitsNot,
		"WaitEndsWithItsContext":                    waitEnds,
		"ADrainIsSeenByAll":                         drains,
		"AnOwnerHasAnEpochOfItsOwn":                 owners,
		"ALeaseLastsForItsTTL":                      lease,
		"WhoRenewsStaysAlive":                       renews,
		"WaitReturnsForADeathAndABirth":             waitsForDeath,
		"NobodyIsAliveForNoTime":                    noTTL,
		"EveryHistoryIsOneOfASingleStore":           history,
		"AnEndedContextIsAnErrorAndNothingIsLocked": ended,
	} {
		t.Run(name, func(t *testing.T) { test(t, subject(t)) })
	}
}

const domain = "provider:cloud-a:placement:g"

func key(i int) capture.Key {
	return capture.Key{Pool: "blue", Address: netip.AddrFrom4([4]byte{10, 0, byte(i / 256), byte(i % 256)}), Domain: domain}
}

func claim(e capture.Epoch, h capture.Holder) capture.Claim {
	return capture.Claim{Epoch: e, Holder: h}
}

func bump(k capture.Key, from, to capture.Claim) capture.Bump {
	return capture.Bump{Key: k, From: from, To: to, Why: capture.CauseHolder}
}

// does has a store perform bumps, and compares which were done.
func does(t *testing.T, s claims.Store, want []bool, bumps ...capture.Bump) {
	t.Helper()
	got, err := s.Bump(t.Context(), bumps)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("done (-want +got):\n%s", diff)
	}
}

func holds(t *testing.T, s claims.Store, k capture.Key, want capture.Claim) {
	t.Helper()
	if got, err := s.Claim(t.Context(), k); err != nil || got != want {
		t.Errorf("%s is claimed by %s, %v; want %s", k, got, err, want)
	}
}

func changes(t *testing.T, s claims.Store, since claims.Revision) claims.Changes {
	t.Helper()
	c, err := s.Changes(t.Context(), since)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// says compares changes with what they should be, but for their revision.
func says(t *testing.T, got, want claims.Changes) {
	t.Helper()
	got.Revision = claims.Revision{}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmpopts.EquateComparable(capture.Key{}, claims.AddressLease{})); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
}

// patience is how long a test waits for what has to come, before it gives up.
const patience = time.Minute

// eventually asks until it is so. What has to come is not timed.
func eventually(t *testing.T, what string, so func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !so(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("it never came to %s", what)
		}
	}
}

// waiting runs Wait and says when it returns.
func waiting(t *testing.T, s claims.Store, since claims.Revision) <-chan error {
	t.Helper()
	returned := make(chan error, 1)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	go func() { returned <- s.Wait(ctx, since) }()
	return returned
}

func ended(t *testing.T, s Subject) {
	store := s.Open(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	k := key(1)
	_, err1 := store.Bump(ctx, []capture.Bump{bump(k, capture.Claim{}, claim(1, "a"))})
	_, err2 := store.Claim(ctx, k)
	_, err3 := store.Changes(ctx, claims.Revision{})
	_, err4 := store.Renew(ctx, "a", s.TTL)
	_, err5 := store.Own(ctx, capture.Home{Pool: "blue", Addr: k.Address}, capture.Location{Site: "tokyo"})
	for i, err := range []error{err1, err2, err3, err4, err5, store.Drain(ctx, "a", true)} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("call %d: error %v", i+1, err)
		}
	}
	says(t, changes(t, s.Open(t), claims.Revision{}), claims.Changes{Reset: true})
	does(t, store, []bool{true}, bump(k, capture.Claim{}, claim(1, "a")))
}

func name(i int) capture.Holder { return capture.Holder(fmt.Sprintf("node-%d", i)) }
