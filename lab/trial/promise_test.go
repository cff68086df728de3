package trial

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tasuki-io/tasuki/lab"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// kept is the account of a rotation of case r01 as it should be.
func kept() Account {
	return Account{
		Replicas: 6, Claim: "web-a", OldNode: "node-a", NewNode: "node-b", Outcome: Success,
		Started: noon, Capacity: noon.Add(4 * time.Second), Deleted: noon.Add(5 * time.Second),
		Drained: noon.Add(94 * time.Second), Ended: noon.Add(95 * time.Second), Total: 95 * time.Second,
		SurgePath: "provisioned", ClaimsCreated: []string{"web-b"}, Evicted: 6, MostNotReady: 1,
		Writes: make([]lab.AuditEvent, MostWrites),
	}
}

func TestBroken(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(*Account)
		want  []string
	}{
		{"all kept", func(*Account) {}, nil},
		{"absorbed by spare capacity", func(a *Account) { a.ClaimsCreated = nil }, nil},
		{"Karpenter launched a second node", func(a *Account) { a.ClaimsCreated = []string{"web-b", "web-c"} },
			[]string{"2 NodeClaims were created; at most 1 is promised: web-b, web-c"}},
		{"two pods away at once", func(a *Account) { a.MostNotReady = 2 },
			[]string{"2 of 6 pods were not Ready at once; at most 1 is promised"}},
		{"an evicted pod waited for a node", func(a *Account) { a.Waited = []string{"pod web-1 was unbound for 9s until node node-c appeared"} },
			[]string{"pod web-1 was unbound for 9s until node node-c appeared"}},
		{"an evicted pod waits still", func(a *Account) { a.Unbound, a.Unready = []string{"web-1"}, 1 },
			[]string{"pod web-1 is still unbound", "1 of 6 pods are not Ready after the rotation"}},
		{"a marker was forgotten", func(a *Account) { a.Residue = []string{"Node node-b: cordoned"} },
			[]string{"a mark is left behind: Node node-b: cordoned"}},
		{"one write too many", func(a *Account) { a.Writes = make([]lab.AuditEvent, MostWrites+1) },
			[]string{"the controller made 14 API writes; at most 13 are promised"}},
		{"drained before the capacity was there", func(a *Account) { a.Disorder = []string{"NodeClaim web-a was deleted before X"} },
			[]string{"NodeClaim web-a was deleted before X"}},
		{"too slow", func(a *Account) { a.Total = 6*time.Minute + time.Second },
			[]string{"the rotation of NodeClaim web-a took 6m1s; at most 6m0s is promised"}},
		{"never finished", func(a *Account) { a.Ended, a.Outcome = time.Time{}, "" },
			[]string{"the rotation of NodeClaim web-a (node node-a) did not finish within 6m0s"}},
		{"rolled back", func(a *Account) { a.Outcome = Failure },
			[]string{"the rotation of NodeClaim web-a ended with outcome failure"}},
		{"ended, and the node is there", func(a *Account) { a.Drained = time.Time{} },
			[]string{"the rotation has ended, and NodeClaim web-a (node node-a) is still there"}},
		{"never began", func(a *Account) { *a = Account{Replicas: 6} },
			[]string{"the node is due, and no rotation has started"}},
		{"the controller died before", func(a *Account) { *a = Account{Replicas: 6, ControllerEnded: "exit status 3"} },
			[]string{"the controller's process ended by itself: exit status 3"}},
		{"the controller died in the middle", func(a *Account) { a.Ended, a.Outcome, a.ControllerEnded = time.Time{}, "", "signal: killed" },
			[]string{"the controller's process ended by itself: signal: killed"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := kept()
			c.spoil(&a)
			if diff := cmp.Diff(c.want, Broken(a)); diff != "" {
				t.Errorf("broken promises (-want +got):\n%s", diff)
			}
		})
	}
}
