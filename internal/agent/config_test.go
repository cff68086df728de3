package agent

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
	_ "time/tzdata" // so that the tests also run where no time zones are installed

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/tasuki-io/tasuki/internal/capture"
)

var update = flag.Bool("update", false, "write the expectations in testdata anew")

// Each archive in testdata is a directory and what comes of it: the configuration, or exactly
// these errors.
func TestConfigurations(t *testing.T) {
	archives(t, "testdata/config/*.txtar", func(dir string) string {
		c, err := LoadConfig(dir)
		if err != nil {
			return err.Error() + "\n"
		}
		checkConfig(t, c)
		return describeConfig(c)
	})
}

// What is valid and surprises is warned of, with its place.
func TestWarnings(t *testing.T) {
	archives(t, "testdata/check/*.txtar", func(dir string) string {
		_, warnings, err := CheckConfig(dir)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(append(warnings, ""), "\n")
	})
}

// archives compares what comes of the directories in archives with what is written there.
func archives(t *testing.T, pattern string, of func(dir string) string) {
	names, err := filepath.Glob(pattern)
	if err != nil || len(names) == 0 {
		t.Fatalf("no archives: %v", err)
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			dir, last := t.TempDir(), len(archive.Files)-1
			for _, f := range archive.Files[:last] {
				writeConfig(t, filepath.Join(dir, f.Name), string(f.Data))
			}
			got := strings.ReplaceAll(strings.ReplaceAll(of(dir), dir+"/", ""), dir, "DIR")
			if *update {
				archive.Files[last].Data = []byte(got)
				writeConfig(t, name, string(txtar.Format(archive)))
				return
			}
			if diff := cmp.Diff(string(archive.Files[last].Data), got); diff != "" {
				t.Errorf("(-want +got; -update accepts it):\n%s", diff)
			}
		})
	}
}

// describeConfig writes a configuration down, one thing to a line.
func describeConfig(c *Config) string {
	var b strings.Builder
	for _, p := range c.Pools {
		fmt.Fprintf(&b, "pool %s %s hold %s ttl %s\n", p.Name, p.Prefix, p.Hold, p.LeaseTTL)
		for _, a := range p.Addresses {
			fmt.Fprintf(&b, "  address %s at %+v\n", a.Addr, a.Owner)
		}
		for _, m := range p.Members {
			fmt.Fprintf(&b, "  member %+v in %s\n", m, m.Domain())
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Profiles)) {
		fmt.Fprintf(&b, "profile %+v\n", c.Profiles[name])
	}
	p := c.Policy
	schedule := p.Window
	p.Window = nil
	fmt.Fprintf(&b, "policy %+v\n", p)
	if c.Store.Etcd != nil {
		fmt.Fprintf(&b, "store %+v\n", *c.Store.Etcd)
	}
	if schedule != nil {
		week := time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC)
		fmt.Fprintf(&b, "window %v\n", schedule.Between(week, week.AddDate(0, 0, 7)))
	}
	fmt.Fprintf(&b, "files %v\n", c.Files)
	return b.String()
}

// checkConfig asserts what every configuration that was accepted promises.
func checkConfig(t *testing.T, c *Config) {
	t.Helper()
	seen, nics := map[string]bool{}, map[[2]string]string{}
	for _, p := range c.Pools {
		if !p.Prefix.IsValid() || p.Prefix != p.Prefix.Masked() || p.Hold < 0 || p.LeaseTTL < leastTTL {
			t.Errorf("pool %+v", p)
		}
		if !slices.IsSortedFunc(p.Addresses, func(a, b capture.Address) int { return a.Addr.Compare(b.Addr) }) {
			t.Errorf("pool %s: addresses are not in order", p.Name)
		}
		for _, a := range p.Addresses {
			if seen[a.Addr.String()] || !p.Prefix.Contains(a.Addr) || a.Addr.Is4In6() || a.Addr.Zone() != "" || a.Owner.Site == "" {
				t.Errorf("pool %s: address %+v", p.Name, a)
			}
			seen[a.Addr.String()] = true
		}
		checkConfigMembers(t, c, p, nics)
	}
	for name, p := range c.Profiles {
		if name != p.Name || configProviders[p.Provider] == nil || strings.Contains(p.Endpoint, "@") {
			t.Errorf("profile %+v", p)
		}
	}
}

func checkConfigMembers(t *testing.T, c *Config, p capture.Pool, nics map[[2]string]string) {
	t.Helper()
	nodes, groups, domains := map[string]bool{}, map[string]capture.Member{}, map[capture.Domain][3]string{}
	for _, m := range p.Members {
		if m.Node == "" || nodes[m.Node] || m.Site == "" || m.Priority < 0 || m.Priority > mostPriority {
			t.Errorf("pool %s: member %+v", p.Name, m)
		}
		nodes[m.Node] = true
		cloud := m.Role == capture.RoleCloud
		if cloud != (m.Capture.Method == capture.SecondaryIP) || cloud != (m.Capture.NIC != "") || cloud == (m.Capture.Interface != "") || cloud && m.Capture.Instance != "" {
			t.Errorf("pool %s: member %+v captures with what it has not", p.Name, m)
		}
		if _, ok := c.Profiles[m.Capture.ProviderRef]; ok != cloud {
			t.Errorf("pool %s: member %+v has no profile", p.Name, m)
		}
		if first, ok := groups[m.Group]; ok && m.Group != "" && (first.Role != m.Role || first.Capture.ProviderRef != m.Capture.ProviderRef || cloud && first.Domain() != m.Domain()) {
			t.Errorf("pool %s: group %s is mixed", p.Name, m.Group)
		}
		groups[m.Group] = m
		if m.Group == "" && (m.Priority != 0 || m.Drain) {
			t.Errorf("pool %s: member %+v has a priority or a drain without a group", p.Name, m)
		}
		scope := [3]string{m.Capture.ProviderRef, m.Site, m.Group}
		if cloud {
			scope[1] = ""
		}
		if m.Group == "" {
			scope[2] = ":" + m.Node
		}
		if other, ok := domains[m.Domain()]; ok && other != scope {
			t.Errorf("pool %s: %v and %v have one domain %s", p.Name, scope, other, m.Domain())
		}
		domains[m.Domain()] = scope
		if nic := [2]string{m.Capture.ProviderRef, m.Capture.NIC}; cloud {
			if node, ok := nics[nic]; ok && node != m.Node {
				t.Errorf("NIC %v is of %s and %s", nic, node, m.Node)
			}
			nics[nic] = m.Node
		}
	}
}

// The examples that people copy are accepted, one by one and all at once.
func TestExamples(t *testing.T) {
	const dir = "../../examples/agent"
	names, err := configNames(dir)
	if err != nil || len(names) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	for _, name := range names {
		c, err := LoadConfig(name)
		if err != nil {
			t.Fatal(err)
		}
		checkConfig(t, c)
	}
}

// An agent asks whether it has anything to do, and what its snapshots need.
func TestConfigForSnapshot(t *testing.T) {
	c, err := LoadConfig("../../examples/agent/aws.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if !c.Serves("router-a") || c.Serves("router-z") || c.Serves("") {
		t.Error("Serves does not tell members from others")
	}
	if diff := cmp.Diff(map[string]string{"tokyo": "aws"}, c.Providers()); diff != "" {
		t.Errorf("Providers (-want +got):\n%s", diff)
	}
}

// What cannot be read is refused with its name, before anything of it is believed.
func TestUnreadableConfigurations(t *testing.T) {
	dir := t.TempDir()
	writeConfig(t, filepath.Join(dir, "empty", "README.md"), "")
	writeConfig(t, filepath.Join(dir, "large.yaml"), strings.Repeat("#", maxConfigFile+1))
	writeConfig(t, filepath.Join(dir, "latin.yaml"), "kind: MobilityPool\nname: caf\xe9\n")
	writeConfig(t, filepath.Join(dir, "zero.yaml"), "kind: x\x00")
	writeConfig(t, filepath.Join(dir, "truncated.yaml"), "")
	writeConfig(t, filepath.Join(dir, "many.yaml"), strings.Repeat("a: b\n", mostProblems+100))
	writeConfig(t, filepath.Join(dir, "deep.yaml"), strings.Repeat("[", 1<<20))
	writeConfig(t, filepath.Join(dir, "laughs.yaml"), laughsConfig(30))
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe.yaml"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("nowhere", filepath.Join(dir, "dangling.yaml")); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"missing":        "configuration: stat DIR/missing: no such file or directory",
		"empty":          "configuration: DIR/empty holds no *.yaml or *.yml file: write at least one MobilityPool there",
		"large.yaml":     "DIR/large.yaml: this is larger than 16 MiB: split it",
		"pipe.yaml":      "DIR/pipe.yaml: this is not a regular file",
		"dangling.yaml":  "configuration: stat DIR/dangling.yaml: no such file or directory",
		"latin.yaml":     "DIR/latin.yaml:2:10: this is not text in UTF-8: save the file anew",
		"zero.yaml":      "DIR/zero.yaml:1:8: this is not text in UTF-8: save the file anew",
		"truncated.yaml": "DIR/truncated.yaml: holds no object: remove it, or write a MobilityPool, CloudProviderProfile, ProviderActionPolicy or ClaimsStore",
		"deep.yaml":      "DIR/deep.yaml:1:10001: this is not YAML: exceeded max depth of 10000",
	} {
		_, err := LoadConfig(filepath.Join(dir, name))
		if err == nil {
			t.Errorf("%s is accepted", name)
			continue
		}
		first, _, _ := strings.Cut(strings.ReplaceAll(err.Error(), dir, "DIR"), "\n")
		if diff := cmp.Diff(want, first); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	_, err := LoadConfig(dir)
	for _, name := range []string{"dangling", "deep", "large", "latin", "laughs", "many", "pipe", "truncated", "zero"} {
		if err == nil || !strings.Contains(err.Error(), name+".yaml:") {
			t.Errorf("nothing of %s.yaml is told along with the others", name)
		}
	}
	_, err = LoadConfig(filepath.Join(dir, "many.yaml"))
	if err == nil || strings.Count(err.Error(), "\n") != mostProblems || !strings.HasSuffix(err.Error(), "more problems are not shown") {
		t.Errorf("of very many problems: %.200v", err)
	}
	if _, err := LoadConfig(filepath.Join(dir, "laughs.yaml")); err == nil {
		t.Error("a billion laughs are accepted")
	}
}

// laughsConfig is a file that would have ten to the power of n entries, were aliases followed.
func laughsConfig(n int) string {
	var b bytes.Buffer
	b.WriteString("apiVersion: mobility.tasuki.io/v1alpha1\nkind: MobilityPool\nmetadata: {name: web}\nspec:\n  prefix: 10.0.0.0/24\n  a0: &a0 [ha]\n")
	for i := range n {
		fmt.Fprintf(&b, "  a%d: &a%[1]d [%s]\n", i+1, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i), 10), ", "))
	}
	fmt.Fprintf(&b, "  addresses: *a%d\n", n)
	return b.String()
}

// A file is read as it stands when the path names it, whatever it is called.
func TestConfigurationOfOneFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "agent.conf")
	writeConfig(t, name, minimalConfig("web"))
	c, err := LoadConfig(name)
	if err != nil {
		t.Fatal(err)
	}
	again, err := LoadConfig(name)
	if err != nil || again.Digest != c.Digest {
		t.Errorf("the digest of the same file is another: %s, %s (%v)", c.Digest, again.Digest, err)
	}
	writeConfig(t, name, minimalConfig("db"))
	if other, err := LoadConfig(name); err != nil || other.Digest == c.Digest {
		t.Errorf("the digest of another file is the same (%v)", err)
	}
}

// minimalConfig is a configuration of one pool.
func minimalConfig(pool string) string {
	return "apiVersion: mobility.tasuki.io/v1alpha1\nkind: MobilityPool\nmetadata: {name: " + pool + "}\nspec: {prefix: 10.0.0.0/24}\n"
}

func writeConfig(t *testing.T, name, data string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(data), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Kubernetes has pointed ..data at the next files, and not yet made the link of the one that
// is new. An address that moved there from the other file is not lost in between.
func TestConfigMapIsReadWhole(t *testing.T) {
	dir := t.TempDir()
	writeConfig(t, filepath.Join(dir, "..2", "a.yaml"), minimalConfig("web"))
	writeConfig(t, filepath.Join(dir, "..2", "b.yaml"), minimalConfig("db"))
	linkConfig(t, "..2", filepath.Join(dir, "..data"))
	linkConfig(t, "..data/a.yaml", filepath.Join(dir, "a.yaml"))
	c, err := LoadConfig(dir)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{filepath.Join(dir, "a.yaml"), filepath.Join(dir, "b.yaml")}, c.Files); diff != "" || len(c.Pools) != 2 {
		t.Errorf("%d pools; files (-want +got):\n%s", len(c.Pools), diff)
	}
}

// A name may be as long as is said, and no longer.
func TestTheLengthOfANameIsBounded(t *testing.T) {
	for most, f := range map[int]form{15: configInterface, 202: configPrefix, 253: configName, 255: configResource, 512: configNICRef} {
		name := strings.Repeat("a", most)
		if most == 202 {
			name = "/" + name[2:] + "/"
		}
		if !f.fits(name) || f.fits(name[:1]+name) {
			t.Errorf("a name of %d bytes fits: %t, and of one more: %t", most, f.fits(name), f.fits(name[:1]+name))
		}
	}
}
