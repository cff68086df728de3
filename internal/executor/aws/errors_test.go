package aws

import (
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/tasuki-io/tasuki/internal/capture"
	"github.com/tasuki-io/tasuki/internal/executor"
	"github.com/tasuki-io/tasuki/internal/executor/executortest"
)

func TestAMissingPermissionIsNamed(t *testing.T) {
	for _, c := range []struct {
		verb   capture.Verb
		addr   netip.Addr
		action string
	}{
		{capture.Assign, mobile, "AssignPrivateIpAddresses"},
		{capture.Assign, mobile6, "AssignIpv6Addresses"},
		{capture.Unassign, mobile, "UnassignPrivateIpAddresses"},
		{capture.Unassign, mobile6, "UnassignIpv6Addresses"},
		{capture.EnableForwarding, netip.Addr{}, "ModifyNetworkInterfaceAttribute"},
		{capture.DisableForwarding, netip.Addr{}, "ModifyNetworkInterfaceAttribute"},
		{executor.Describe, netip.Addr{}, "DescribeNetworkInterfaces"},
	} {
		t.Run(string(c.verb)+" "+c.action, func(t *testing.T) {
			h := newHost(t)
			h.Deny(c.action)
			r := h.ask(c.verb, c.addr)
			h.Want(r, executor.OutcomePermanent, "lacks ec2:"+c.action, "IAM policy")
			if r.Code != "UnauthorizedOperation" || strings.Contains(r.Message, "Encoded") {
				t.Errorf("code %q, message %q: want UnauthorizedOperation without its encoded part", r.Code, r.Message)
			}
		})
	}
}

func TestAnAcceptedChangeThatMayNotBeReadIsUnknownAtOnce(t *testing.T) {
	h := newHost(t)
	h.Deny("DescribeNetworkInterfaces")
	start := h.clock.Now()
	h.Want(h.ask(capture.Assign, mobile), executor.OutcomeUnknown, "accepted", "lacks ec2:DescribeNetworkInterfaces")
	if waited := h.clock.Now().Sub(start); waited != 0 {
		t.Errorf("it went on reading for %s", waited)
	}
}

func TestRefusalsAreClassed(t *testing.T) {
	for code, want := range map[string]executor.Outcome{
		"RequestLimitExceeded":          executor.OutcomeThrottled,
		"Throttling":                    executor.OutcomeThrottled,
		"EC2ThrottledException":         executor.OutcomeThrottled,
		"RequestTimeout":                executor.OutcomeUnknown,
		"IncorrectState":                executor.OutcomeRetry,
		"ExpiredToken":                  executor.OutcomeRetry,
		"OperationNotPermitted":         executor.OutcomePermanent,
		"InvalidParameterValue":         executor.OutcomePermanent,
		"InvalidParameterCombination":   executor.OutcomePermanent,
		"PrivateIpAddressLimitExceeded": executor.OutcomePermanent,
	} {
		t.Run(code, func(t *testing.T) {
			for _, a := range []netip.Addr{mobile, mobile6} {
				h := newHost(t)
				h.Inject(executortest.Rule{Match: executortest.Changing, Fault: executortest.Fault{Status: 400, Code: code, Message: "because"}})
				r := h.ask(capture.Assign, a)
				h.Want(r, want, a.String(), "eni-a")
				if r.Code != code {
					t.Errorf("code %q, want %q", r.Code, code)
				}
				h.wantChanges(1)
			}
		})
	}
}

func TestAnEndpointThatRefusesTheConnectionWasNotAsked(t *testing.T) {
	h := newHost(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	closed := func(q *executor.Request) { q.Profile.Endpoint = "http://" + l.Addr().String() }
	r := h.ask(capture.Assign, mobile, closed)
	h.Want(r, executor.OutcomeRetry, "refused")
	if r.Calls != 0 {
		t.Errorf("%d calls, want none", r.Calls)
	}
}

func TestAHostWithoutARoleIsToldWhatToGiveIt(t *testing.T) {
	h := newHost(t)
	h.Identity("", executortest.Credentials{})
	h.Want(h.ask(capture.Assign, mobile), executor.OutcomePermanent, "instance profile")
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	h.Want(h.ask(capture.Assign, mobile, func(q *executor.Request) { q.Profile.Region = "eu-test-1" }), executor.OutcomePermanent, "instance profile")
	if n := len(h.Calls()); n != 0 {
		t.Errorf("EC2 was asked %d times, want never", n)
	}
}

func TestAMetadataServiceThatIsAwayIsTriedAgain(t *testing.T) {
	h := newHost(t)
	t.Setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", "http://127.0.0.1:1")
	h.Want(h.ask(capture.Assign, mobile, func(q *executor.Request) { q.Profile.Region = "eu-test-1" }), executor.OutcomeRetry)
}

func TestTheRegionOfTheProfileIsTheOneThatIsSignedFor(t *testing.T) {
	h := newHost(t)
	h.Want(h.ask(capture.Assign, mobile, func(q *executor.Request) { q.Profile.Region = "us-elsewhere-1" }),
		executor.OutcomePermanent, "region")
	h.WantOn(mobile)
}

// AWS repeats parts of the request in some errors.
func TestI12NoSecretInAMessage(t *testing.T) {
	h := newHost(t)
	planted := executortest.Credentials{AccessKeyID: "ASIAPLANTED", SecretAccessKey: "planted-secret", Token: "planted/token"}
	h.Identity("tasuki", planted)
	h.Inject(executortest.Rule{Match: executortest.Changing, Fault: executortest.Fault{Status: 403, Code: "SignatureDoesNotMatch",
		Message: "The Canonical String for this request should have been 'x-amz-security-token:planted/token', with planted-secret, " +
			"X-Amz-Security-Token=planted%2Ftoken, and cGxhbnRlZC90b2tlbg=="}})
	r := h.ask(capture.Assign, mobile)
	h.Want(r, executor.OutcomePermanent, "clock")
	if strings.Contains(r.Message, "planted") || strings.Contains(r.Message, "cGxhbnRlZC90b2tl") {
		t.Errorf("message %q holds a secret", r.Message)
	}
}
