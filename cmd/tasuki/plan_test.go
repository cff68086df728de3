package main

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/tasuki-io/tasuki/internal/page"
)

// tasuki plan, as scripts. Beside the usual commands of testscript there is
//
//	exits CODE ARGUMENTS    runs tasuki, and expects an exit code; - is the file stdin.yaml
//
// and what the README has of YAML, in readme_policy.yaml and readme_pool.yaml.
func TestPlan(t *testing.T) {
	with := builtIn
	builtIn = func() (page.Simulator, error) { return page.Simulator{}, nil }
	t.Cleanup(func() { builtIn = with })
	testscript.Run(t, testscript.Params{
		Dir:           "testdata/plan",
		UpdateScripts: os.Getenv("UPDATE_SCRIPTS") != "",
		Setup: func(e *testscript.Env) error {
			e.Values[stageKey{}] = &stage{}
			return writeReadme(e.WorkDir)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": on((*stage).exits)},
	})
}

// writeReadme writes the YAML of the README into files, by what it begins with.
func writeReadme(dir string) error {
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		return err
	}
	for name, begin := range map[string]string{"readme_policy.yaml": "apiVersion: noderotation.io", "readme_pool.yaml": "apiVersion: karpenter.sh"} {
		block := regexp.MustCompile(`(?m)^    ` + begin + `.*\n(    .*\n|\n)*`).FindString(string(text))
		if err := os.WriteFile(filepath.Join(dir, name), []byte(regexp.MustCompile(`(?m)^    `).ReplaceAllString(block, "")), 0o600); err != nil {
			return err
		}
	}
	return nil
}
