package aws

import (
	"context"
	"net/netip"
	"testing"
	"time"

	"github.com/tasuki-io/tasuki/internal/capture"
	"github.com/tasuki-io/tasuki/internal/executor"
	"github.com/tasuki-io/tasuki/internal/executor/executortest"
)

// host is a host with eni-a, and another one with eni-b, by a clock that only moves while an
// executor waits.
type host struct {
	*executortest.Check
	*executortest.EC2
	clock *executortest.Clock
}

var (
	mobile    = netip.MustParseAddr("10.0.0.100")
	mobile6   = netip.MustParseAddr("2001:db8::100")
	primaryA  = netip.MustParseAddr("10.0.0.10")
	primaryB  = netip.MustParseAddr("10.0.0.11")
	primaryA6 = netip.MustParseAddr("2001:db8::10")
	primaryB6 = netip.MustParseAddr("2001:db8::11")
)

func newHost(t *testing.T) *host {
	clock := executortest.NewClock()
	f := executortest.StartEC2(t, executortest.WithClock(clock))
	h := &host{executortest.NewCheck(t, f), f, clock}
	h.AddNIC(executortest.Interface{ID: "eni-a", Subnet: "subnet-1", VPC: "vpc-1", Primary: primaryA, Primary6: primaryA6})
	h.AddNIC(executortest.Interface{ID: "eni-b", Subnet: "subnet-1", VPC: "vpc-1", Primary: primaryB, Primary6: primaryB6})
	return h
}

// ask has eni-a's executor carry out a request, whose changes it gives a second to be answered.
func (h *host) ask(v capture.Verb, a netip.Addr, change ...func(*executor.Request)) executor.Result {
	h.Helper()
	q := executor.Request{
		Version: executor.Version, ID: "mobility:edge:aws:eni-a:" + string(v), Verb: v, NIC: "eni-a", Address: a,
		Profile: executor.Profile{Name: "tokyo", Provider: "aws", Endpoint: h.URL()},
	}
	for _, f := range change {
		f(&q)
	}
	return execute(context.Background(), q, h.clock, time.Second)
}

func reassign(q *executor.Request)  { q.Reassign = true }
func readFirst(q *executor.Request) { q.ReadFirst = true }

// changes are the calls that asked for a change.
func (h *host) changes() (out []executortest.Call) {
	for _, c := range h.Calls() {
		if c.Changes() {
			out = append(out, c)
		}
	}
	return out
}

func (h *host) wantChanges(n int) {
	h.Helper()
	if got := h.changes(); len(got) != n {
		h.Errorf("EC2 was asked for %d changes, want %d: %+v", len(got), n, got)
	}
}

var fails = map[string]executortest.Fault{
	"the connection is reset": {},
	"500":                     {Status: 500, Code: "InternalError", Message: "An internal error has occurred"},
	"503":                     {Status: 503, Code: "Unavailable", Message: "The server is overloaded and can't handle the request."},
	"no answer":               {Hang: true},
}

// c06: assign answers a timeout but took effect.
func TestC06AnAssignmentThatTookEffectWithoutAnAnswerIsOneSuccess(t *testing.T) {
	for name, fault := range fails {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			h.Place("eni-b", mobile)
			h.Lag(3*time.Second, 5*time.Second)
			fault.Carry = true
			h.Inject(executortest.Rule{Match: executortest.Changing, Fault: fault})
			h.Want(h.ask(capture.Assign, mobile, reassign), executor.OutcomeDone)
			h.WantOn(mobile, "eni-a")
			h.wantChanges(1)
		})
	}
}

func TestAChangeThatWasLostOnItsWayIsUnknownAndNotRepeated(t *testing.T) {
	for name, fault := range fails {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			h.Inject(executortest.Rule{Match: executortest.Changing, Times: 1, Fault: fault})
			h.Want(h.ask(capture.Assign, mobile), executor.OutcomeUnknown, "AssignPrivateIpAddresses", "10.0.0.100", "eni-a", "may be done yet")
			h.wantChanges(1)
			h.Want(h.ask(capture.Assign, mobile, readFirst), executor.OutcomeDone)
			h.wantChanges(2)
		})
	}
}

// c07: describe does not show a fresh assign for 20 s.
func TestC07AFreshAssignmentThatDoesNotShowFor20SecondsIsNotLost(t *testing.T) {
	h := newHost(t)
	h.Lag(0, 20*time.Second)
	h.Want(h.ask(capture.Assign, mobile), executor.OutcomeDone)
	h.wantChanges(1)
}

func TestC07AnAssignmentThatShowsTooLateIsUnknownAndTheNextAttemptReads(t *testing.T) {
	h := newHost(t)
	h.Lag(0, 40*time.Second)
	start := h.clock.Now()
	h.Want(h.ask(capture.Assign, mobile), executor.OutcomeUnknown, "accepted", "eni-a does not show it yet")
	if waited := h.clock.Now().Sub(start); waited > executor.Patience {
		t.Errorf("it has read for %s, want at most %s", waited, executor.Patience)
	}
	h.clock.Sleep(context.Background(), 20*time.Second)
	h.Want(h.ask(capture.Assign, mobile, readFirst), executor.OutcomeAlready)
	h.wantChanges(1)
}

// The same lag, and the assignment is to be taken back: that a read does not show it is no
// proof that it is not there.
func TestC07AReleaseOfWhatDoesNotShowYetIsAskedForAllTheSame(t *testing.T) {
	h := newHost(t)
	h.Lag(0, time.Hour)
	h.Want(h.ask(capture.Assign, mobile), executor.OutcomeUnknown)
	h.WantOn(mobile, "eni-a")
	h.Want(h.ask(capture.Unassign, mobile, readFirst), executor.OutcomeDone)
	h.WantOn(mobile)
	h.Want(h.ask(capture.Unassign, mobile, readFirst), executor.OutcomeAlready) // as EC2 itself says
}

// Neither the NIC before it nor the NIC after it tells whether such a release was carried out.
func TestAReleaseOfWhatDoesNotShowWithoutAnAnswerIsUnknown(t *testing.T) {
	h := newHost(t)
	h.Inject(executortest.Rule{Match: executortest.Changing, Fault: fails["500"]})
	h.Want(h.ask(capture.Unassign, mobile), executor.OutcomeUnknown, "looks as it did before")
}

// c08: the cloud throttles nine calls of ten. It is said, and costs nothing.
func TestC08ThrottledNineTimesOfTenEveryAttemptSaysSoUntilOneIsDone(t *testing.T) {
	h := newHost(t)
	h.Inject(executortest.Rule{Share: 0.9, Fault: executortest.Throttled})
	for attempt := 1; ; attempt++ {
		r := h.ask(capture.Assign, mobile)
		h.wantChanges(attempt)
		if r.Outcome == executor.OutcomeDone || r.Outcome == executor.OutcomeUnknown {
			break // accepted
		}
		h.Want(r, executor.OutcomeThrottled)
		if r.Code != "RequestLimitExceeded" || r.Calls != 1 {
			t.Fatalf("it says %q after %d calls, want RequestLimitExceeded after one", r.Code, r.Calls)
		}
	}
	for r := (executor.Result{}); r.Outcome != executor.OutcomeAlready; {
		r = h.ask(capture.Assign, mobile, readFirst)
		if r.Outcome != executor.OutcomeAlready {
			h.Want(r, executor.OutcomeThrottled)
		}
	}
	accepted := 0
	for _, c := range h.changes() {
		if c.Accepted {
			accepted++
		}
	}
	if accepted != 1 {
		t.Errorf("%d changes were accepted, want 1", accepted)
	}
}

// c13: the NIC is at its address limit.
func TestC13AFullNICIsNamedWithItsLimit(t *testing.T) {
	h := newHost(t)
	h.AddNIC(executortest.Interface{ID: "eni-a", Subnet: "subnet-1", Primary: primaryA, Primary6: primaryA6, Limit: 4,
		Secondary: []netip.Addr{netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2"), netip.MustParseAddr("10.0.0.3")}})
	r := h.ask(capture.Assign, mobile)
	h.Want(r, executor.OutcomePermanent, "eni-a", "it has 4", "10.0.0.100", "instance type")
	if r.Code != "PrivateIpAddressLimitExceeded" {
		t.Errorf("code %q, want the one of EC2", r.Code)
	}
	// Another family is counted for itself.
	h.Want(h.ask(capture.Assign, mobile6), executor.OutcomeDone)
	h.AddNIC(executortest.Interface{ID: "eni-b", Subnet: "subnet-1", Primary: primaryB, Primary6: primaryB6, Limit: 1})
	b := func(q *executor.Request) { q.NIC = "eni-b" }
	h.Want(h.ask(capture.Assign, netip.MustParseAddr("2001:db8::101"), b), executor.OutcomePermanent, "eni-b", "it has 1,")
}

func TestAnElasticAddressMovesAlong(t *testing.T) {
	h := newHost(t)
	public := netip.MustParseAddr("203.0.113.7")
	h.Place("eni-b", mobile)
	h.Associate("subnet-1", mobile, public)
	h.Want(h.ask(capture.Assign, mobile, reassign), executor.OutcomeDone)
	if nic := h.Elastic(public); nic != "eni-a" {
		t.Errorf("the elastic address is on %q, want eni-a", nic)
	}
	h.wantChanges(1)
}

func TestAnExecutorRepeatsNoChangeAndAsksWithItsID(t *testing.T) {
	h := newHost(t)
	h.ask(capture.Assign, mobile)
	c := h.changes()[0]
	if c.Attempt != "attempt=1; max=1" || c.ID != "mobility-edge-aws-eni-a-assign-secondary-ip" || c.N != 0 {
		t.Errorf("it asked as %+v, want the first and only attempt, with its ID and without a read before", c)
	}
}

func TestReadsAreRepeatedALittle(t *testing.T) {
	h := newHost(t)
	h.Inject(executortest.Rule{Times: 1, Fault: fails["500"]})
	r := h.ask(executor.Describe, netip.Addr{})
	h.Want(r, executor.OutcomeDone)
	if r.Calls != 2 || r.NIC.Primary != primaryA {
		t.Errorf("it has seen %+v in %d calls, want %s in 2", r.NIC, r.Calls, primaryA)
	}
	h.Inject(executortest.Rule{Fault: fails["500"]})
	h.Want(h.ask(executor.Describe, netip.Addr{}), executor.OutcomeRetry)
	h.Want(h.ask(capture.Assign, mobile, readFirst), executor.OutcomeRetry)
	h.wantChanges(0)
}

func TestThePrimaryAddressStaysWhereItIs(t *testing.T) {
	h := newHost(t)
	for _, a := range []netip.Addr{primaryA, primaryA6} {
		h.Want(h.ask(capture.Unassign, a), executor.OutcomePermanent, a.String(), "primary", "eni-a")
		h.Want(h.ask(capture.Assign, a, readFirst), executor.OutcomeAlready, "primary")
	}
	h.wantChanges(0)
	h.Want(h.ask(capture.Assign, primaryA6), executor.OutcomeAlready, "primary")
	for _, a := range []netip.Addr{primaryB, primaryB6} {
		h.Want(h.ask(capture.Assign, a, reassign), executor.OutcomePermanent, a.String(), "primary", "eni-b")
		h.WantOn(a, "eni-b")
	}
}

// Whether EC2 takes an address that the NIC has already is its own affair.
func TestARefusalBecauseTheAddressIsHereIsNoFailure(t *testing.T) {
	h := newHost(t)
	h.Place("eni-a", mobile)
	h.Inject(executortest.Rule{Match: executortest.Changing, Fault: executortest.Fault{
		Status: 400, Code: "InvalidParameterValue", Message: "[10.0.0.100] assigned, but move is not allowed."}})
	h.Want(h.ask(capture.Assign, mobile), executor.OutcomeAlready)
}

// It is no proof that the address has left ours, which does not show it yet.
func TestAnAddressOfAnotherSubnetIsNoneOfOurs(t *testing.T) {
	h := newHost(t)
	h.AddNIC(executortest.Interface{ID: "eni-c", Subnet: "subnet-2", VPC: "vpc-2", Primary: mobile})
	h.Lag(0, time.Hour)
	h.Want(h.ask(capture.Assign, mobile), executor.OutcomeUnknown)
	h.WantOn(mobile, "eni-a", "eni-c")
	h.Want(h.ask(capture.Unassign, mobile, readFirst), executor.OutcomeDone)
	h.WantOn(mobile, "eni-c")
}
