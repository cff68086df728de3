package scale

import (
	"testing"
	"time"

	"github.com/tasuki-io/tasuki/lab"
	"github.com/tasuki-io/tasuki/lab/trial"
)

// The reactions of a pool, between those of another and what is none.
func TestReactions(t *testing.T) {
	opens := time.Date(2026, 3, 4, 2, 0, 0, 0, time.UTC)
	at := func(ms int, user, resource, sub, name string, code int) lab.AuditEvent {
		return lab.AuditEvent{Time: opens.Add(time.Duration(ms) * time.Millisecond), User: user, Resource: resource, Subresource: sub, Name: name, Code: code}
	}
	opened, running, gone := reactions([]lab.AuditEvent{
		at(-500, trial.User, "nodepools", "", "pool-1", 200),
		at(20, trial.User, "nodepools", "", "pool-1", 409),
		at(30, trial.User, "nodepools", "", "pool-1", 200),
		at(40, trial.User, "nodepools", "", "pool-2", 200),
		at(90, trial.User, "nodeclaims", "", "pool-1-claim-00001", 200),
		at(120, "admin", "pods", "status", "noderotation-surge-pool-1-claim-00001", 200),
		at(125, trial.User, "nodes", "", "node-00003", 200),
		at(131, trial.User, "nodepools", "", "pool-1", 200),
		at(900, trial.User, "nodepools", "", "pool-1", 200),
		at(1007, trial.User, "nodepools", "", "pool-1", 200),
		at(1000, "admin", "nodeclaims", "", "pool-1-claim-00001", 200),
	}, opens)
	for what, pair := range map[string][2]spread{
		"opened":  {opened, spreadOf([]time.Duration{30 * time.Millisecond, 40 * time.Millisecond})},
		"running": {running, spreadOf([]time.Duration{11 * time.Millisecond})},
		"gone":    {gone, spreadOf([]time.Duration{7 * time.Millisecond})},
	} {
		if pair[0] != pair[1] || pair[0].N == 0 {
			t.Errorf("%s: %+v, want %+v", what, pair[0], pair[1])
		}
	}
}
