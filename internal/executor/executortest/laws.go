package executortest

import (
	"context"
	"encoding/json"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tasuki-io/tasuki/internal/capture"
	"github.com/tasuki-io/tasuki/internal/executor"
)

// laws are what every executor keeps.
var laws = []struct {
	name  string
	holds func(*trial)
}{
	{"a free address is assigned, and seen", aFreeAddressIsAssigned},
	{"what is assigned already is not asked for again", assignedAlready},
	{"an address elsewhere stays there without reassign", elsewhereStays},
	{"an address elsewhere comes here with reassign", elsewhereComes},
	{"an IPv6 address comes here with reassign, one change at a time", elsewhereComes6},
	{"an IPv6 address elsewhere stays there without reassign", elsewhereStays6},
	{"a release takes the address from this NIC", releaseHere},
	{"a release never strips another NIC", releaseElsewhere},
	{"forwarding goes on and off", forwarding},
	{"describe tells what is there", describes},
	{"locate tells where each address is", locates},
	{"locate asks no more often for many", locatesMany},
	{"throttled is said, and nothing is repeated", throttled},
	{"c06: an answer is lost, and one success is reported", c06},
	{"stale reads are waited for", staleReads},
	{"c13: a full NIC is named", c13},
	{"an unknown NIC is named", unknown},
	{"a dry run changes nothing", dryRuns},
	{"garbage is refused", garbage},
	{"no token goes where others would see it", exposed},
	{"killed midway is unknown, and the next attempt reads", killed},
	{"the provider can see whose request it is", visible},
}

func aFreeAddressIsAssigned(t *trial) {
	for _, a := range []option{about(t.Address()), about(t.Address6())} {
		t.Want(t.ask(capture.Assign, a), executor.OutcomeDone)
	}
	t.WantOn(t.Address(), t.here)
	t.WantOn(t.Address6(), t.here)
	t.wantChanges(2, 2)
}

func assignedAlready(t *trial) {
	t.Place(t.here, t.Address())
	t.Place(t.here, t.Address6())
	t.Want(t.ask(capture.Assign, readFirst), executor.OutcomeAlready)
	t.Want(t.ask(capture.Assign, readFirst, about(t.Address6())), executor.OutcomeAlready)
	t.wantChanges(0, 0)
}

func elsewhereStays(t *trial) {
	t.Place(t.there, t.address)
	t.Want(t.ask(capture.Assign), executor.OutcomePermanent, t.address.String(), t.there)
	t.WantOn(t.address, t.there)
}

func elsewhereStays6(t *trial) {
	t.address = t.Address6()
	elsewhereStays(t)
}

func elsewhereComes(t *trial) {
	t.Place(t.there, t.address)
	t.comes()
	t.WantOn(t.address, t.here)
}

// comes asks until an address is here. A provider that moves it in two steps says so between
// them, when the address is on no NIC.
func (t *trial) comes() {
	t.Helper()
	r := t.ask(capture.Assign, reassign)
	if r.Outcome == executor.OutcomeAgain {
		t.WantOn(t.address)
		r = t.ask(capture.Assign, reassign)
	}
	t.Want(r, executor.OutcomeDone)
}

func elsewhereComes6(t *trial) {
	t.address = t.Address6()
	elsewhereComes(t)
}

func releaseHere(t *trial) {
	for _, a := range []option{about(t.Address()), about(t.Address6())} {
		q := t.request(capture.Unassign, a)
		t.Place(t.here, q.Address)
		t.Want(t.ask(capture.Unassign, a), executor.OutcomeDone)
		t.WantOn(q.Address)
		t.Want(t.ask(capture.Unassign, a), executor.OutcomeAlready)
	}
	if _, accepted := t.Changes(); accepted != 2 {
		t.Errorf("%d changes were accepted, want 2", accepted)
	}
}

// I5: whoever has the address now keeps it, whenever a release that is late arrives.
func releaseElsewhere(t *trial) {
	for _, a := range []option{about(t.Address()), about(t.Address6())} {
		q := t.request(capture.Unassign, a)
		t.Place(t.there, q.Address)
		for _, first := range []option{func(*executor.Request) {}, readFirst} {
			t.Want(t.ask(capture.Unassign, a, first), executor.OutcomeAlready)
			t.WantOn(q.Address, t.there)
		}
	}
	if _, accepted := t.Changes(); accepted != 0 {
		t.Errorf("%d changes were accepted, want none", accepted)
	}
}

func forwarding(t *trial) {
	t.Want(t.ask(capture.EnableForwarding), executor.OutcomeDone)
	if !t.Forwards(t.here) || t.Forwards(t.there) {
		t.Errorf("forwards: here %t, there %t, want here alone", t.Forwards(t.here), t.Forwards(t.there))
	}
	t.Want(t.ask(capture.EnableForwarding, readFirst), executor.OutcomeAlready)
	t.Want(t.ask(capture.DisableForwarding), executor.OutcomeDone)
	if t.Forwards(t.here) {
		t.Error("it still forwards")
	}
	t.Want(t.ask(capture.DisableForwarding, readFirst), executor.OutcomeAlready)
	t.wantChanges(2, 2)
}

func describes(t *trial) {
	t.Place(t.here, t.Address())
	t.Place(t.here, t.Address6())
	t.ask(capture.EnableForwarding)
	r := t.ask(executor.Describe)
	t.Want(r, executor.OutcomeDone)
	if n := r.NIC; n == nil || !n.Forwards || len(n.Addresses) != 2 || n.Addresses[0] != t.Address() || n.Addresses[1] != t.Address6() || !n.Primary.IsValid() {
		t.Errorf("it has seen %+v, want a primary address, forwarding, %s and %s", n, t.Address(), t.Address6())
	}
}

func locates(t *trial) {
	here6, free, double := t.Address6(), t.address.Next(), t.address.Next().Next()
	t.Place(t.there, t.address)
	t.Place(t.here, here6)
	t.Place(t.there, double)
	t.Double(t.here, double)
	r := t.ask(executor.Locate, among(t.address, here6, free, double))
	t.Want(r, executor.OutcomeDone)
	both := []string{t.here, t.there}
	slices.Sort(both)
	want := []executor.Place{{Address: t.address, NICs: []string{t.there}}, {Address: here6, NICs: []string{t.here}}, {Address: free, NICs: []string{}}, {Address: double, NICs: both}}
	if diff := cmp.Diff(want, r.Places, cmpopts.EquateComparable(netip.Addr{})); diff != "" {
		t.Errorf("places (-want +got):\n%s", diff)
	}
	if n := r.NIC; n == nil || !slices.Contains(n.Addresses, double) || slices.Contains(n.Addresses, t.address) {
		t.Errorf("the NIC is %+v, want it with %s and %s", n, here6, double)
	}
	t.Want(t.ask(executor.Locate, among(t.address), on(t.where)), executor.OutcomePermanent, t.where)
	t.wantChanges(0, 0)
}

func locatesMany(t *trial) {
	var many []netip.Addr
	for a := t.address; len(many) < 100; a = a.Next() {
		many = append(many, a)
	}
	few, all := t.ask(executor.Locate, among(many[:2]...)), t.ask(executor.Locate, among(many...))
	t.Want(few, executor.OutcomeDone)
	t.Want(all, executor.OutcomeDone)
	if few.Calls != all.Calls {
		t.Errorf("%d calls for 2 addresses and %d for %d, want as many", few.Calls, all.Calls, len(many))
	}
}

func throttled(t *trial) {
	t.Throttle(1)
	r := t.ask(capture.Assign)
	t.Want(r, executor.OutcomeThrottled)
	if r.Code == "" {
		t.Error("the result does not have the provider's word for it")
	}
	if want := map[string]int{"azure": 10}[t.Profile().Provider]; r.RetryAfter != want {
		t.Errorf("it is to be left alone for %d s, and the provider says %d", r.RetryAfter, want)
	}
	t.wantChanges(1, 0)
	t.Want(t.ask(capture.Assign), executor.OutcomeDone)
	t.wantChanges(2, 1)
}

func c06(t *trial) {
	t.LoseAnswers(1)
	t.Want(t.ask(capture.Assign), executor.OutcomeDone)
	t.WantOn(t.address, t.here)
	t.wantChanges(1, 1)
	t.LoseAnswers(1)
	t.Want(t.ask(capture.Unassign), executor.OutcomeDone)
	t.WantOn(t.address)
	t.wantChanges(2, 2)
}

func staleReads(t *trial) {
	t.Lag(500 * time.Millisecond)
	t.Want(t.ask(capture.Assign), executor.OutcomeDone)
	t.wantChanges(1, 1)
	t.Want(t.ask(capture.EnableForwarding), executor.OutcomeDone)
	t.wantChanges(2, 2)
}

func c13(t *trial) {
	t.Fill(t.here)
	t.Want(t.ask(capture.Assign), executor.OutcomePermanent, t.here, t.address.String())
	t.WantOn(t.address)
	t.Want(t.ask(capture.EnableForwarding), executor.OutcomeDone) // others go on
}

func unknown(t *trial) {
	for _, v := range append(capture.Verbs(), executor.Describe) {
		t.Want(t.ask(v, on(t.where)), executor.OutcomePermanent, t.where)
	}
}

func dryRuns(t *trial) {
	t.Want(t.ask(capture.Assign, dryRun), executor.OutcomeDone)
	t.Want(t.ask(capture.EnableForwarding, dryRun), executor.OutcomeDone)
	t.Place(t.there, t.address)
	t.Want(t.ask(capture.Assign, dryRun), executor.OutcomePermanent, t.there)
	t.Want(t.ask(capture.Assign, dryRun, reassign), executor.OutcomeDone)
	t.WantOn(t.address, t.there)
	t.Place(t.here, t.address)
	t.Want(t.ask(capture.Unassign, dryRun), executor.OutcomeDone)
	t.WantOn(t.address, t.here)
	if _, accepted := t.Changes(); accepted != 0 || t.Forwards(t.here) {
		t.Errorf("dry runs have changed %d things", accepted)
	}
}

func garbage(t *trial) {
	whole, err := json.Marshal(t.request(capture.Assign))
	if err != nil {
		t.Fatal(err)
	}
	for _, stdin := range []string{"", "{", "null", "[]", `{"version":2}`, string(whole[:len(whole)-1]), string(whole) + "{}",
		strings.Replace(string(whole), `"nic"`, `"Nic"`, 1), strings.Replace(string(whole), `{`, `{"force":true,`, 1)} {
		out, exit := t.raw(stdin)
		r, err := executor.DecodeResult([]byte(out), exit)
		if err != nil || r.Outcome != executor.OutcomeRefused || r.Message == "" || r.Calls != 0 {
			t.Errorf("%q is answered with %q, exit code %d: want it refused", stdin, out, exit)
		}
	}
	t.wantChanges(0, 0)
}

func exposed(t *trial) {
	for _, endpoint := range []string{
		"http://localhost:4566", // a name is somebody's word
		"http://10.0.0.1:4566", "http://api.example.com", "http://127.0.0.1.example.com",
		"api.example.com", "https:api.example.com", "https://", "ftp://127.0.0.1", "https://user:password@api.example.com",
	} {
		r := t.ask(executor.Describe, func(q *executor.Request) { q.Profile.Endpoint = endpoint })
		if r.Outcome != executor.OutcomeRefused || r.Calls != 0 || strings.Contains(r.Message, "password") {
			t.Errorf("%s: %s after %d calls (%s), want it refused without any", endpoint, r.Outcome, r.Calls, r.Message)
		}
	}
}

func killed(t *trial) {
	held, release := t.Hold()
	ctx, kill := context.WithCancel(context.Background())
	go func() {
		<-held
		kill()
	}()
	t.Want(t.askWithin(ctx, capture.Assign), executor.OutcomeUnknown)
	if ctx.Err() == nil {
		t.Fatal("its time was over before it had asked for the change: this machine is too busy")
	}
	t.WantOn(t.address)
	release()
	for len(t.Holders(t.address)) == 0 {
		time.Sleep(time.Millisecond) // the call is carried out although nobody waits for it
	}
	t.Want(t.ask(capture.Assign, readFirst), executor.OutcomeAlready)
	t.wantChanges(1, 1)
}

func visible(t *trial) {
	q := t.request(capture.Assign)
	t.ask(capture.Assign)
	if want := t.provider.Visible(q.ID); len(t.IDs()) != 1 || t.IDs()[0] != want {
		t.Errorf("the provider could see %q, want %q alone", t.IDs(), want)
	}
}
