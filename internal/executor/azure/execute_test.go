package azure

import (
	"context"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tasuki-io/tasuki/internal/capture"
	"github.com/tasuki-io/tasuki/internal/executor"
	"github.com/tasuki-io/tasuki/internal/executor/executortest"
)

// host is a host with nic-a, and two others with nic-b and nic-c, by a clock that only moves
// while an executor waits.
type host struct {
	*executortest.Check
	*executortest.ARM
	clock *executortest.Clock
}

var (
	mobile   = netip.MustParseAddr("10.0.0.100")
	mobile6  = netip.MustParseAddr("2001:db8::100")
	primaryA = netip.MustParseAddr("10.0.0.10")
	primaryB = netip.MustParseAddr("10.0.0.11")
)

func newHost(t *testing.T) *host {
	clock := executortest.NewClock()
	f := executortest.StartARM(t, clock)
	h := &host{executortest.NewCheck(t, f), f, clock}
	h.AddNIC("nic-a", primaryA)
	h.AddNIC("nic-b", primaryB)
	h.AddNIC("nic-c", netip.MustParseAddr("10.0.0.12"))
	return h
}

// ask has nic-a's executor carry out a request, whose change it gives a second to be answered.
func (h *host) ask(v capture.Verb, a netip.Addr, change ...func(*executor.Request)) executor.Result {
	h.Helper()
	return h.askWithin(context.Background(), v, a, change...)
}

func (h *host) askWithin(ctx context.Context, v capture.Verb, a netip.Addr, change ...func(*executor.Request)) executor.Result {
	h.Helper()
	q := executor.Request{Version: executor.Version, ID: "mobility:edge:azure:nic-a:" + string(v), Verb: v, NIC: "nic-a", Address: a, Profile: h.Profile()}
	for _, f := range change {
		f(&q)
	}
	return execute(ctx, q, h.clock, time.Second)
}

func reassign(q *executor.Request)  { q.Reassign = true }
func readFirst(q *executor.Request) { q.ReadFirst = true }
func dryRun(q *executor.Request)    { q.DryRun = true }
func onB(q *executor.Request)       { q.NIC = "nic-b" }

// puts are the calls that asked for a change, of them those that were accepted.
func (h *host) puts() (all, accepted []executortest.Call) {
	for _, c := range h.Calls() {
		if c.Changes() {
			all = append(all, c)
		}
		if c.Accepted {
			accepted = append(accepted, c)
		}
	}
	return all, accepted
}

func (h *host) wantPuts(asked, accepted int) {
	h.Helper()
	if all, taken := h.puts(); len(all) != asked || len(taken) != accepted {
		h.Errorf("ARM was asked for %d changes and accepted %d, want %d and %d: %+v", len(all), len(taken), asked, accepted, all)
	}
}

// meanwhile does something once, just before a put is looked at.
func (h *host) meanwhile(do func()) {
	h.Before(func(c executortest.Call) {
		if c.Changes() {
			h.Before(nil)
			do()
		}
	})
}

var fails = map[string]executortest.Fault{
	"the connection is reset": {},
	"500":                     {Status: 500, Code: "InternalServerError", Message: "An error occurred."},
	"503":                     {Status: 503, Code: "ServerBusy", Message: "The server is busy."},
	"504":                     {Status: 504, Code: "GatewayTimeout", Message: "The gateway did not receive a response from 'Microsoft.Network' within the specified time period."},
	"no answer":               {Hang: true},
}

// c06: assign answers a timeout but took effect.
func TestC06AnAssignmentThatTookEffectWithoutAnAnswerIsOneSuccess(t *testing.T) {
	for name, fault := range fails {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			h.Lag(3*time.Second, 5*time.Second)
			fault.Carry = true
			h.Inject(executortest.Rule{Match: executortest.Changing, Fault: fault})
			h.Want(h.ask(capture.Assign, mobile), executor.OutcomeDone)
			h.WantOn(mobile, "nic-a")
			h.wantPuts(1, 1)
		})
	}
}

func TestC06ASeizeWithoutAnAnswerIsSettledByReading(t *testing.T) {
	h := newHost(t)
	h.Place("nic-b", mobile)
	h.Lag(3*time.Second, 0)
	h.Inject(executortest.Rule{Match: executortest.Changing, Times: 1, Fault: executortest.Fault{Carry: true}})
	h.Want(h.ask(capture.Assign, mobile, reassign), executor.OutcomeAgain, "taken from nic-b")
	h.WantOn(mobile)
}

func TestAChangeThatWasLostOnItsWayIsUnknownAndNotRepeated(t *testing.T) {
	for name, fault := range fails {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			h.Inject(executortest.Rule{Match: executortest.Changing, Times: 1, Fault: fault})
			h.Want(h.ask(capture.Assign, mobile), executor.OutcomeUnknown, "assign-secondary-ip", "10.0.0.100", "nic-a", "may be done yet")
			h.wantPuts(1, 0)
			h.Want(h.ask(capture.Assign, mobile, readFirst), executor.OutcomeDone)
			h.wantPuts(2, 1)
		})
	}
}

// c07: describe does not show a fresh assign for 20 s.
func TestC07AFreshAssignmentThatDoesNotShowFor20SecondsIsNotLost(t *testing.T) {
	h := newHost(t)
	h.Lag(0, 20*time.Second)
	h.Want(h.ask(capture.Assign, mobile), executor.OutcomeDone)
	h.wantPuts(1, 1)
}

// Until it shows, the etag keeps a second attempt from assigning it again.
func TestC07AnAssignmentThatShowsTooLateIsUnknownAndNeverMadeTwice(t *testing.T) {
	h := newHost(t)
	h.Lag(0, 40*time.Second)
	start := h.clock.Now()
	h.Want(h.ask(capture.Assign, mobile), executor.OutcomeUnknown, "accepted", "nic-a does not show it yet")
	if waited := h.clock.Now().Sub(start); waited > executor.Patience {
		t.Errorf("it has read for %s, want at most %s", waited, executor.Patience)
	}
	h.Want(h.ask(capture.Assign, mobile, readFirst), executor.OutcomeRetry, "had changed each time")
	h.clock.Sleep(context.Background(), 20*time.Second)
	h.Want(h.ask(capture.Assign, mobile, readFirst), executor.OutcomeAlready)
	h.wantPuts(1+attempts, 1)
}

// c08: the cloud throttles nine calls of ten. It is said, and costs nothing.
func TestC08ThrottledNineTimesOfTenEveryAttemptSaysSoUntilOneIsDone(t *testing.T) {
	h := newHost(t)
	h.Inject(executortest.Rule{Share: 0.9, Fault: executortest.ARMThrottled})
	for attempt := 0; len(h.Holders(mobile)) == 0; attempt++ {
		if attempt == 1000 {
			t.Fatal("it does not come through")
		}
		switch r := h.ask(capture.Assign, mobile, readFirst); r.Outcome {
		case executor.OutcomeDone, executor.OutcomeUnknown: // accepted
		default:
			h.Want(r, executor.OutcomeThrottled)
			if r.Code != "TooManyRequests" || r.Calls > 2 {
				t.Fatalf("it says %q after %d calls, want TooManyRequests after a read, and a put at most", r.Code, r.Calls)
			}
		}
	}
	for r := (executor.Result{}); r.Outcome != executor.OutcomeAlready; {
		r = h.ask(capture.Assign, mobile, readFirst)
		if r.Outcome != executor.OutcomeAlready {
			h.Want(r, executor.OutcomeThrottled)
		}
	}
	if _, accepted := h.puts(); len(accepted) != 1 {
		t.Errorf("%d changes were accepted, want 1", len(accepted))
	}
}

// c10: removed from the old NIC, then the process dies.
func TestC10AnAttemptThatDiedBetweenTheTwoStepsIsResumed(t *testing.T) {
	for _, a := range []netip.Addr{mobile, mobile6} {
		h := newHost(t)
		h.Place("nic-b", a)
		ctx, kill := context.WithCancel(context.Background())
		h.Inject(executortest.Rule{Match: executortest.Changing, Times: 1, Fault: executortest.Fault{Carry: true, Hang: true}})
		h.meanwhile(kill)
		h.Want(h.askWithin(ctx, capture.Assign, a, reassign), executor.OutcomeUnknown)
		for len(h.Holders(a)) > 0 {
			time.Sleep(time.Millisecond) // it is carried out although nobody waits for it
		}
		h.Want(h.ask(capture.Assign, a, reassign, readFirst), executor.OutcomeDone)
		h.WantOn(a, "nic-a")
		all, _ := h.puts()
		if len(all) != 2 || all[0].NIC != "nic-b" || all[1].NIC != "nic-a" {
			t.Errorf("ARM was asked for %+v, want it off nic-b and on nic-a", all)
		}
	}
}

// The removal was accepted and takes its time; its process is dead.
func TestC10AnAddressThatIsStillLeavingIsTriedAgain(t *testing.T) {
	h := newHost(t)
	h.Place("nic-b", mobile)
	h.Lag(8*time.Second, 0)
	ctx, kill := context.WithCancel(context.Background())
	h.Inject(executortest.Rule{Match: executortest.Changing, Times: 1, Fault: executortest.Fault{Carry: true, Hang: true}})
	h.meanwhile(kill)
	h.Want(h.askWithin(ctx, capture.Assign, mobile, reassign), executor.OutcomeUnknown)
	for _, accepted := h.puts(); len(accepted) == 0; _, accepted = h.puts() {
		time.Sleep(time.Millisecond)
	}
	h.Want(h.ask(capture.Assign, mobile, reassign, readFirst), executor.OutcomeRetry, "nic-b")
	h.clock.Sleep(context.Background(), 8*time.Second)
	h.Want(h.ask(capture.Assign, mobile, reassign, readFirst), executor.OutcomeDone)
	h.WantOn(mobile, "nic-a")
}

// c11: another writer changed the NIC between GET and PUT.
func TestC11TheFieldsOfAnotherWriterSurvive(t *testing.T) {
	other := netip.MustParseAddr("10.0.0.50")
	for _, verb := range []capture.Verb{capture.Assign, capture.Unassign, capture.EnableForwarding} {
		t.Run(string(verb), func(t *testing.T) {
			h := newHost(t)
			a := mobile
			switch verb {
			case capture.Unassign:
				h.Place("nic-a", mobile)
			case capture.EnableForwarding:
				a = netip.Addr{}
			}
			h.meanwhile(func() {
				h.Place("nic-a", other)
				h.Edit("nic-a", func(p map[string]any) {
					p["enableAcceleratedNetworking"] = false
					p["ofAVersionToCome"] = map[string]any{"mode": "<&>", "limits": []any{1e21, nil}}
					for _, c := range p["ipConfigurations"].([]any) {
						c.(map[string]any)["properties"].(map[string]any)["ofAVersionToCome"] = "kept"
					}
				})
			})
			h.Want(h.ask(verb, a), executor.OutcomeDone)
			h.wantPuts(2, 1)
			h.WantOn(other, "nic-a")
			p := h.Properties("nic-a")
			if diff := cmp.Diff(map[string]any{"mode": "<&>", "limits": []any{"1e+21", nil}}, plain(p["ofAVersionToCome"])); diff != "" || p["enableAcceleratedNetworking"] != false {
				t.Errorf("of the NIC, it has put %v and (-want +got)\n%s", p, diff)
			}
			for _, c := range p["ipConfigurations"].([]any) {
				c := c.(map[string]any)["properties"].(map[string]any)
				if kept := c["ofAVersionToCome"] == "kept"; kept == (c["privateIPAddress"] == "10.0.0.100") {
					t.Errorf("of an IP configuration, it has put %v", c)
				}
			}
			if p["networkSecurityGroup"] == nil || (p["enableIPForwarding"] == true) != (verb == capture.EnableForwarding) {
				t.Errorf("of the NIC, it has put %v", p)
			}
		})
	}
}

// plain writes numbers as texts.
func plain(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k := range v {
			v[k] = plain(v[k])
		}
	case []any:
		for i := range v {
			v[i] = plain(v[i])
		}
	case interface{ String() string }:
		return v.String()
	}
	return v
}

func TestC11AWriterThatNeverStopsIsGivenWayTo(t *testing.T) {
	h := newHost(t)
	edits := 0
	h.Before(func(c executortest.Call) {
		if c.Changes() {
			edits++
			h.Edit("nic-a", func(p map[string]any) { p["edits"] = edits })
		}
	})
	h.Want(h.ask(capture.Assign, mobile), executor.OutcomeRetry, "somebody else", "nic-a")
	h.wantPuts(attempts, 0)
	if all, _ := h.puts(); all[0].IfMatch == "" || all[0].IfMatch == all[1].IfMatch {
		t.Errorf("it has put with the etags %q and %q", all[0].IfMatch, all[1].IfMatch)
	}
}

// c13: the NIC is at its address limit.
func TestC13AFullNICIsNamedWithWhatItHas(t *testing.T) {
	h := newHost(t)
	h.Place("nic-a", netip.MustParseAddr("10.0.0.50"))
	h.Limit("nic-a", 2)
	r := h.ask(capture.Assign, mobile)
	h.Want(r, executor.OutcomePermanent, "nic-a", "it has 2 IP configurations", "10.0.0.100", "maximum allowed value of 2")
	if r.Code != "IpConfigurationLimitExceeded" {
		t.Errorf("code %q, want the one of ARM", r.Code)
	}
	h.Want(h.ask(capture.EnableForwarding, netip.Addr{}), executor.OutcomeDone)
	h.Want(h.ask(capture.Unassign, netip.MustParseAddr("10.0.0.50")), executor.OutcomeDone)
	h.Want(h.ask(capture.Assign, mobile), executor.OutcomeDone)
}

// I5: whoever has the address now keeps it, whenever a release that is late arrives.
func TestI5AReleaseThatComesLateLeavesTheNewHolderAlone(t *testing.T) {
	h := newHost(t)
	h.Place("nic-a", mobile)
	h.meanwhile(func() { h.Place("nic-b", mobile) })
	h.Want(h.ask(capture.Unassign, mobile), executor.OutcomeAlready)
	h.WantOn(mobile, "nic-b")
	h.wantPuts(1, 0)
}

// A put that was sent before, and arrives after a later one, is of a NIC that there is no more.
func TestAPutThatComesLateIsRefused(t *testing.T) {
	h := newHost(t)
	held, let := make(chan struct{}), make(chan struct{})
	h.meanwhile(func() {
		close(held)
		<-let
	})
	ctx, kill := context.WithCancel(context.Background())
	late := make(chan executor.Result)
	go func() { late <- h.askWithin(ctx, capture.Assign, mobile) }()
	<-held
	kill()
	h.Want(<-late, executor.OutcomeUnknown)
	h.Want(h.ask(capture.EnableForwarding, netip.Addr{}), executor.OutcomeDone)
	close(let)
	for all, _ := h.puts(); all[0].Code == ""; all, _ = h.puts() {
		time.Sleep(time.Millisecond)
	}
	h.WantOn(mobile)
	h.wantPuts(2, 1)
}

func TestThePrimaryAddressStaysWhereItIs(t *testing.T) {
	h := newHost(t)
	h.Want(h.ask(capture.Unassign, primaryA), executor.OutcomePermanent, "10.0.0.10", "primary", "nic-a")
	h.Want(h.ask(capture.Assign, primaryA, readFirst), executor.OutcomeAlready, "primary")
	h.Want(h.ask(capture.Assign, primaryB, reassign), executor.OutcomePermanent, "10.0.0.11", "primary", "nic-b")
	h.wantPuts(0, 0)
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
	h.Want(h.ask(capture.Assign, mobile), executor.OutcomeRetry)
	h.wantPuts(0, 0)
}

func TestWhatIsAssignedIsStaticAndInTheSubnetOfThePrimaryAddress(t *testing.T) {
	h := newHost(t)
	subnet := h.Properties("nic-a")["ipConfigurations"].([]any)[0].(map[string]any)["properties"].(map[string]any)["subnet"]
	for a, want := range map[netip.Addr]map[string]any{
		mobile:  {"name": "tasuki-10.0.0.100", "version": "IPv4"},
		mobile6: {"name": "tasuki-2001-0db8-0000-0000-0000-0000-0000-0100", "version": "IPv6"},
	} {
		h.Want(h.ask(capture.Assign, a), executor.OutcomeDone)
		list := h.Properties("nic-a")["ipConfigurations"].([]any)
		c := list[len(list)-1].(map[string]any)
		p := c["properties"].(map[string]any)
		got := map[string]any{"name": c["name"], "version": p["privateIPAddressVersion"]}
		if diff := cmp.Diff(want, got); diff != "" || p["primary"] != false || p["privateIPAllocationMethod"] != "Static" || !cmp.Equal(p["subnet"], subnet) {
			t.Errorf("%s has the IP configuration %v", a, c)
		}
	}
}

// A block of addresses (privateIPAddressPrefixLength) is none that could be captured.
func TestDescribePassesOverABlockOfAddresses(t *testing.T) {
	h := newHost(t)
	h.Place("nic-a", mobile)
	h.Edit("nic-a", func(p map[string]any) {
		p["ipConfigurations"] = append(p["ipConfigurations"].([]any), map[string]any{"name": "pods", "properties": map[string]any{"privateIPAddress": "10.0.0.32/28"}})
	})
	r := h.ask(executor.Describe, netip.Addr{})
	h.Want(r, executor.OutcomeDone)
	if diff := cmp.Diff(&executor.NIC{Primary: primaryA, Addresses: []netip.Addr{mobile}}, r.NIC, cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" {
		t.Error(diff)
	}
}

func TestADryRunReadsAndSaysThatItProvesNoPermission(t *testing.T) {
	h := newHost(t)
	for _, verb := range []capture.Verb{capture.Assign, capture.Unassign, capture.EnableForwarding, capture.DisableForwarding} {
		a := mobile
		switch verb {
		case capture.Unassign:
			h.Want(h.ask(verb, mobile, dryRun), executor.OutcomeAlready)
			h.Place("nic-a", mobile)
		case capture.EnableForwarding, capture.DisableForwarding:
			a = netip.Addr{}
			h.Want(h.ask(map[bool]capture.Verb{true: capture.DisableForwarding, false: capture.EnableForwarding}[verb == capture.EnableForwarding], a, dryRun), executor.OutcomeAlready)
		}
		h.Want(h.ask(verb, a, dryRun), executor.OutcomeDone, "nothing tells whether this host may")
		if verb == capture.EnableForwarding {
			h.Edit("nic-a", func(p map[string]any) { p["enableIPForwarding"] = true })
		}
	}
	h.Want(h.ask(capture.Assign, mobile, dryRun), executor.OutcomeAlready)
	h.wantPuts(0, 0)
}
