package main

import (
	"os"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/tasuki-io/tasuki/internal/page"
)

// tasuki plan, as scripts. Beside the usual commands of testscript there is
//
//	exits CODE ARGUMENTS    runs tasuki, and expects an exit code
func TestPlan(t *testing.T) {
	was := time.Local
	time.Local = time.UTC // as tables are in local time
	with := builtIn
	builtIn = func() (page.Simulator, error) { return page.Simulator{}, nil }
	t.Cleanup(func() { time.Local, builtIn = was, with })
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
