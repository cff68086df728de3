package oci

import (
	"context"
	"net/netip"
	"testing"
	"time"

	"github.com/oracle/oci-go-sdk/v65/common"
	"github.com/oracle/oci-go-sdk/v65/core"

	"github.com/tasuki-io/tasuki/internal/capture"
	"github.com/tasuki-io/tasuki/internal/executor"
	"github.com/tasuki-io/tasuki/internal/executor/executortest"
)

// c12: a zombie has read the address on its VNIC, the new holder moves it (the OCID stays), the
// zombie deletes.
func TestC12AZombiesReleaseIsRefusedByTheEtagAndTheNewHolderKeepsTheAddress(t *testing.T) {
	for _, a := range both {
		for _, reserved := range []bool{false, true} {
			h := newHost(t)
			h.AddIP(executortest.IP{Subnet: "subnet-1", VNIC: "vnic-a", Address: a, Reserved: reserved})
			h.beforeChange(func() { h.Want(h.ask(capture.Assign, a, asB, reassign), executor.OutcomeDone) })
			h.Want(h.ask(capture.Unassign, a), executor.OutcomeAlready)
			h.WantOn(a, "vnic-b")
			if zombie := h.changes()[0]; zombie.Code != "NoEtagMatch" || zombie.Accepted {
				t.Errorf("the zombie's call is %+v, want it refused with NoEtagMatch", zombie)
			}
		}
	}
}

// Where the ADR claims too much: that a release names a VNIC and so cannot strip another one
// is not so at OCI, where it names an OCID. What a client does that lists and then deletes,
// and ours at the same moment.
func TestTooStrongAReleaseByOCIDAloneStripsTheNewHolderAndOursDoesNot(t *testing.T) {
	naive := func(h *host) {
		net, err := h.id().client(newWire(context.Background(), h.limits), executor.Request{})
		if err != nil {
			t.Fatal(err)
		}
		list, err := net.ListPrivateIps(context.Background(), core.ListPrivateIpsRequest{SubnetId: common.String("subnet-1"), IpAddress: common.String(mobile.String())})
		if err != nil || len(list.Items) != 1 || *list.Items[0].VnicId != "vnic-a" {
			t.Fatalf("%v, %v: want it on vnic-a", list.Items, err)
		}
		if _, err := net.DeletePrivateIp(context.Background(), core.DeletePrivateIpRequest{PrivateIpId: list.Items[0].Id}); err != nil {
			t.Fatal(err)
		}
	}
	ours := func(h *host) { h.Want(h.ask(capture.Unassign, mobile), executor.OutcomeAlready) }
	for _, c := range []struct {
		name    string
		release func(*host)
		on      []string
	}{{"list, then delete", naive, nil}, {"ours", ours, []string{"vnic-b"}}} {
		t.Run(c.name, func(t *testing.T) {
			h := newHost(t)
			h.Place("vnic-a", mobile)
			h.beforeChange(func() { h.Want(h.ask(capture.Assign, mobile, asB, reassign), executor.OutcomeDone) })
			c.release(h)
			h.WantOn(mobile, c.on...)
		})
	}
}

// I5: whenever in its course a release is overtaken, and however old what it reads is.
func TestI5WhoeverTakesTheAddressDuringAReleaseKeepsIt(t *testing.T) {
	for _, a := range both {
		for _, stale := range []time.Duration{0, 3 * time.Second, time.Minute} {
			// The reads of the VNIC, of the list and of the object, and the deletion.
			for at := range 4 {
				h := newHost(t)
				h.Lag(0, stale)
				h.Place("vnic-a", a)
				h.Before(func(c executortest.Call) {
					if c.N == at {
						h.ask(capture.Assign, a, asB, reassign)
						h.WantOn(a, "vnic-b")
					}
				})
				r := h.ask(capture.Unassign, a)
				if r.Outcome != executor.OutcomeAlready && (r.Outcome != executor.OutcomeRetry || stale == 0) {
					t.Errorf("taken at call %d, reads %s old: %+v", at, stale, r)
				}
				h.WantOn(a, "vnic-b")
			}
		}
	}
}

// A zombie's late move: it has read the address on vnic-b, which has lost it since.
func TestAMoveThatWasOvertakenIsRefusedAndAskedAnew(t *testing.T) {
	for _, a := range both {
		h := newHost(t)
		h.AddVNIC(executortest.VNIC{ID: "vnic-c", Subnet: "subnet-1", Primary: netip.MustParseAddr("10.0.0.12")})
		h.Place("vnic-b", a)
		h.beforeChange(func() { h.Place("vnic-c", a) })
		r := h.ask(capture.Assign, a, reassign)
		h.Want(r, executor.OutcomeRetry, "on vnic-c")
		if r.Code != "NoEtagMatch" {
			t.Errorf("code %q", r.Code)
		}
		h.WantOn(a, "vnic-c")
		h.wantChanges(1)
	}
}

func TestAMoveWhoseAddressWasDeletedIsAskedAnew(t *testing.T) {
	h := newHost(t)
	h.Place("vnic-b", mobile)
	h.beforeChange(func() { h.Place("", mobile) })
	h.Want(h.ask(capture.Assign, mobile, reassign), executor.OutcomeRetry, "is free")
	h.Want(h.ask(capture.Assign, mobile, reassign), executor.OutcomeDone)
}

func TestAMoveThatSomebodyElseHasMadeIsAlready(t *testing.T) {
	h := newHost(t)
	h.Place("vnic-b", mobile)
	h.beforeChange(func() { h.Place("vnic-a", mobile) })
	h.Want(h.ask(capture.Assign, mobile, reassign), executor.OutcomeAlready)
}

// A read does not show yet who has the address.
func TestAnAddressThatIsTakenIsNotCreatedTwice(t *testing.T) {
	for _, a := range both {
		for _, c := range []struct {
			shows time.Duration
			may   func(*executor.Request)
			want  executor.Outcome
			says  string
		}{
			{3 * time.Second, func(*executor.Request) {}, executor.OutcomePermanent, "on vnic-b"},
			{3 * time.Second, reassign, executor.OutcomeRetry, "on vnic-b"},
			{time.Minute, reassign, executor.OutcomeRetry, "already in use"},
		} {
			h := newHost(t)
			h.Want(h.ask(capture.Assign, a, asB), executor.OutcomeDone)
			h.Lag(0, c.shows)
			r := h.ask(capture.Assign, a, c.may)
			h.Want(r, c.want, c.says)
			if r.Code != "Conflict" {
				t.Errorf("code %q", r.Code)
			}
			h.WantOn(a, "vnic-b")
			h.wantChanges(2)
		}
	}
}

func TestAReleaseOfWhatWasDeletedMeanwhileIsAlready(t *testing.T) {
	h := newHost(t)
	h.Place("vnic-a", mobile)
	h.beforeChange(func() { h.Place("", mobile) })
	h.Want(h.ask(capture.Unassign, mobile), executor.OutcomeAlready)
}

func TestAReleaseOfWhatWasChangedOnOurVNICIsAskedAnew(t *testing.T) {
	h := newHost(t)
	h.Place("vnic-a", mobile)
	h.beforeChange(func() { h.Place("vnic-a", mobile) }) // its etag is another one
	h.Want(h.ask(capture.Unassign, mobile), executor.OutcomeRetry, "changed by somebody else")
	h.WantOn(mobile, "vnic-a")
	h.Want(h.ask(capture.Unassign, mobile), executor.OutcomeDone)
}

// A creation is held up on its way while a later attempt is served, and the address is
// released. Its retry token is what keeps it from coming back.
func TestADelayedCreationCreatesNothingOnceAnotherAttemptWasServed(t *testing.T) {
	for _, a := range both {
		h := newHost(t)
		arrived, gate := make(chan struct{}), make(chan struct{})
		h.beforeChange(func() {
			close(arrived)
			<-gate
		})
		h.limits.change = 300 * time.Millisecond
		h.Want(h.ask(capture.Assign, a), executor.OutcomeUnknown)
		<-arrived
		h.limits.change = time.Minute
		h.Want(h.ask(capture.Assign, a, readFirst), executor.OutcomeDone)
		h.Want(h.ask(capture.Unassign, a), executor.OutcomeDone)
		close(gate)
		for late := h.changes()[0]; late.Code == "" && !late.Accepted; late = h.changes()[0] {
			time.Sleep(time.Millisecond) // it is looked at although nobody waits for it
		}
		if late := h.changes()[0]; late.Code != "InvalidatedRetryToken" || late.RetryToken != h.changes()[1].RetryToken {
			t.Errorf("the delayed call is %+v, want it refused as the same request as %+v", late, h.changes()[1])
		}
		h.WantOn(a)
	}
}

func TestACreationThatWasUndoneSinceIsSaid(t *testing.T) {
	h := newHost(t)
	h.Want(h.ask(capture.Assign, mobile), executor.OutcomeDone)
	h.Place("", mobile)
	h.Want(h.ask(capture.Assign, mobile, readFirst), executor.OutcomeRetry, "deleted since", "new epoch")
	repair := func(q *executor.Request) { q.ID += ":repair:1" }
	h.Want(h.ask(capture.Assign, mobile, repair), executor.OutcomeDone)
}

// OCI takes the repeated creation for the first one and shows what that made, which is on
// vnic-b by now: its answer is not what counts.
func TestWhatARepeatedCreationAnswersIsNotTakenForItsOutcome(t *testing.T) {
	h := newHost(t)
	h.Lag(0, time.Minute)
	h.Want(h.ask(capture.Assign, mobile), executor.OutcomeUnknown)
	h.Lag(0, time.Hour)
	h.beforeChange(func() {
		h.Lag(0, 0)
		h.Place("vnic-b", mobile)
	})
	h.Want(h.ask(capture.Assign, mobile, readFirst), executor.OutcomeUnknown)
	h.WantOn(mobile, "vnic-b")
}

// The token is forgotten after a day, and what was created is not.
func TestADayLaterAnAttemptReadsWhatTheFirstOneDid(t *testing.T) {
	h := newHost(t)
	h.Lag(0, time.Minute)
	h.Want(h.ask(capture.Assign, mobile), executor.OutcomeUnknown)
	h.clock.Sleep(context.Background(), 25*time.Hour)
	h.Want(h.ask(capture.Assign, mobile, readFirst), executor.OutcomeAlready)
	h.wantChanges(1)
}
