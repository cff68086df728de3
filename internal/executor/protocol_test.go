package executor

import (
	"encoding/json"
	"net/netip"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tasuki-io/tasuki/internal/capture"
)

var whole = Request{
	Version: Version, ID: "mobility:edge:aws:eni-a:assign-secondary-ip:10.0.0.100:epoch:7", Verb: capture.Assign,
	Profile: Profile{Name: "tokyo", Provider: "aws", Region: "ap-northeast-1"},
	NIC:     "eni-a", Address: netip.MustParseAddr("10.0.0.100"), Reassign: true,
}

func text(t testing.TB, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestARequestIsReadAsItWasWritten(t *testing.T) {
	got, err := ReadRequest(strings.NewReader(text(t, whole)))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(whole, got, cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" {
		t.Error(diff)
	}
}

func TestARequestThatIsNoneIsRefusedByName(t *testing.T) {
	good := text(t, whole)
	change := func(f func(*Request)) string {
		q := whole
		f(&q)
		return text(t, q)
	}
	for name, c := range map[string]struct{ in, says string }{
		"nothing":                 {"", "JSON"},
		"no object":               {"[]", "JSON"},
		"null":                    {"null", "version 0"},
		"cut off":                 {good[:len(good)-1], "JSON"},
		"two":                     {good + good, "JSON"},
		"something after it":      {good + " x", "JSON"},
		"a field nobody knows":    {strings.Replace(good, "{", `{"force":true,`, 1), `"force"`},
		"a field in another case": {strings.Replace(good, `"nic"`, `"NIC"`, 1), `"NIC"`},
		"a field twice":           {strings.Replace(good, "{", `{"nic":"eni-b",`, 1), `"nic"`},
		"in the profile":          {strings.Replace(good, `"region"`, `"accessKey":"x","region"`, 1), "accessKey"},
		"an address that is none": {strings.Replace(good, "10.0.0.100\",", "10.0.0.300\",", 1), "10.0.0.300"},
		"too long":                {strings.Repeat(" ", maxRequest) + good, "longer"},
		"of another version":      {change(func(q *Request) { q.Version = 2 }), "version 2"},
		"another verb":            {change(func(q *Request) { q.Verb = "delete" }), `"delete"`},
		"no ID":                   {change(func(q *Request) { q.ID = "" }), "id"},
		"an ID of two lines":      {change(func(q *Request) { q.ID = "a\nb" }), "id"},
		"no NIC":                  {change(func(q *Request) { q.NIC = "" }), "nic"},
		"a NIC that rings":        {change(func(q *Request) { q.NIC = "eni\a" }), "nic"},
		"a NIC without end":       {change(func(q *Request) { q.NIC = strings.Repeat("x", maxName+1) }), "nic"},
		"no provider":             {change(func(q *Request) { q.Profile.Provider = "" }), "provider"},
		"no address":              {change(func(q *Request) { q.Address = netip.Addr{} }), "address"},
		"an address for forwarding": {change(func(q *Request) {
			q.Verb, q.Reassign = capture.EnableForwarding, false
		}), "takes none"},
		"an address to describe": {change(func(q *Request) { q.Verb, q.Reassign = Describe, false }), "takes none"},
		"a zone":                 {change(func(q *Request) { q.Address = netip.MustParseAddr("fe80::1%eth0") }), "zone"},
		"IPv4 in IPv6":           {change(func(q *Request) { q.Address = netip.MustParseAddr("::ffff:10.0.0.1") }), "IPv4"},
		"a release that takes":   {change(func(q *Request) { q.Verb = capture.Unassign }), "reassign"},
		"a silent cloud":         {change(func(q *Request) { q.Silent = true }), "silent"},
		"a silent release": {change(func(q *Request) {
			q.Verb, q.Reassign, q.Silent, q.Profile.Provider = capture.Unassign, false, true, "linux"
		}), "silent"},
		"nothing to locate": {change(func(q *Request) { q.Verb, q.Address, q.Reassign = Locate, netip.Addr{}, false }), "addresses"},
		"too much to locate": {change(func(q *Request) {
			q.Verb, q.Address, q.Reassign, q.Addresses = Locate, netip.Addr{}, false, make([]netip.Addr, MaxLocated+1)
		}), "addresses"},
		"a zone to locate": {change(func(q *Request) {
			q.Verb, q.Address, q.Reassign, q.Addresses = Locate, netip.Addr{}, false, []netip.Addr{netip.MustParseAddr("fe80::1%eth0")}
		}), "zone"},
		"several to assign":           {change(func(q *Request) { q.Addresses = []netip.Addr{q.Address} }), "addresses"},
		"a description without doing": {change(func(q *Request) { q.Verb, q.Address, q.Reassign, q.DryRun = Describe, netip.Addr{}, false, true }), "dryRun"},
	} {
		t.Run(name, func(t *testing.T) {
			if q, err := ReadRequest(strings.NewReader(c.in)); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("it was read as %+v with the error %v, want one that says %q", q, err, c.says)
			}
		})
	}
}

func TestAResultThatIsNoneIsRefused(t *testing.T) {
	good := `{"version":1,"outcome":"done","calls":2}`
	if r, err := DecodeResult([]byte(good+"\n"), 0); err != nil || r.Calls != 2 {
		t.Fatalf("it was read as %+v, %v", r, err)
	}
	for name, c := range map[string]struct {
		in   string
		exit int
		says string
	}{
		"nothing":                     {"", 0, "JSON"},
		"half":                        {good[:20], 0, "JSON"},
		"two":                         {good + good, 0, "after top-level"},
		"a panic":                     {"panic: runtime error", 2, "invalid"},
		"another version":             {strings.Replace(good, "1", "2", 1), 0, "version 2"},
		"an outcome nobody knows":     {strings.Replace(good, "done", "maybe", 1), 0, "maybe"},
		"no outcome":                  {`{"version":1,"calls":0}`, 2, "outcome"},
		"done, by an exit of failure": {good, 6, "ended with 6"},
		"a failure, by an exit of 0":  {strings.Replace(good, "done", "permanent", 1), 0, "exit code 6"},
		"fewer calls than none":       {strings.Replace(good, "2}", "-2}", 1), 0, "-2"},
		"patience below none":         {`{"version":1,"outcome":"throttled","retryAfter":-1,"calls":1}`, 4, "retryAfter -1"},
		"patience without a reason":   {strings.Replace(good, "2}", "2,\"retryAfter\":3}", 1), 0, "retryAfter 3"},
		"a field nobody knows":        {strings.Replace(good, "{", `{"ok":true,`, 1), 0, `"ok"`},
		"too long":                    {good + strings.Repeat(" ", maxResult), 0, "longer"},
	} {
		t.Run(name, func(t *testing.T) {
			if r, err := DecodeResult([]byte(c.in), c.exit); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("it was read as %+v with the error %v, want one that says %q", r, err, c.says)
			}
		})
	}
}

func TestEveryOutcomeIsToldByItsExitCode(t *testing.T) {
	success := map[Outcome]bool{OutcomeDone: true, OutcomeAlready: true}
	for _, o := range outcomes {
		if (o.ExitCode() == 0) != success[o] {
			t.Errorf("%s has exit code %d", o, o.ExitCode())
		}
		if _, err := DecodeResult([]byte(text(t, Result{Version: Version, Outcome: o})), o.ExitCode()); err != nil {
			t.Errorf("%s: %v", o, err)
		}
	}
}

func TestAMessageIsOneLineThatEnds(t *testing.T) {
	if got, want := tidy("a\r\n\tb\x1b[31m\x00 c"), "a b [31m c"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := tidy(strings.Repeat("é", maxMessage)); len(got) > maxMessage+4 || !strings.HasSuffix(got, "é ...") {
		t.Errorf("it has %d bytes and ends in %q", len(got), got[len(got)-8:])
	}
}

func FuzzReadRequest(f *testing.F) {
	f.Add(text(f, whole))
	f.Add(`{"version":1,"verb":"describe","profile":{"provider":"aws"},"nic":"eni-a"}`)
	f.Add(`{"version":1,"verb":"locate","profile":{"provider":"aws"},"nic":"eni-a","addresses":["10.0.0.1","fd00::1"]}`)
	f.Fuzz(func(t *testing.T, in string) {
		q, err := ReadRequest(strings.NewReader(in))
		if err != nil {
			return
		}
		again, err := ReadRequest(strings.NewReader(text(t, q)))
		if err != nil || !reflect.DeepEqual(again, q) {
			t.Errorf("%q is read as %+v, and what is written of that as %+v, %v", in, q, again, err)
		}
		if addressed := q.Verb == capture.Assign || q.Verb == capture.Unassign; addressed != q.Address.IsValid() {
			t.Errorf("%q: %s with the address %s", in, q.Verb, q.Address)
		}
	})
}

func FuzzDecodeResult(f *testing.F) {
	f.Add([]byte(`{"version":1,"outcome":"done","calls":2}`), 0)
	f.Add([]byte(`{"version":1,"outcome":"done","calls":1,"nic":{"primary":"10.0.0.1","addresses":["10.0.0.2"],"forwards":true}}`), 0)
	f.Add([]byte(`{"version":1,"outcome":"refused","calls":0,"message":"no"}`), 2)
	f.Fuzz(func(t *testing.T, in []byte, exit int) {
		r, err := DecodeResult(in, exit)
		if err != nil {
			return
		}
		if r.Outcome.ExitCode() != exit || r.Version != Version {
			t.Errorf("%q with exit code %d is read as %+v", in, exit, r)
		}
		again, err := DecodeResult([]byte(text(t, r)), exit)
		if diff := cmp.Diff(r, again, cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); err != nil || diff != "" {
			t.Errorf("%q is not read as it was written: %v %s", in, err, diff)
		}
	})
}
