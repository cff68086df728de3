package agent

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tasuki-io/tasuki/internal/capture"
	"github.com/tasuki-io/tasuki/internal/window"
)

// Whatever is no request is refused as the mistake of who asks, and says what is wrong.
func TestControlRefusesWhatIsNoRequest(t *testing.T) {
	s := newSite(t)
	h := s.host("a", s.pool(byHand))
	h.settle()
	handler := Control{h.Agent, h.journal}.Handler()
	for _, c := range []struct {
		name, method, path, body string
		status                   int
		says                     string
	}{
		{"no JSON", "POST", "approve", "approve all", 422, "read the request"},
		{"nothing", "POST", "drain", "", 422, "read the request: EOF"},
		{"a field that there is not", "POST", "drain", `{"nod": "a"}`, 422, `unknown field "nod"`},
		{"two objects", "POST", "drain", `{"node": "a"} {"node": "b"}`, 422, "something follows the JSON object"},
		{"too much", "POST", "approve", `{"ids": ["` + strings.Repeat("x", longest) + `"]}`, 422, "too large"},
		{"no actions", "POST", "approve", `{"ids": []}`, 422, "name at least one action"},
		{"two rollbacks", "POST", "rollback", `{"ids": ["` + h.rows()[0] + `", "` + h.rows()[1] + `"]}`, 422, "one action at a time, not 2"},
		{"a rollback of what has not succeeded", "POST", "rollback", `{"ids": ["` + h.rows()[0] + `"]}`, 422, "only one that has succeeded"},
		{"an own without an address", "POST", "own", `{"site": "home"}`, 422, "is in no pool"},
		{"no address", "GET", "explain", "", 422, "the address is empty: write one such as"},
		{"a path that there is not", "GET", "everything", "", 404, ""},
		{"a read by POST", "POST", "captures", "", 405, ""},
	} {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(c.method, "/v1/"+c.path, strings.NewReader(c.body)))
		var got Fault
		if c.status == 422 {
			if err := json.NewDecoder(w.Body).Decode(&got); err != nil || got.Kind == FaultFailed {
				t.Errorf("%s: is told as %+v (%v), want a mistake or a refusal", c.name, got, err)
			}
		}
		if w.Code != c.status || !strings.Contains(got.Error, c.says) {
			t.Errorf("%s: %d %.200s, want %d and %q", c.name, w.Code, got.Error, c.status, c.says)
		}
	}
}

// A store that does not answer is nobody's mistake.
func TestControlTellsAFailureFromAMistake(t *testing.T) {
	s := newSite(t)
	h := s.host("a", s.pool(byHand))
	h.settle()
	h.stop()
	for path, body := range map[string]string{"drain": `{"node": "a", "drained": true}`, "own": `{"address": "10.0.0.1", "site": "home"}`} {
		w := httptest.NewRecorder()
		Control{h.Agent, h.journal}.Handler().ServeHTTP(w, httptest.NewRequest("POST", "/v1/"+path, strings.NewReader(body)))
		var got Fault
		if err := json.NewDecoder(w.Body).Decode(&got); err != nil || w.Code != http.StatusInternalServerError || got.Kind != FaultFailed {
			t.Errorf("%s without a store: %d %+v (%v), want a failure", path, w.Code, got, err)
		}
	}
}

// What is written is what scripts read: the fields have these names, and times are RFC 3339.
func TestTheFieldsOfAnActionAreStable(t *testing.T) {
	s := newSite(t)
	h := s.host("a", s.pool(byHand))
	h.settle()
	w := httptest.NewRecorder()
	Control{h.Agent, h.journal}.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/v1/actions?address=10.0.0.1", nil))
	var list []map[string]any
	if err := json.NewDecoder(w.Body).Decode(&list); err != nil || len(list) != 1 {
		t.Fatalf("%s (%v)", w.Body, err)
	}
	for _, at := range []string{"created", "updated"} {
		if _, err := time.Parse(time.RFC3339, list[0][at].(string)); err != nil {
			t.Errorf("%s: %v", at, err)
		}
		delete(list[0], at)
	}
	want := map[string]any{
		"id": "mobility:p:aws:eni-a:assign-secondary-ip:10.0.0.1:epoch:1", "handle": Handle("mobility:p:aws:eni-a:assign-secondary-ip:10.0.0.1:epoch:1"),
		"verb": "assign-secondary-ip", "epoch": 1.0, "nic": "eni-a", "state": "pending", "attempts": 0.0,
		"rule": "requireApproval", "detail": "nobody has approved it",
		"pool": "p", "address": "10.0.0.1", "domain": "provider:cloud-a:placement:g", "holder": "a", "provider": "aws", "providerRef": "cloud-a",
	}
	if diff := cmp.Diff(want, list[0]); diff != "" {
		t.Errorf("an action (-want +got):\n%s", diff)
	}
}

// Whoever opens a policy opens it once: all that is missing is told, and what is told is
// enough.
func TestMissingIsAllThatIsMissing(t *testing.T) {
	at := time.Date(2026, 1, 5, 12, 0, 0, 0, time.UTC) // a Monday
	sundays, err := window.ParseRule("UTC", []string{"Sun"}, "00:00", "24:00")
	if err != nil {
		t.Fatal(err)
	}
	closed := window.NewSchedule(sundays)
	row := capture.Action{
		Token:  capture.Token{Verb: capture.Assign, Key: capture.Key{Pool: "p", Address: netip.MustParseAddr("2001:db8::1")}, Epoch: 1, Holder: "a"},
		Target: capture.Target{Provider: "aws", ProviderRef: "cloud-a", NIC: "eni-a"}, Undoes: "x", State: capture.Pending,
	}
	policy := capture.Policy{DryRunOnly: true, RequireApproval: true, Window: &closed}
	list := missing(policy, row, at)
	var rules []capture.Rule
	for _, m := range list {
		if rules = append(rules, m.Rule); m.Change == "" {
			t.Errorf("%s: no change is named", m.Rule)
		}
	}
	want := []capture.Rule{
		capture.RuleEnabled, capture.RuleProviders, capture.RuleProviderRefs, capture.RuleVerbs, capture.RuleAllowUndo, capture.RuleCIDRs,
		capture.RuleWindow, capture.RuleDryRunOnly, capture.RuleRequireApproval, capture.RuleMaxPerRun,
	}
	if diff := cmp.Diff(want, rules); diff != "" {
		t.Errorf("missing (-want +got):\n%s", diff)
	}
	if policy.Enabled || len(policy.Verbs)+len(policy.CIDRs) > 0 {
		t.Errorf("to ask has changed the policy: %+v", policy)
	}
}
