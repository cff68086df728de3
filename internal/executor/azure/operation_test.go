package azure

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
	"time"

	"github.com/tasuki-io/tasuki/internal/capture"
	"github.com/tasuki-io/tasuki/internal/executor"
	"github.com/tasuki-io/tasuki/internal/executor/cloud"
	"github.com/tasuki-io/tasuki/internal/executor/executortest"
)

// The NIC tells as soon as it is done; the operation is asked as seldom as Retry-After wants.
func TestALongOperationIsWaitedForAndNotAskedTooOften(t *testing.T) {
	h := newHost(t)
	h.Lag(21*time.Second, 0)
	start := h.clock.Now()
	h.Want(h.ask(capture.Assign, mobile), executor.OutcomeDone)
	if waited := h.clock.Now().Sub(start); waited < 21*time.Second || waited > 23*time.Second {
		t.Errorf("it was done after %s, and said so after %s", 21*time.Second, waited)
	}
	asked := []time.Duration{}
	for _, c := range h.Calls() {
		if c.Action == "GET operations" {
			asked = append(asked, c.At.Sub(start))
		}
	}
	if len(asked) != 2 || asked[0] < 10*time.Second || asked[1]-asked[0] < 10*time.Second {
		t.Errorf("it has asked after %v, want two times, 10 s apart", asked)
	}
	h.WantOn(mobile, "nic-a")
}

func TestAnOperationThatTakesTooLongIsUnknown(t *testing.T) {
	h := newHost(t)
	h.Lag(time.Minute, 0)
	h.Want(h.ask(capture.Assign, mobile), executor.OutcomeUnknown, "accepted")
	h.clock.Sleep(context.Background(), 20*time.Second)
	h.Want(h.ask(capture.Assign, mobile, readFirst), executor.OutcomeAlready) // it has waited for the rest
	h.wantPuts(1, 1)
	h.WantOn(mobile, "nic-a")
}

// ARM changes one NIC at one time. Somebody else's change goes on, for as long as it takes.
func TestAnotherOperationInProgressIsPatience(t *testing.T) {
	h := newHost(t)
	h.Lag(time.Minute, 0)
	h.Want(h.ask(capture.EnableForwarding, netip.Addr{}), executor.OutcomeUnknown)
	r := h.ask(capture.Assign, mobile)
	h.Want(r, executor.OutcomeThrottled, "in progress")
	if r.Code != "AnotherOperationInProgress" {
		t.Errorf("code %q, want the one of ARM", r.Code)
	}
	h.clock.Sleep(context.Background(), 20*time.Second)
	h.Want(h.ask(capture.EnableForwarding, netip.Addr{}), executor.OutcomeAlready)
}

// What ARM shows of a NIC is not what it is, as long as it is at work on it.
func TestWhatShowsWithoutBeingProvisionedIsNotDone(t *testing.T) {
	h := newHost(t)
	h.Lag(time.Hour, 0)
	h.Want(h.ask(capture.Assign, mobile), executor.OutcomeUnknown)
	h.Want(h.ask(capture.Assign, mobile, readFirst), executor.OutcomeRetry, "nic-a shows it as Updating")
	h.WantOn(mobile)
	h.wantPuts(1, 1)
}

// An operation that fails leaves a NIC that shows what it is not. It is put again.
func TestAnOperationThatFailedIsSaidAndMadeGood(t *testing.T) {
	for name, c := range map[string]struct {
		verb  capture.Verb
		addr  netip.Addr
		holds []string
	}{
		"assign":  {capture.Assign, mobile, []string{"nic-a"}},
		"release": {capture.Unassign, mobile, nil},
		"forward": {capture.EnableForwarding, netip.Addr{}, nil},
	} {
		for _, lost := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				h := newHost(t)
				if c.verb == capture.Unassign {
					h.Place("nic-a", mobile)
				}
				h.Lag(2*time.Second, 0)
				h.Fail("InternalServerError", "An error occurred.")
				if lost {
					h.Inject(executortest.Rule{Match: executortest.Changing, Times: 1, Fault: executortest.Fault{Carry: true}})
				}
				says := "An error occurred"
				if lost {
					says = "failed to provision it"
				}
				start := h.clock.Now()
				h.Want(h.ask(c.verb, c.addr), executor.OutcomeRetry, says)
				if waited := h.clock.Now().Sub(start); waited > 5*time.Second {
					t.Errorf("it had failed after 2 s, and it was said after %s", waited)
				}
				h.Want(h.ask(c.verb, c.addr, readFirst), executor.OutcomeDone)
				h.Want(h.ask(c.verb, c.addr, readFirst), executor.OutcomeAlready)
				h.wantPuts(2, 2)
				h.WantOn(mobile, c.holds...)
			})
		}
	}
}

func TestHowAnOperationFailedIsClassedAsARefusalIs(t *testing.T) {
	for code, want := range map[string]executor.Outcome{
		"RetryableError": executor.OutcomeRetry,
		"CanceledAndSupersededDueToAnotherOperation": executor.OutcomeRetry,
		"SomethingNobodyHasHeardOf":                  executor.OutcomeRetry,
		"AnotherOperationInProgress":                 executor.OutcomeThrottled,
		"PrivateIPAddressNotInSubnet":                executor.OutcomePermanent,
		"PrivateIPAddressIsAllocated":                executor.OutcomePermanent,
		"IpConfigurationLimitExceeded":               executor.OutcomePermanent,
	} {
		h := newHost(t)
		h.Fail(code, "because of %s", "this")
		r := h.ask(capture.Assign, mobile)
		h.Want(r, want, "because of this")
		if r.Code != code {
			t.Errorf("code %q, want %q", r.Code, code)
		}
	}
}

// What a poll cannot tell is no failure.
func TestAnOperationThatCannotBeAskedIsSeenOnTheNIC(t *testing.T) {
	h := newHost(t)
	h.Lag(15*time.Second, 0)
	h.Inject(executortest.Rule{Match: executortest.Action("GET operations"), Fault: executortest.Fault{Status: 404, Code: "OperationNotFound", Message: "gone"}})
	h.Want(h.ask(capture.Assign, mobile), executor.OutcomeDone)
}

// The SDK reads the NIC when an operation has succeeded. That this fails is no failure of it.
func TestASuccessThatIsReadBadlyIsASuccess(t *testing.T) {
	h := newHost(t)
	h.Lag(0, 15*time.Second)
	asked := false
	h.Inject(executortest.Rule{
		Match: func(c executortest.Call) bool {
			asked = asked || c.Action == "GET operations"
			return asked && c.Action == "GET networkInterfaces"
		},
		Times: 1, Fault: executortest.Fault{Status: 403, Code: "AuthorizationFailed", Message: "not now"},
	})
	h.Want(h.ask(capture.Assign, mobile), executor.OutcomeDone)
	if !asked {
		t.Error("the operation was not asked")
	}
}

// ARM may answer a put with how it has ended. Then there is nothing more to ask.
func TestAnAnswerThatIsFinalLeavesTheNICToTell(t *testing.T) {
	for state, mute := range map[string]bool{"Updating": false, "Succeeded": true, "Failed": true} {
		answer := httptest.NewRecorder()
		answer.Header().Set("Azure-AsyncOperation", "https://127.0.0.1/operation")
		fmt.Fprintf(answer, `{"properties": {"provisioningState": %q}}`, state)
		r := answer.Result()
		r.Request = httptest.NewRequest(http.MethodPut, "https://127.0.0.1/nic", nil)
		if op := (&client{}).operation(r); op.mute() != mute || op.pause != cloud.LongestWait {
			t.Errorf("%s: mute is %t, and asked after %s", state, op.mute(), op.pause)
		}
	}
}
