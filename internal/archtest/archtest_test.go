package archtest

import (
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

const module = "github.com/tasuki-io/tasuki"

// The house as it is.
func TestHouse(t *testing.T) {
	packages, err := load(os.DirFS("../.."))
	if err != nil {
		t.Fatal(err)
	}
	if len(packages) < 3 {
		t.Fatalf("found %d packages: not the root of the module?", len(packages))
	}
	for _, v := range violations(module, packages) {
		t.Error(v)
	}
}

// Every arrow that points the wrong way is reported, by the file that has it.
func TestViolations(t *testing.T) {
	const doc = "// Package p is here to be judged.\n"
	for name, c := range map[string]struct {
		file, source string
		want         string // "" is none
	}{
		"a core on its own":               {"internal/window/a.go", doc + `package p; import ("fmt"; "time"); var _ = time.Second`, ""},
		"a core with addresses":           {"internal/capture/a.go", doc + `package p; import "net/netip"`, ""},
		"rotation reads windows":          {"internal/rotation/a.go", doc + `package p; import ("M/internal/window"; "k8s.io/api/core/v1")`, ""},
		"a shell":                         {"internal/rotator/a.go", doc + `package p; import ("context"; "M/api/v1alpha1"; "M/internal/rotation"; "sigs.k8s.io/x")`, ""},
		"an adapter and its family":       {"internal/claims/sqlite/a.go", doc + `package p; import ("M/internal/claims"; "M/internal/capture")`, ""},
		"a command wires":                 {"cmd/tasuki-agent/a.go", doc + `package main; import ("M/internal/agent"; "M/internal/vrrp")`, ""},
		"the CLI runs the lab":            {"cmd/tasuki/a.go", doc + `package main; import ("M/lab"; "M/lab/trial")`, ""},
		"tests import what they like":     {"internal/window/a_test.go", doc + `package p; import ("os"; "M/lab"); var _ = time.Now()`, ""},
		"a nested module is another one":  {"lab/tools/x/y/a.go", `package main; import "M/internal/window"`, ""},
		"testdata is data":                {"internal/window/testdata/a.go", `package p; import "os"`, ""},
		"the API imports apimachinery":    {"api/v1alpha1/a.go", doc + `package p; import "k8s.io/apimachinery/pkg/runtime"`, ""},
		"a file of another system counts": {"internal/window/a_windows.go", doc + `package p; import "os"`, "internal/window: internal/window/a_windows.go imports os: a core has no context, client, logger, file or goroutine"},

		"a core reads the clock":         {"internal/window/a.go", doc + "package p\nimport \"time\"\nvar _ = time.Now()", "internal/window: internal/window/a.go:4:9: time.Now: a core is told the time"},
		"a core renames the clock":       {"internal/window/a.go", doc + "package p\nimport t \"time\"\nvar now = t.Since", "internal/window: internal/window/a.go:4:11: time.Since: a core is told the time"},
		"a core hides the clock":         {"internal/window/a.go", doc + "package p\nimport . \"time\"\nvar _ = Now()", `internal/window: internal/window/a.go:3:8: import . "time" hides the clock: a core is told the time`},
		"a core takes a context":         {"internal/capture/a.go", doc + `package p; import "context"`, "internal/capture: internal/capture/a.go imports context: a core has no context, client, logger, file or goroutine"},
		"a core logs":                    {"internal/rotation/a.go", doc + `package p; import "log/slog"`, "internal/rotation: internal/rotation/a.go imports log/slog: a core has no context, client, logger, file or goroutine"},
		"a core has a client":            {"internal/rotation/a.go", doc + `package p; import "k8s.io/client-go/rest"`, "internal/rotation: internal/rotation/a.go imports k8s.io/client-go/rest: not open to a package of kind core"},
		"capture sizes pods":             {"internal/capture/a.go", doc + `package p; import "k8s.io/api/core/v1"`, "internal/capture: internal/capture/a.go imports k8s.io/api/core/v1: not open to a package of kind core"},
		"windows know rotation":          {"internal/window/a.go", doc + `package p; import "M/internal/rotation"`, "internal/window: internal/window/a.go imports M/internal/rotation: a package of kind core may not import one of kind core"},
		"a core knows its shell":         {"internal/rotation/a.go", doc + `package p; import "M/internal/rotator"`, "internal/rotation: internal/rotation/a.go imports M/internal/rotator: a package of kind core may not import one of kind shell"},
		"a shell knows the other":        {"internal/agent/a.go", doc + `package p; import "M/internal/rotator"`, "internal/agent: internal/agent/a.go imports M/internal/rotator: a package of kind shell may not import one of kind shell"},
		"an adapter knows a shell":       {"internal/vrrp/a.go", doc + `package p; import "M/internal/agent"`, "internal/vrrp: internal/vrrp/a.go imports M/internal/agent: a package of kind adapter may not import one of kind shell"},
		"an adapter knows another":       {"internal/claims/etcd/a.go", doc + `package p; import "M/internal/journal"`, "internal/claims/etcd: internal/claims/etcd/a.go imports M/internal/journal: a package of kind adapter may not import one of kind adapter"},
		"the API knows a core":           {"api/v1alpha1/a.go", doc + `package p; import "M/internal/window"`, "api/v1alpha1: api/v1alpha1/a.go imports M/internal/window: a package of kind api may not import one of kind core"},
		"the API has a client":           {"api/v1alpha1/a.go", doc + `package p; import "sigs.k8s.io/controller-runtime"`, "api/v1alpha1: api/v1alpha1/a.go imports sigs.k8s.io/controller-runtime: not open to a package of kind api"},
		"a shell starts a command":       {"internal/rotator/a.go", doc + `package p; import "M/cmd/tasuki"`, "internal/rotator: internal/rotator/a.go imports M/cmd/tasuki: a package of kind shell may not import one of kind command"},
		"the controller runs the lab":    {"cmd/tasuki-controller/a.go", doc + `package main; import "M/lab"`, "cmd/tasuki-controller: cmd/tasuki-controller/a.go imports M/lab: a package of kind command may not import one of kind lab"},
		"a shell runs the lab":           {"internal/rotator/a.go", doc + `package p; import "M/lab"`, "internal/rotator: internal/rotator/a.go imports M/lab: a package of kind shell may not import one of kind lab"},
		"a package nobody listed":        {"internal/utils/a.go", doc + `package p`, "internal/utils: not listed: give it a kind in internal/archtest/layout.go"},
		"an import nobody listed":        {"internal/agent/a.go", doc + `package p; import "M/internal/utils"`, "internal/agent: internal/agent/a.go imports M/internal/utils: which is not listed in internal/archtest/layout.go"},
		"a package that promises naught": {"internal/vrrp/a.go", `package p`, "internal/vrrp: has no package comment: say what it promises"},
		"a command without a comment":    {"cmd/tasuki/a.go", `package main`, "cmd/tasuki: has no package comment: say what it promises"},
		"a main outside of cmd":          {"internal/vrrp/a.go", doc + `package main`, "internal/vrrp: is package main and of kind adapter: commands, and only they, are package main"},
	} {
		t.Run(name, func(t *testing.T) {
			tree := fstest.MapFS{
				"go.mod":                {Data: []byte("module " + module)},
				"lab/tools/x/go.mod":    {Data: []byte("module other")},
				".hidden/a.go":          {Data: []byte("not Go")},
				"internal/window/_a.go": {Data: []byte("not Go")},
				c.file:                  {Data: []byte(strings.ReplaceAll(c.source, `"M/`, `"`+module+`/`))},
			}
			packages, err := load(tree)
			if err != nil {
				t.Fatal(err)
			}
			var want []string
			if c.want != "" {
				want = []string{strings.ReplaceAll(c.want, " M/", " "+module+"/")}
			}
			if diff := cmp.Diff(want, violations(module, packages)); diff != "" {
				t.Errorf("violations (-want +got):\n%s", diff)
			}
		})
	}
}
