package azure

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/tasuki-io/tasuki/internal/capture"
	"github.com/tasuki-io/tasuki/internal/executor"
	"github.com/tasuki-io/tasuki/internal/executor/cloud"
	"github.com/tasuki-io/tasuki/internal/executor/executortest"
)

func TestAMissingPermissionIsNamed(t *testing.T) {
	const nic, join = "Microsoft.Network/networkInterfaces/", "Microsoft.Network/virtualNetworks/subnets/join/action"
	for _, c := range []struct {
		verb   capture.Verb
		addr   netip.Addr
		action string
	}{
		{capture.Assign, mobile, nic + "read"},
		{capture.Assign, mobile, nic + "write"},
		{capture.Assign, mobile, join},
		{capture.Assign, mobile, "Microsoft.Network/virtualNetworks/subnets/read"},
		{capture.Unassign, mobile, nic + "write"},
		{capture.EnableForwarding, netip.Addr{}, nic + "write"},
		{executor.Describe, netip.Addr{}, nic + "read"},
	} {
		t.Run(string(c.verb)+" "+c.action, func(t *testing.T) {
			h := newHost(t)
			h.Place("nic-b", mobile)
			if c.verb == capture.Unassign {
				h.Place("nic-a", mobile)
			}
			h.Deny(c.action)
			r := h.ask(c.verb, c.addr, func(q *executor.Request) { q.Reassign = c.verb == capture.Assign })
			h.Want(r, executor.OutcomePermanent, "lacks "+c.action+":", "role")
			if !strings.HasSuffix(r.Code, "AuthorizationFailed") {
				t.Errorf("code %q, want the one of ARM", r.Code)
			}
			h.WantOn(mobile, map[bool]string{true: "nic-a", false: "nic-b"}[c.verb == capture.Unassign])
		})
	}
}

func TestAnAcceptedChangeThatMayNotBeReadIsUnknownAtOnce(t *testing.T) {
	h := newHost(t)
	h.meanwhile(func() { h.Deny("Microsoft.Network/networkInterfaces/read") })
	start := h.clock.Now()
	h.Want(h.ask(capture.Assign, mobile), executor.OutcomeUnknown, "accepted", "lacks Microsoft.Network/networkInterfaces/read")
	if waited := h.clock.Now().Sub(start); waited != 0 {
		t.Errorf("it went on reading for %s", waited)
	}
}

func TestAReadThatFailsAfterAChangeIsRepeated(t *testing.T) {
	h := newHost(t)
	h.Inject(executortest.Rule{Match: executortest.Action("GET networkInterfaces"), Skip: 1, Times: 3, Fault: fails["500"]})
	h.Want(h.ask(capture.Assign, mobile), executor.OutcomeDone)
	h.wantPuts(1, 1)
}

func TestRefusalsAreClassed(t *testing.T) {
	for _, c := range []struct {
		status int
		code   string
		want   executor.Outcome
	}{
		{429, "TooManyRequests", executor.OutcomeThrottled},
		{429, "SomethingNobodyHasHeardOf", executor.OutcomeThrottled},
		{429, "RateLimitExceeded", executor.OutcomeThrottled},
		{409, "AnotherOperationInProgress", executor.OutcomeThrottled},
		{400, "AnotherOperationInProgress", executor.OutcomeThrottled},
		{409, "RetryableErrorDueToAnotherOperation", executor.OutcomeThrottled},
		{409, "RetryableError", executor.OutcomeRetry},
		{400, "RetryableError", executor.OutcomeRetry},
		{400, "ReferencedResourceNotProvisioned", executor.OutcomeRetry},
		{409, "Conflict", executor.OutcomeRetry},
		{401, "ExpiredAuthenticationToken", executor.OutcomeRetry},
		{401, "InvalidAuthenticationToken", executor.OutcomePermanent},
		{409, "ScopeLocked", executor.OutcomePermanent},
		{409, "ReadOnlyDisabledSubscription", executor.OutcomePermanent},
		{400, "PrivateIPAddressNotInSubnet", executor.OutcomePermanent},
		{400, "PrivateIPAddressIsAllocated", executor.OutcomePermanent},
		{400, "PrivateIPAddressInUse", executor.OutcomePermanent},
		{400, "PrivateIPAddressInReservedRange", executor.OutcomePermanent},
		{400, "IpConfigurationLimitExceeded", executor.OutcomePermanent},
		{400, "InvalidRequestFormat", executor.OutcomePermanent},
		{404, "ResourceNotFound", executor.OutcomePermanent},
		{408, "RequestTimeout", executor.OutcomeUnknown},
		{500, "InternalServerError", executor.OutcomeUnknown},
		{503, "ServiceUnavailable", executor.OutcomeUnknown},
	} {
		t.Run(c.code, func(t *testing.T) {
			h := newHost(t)
			h.Inject(executortest.Rule{Match: executortest.Changing, Fault: executortest.Fault{Status: c.status, Code: c.code, Message: "because of it"}})
			r := h.ask(capture.Assign, mobile)
			h.Want(r, c.want, mobile.String(), "because of it")
			if r.Code != c.code {
				t.Errorf("code %q, want %q", r.Code, c.code)
			}
			h.wantPuts(1, 0)
		})
	}
}

// With Reassign an address that is taken is not the end of it.
func TestATakenAddressIsTriedAgainWhenItMayBeTakenAway(t *testing.T) {
	for _, code := range []string{"PrivateIPAddressIsAllocated", "PrivateIPAddressInUse"} {
		h := newHost(t)
		h.Inject(executortest.Rule{Match: executortest.Changing, Fault: executortest.Fault{Status: 400, Code: code, Message: "because"}})
		h.Want(h.ask(capture.Assign, mobile, reassign), executor.OutcomeRetry)
		h.Want(h.ask(capture.Assign, mobile), executor.OutcomePermanent, "out of the pool")
	}
}

func TestASubnetThatIsNotThereIsNamed(t *testing.T) {
	h := newHost(t)
	h.Inject(executortest.Rule{Match: executortest.Action("GET subnets"), Fault: executortest.Fault{Status: 404, Code: "NotFound", Message: "gone"}})
	h.Want(h.ask(capture.Assign, mobile, reassign), executor.OutcomePermanent, "virtualNetworks/vnet/subnets/mobile")
}

func TestACloudWithoutOurVersionSaysSo(t *testing.T) {
	h := newHost(t)
	h.Inject(executortest.Rule{Fault: executortest.Fault{Status: 400, Code: "NoRegisteredProviderFound", Message: "The supported api-versions are '2018-11-01'."}})
	h.Want(h.ask(executor.Describe, netip.Addr{}), executor.OutcomePermanent, apiVersion, "2018-11-01")
}

func TestAnAnswerThatIsNotOfARMIsShown(t *testing.T) {
	h := newHost(t)
	h.Inject(executortest.Rule{Fault: executortest.Fault{Status: 407, Code: "ProxyAuthenticationRequired"}})
	h.Want(h.ask(executor.Describe, netip.Addr{}), executor.OutcomePermanent, "407")
}

func TestANICWithoutWhatIsNeededIsNotTouched(t *testing.T) {
	for name, edit := range map[string]func(p map[string]any){
		"no primary address": func(p map[string]any) { p["ipConfigurations"] = []any{} },
		"no subnet": func(p map[string]any) {
			delete(p["ipConfigurations"].([]any)[0].(map[string]any)["properties"].(map[string]any), "subnet")
		},
		"nonsense": func(p map[string]any) { p["enableIPForwarding"] = "perhaps" },
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			h.Edit("nic-a", edit)
			h.Want(h.ask(capture.Assign, mobile), executor.OutcomeRetry, "nic-a")
			h.wantPuts(0, 0)
		})
	}
}

func TestAnEndpointThatRefusesTheConnectionWasNotAsked(t *testing.T) {
	h := newHost(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := "http://" + l.Addr().String()
	l.Close()
	h.TokensFor(closed)
	r := h.ask(capture.Assign, mobile, func(q *executor.Request) { q.Profile.Endpoint = closed })
	h.Want(r, executor.OutcomeRetry, "refused")
	if r.Calls != 0 {
		t.Errorf("%d calls, want none", r.Calls)
	}
}

// The NIC was read, and then the identity was gone, before the change was on its way.
func TestAChangeThatNeverWentOutIsNotUnknown(t *testing.T) {
	h := newHost(t)
	where, err := find(h.URL())
	if err != nil {
		t.Fatal(err)
	}
	s := &session{Session: cloud.Begin(executor.Request{}, &cloud.Wire{}, h.clock), changeTime: time.Second}
	if s.here, err = resourceOf(executor.Request{NIC: h.ID("nic-a")}); err != nil {
		t.Fatal(err)
	}
	if s.arm, err = where.connect(&tokens{inner: lapsed{}}, s.Wire, ""); err != nil {
		t.Fatal(err)
	}
	read, err := http.NewRequest(http.MethodGet, h.URL()+"/metadata/", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Wire.Do(read); err != nil || s.Wire.Unanswered() != executor.OutcomeUnknown {
		t.Fatalf("%v; want a read that was sent", err)
	}
	_, err = s.send(context.Background(), s.removal(s.here), &nic{})
	if outcome, _ := s.class(err); outcome != executor.OutcomeRetry || len(h.Calls()) != 0 {
		t.Errorf("it is %s (%v), want retry", outcome, err)
	}
}

// lapsed is an identity that was taken away.
type lapsed struct{}

func (lapsed) GetToken(context.Context, policy.TokenRequestOptions) (azcore.AccessToken, error) {
	return azcore.AccessToken{}, errors.New("no more")
}

// ARM repeats parts of the request in some errors.
func TestI12NoSecretInAMessage(t *testing.T) {
	h := newHost(t)
	h.Identity("planted.token")
	h.Inject(executortest.Rule{Match: executortest.Changing, Fault: executortest.Fault{Status: 401, Code: "InvalidAuthenticationToken", Message: "The token 'Bearer planted.token' is invalid."}})
	r := h.ask(capture.Assign, mobile)
	h.Want(r, executor.OutcomePermanent, "clock", "[redacted]")
	if strings.Contains(r.Message, "planted") {
		t.Errorf("message %q holds a secret", r.Message)
	}
}

func TestEveryRequestOfAnAttemptHasItsCorrelationID(t *testing.T) {
	h := newHost(t)
	h.Lag(12*time.Second, 0)
	h.Want(h.ask(capture.Assign, mobile, reassign), executor.OutcomeDone)
	kinds := map[string]bool{}
	for _, c := range h.Calls() {
		kinds[c.Action] = true
		if c.ID != "9cbb6df8-ec4e-547b-9a95-a6191c6eb32e" {
			t.Errorf("%s has the correlation ID %q", c.Action, c.ID)
		}
	}
	if len(kinds) != 4 {
		t.Errorf("it has asked for %v, want a NIC, its subnet, a change and its operation", kinds)
	}
}
