package aws

import (
	"testing"
	"time"

	"github.com/tasuki-io/tasuki/internal/capture"
	"github.com/tasuki-io/tasuki/internal/executor"
	"github.com/tasuki-io/tasuki/internal/executor/executortest"
)

func TestAnIPv6AddressIsTakenByNameAndThenAssigned(t *testing.T) {
	h := newHost(t)
	h.Place("eni-b", mobile6)
	h.Want(h.ask(capture.Assign, mobile6, reassign), executor.OutcomeAgain, "taken from eni-b", "eni-a")
	h.WantOn(mobile6)
	h.Want(h.ask(capture.Assign, mobile6, reassign), executor.OutcomeDone)
	h.WantOn(mobile6, "eni-a")
	got := h.changes()
	if len(got) != 2 || got[0].Action != "UnassignIpv6Addresses" || got[0].NIC != "eni-b" || got[1].Action != "AssignIpv6Addresses" || got[1].NIC != "eni-a" {
		t.Errorf("EC2 was asked for %+v, want it off eni-b and on eni-a", got)
	}
}

// The read before a removal is old: meanwhile the address has gone on to eni-c.
func TestAnIPv6AddressThatMovedOnIsNotTakenFromWhoeverHasItNow(t *testing.T) {
	h := newHost(t)
	h.AddNIC(executortest.Interface{ID: "eni-c", Subnet: "subnet-1"})
	h.Place("eni-b", mobile6)
	h.Before(func(c executortest.Call) {
		if c.Changes() {
			h.Place("eni-c", mobile6)
		}
	})
	h.Want(h.ask(capture.Assign, mobile6, reassign), executor.OutcomeRetry, "has left eni-b")
	h.WantOn(mobile6, "eni-c")
}

// The read before an assignment does not show yet who has the address.
func TestAnIPv6AddressThatShowsLateIsTakenByTheNextAttempt(t *testing.T) {
	h := newHost(t)
	h.Lag(0, 10*time.Second)
	b := func(q *executor.Request) { q.NIC = "eni-b" }
	h.Want(h.ask(capture.Assign, mobile6, b), executor.OutcomeDone)
	h.Lag(0, 15*time.Second)
	h.Want(h.ask(capture.Assign, mobile6, reassign), executor.OutcomeRetry, "is on eni-b")
	h.Want(h.ask(capture.Assign, mobile6, reassign), executor.OutcomeAgain)
	h.WantOn(mobile6)
}

func TestARemovalOfAnIPv6AddressWithoutAnAnswerIsSettledByReading(t *testing.T) {
	h := newHost(t)
	h.Place("eni-b", mobile6)
	h.Inject(executortest.Rule{Match: executortest.Changing, Times: 1, Fault: executortest.Fault{Carry: true}})
	h.Want(h.ask(capture.Assign, mobile6, reassign), executor.OutcomeAgain)
	h.Place("eni-b", mobile6)
	h.Inject(executortest.Rule{Match: executortest.Changing, Times: 1, Fault: executortest.Fault{}})
	h.Want(h.ask(capture.Assign, mobile6, reassign), executor.OutcomeUnknown)
	h.WantOn(mobile6, "eni-b")
}
