package archtest

// kind is the place of a package in the house.
type kind string

const (
	command kind = "command" // flags and wiring only
	shell   kind = "shell"   // observes, acts and announces
	core    kind = "core"    // decides: pure
	adapter kind = "adapter" // one outside thing behind an interface that a core or a shell owns
	api     kind = "api"     // types that others import
	chart   kind = "chart"   // embedded manifests
	lab     kind = "lab"     // a control plane for trials
	check   kind = "check"   // holds tests
)

// layout lists every package of the module by directory.
var layout = map[string]kind{
	"api/v1alpha1": api,
	"charts":       check,
	"deploy":       chart,

	"cmd/tasuki":            command,
	"cmd/tasuki-controller": command,
	"cmd/tasuki-agent":      command,
	"cmd/tasuki-executor":   command,
	"cmd/tasuki-wasm":       command,

	"internal/window":   core,
	"internal/rotation": core,
	"internal/capture":  core,

	"internal/rotator": shell,
	"internal/agent":   shell,
	"internal/page":    shell,

	"internal/claims":                adapter,
	"internal/claims/sqlite":         adapter,
	"internal/claims/etcd":           adapter,
	"internal/claims/etcd/etcdtest":  adapter,
	"internal/claims/claimstest":     adapter,
	"internal/journal":               adapter,
	"internal/journal/journaltest":   adapter,
	"internal/executor":              adapter,
	"internal/executor/cloud":        adapter,
	"internal/executor/aws":          adapter,
	"internal/executor/azure":        adapter,
	"internal/executor/oci":          adapter,
	"internal/executor/linux":        adapter,
	"internal/executor/executortest": adapter,
	"internal/build":                 adapter,
	"internal/simulator":             adapter,
	"internal/sqlitefile":            adapter,
	"internal/manifest":              adapter,
	"internal/vrrp":                  adapter,

	"lab":                lab,
	"lab/trial":          lab,
	"lab/trial/scenario": lab,

	"internal/archtest":  check,
	"internal/mutation":  check,
	"internal/reference": check,
	"test/chaos":         check,
	"test/e2e":           check,
	"test/lan":           check,
	"test/page":          check,
	"test/scale":         check,
}

// arrows says which kinds a kind may import. Adapters and the lab may also import their own
// family: the packages under the same directory.
var arrows = map[kind][]kind{
	command: {shell, core, adapter, api, chart},
	shell:   {core, adapter, api},
	core:    {},
	adapter: {core},
	api:     {},
	chart:   {},
	lab:     {chart},
	check:   {},
}

// extra lists what single packages may import beyond their kind.
var extra = map[string][]string{
	// Rotation reads windows, and sizes pods as the scheduler would.
	"internal/capture": {"internal/window"},
	"internal/rotation": {
		"internal/window",
		"k8s.io/api/core/v1",
		"k8s.io/apimachinery/pkg/api/resource",
		"k8s.io/component-helpers/resource",
	},
	// Both are files of the host.
	"internal/claims/sqlite": {"internal/sqlitefile"},
	"internal/journal":       {"internal/sqlitefile"},
	// Pages show what the rotator plans, and plan again for files.
	"internal/page":      {"internal/rotator", "deploy"},
	"internal/simulator": {"internal/page"},
	// Its tests make pages, some of metrics.
	"internal/reference": {"github.com/prometheus/client_golang/prometheus"},
	// The CLI brings the lab up and down.
	"cmd/tasuki": {"lab", "lab/trial", "lab/trial/scenario"},
	// The witness knows the marks of a rotation, and the kinds that the controller knows.
	"lab/trial": {"internal/rotation", "internal/rotator"},
}

// thirdParty says which module paths a kind may import; a kind that is not here may import
// any.
var thirdParty = map[kind][]string{
	core:  {},
	api:   {"k8s.io/apimachinery"},
	chart: {},
	check: {},
}

// impure lists the parts of the standard library that a core has no use for. A path covers
// what is below it.
var impure = []string{
	"context", "crypto/rand", "crypto/tls", "database", "embed", "expvar", "io/fs", "log",
	"math/rand", "net", "os", "path/filepath", "plugin", "runtime", "sync", "syscall",
	"testing", "unsafe",
}

// pure lists what is fine although impure covers it.
var pure = []string{"net/netip"}

// clock lists what of package time reads or waits for the clock of the machine.
var clock = []string{
	"After", "AfterFunc", "Local", "NewTicker", "NewTimer", "Now", "Since", "Sleep", "Tick", "Until",
}
