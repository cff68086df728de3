package agent

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/tasuki-io/tasuki/internal/capture"
	"github.com/tasuki-io/tasuki/internal/executor"
)

// Config is what the files say, with every default filled in.
type Config struct {
	// Pools are in the order of their names, and the addresses of each in the order of
	// netip.Addr.Compare, as capture.Snapshot wants them.
	Pools    []capture.Pool
	Profiles map[string]executor.Profile // by name, which is the providerRef of the members
	Policy   capture.Policy
	Store    StoreConfig // read once, when the agent starts

	// Files are the files that were read, in the order of their names, and Digest tells their
	// contents from others. Both are for people: a digest cannot say which of two is newer.
	Files  []string
	Digest string
}

// LoadConfig reads a file, or every *.yaml and *.yml of a directory. The error joins all
// problems of all files, each as "file:line:column: object: what is wrong: what to do".
func LoadConfig(path string) (*Config, error) {
	files, err := readConfigFiles(path)
	if err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	return parseConfig(path, files)
}

// Serves reports whether a node is a member of a pool.
func (c *Config) Serves(node string) bool {
	return slices.ContainsFunc(c.Pools, func(p capture.Pool) bool {
		return slices.ContainsFunc(p.Members, func(m capture.Member) bool { return m.Node == node })
	})
}

// Providers are the providers by providerRef, for a capture.Snapshot.
func (c *Config) Providers() map[string]string {
	providers := make(map[string]string, len(c.Profiles))
	for ref, p := range c.Profiles {
		providers[ref] = p.Provider
	}
	return providers
}

// configLoad is a Config in the making. It goes on after a problem, so that all are told at
// once.
type configLoad struct {
	config   Config
	problems []configProblem
	// torn is that an object could not be read. What others refer to may have been it.
	torn bool

	names     map[string]*configObject // by kind and name
	marks     map[string]configSpot    // of fields, for warnings
	policy    string                   // the name of the ProviderActionPolicy
	addresses map[netip.Addr]configSpot
	nics      map[configNIC]configSpot
}

func parseConfig(path string, files []configFile) (*Config, error) {
	l, err := loadConfig(path, files)
	if err != nil {
		return nil, err
	}
	config := l.config // alone: what it was read from is many times as large
	return &config, nil
}

func loadConfig(path string, files []configFile) (*configLoad, error) {
	l := &configLoad{
		config:    Config{Profiles: map[string]executor.Profile{}, Digest: digestConfig(files)},
		names:     map[string]*configObject{},
		marks:     map[string]configSpot{},
		addresses: map[netip.Addr]configSpot{},
		nics:      map[configNIC]configSpot{},
	}
	var objects []*configObject
	for _, f := range files {
		l.config.Files = append(l.config.Files, f.name)
		objects = append(objects, l.parse(f)...)
	}
	l.read(objects)
	if len(l.config.Pools) == 0 && !l.torn {
		l.problems = append(l.problems, configProblem{file: path, text: "there is no MobilityPool: write at least one; to give up every address, leave a pool without addresses"})
	}
	if len(l.problems) > 0 {
		return nil, joinConfigProblems(l.problems)
	}
	slices.SortFunc(l.config.Pools, func(a, b capture.Pool) int { return strings.Compare(a.Name, b.Name) })
	return l, nil
}

// read reads the profiles before what refers to them, in whatever order the files have them.
func (l *configLoad) read(objects []*configObject) {
	for _, o := range objects {
		if o.kind == kindProfile {
			l.config.Profiles[o.name] = o.profile()
		}
	}
	l.config.Policy = closedPolicy
	only := map[string]*configObject{}
	for _, o := range objects {
		first := only[o.kind]
		switch only[o.kind] = cmp.Or(first, o); o.kind {
		case kindPool:
			l.config.Pools = append(l.config.Pools, o.pool())
		case kindPolicy:
			if policy := o.policy(); first == nil {
				l.config.Policy, l.policy = policy, o.name
			}
		case kindStore:
			if store := o.store(); first == nil {
				l.config.Store = store
			}
		}
		if first != nil && (o.kind == kindPolicy || o.kind == kindStore) {
			o.report(o.at, "there is another %s, %s at %s: keep one", o.kind, first.name, first.place(first.at))
		}
	}
}

// configProblem is one thing that is wrong, and where. Line and column count from 1.
type configProblem struct {
	file         string
	line, column int
	text         string
}

func (p configProblem) Error() string {
	if p.line == 0 {
		return p.file + ": " + p.text
	}
	return fmt.Sprintf("%s:%d:%d: %s", p.file, p.line, p.column, p.text)
}

// mostProblems are told of one file: one of another kind may have one in every line.
const mostProblems = 1000

func joinConfigProblems(problems []configProblem) error {
	slices.SortStableFunc(problems, func(a, b configProblem) int {
		return cmp.Or(strings.Compare(a.file, b.file), cmp.Compare(a.line, b.line), cmp.Compare(a.column, b.column))
	})
	var errs []error
	told := map[string]int{}
	for _, p := range problems {
		if told[p.file]++; told[p.file] <= mostProblems {
			errs = append(errs, p)
		}
	}
	for _, file := range slices.Sorted(maps.Keys(told)) {
		if more := told[file] - mostProblems; more > 0 {
			errs = append(errs, configProblem{file: file, text: fmt.Sprintf("%d more problems are not shown", more)})
		}
	}
	return errors.Join(errs...)
}
