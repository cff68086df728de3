package oci

import (
	"context"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tasuki-io/tasuki/internal/capture"
	"github.com/tasuki-io/tasuki/internal/executor"
	"github.com/tasuki-io/tasuki/internal/executor/cloud"
	"github.com/tasuki-io/tasuki/internal/executor/executortest"
)

// host is a host with vnic-a, and another one with vnic-b, by a clock that only moves while an
// executor waits.
type host struct {
	*executortest.Check
	*executortest.OCI
	clock  *executortest.Clock
	limits limits // of the machine's time: short where a test has a call hang
	id     func() *identity
}

var (
	mobile   = netip.MustParseAddr("10.0.0.100")
	mobile6  = netip.MustParseAddr("2001:db8::100")
	primaryA = netip.MustParseAddr("10.0.0.10")
	primaryB = netip.MustParseAddr("10.0.0.11")
	both     = []netip.Addr{mobile, mobile6}
)

func newHost(t *testing.T) *host {
	clock := executortest.NewClock()
	f := executortest.StartOCI(t, clock)
	h := &host{Check: executortest.NewCheck(t, f), OCI: f, clock: clock, limits: limits{time.Minute, time.Minute, time.Minute}}
	h.id = sync.OnceValue(func() *identity { // its keys take their time
		id, r := identify(context.Background(), executor.Profile{Endpoint: h.URL()}, h.limits.identity)
		if id == nil {
			panic(r.Message)
		}
		return id
	})
	h.AddVNIC(executortest.VNIC{ID: "vnic-a", Subnet: "subnet-1", Primary: primaryA, DisplayName: "edge-a", NSGs: []string{"nsg-1", "nsg-2"}})
	h.AddVNIC(executortest.VNIC{ID: "vnic-b", Subnet: "subnet-1", Primary: primaryB})
	return h
}

// ask has vnic-a's executor carry out a request.
func (h *host) ask(v capture.Verb, a netip.Addr, change ...func(*executor.Request)) executor.Result {
	h.Helper()
	q := executor.Request{
		Version: executor.Version, ID: "mobility:edge:oci:vnic-a:" + string(v), Verb: v, NIC: "vnic-a", Address: a,
		Profile: executor.Profile{Name: "frankfurt", Provider: "oci", Endpoint: h.URL()},
	}
	for _, f := range change {
		f(&q)
	}
	return (&session{Session: cloud.Begin(q, newWire(context.Background(), h.limits), h.clock), token: token(q)}).perform(context.Background(), h.id())
}

func reassign(q *executor.Request)  { q.Reassign = true }
func readFirst(q *executor.Request) { q.ReadFirst = true }
func dryRun(q *executor.Request)    { q.DryRun = true }
func asB(q *executor.Request)       { q.NIC, q.ID = "vnic-b", strings.Replace(q.ID, "vnic-a", "vnic-b", 1) }

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
		h.Errorf("OCI was asked for %d changes, want %d: %+v", len(got), n, got)
	}
}

// beforeChange has something happen once, when the next change arrives.
func (h *host) beforeChange(f func()) {
	done := false
	h.Before(func(c executortest.Call) {
		if c.Changes() && !done {
			done = true
			f()
		}
	})
}

var fails = map[string]executortest.Fault{
	"the connection is reset": {},
	"500":                     {Status: 500, Code: "InternalServerError", Message: "An internal server error occurred."},
	"503":                     {Status: 503, Code: "ServiceUnavailable", Message: "The service is currently unavailable."},
	"no answer":               {Hang: true},
}

// c06: a change answers a timeout but took effect, whichever change it is.
func TestC06AChangeThatTookEffectWithoutAnAnswerIsOneSuccess(t *testing.T) {
	for name, fault := range fails {
		fault.Carry = true
		for what, c := range map[string]struct {
			on   string // where the address is before
			verb capture.Verb
			on2  []string
		}{
			"create": {"", capture.Assign, []string{"vnic-a"}},
			"move":   {"vnic-b", capture.Assign, []string{"vnic-a"}},
			"delete": {"vnic-a", capture.Unassign, nil},
		} {
			t.Run(name+"/"+what, func(t *testing.T) {
				h := newHost(t)
				h.limits.change = 300 * time.Millisecond
				h.Place(c.on, mobile)
				h.Lag(3*time.Second, 5*time.Second)
				h.Inject(executortest.Rule{Match: executortest.Changing, Fault: fault})
				h.Want(h.ask(c.verb, mobile, func(q *executor.Request) { q.Reassign = c.verb == capture.Assign }), executor.OutcomeDone)
				h.WantOn(mobile, c.on2...)
				h.wantChanges(1)
			})
		}
		t.Run(name+"/forwarding", func(t *testing.T) {
			h := newHost(t)
			h.limits.change = 300 * time.Millisecond
			h.Lag(0, 5*time.Second)
			h.Inject(executortest.Rule{Match: executortest.Changing, Fault: fault})
			h.Want(h.ask(capture.EnableForwarding, netip.Addr{}), executor.OutcomeDone)
			h.wantChanges(1)
		})
	}
}

func TestAChangeThatWasLostOnItsWayIsUnknownAndNotRepeated(t *testing.T) {
	for name, fault := range fails {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			h.limits.change = 300 * time.Millisecond
			h.Inject(executortest.Rule{Match: executortest.Changing, Times: 1, Fault: fault})
			h.Want(h.ask(capture.Assign, mobile), executor.OutcomeUnknown, "CreatePrivateIp", "10.0.0.100", "vnic-a", "may be done yet")
			h.wantChanges(1)
			h.limits.change = time.Minute
			h.Want(h.ask(capture.Assign, mobile, readFirst), executor.OutcomeDone)
			h.wantChanges(2)
		})
	}
}

// c07: a read does not show a fresh assignment for 20 s.
func TestC07AFreshAssignmentThatDoesNotShowFor20SecondsIsNotLost(t *testing.T) {
	for _, from := range []string{"", "vnic-b"} {
		h := newHost(t)
		h.Place(from, mobile)
		h.Lag(0, 20*time.Second)
		h.Want(h.ask(capture.Assign, mobile, reassign), executor.OutcomeDone)
		h.wantChanges(1)
	}
}

func TestC07AnAssignmentThatShowsTooLateIsUnknownAndTheNextAttemptReads(t *testing.T) {
	h := newHost(t)
	h.Lag(0, 40*time.Second)
	start := h.clock.Now()
	h.Want(h.ask(capture.Assign, mobile), executor.OutcomeUnknown, "accepted", "does not show yet", "vnic-a")
	if waited := h.clock.Now().Sub(start); waited > executor.Patience {
		t.Errorf("it has read for %s, want at most %s", waited, executor.Patience)
	}
	h.clock.Sleep(context.Background(), 20*time.Second)
	h.Want(h.ask(capture.Assign, mobile, readFirst), executor.OutcomeAlready)
	h.wantChanges(1)
}

// c08: the cloud throttles nine calls of ten, reads too. It is said, and costs nothing.
func TestC08ThrottledNineTimesOfTenEveryAttemptSaysSoUntilOneIsDone(t *testing.T) {
	h := newHost(t)
	h.Inject(executortest.Rule{Share: 0.9, Fault: executortest.OCIThrottled})
	for r := (executor.Result{}); r.Outcome != executor.OutcomeDone && r.Outcome != executor.OutcomeAlready; {
		before := len(h.changes())
		r = h.ask(capture.Assign, mobile, readFirst)
		if len(h.changes()) > before+1 {
			t.Fatalf("one attempt asked for %d changes", len(h.changes())-before)
		}
		switch r.Outcome {
		case executor.OutcomeDone, executor.OutcomeAlready, executor.OutcomeUnknown: // accepted, and perhaps not seen
		default:
			h.Want(r, executor.OutcomeThrottled)
			if r.Code != "TooManyRequests" {
				t.Fatalf("it says %q, want TooManyRequests", r.Code)
			}
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

// c13: the VNIC is at its address limit, for a new address and for one that moves.
func TestC13AFullVNICIsNamedWithItsLimit(t *testing.T) {
	for _, from := range []string{"", "vnic-b"} {
		h := newHost(t)
		for _, a := range []string{"10.0.0.1", "10.0.0.2", "10.0.0.3"} {
			h.Place("vnic-a", netip.MustParseAddr(a))
		}
		h.Edit("vnic-a", func(n *executortest.VNIC) { n.Limit = 4 })
		h.Place(from, mobile)
		r := h.ask(capture.Assign, mobile, reassign)
		h.Want(r, executor.OutcomePermanent, "vnic-a", "it has 4", "31", "10.0.0.100")
		if r.Code != "LimitExceeded" {
			t.Errorf("code %q, want the one of OCI", r.Code)
		}
		h.Want(h.ask(capture.Assign, mobile6), executor.OutcomeDone) // another family is counted for itself
	}
}

func TestAQuotaIsNotTheLimitOfTheVNIC(t *testing.T) {
	h := newHost(t)
	h.Inject(executortest.Rule{Match: executortest.Changing, Fault: executortest.Fault{Status: 400, Code: "QuotaExceeded", Message: "quota"}})
	h.Want(h.ask(capture.Assign, mobile), executor.OutcomePermanent, "vnic-a", "quota")
}

func TestAMoveKeepsTheOCIDAndIsOneChange(t *testing.T) {
	for _, a := range both {
		h := newHost(t)
		h.Place("vnic-b", a)
		was := h.IPs(a)[0].ID
		h.Want(h.ask(capture.Assign, a, reassign), executor.OutcomeDone)
		if got := h.IPs(a); len(got) != 1 || got[0].ID != was || got[0].VNIC != "vnic-a" {
			t.Errorf("there is %+v, want %s on vnic-a alone", got, was)
		}
		h.wantChanges(1)
	}
}

func TestEveryChangeIsSentOnceWithItsIDAndTheEtagThatItRestsOn(t *testing.T) {
	t.Setenv("OCI_SDK_DEFAULT_RETRY_ENABLED", "true") // it is not asked
	for _, a := range both {
		h := newHost(t)
		h.ask(capture.Assign, a)
		h.Place("vnic-b", a)
		h.ask(capture.Assign, a, reassign)
		h.ask(capture.Unassign, a)
		h.ask(capture.EnableForwarding, netip.Addr{})
		for i, action := range []string{"Create", "Update", "Delete", "UpdateVnic"} {
			c := h.changes()[i]
			if !strings.HasPrefix(c.Action, action) || !c.Accepted || c.Retries != "false" {
				t.Errorf("change %d is %+v, want one %s, accepted", i, c, action)
			}
			if (c.IfMatch == "") != (action == "Create") || (c.RetryToken != "") != (action == "Create") || len(c.RequestID) != 32 {
				t.Errorf("%s has if-match %q, retry token %q and request ID %q", c.Action, c.IfMatch, c.RetryToken, c.RequestID)
			}
			if !strings.HasPrefix(c.ID, "mobility-edge-oci-vnic-a-") {
				t.Errorf("%s is asked for by %q", c.Action, c.ID)
			}
		}
	}
}

func TestReadsAreRepeatedALittle(t *testing.T) {
	h := newHost(t)
	h.Inject(executortest.Rule{Times: 2, Fault: fails["500"]})
	r := h.ask(executor.Describe, netip.Addr{})
	h.Want(r, executor.OutcomeDone)
	if r.Calls != 5 || r.NIC.Primary != primaryA {
		t.Errorf("it has seen %+v in %d calls, want %s in 5", r.NIC, r.Calls, primaryA)
	}
	h.Inject(executortest.Rule{Fault: fails["500"]})
	for _, v := range []capture.Verb{executor.Describe, capture.EnableForwarding} {
		h.Want(h.ask(v, netip.Addr{}), executor.OutcomeRetry)
	}
	h.Want(h.ask(capture.Assign, mobile), executor.OutcomeRetry)
	h.Want(h.ask(capture.Unassign, mobile), executor.OutcomeRetry)
	h.wantChanges(0)
}

// The SDK would ask no more for half a minute after some ten failures.
func TestReadsThatFailForAWhileDoNotEndTheReading(t *testing.T) {
	h := newHost(t)
	reads := func(c executortest.Call) bool { return !c.Changes() }
	h.beforeChange(func() { h.Inject(executortest.Rule{Match: reads, Times: 30, Fault: fails["500"]}) })
	h.Want(h.ask(capture.Assign, mobile), executor.OutcomeDone)
	h.wantChanges(1)
}

func TestAReadThatHangsHasHadItsTime(t *testing.T) {
	h := newHost(t)
	h.limits.read, h.limits.change = 300*time.Millisecond, time.Nanosecond
	h.Inject(executortest.Rule{Fault: fails["no answer"]})
	r := h.ask(executor.Describe, netip.Addr{})
	h.Want(r, executor.OutcomeRetry)
	if r.Calls != 1 {
		t.Errorf("%d calls, want 1", r.Calls)
	}
}

func TestDescribeReadsEveryPage(t *testing.T) {
	h := newHost(t)
	var want []netip.Addr
	for _, a := range []string{"10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4", "2001:db8::1", "2001:db8::2", "2001:db8::3"} {
		want = append(want, netip.MustParseAddr(a))
		h.Place("vnic-a", want[len(want)-1])
	}
	h.AddIP(executortest.IP{Subnet: "subnet-1", VNIC: "vnic-a", Address: netip.MustParseAddr("10.0.0.64"), Prefix: 28})
	r := h.ask(executor.Describe, netip.Addr{})
	h.Want(r, executor.OutcomeDone)
	for i, a := range want {
		if len(r.NIC.Addresses) != len(want) || r.NIC.Addresses[i] != a {
			t.Fatalf("it has seen %v, want %v", r.NIC.Addresses, want)
		}
	}
}

func TestAPrimaryAddressIsNeverAskedFor(t *testing.T) {
	h := newHost(t)
	h.Want(h.ask(capture.Unassign, primaryA), executor.OutcomePermanent, "10.0.0.10", "primary", "vnic-a")
	h.Want(h.ask(capture.Assign, primaryA), executor.OutcomeAlready, "primary")
	h.Want(h.ask(capture.Assign, primaryB, reassign), executor.OutcomePermanent, "10.0.0.11", "primary", "vnic-b")
	h.Want(h.ask(capture.Unassign, primaryB), executor.OutcomeAlready)
	h.wantChanges(0)
}

// The first address of a block stands for all of them: to delete it is to delete the block.
func TestABlockOfAddressesIsNoneOfOurs(t *testing.T) {
	for vnic, want := range map[string]executor.Outcome{"vnic-a": executor.OutcomeAlready, "vnic-b": executor.OutcomePermanent} {
		h := newHost(t)
		h.AddIP(executortest.IP{Subnet: "subnet-1", VNIC: vnic, Address: mobile, Prefix: 28})
		h.Want(h.ask(capture.Assign, mobile, reassign), want, "10.0.0.100/28")
		h.Want(h.ask(capture.Unassign, mobile, func(q *executor.Request) { q.NIC = vnic }), executor.OutcomePermanent, "10.0.0.100/28")
		h.wantChanges(0)
	}
}

// A reservation is somebody's, and outlives being on a VNIC.
func TestAReservedAddressIsDetachedAndNotDeleted(t *testing.T) {
	for _, a := range both {
		h := newHost(t)
		h.AddIP(executortest.IP{ID: "reserved", Subnet: "subnet-1", Address: a, Reserved: true})
		h.Want(h.ask(capture.Assign, a, dryRun), executor.OutcomeDone, "on no VNIC")
		h.Want(h.ask(capture.Unassign, a), executor.OutcomeAlready)
		h.wantChanges(0)
		h.Want(h.ask(capture.Assign, a), executor.OutcomeDone) // it is on no VNIC: nobody loses it
		h.WantOn(a, "vnic-a")
		h.Want(h.ask(capture.Unassign, a), executor.OutcomeDone)
		h.WantOn(a)
		if got := h.IPs(a); len(got) != 1 || got[0].ID != "reserved" {
			t.Errorf("there is %+v, want the reservation", got)
		}
		if c := h.changes()[1]; c.IfMatch == "" || !strings.HasSuffix(c.Action, "VnicDetach") {
			t.Errorf("it was released by %+v, want a detachment with if-match", c)
		}
	}
}

func TestAnIPv6AddressIsThereFromAvailableUntilTerminated(t *testing.T) {
	for state, want := range map[string]executor.Outcome{"PROVISIONING": executor.OutcomeRetry, "TERMINATING": executor.OutcomeRetry, "TERMINATED": executor.OutcomeDone} {
		h := newHost(t)
		h.AddIP(executortest.IP{Subnet: "subnet-1", VNIC: "vnic-a", Address: mobile6, Lifecycle: state})
		h.Want(h.ask(capture.Assign, mobile6), want)
		if state == "TERMINATED" {
			h.WantOn(mobile6, "vnic-a")
		} else {
			h.wantChanges(0)
		}
	}
}

func TestAnIPv6AddressThatIsComingIsWaitedFor(t *testing.T) {
	h := newHost(t)
	lists := 0
	h.Before(func(c executortest.Call) {
		if c.Action != "ListIpv6s" || len(h.changes()) == 0 {
			return
		}
		o := h.IPs(mobile6)[0]
		o.Lifecycle = map[bool]string{true: "PROVISIONING"}[lists < 2]
		lists++
		h.AddIP(o)
	})
	h.Want(h.ask(capture.Assign, mobile6), executor.OutcomeDone)
	if lists != 3 {
		t.Errorf("it was done after %d reads, want 3", lists)
	}
}

func TestAnAddressOfAnotherSubnetIsNoneOfOurs(t *testing.T) {
	h := newHost(t)
	h.AddVNIC(executortest.VNIC{ID: "vnic-c", Subnet: "subnet-2", Primary: mobile})
	h.Want(h.ask(capture.Assign, mobile), executor.OutcomeDone)
	h.WantOn(mobile, "vnic-a", "vnic-c")
	h.Want(h.ask(capture.Unassign, mobile), executor.OutcomeDone)
	h.WantOn(mobile, "vnic-c")
}

func TestForwardingChangesNothingElseOfTheVNIC(t *testing.T) {
	h := newHost(t)
	h.Want(h.ask(capture.EnableForwarding, netip.Addr{}, dryRun), executor.OutcomeDone)
	h.wantChanges(0)
	h.Want(h.ask(capture.EnableForwarding, netip.Addr{}), executor.OutcomeDone)
	h.Want(h.ask(capture.EnableForwarding, netip.Addr{}), executor.OutcomeAlready)
	if c := h.changes()[0]; c.Body != `{"skipSourceDestCheck":true}` || c.IfMatch == "" {
		t.Errorf("it sent %s with if-match %q", c.Body, c.IfMatch)
	}
	if n := h.VNIC("vnic-a"); !n.Forwards || n.DisplayName != "edge-a" || len(n.NSGs) != 2 {
		t.Errorf("the VNIC is %+v now", n)
	}
}

func TestAVNICThatSomebodyElseChangesMeanwhileIsReadAnew(t *testing.T) {
	h := newHost(t)
	h.beforeChange(func() { h.Edit("vnic-a", func(n *executortest.VNIC) { n.DisplayName = "renamed" }) })
	r := h.ask(capture.EnableForwarding, netip.Addr{})
	h.Want(r, executor.OutcomeRetry, "vnic-a")
	if r.Code != "NoEtagMatch" || h.VNIC("vnic-a").Forwards {
		t.Errorf("code %q, VNIC %+v: want it refused", r.Code, h.VNIC("vnic-a"))
	}
	h.Want(h.ask(capture.EnableForwarding, netip.Addr{}), executor.OutcomeDone)
	if n := h.VNIC("vnic-a"); !n.Forwards || n.DisplayName != "renamed" {
		t.Errorf("the VNIC is %+v now", n)
	}
	h.beforeChange(func() { h.Edit("vnic-a", func(n *executortest.VNIC) { n.Forwards = false }) })
	h.Want(h.ask(capture.DisableForwarding, netip.Addr{}), executor.OutcomeAlready)
}
