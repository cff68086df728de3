package main

import (
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/tasuki-io/tasuki/internal/page"
)

// tasuki plan, as scripts. Beside the usual commands of testscript there is
//
//	exits CODE ARGUMENTS    runs tasuki, and expects an exit code; - is the file stdin.yaml
func TestPlan(t *testing.T) {
	with := builtIn
	builtIn = func() (page.Simulator, error) { return page.Simulator{}, nil }
	t.Cleanup(func() { builtIn = with })
	testscript.Run(t, testscript.Params{
		Dir:           "testdata/plan",
		UpdateScripts: os.Getenv("UPDATE_SCRIPTS") != "",
		Setup: func(e *testscript.Env) error {
			e.Values[stageKey{}] = &stage{}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": on((*stage).exits)},
	})
}
