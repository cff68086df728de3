package main

import (
	"testing"

	"github.com/tasuki-io/tasuki/internal/agent"
	"github.com/tasuki-io/tasuki/internal/capture"
	"github.com/tasuki-io/tasuki/internal/executor"
)

// A script that rehearses learns from the exit code that something would fail.
func TestARehearsalFailsWithItsActions(t *testing.T) {
	blocked := []agent.Missing{{Rule: capture.RuleDryRunOnly}}
	for name, c := range map[string]struct {
		r    agent.Rehearsal
		fail bool
	}{
		"it would be done":            {agent.Rehearsal{Outcome: executor.OutcomeDone}, false},
		"done, and the policy blocks": {agent.Rehearsal{Outcome: executor.OutcomeDone, Missing: blocked}, false},
		"it is so":                    {agent.Rehearsal{Outcome: executor.OutcomeAlready}, false},
		"a part would be done":        {agent.Rehearsal{Outcome: executor.OutcomeAgain}, false},
		"it would fail":               {agent.Rehearsal{Outcome: executor.OutcomePermanent, Missing: blocked}, true},
		"it makes no sense":           {agent.Rehearsal{Outcome: executor.OutcomeRefused}, true},
		"it may fail":                 {agent.Rehearsal{Outcome: executor.OutcomeRetry}, true},
		"no answer":                   {agent.Rehearsal{Outcome: executor.OutcomeUnknown}, true},
		"no claims":                   {agent.Rehearsal{Detail: "the claims store did not answer"}, true},
		"stale":                       {agent.Rehearsal{Stale: "otherEpoch"}, false},
		"not even looked at":          {agent.Rehearsal{Missing: blocked}, false},
	} {
		if err := doomed([]agent.Rehearsal{{Outcome: executor.OutcomeDone}, c.r}); (err != nil) != c.fail {
			t.Errorf("%s: %v", name, err)
		}
	}
}
