package azure

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tasuki-io/tasuki/internal/capture"
	"github.com/tasuki-io/tasuki/internal/executor"
	"github.com/tasuki-io/tasuki/internal/executor/executortest"
)

func TestASeizeIsTwoChangesWithTheGateBetweenThem(t *testing.T) {
	for _, a := range []netip.Addr{mobile, mobile6} {
		h := newHost(t)
		h.Place("nic-b", a)
		h.Place("nic-b", netip.MustParseAddr("10.0.0.50"))
		h.Want(h.ask(capture.Assign, a, reassign), executor.OutcomeAgain, "taken from nic-b", "nic-a")
		h.WantOn(a)
		h.WantOn(netip.MustParseAddr("10.0.0.50"), "nic-b")
		h.Want(h.ask(capture.Assign, a, reassign), executor.OutcomeDone)
		h.WantOn(a, "nic-a")
		all, accepted := h.puts()
		if len(all) != 2 || len(accepted) != 2 || all[0].NIC != "nic-b" || all[1].NIC != "nic-a" || all[0].IfMatch == "" {
			t.Errorf("ARM was asked for %+v, want it off nic-b and on nic-a", all)
		}
	}
}

// What may happen between the look of a paused host and its put: by then the gate would have
// refused it.
var meanwhiles = map[string]struct {
	happens func(*host)
	holder  string
}{
	"it moved on to nic-c": {func(h *host) { h.Place("nic-c", mobile) }, "nic-c"},
	"nic-b lost it and got it back, as the new holder": {func(h *host) {
		h.Place("nic-c", mobile)
		h.Place("nic-b", mobile)
	}, "nic-b"},
}

// ADR 0008 §5 (c) says that a stale operation cannot strip the new holder, as it names its own
// NIC. On Azure a seize names another one.
func TestTooStrongAStaleSeizeLeavesTheNewHolderAlone(t *testing.T) {
	for name, c := range meanwhiles {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			h.Place("nic-b", mobile)
			h.meanwhile(func() { c.happens(h) })
			h.Want(h.ask(capture.Assign, mobile, reassign), executor.OutcomeRetry, "nic-b", "may have it rightly")
			h.WantOn(mobile, c.holder)
			h.wantPuts(1, 0)
		})
	}
}

// The same, had it been written down naively: this is why it is not.
func TestTooStrongTheNaiveOrderStripsTheNewHolder(t *testing.T) {
	for name, naive := range map[string]struct {
		happens string
		seize   func(h *host, between func())
	}{
		"remove by name, without an etag": {"nic-b lost it and got it back, as the new holder", func(h *host, between func()) {
			id, nic := h.holder()
			between()
			h.strip(id, nic)
		}},
		"remove from whichever NIC has it": {"it moved on to nic-c", func(h *host, between func()) {
			h.holder()
			between()
			h.strip(h.holder())
		}},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			h.Place("nic-b", mobile)
			c := meanwhiles[naive.happens]
			naive.seize(h, func() { c.happens(h) })
			if got := h.Holders(mobile); len(got) != 0 {
				t.Errorf("it is on %v: the naive order would do, and the fake is not as Azure is", got)
			}
		})
	}
}

// holder looks for the NIC that has the address, as nobody should.
func (h *host) holder() (id string, nic map[string]any) {
	h.Helper()
	under := strings.TrimSuffix(h.ID(""), "/")
	for _, v := range h.do(http.MethodGet, under, nil)["value"].([]any) {
		nic := v.(map[string]any)
		if slices.ContainsFunc(nic["properties"].(map[string]any)["ipConfigurations"].([]any), isMobile) {
			return nic["id"].(string), nic
		}
	}
	h.Fatal("nobody has it")
	return "", nil
}

// strip removes the address from a NIC, as nobody should.
func (h *host) strip(id string, nic map[string]any) {
	h.Helper()
	p := nic["properties"].(map[string]any)
	p["ipConfigurations"] = slices.DeleteFunc(p["ipConfigurations"].([]any), isMobile)
	h.do(http.MethodPut, id, nic)
}

func isMobile(c any) bool {
	return c.(map[string]any)["properties"].(map[string]any)["privateIPAddress"] == mobile.String()
}

func (h *host) do(method, path string, body any) (out map[string]any) {
	h.Helper()
	data, err := json.Marshal(body)
	if err != nil {
		h.Fatal(err)
	}
	r, err := http.NewRequest(method, h.URL()+path+"?api-version="+apiVersion, bytes.NewReader(data))
	if err != nil {
		h.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer fake-access-token")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		h.Fatal(err)
	}
	defer answer.Body.Close()
	if data, err = io.ReadAll(answer.Body); err != nil || answer.StatusCode != http.StatusOK || json.Unmarshal(data, &out) != nil {
		h.Fatalf("%s %s: %s %s %v", method, path, answer.Status, data, err)
	}
	return out
}

// The address was on no NIC; while somebody else edits ours, nic-b takes it. That is after our look,
// and after our gate.
func TestTooStrongAnAddressThatWasFreeAtTheFirstLookIsTakenFromNobody(t *testing.T) {
	h := newHost(t)
	h.meanwhile(func() {
		h.Edit("nic-a", func(p map[string]any) { p["edits"] = 1 })
		h.Place("nic-b", mobile)
	})
	h.Want(h.ask(capture.Assign, mobile, reassign), executor.OutcomeRetry, "nic-b", "may have it rightly")
	h.WantOn(mobile, "nic-b")
	h.wantPuts(1, 0)
}

// It is deleted between the look at the subnet and that at the NIC.
func TestAHolderThatIsGoneIsNoFailure(t *testing.T) {
	h := newHost(t)
	h.Place("nic-b", mobile)
	onNIC := func(c executortest.Call) bool { return c.NIC == "nic-b" }
	h.Inject(executortest.Rule{Match: onNIC, Fault: executortest.Fault{Status: 404, Code: "ResourceNotFound", Message: "gone"}})
	h.Want(h.ask(capture.Assign, mobile, reassign), executor.OutcomeRetry, "has left nic-b")
	h.wantPuts(0, 0)
}

// The subnet is behind: it shows the address on a NIC that has it no more.
func TestASeizeLooksAtTheNICBeforeItTakesAnythingFromIt(t *testing.T) {
	h := newHost(t)
	h.Place("nic-b", mobile)
	h.Before(func(c executortest.Call) {
		if c.NIC == "nic-b" {
			h.Before(nil)
			h.Place("nic-c", mobile)
		}
	})
	h.Want(h.ask(capture.Assign, mobile, reassign), executor.OutcomeRetry, "has left nic-b")
	h.WantOn(mobile, "nic-c")
	h.wantPuts(0, 0)
}

// The other way round: the subnet does not show yet who has it.
func TestAHolderThatShowsLateIsTakenFromByALaterAttempt(t *testing.T) {
	h := newHost(t)
	h.Lag(0, 10*time.Second)
	h.Want(h.ask(capture.Assign, mobile, onB), executor.OutcomeDone)
	h.Lag(0, 15*time.Second)
	r := h.ask(capture.Assign, mobile, reassign)
	h.Want(r, executor.OutcomeRetry, "nic-b", "from there next")
	if r.Code != "PrivateIPAddressIsAllocated" {
		t.Errorf("code %q, want the one of ARM", r.Code)
	}
	h.clock.Sleep(context.Background(), 15*time.Second)
	h.Lag(0, 0)
	h.Want(h.ask(capture.Assign, mobile, reassign), executor.OutcomeAgain)
	h.WantOn(mobile)
}

// As long as ARM has not let go of it there, nothing is said to be done.
func TestASeizeWaitsUntilTheOldHolderHasLetGo(t *testing.T) {
	h := newHost(t)
	h.Place("nic-b", mobile)
	h.Lag(15*time.Second, 0)
	start := h.clock.Now()
	h.Want(h.ask(capture.Assign, mobile, reassign), executor.OutcomeAgain)
	if waited := h.clock.Now().Sub(start); waited < 15*time.Second {
		t.Errorf("it took 15 s, and was said after %s", waited)
	}
	h.Want(h.ask(capture.Assign, mobile, reassign), executor.OutcomeDone)
	h.WantOn(mobile, "nic-a")
}

func TestAHolderInAnotherResourceGroupIsFound(t *testing.T) {
	h := newHost(t)
	far := strings.Replace(h.ID("nic-far"), "/edge/", "/far/", 1)
	h.AddNIC(far, netip.MustParseAddr("10.0.0.20"))
	h.Place(far, mobile)
	h.Want(h.ask(capture.Assign, mobile, dryRun), executor.OutcomePermanent, far)
	h.Want(h.ask(capture.Assign, mobile, reassign), executor.OutcomeAgain, far)
	h.Want(h.ask(capture.Assign, mobile, reassign), executor.OutcomeDone)
	h.WantOn(mobile, "nic-a")
}

// A scale set has NICs in the subnet that nobody but itself can change.
func TestAHolderThatIsNoNICOfItsOwnIsLeftAlone(t *testing.T) {
	h := newHost(t)
	inSet := strings.Replace(h.ID(""), "Microsoft.Network/networkInterfaces/", "Microsoft.Compute/virtualMachineScaleSets/set/virtualMachines/0/networkInterfaces/nic", 1)
	h.AddNIC(inSet, netip.MustParseAddr("10.0.0.20"))
	h.Place(inSet, mobile)
	h.Want(h.ask(capture.Assign, mobile, reassign), executor.OutcomePermanent, inSet, "out of the pool")
	h.wantPuts(0, 0)
}

func TestAPublicAddressThatIsLostOnTheWayIsNamed(t *testing.T) {
	h := newHost(t)
	h.Place("nic-b", mobile)
	h.Edit("nic-b", func(p map[string]any) {
		list := p["ipConfigurations"].([]any)
		list[1].(map[string]any)["properties"].(map[string]any)["publicIPAddress"] = map[string]any{"id": "/public/203.0.113.7"}
	})
	h.Want(h.ask(capture.Assign, mobile, reassign), executor.OutcomeAgain, "/public/203.0.113.7", "dissociated")
}

// ARM keeps no case: nic-a is NIC-A.
func TestOurOwnNICIsNotSeizedFrom(t *testing.T) {
	h := newHost(t)
	h.Lag(0, 5*time.Second)
	h.Before(func(c executortest.Call) { // the subnet shows it here, and the NIC did not yet
		if c.Action == "GET subnets" {
			h.Before(nil)
			h.Place("nic-a", mobile)
		}
	})
	shout := func(q *executor.Request) { q.NIC = strings.ToUpper(q.NIC) }
	h.Want(h.ask(capture.Assign, mobile, reassign, shout), executor.OutcomeAlready)
	h.WantOn(mobile, "nic-a")
}
