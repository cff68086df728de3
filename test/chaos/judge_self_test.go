package chaos

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/tasuki-io/tasuki/internal/executor/executortest"
)

// The judge is one who finds something: each line of this table breaks one law, but for the
// first.
func TestTheJudgeFindsWhatIsWrong(t *testing.T) {
	const key, id = "p0/10.0.0.1@provider:fake:placement:g", "mobility:p0:aws:eni-a-0:assign-secondary-ip:10.0.0.1:epoch:1"
	for want, c := range map[string]struct {
		claims []string      // of the key, a second after each other
		begins time.Duration // of the attempt, after the first claim
		verb   string
		done   int
	}{
		"": {claims: []string{`{"epoch":1,"holder":"a"}`, `{"epoch":2,"holder":"b"}`}, begins: time.Second / 2, verb: "assign-secondary-ip", done: 1},
		"I3: call 0 (assign-secondary-ip on eni-a-0) is for epoch 1": {claims: []string{`{"epoch":1,"holder":"a"}`, `{"epoch":2,"holder":"b"}`}, begins: 3 * time.Second / 2, verb: "assign-secondary-ip"},
		"I3: call 0 is for epoch 1":                                  {begins: time.Second, verb: "assign-secondary-ip"},
		"is of no attempt":                                           {claims: []string{`{"epoch":1,"holder":"a"}`}, begins: time.Hour, verb: "assign-secondary-ip"},
		`at which "b" holds`:                                         {claims: []string{`{"epoch":1,"holder":"b"}`}, begins: time.Second, verb: "assign-secondary-ip"},
		`at which "a" holds`:                                         {claims: []string{`{"epoch":1,"holder":"a"}`}, begins: time.Second, verb: "unassign-secondary-ip"},
		"I7":                                                         {claims: []string{`{"epoch":1,"holder":"a"}`}, begins: time.Second, verb: "assign-secondary-ip", done: 2},
		"I1, C1":                                                     {claims: []string{`{"epoch":1,"holder":"a"}`, `{"epoch":3,"holder":"b"}`}, verb: "assign-secondary-ip"},
		"was deleted":                                                {claims: []string{`{"epoch":1,"holder":"a"}`, ``}, verb: "assign-secondary-ip"},
	} {
		start := time.Now().Add(-time.Minute)
		l := &claimLog{lines: map[string][]claim{}}
		for i, text := range c.claims {
			e := &clientv3.Event{Type: clientv3.EventTypePut, Kv: &mvccpb.KeyValue{Key: []byte(claimKeys + "p0/10.0.0.1/provider:fake:placement:g"), Value: []byte(text)}}
			l.take(e, start.Add(time.Duration(i)*time.Second))
		}
		j := newJudge(&site{claims: l})
		began := start.Add(c.begins)
		j.hear(line{Time: began, Msg: "action begins", Action: id, Key: key, Epoch: 1, Verb: c.verb, agent: "a"})
		for range c.done {
			j.hear(line{Time: began, Msg: "action succeeded", Action: id, Key: key, Epoch: 1, Outcome: "done", agent: "a"})
		}
		j.call(executortest.Call{At: start.Add(10 * time.Second), ID: executortest.Agent(id), NIC: "eni-a-0", Addresses: []netip.Addr{netip.MustParseAddr("10.0.0.1")}})
		got := strings.Join(append(j.broken, l.violations()...), "\n")
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("want %q, found %q", want, got)
		}
	}
}
