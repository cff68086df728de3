package reference

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/tasuki-io/tasuki/internal/agent"
)

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The tables of flags that people read first leave none out but --version.
func TestTheTablesOfFlags(t *testing.T) {
	for page, told := range map[string]string{"tasuki-controller": "README.md", "tasuki-agent": "docs/capture.md"} {
		flags := regexp.MustCompile("(?m)^\\| (`--[a-z-]+`)").FindAllStringSubmatch(read(t, "../../docs/reference/"+page+".md"), -1)
		if len(flags) < 5 {
			t.Errorf("%s has only %d flags", page, len(flags))
		}
		for _, f := range flags {
			if f[1] != "`--version`" && !strings.Contains(read(t, "../../"+told), "\n| "+f[1]+" |") {
				t.Errorf("%s has no row for %s of %s", told, f[1], page)
			}
		}
	}
}

// configuration is a whole one of the agent, with a value for each field that has bounds.
const configuration = `apiVersion: mobility.tasuki.io/v1alpha1
kind: MobilityPool
metadata: {name: web}
spec:
  prefix: 10.0.0.0/24
  addresses: [{address: 10.0.0.7, owner: {site: dc}}]
  deprovisionHoldDuration: 10s
  leaseTTL: 10s
  members:
  - nodeRef: a
    site: cloud
    role: cloud
    placement: {group: edge, priority: 0}
    capture: {type: provider-secondary-ip, providerRef: aws, nicRef: eni-1}
---
apiVersion: mobility.tasuki.io/v1alpha1
kind: CloudProviderProfile
metadata: {name: aws}
spec: {provider: aws, region: ap-northeast-1}
---
apiVersion: mobility.tasuki.io/v1alpha1
kind: ProviderActionPolicy
metadata: {name: all}
spec: {maxActionsPerRun: 0}
---
apiVersion: mobility.tasuki.io/v1alpha1
kind: ClaimsStore
metadata: {name: shared}
spec: {type: etcd, etcd: {endpoints: ["https://etcd-1:2379"], timeout: 5s}}
`

// The bounds and defaults that docs/agent-config.md has of numbers and durations are the real ones.
func TestTheAgentsBoundsAreDocumented(t *testing.T) {
	judge := func(text string) error {
		path := filepath.Join(t.TempDir(), "config.yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, _, err := agent.CheckConfig(path)
		return err
	}
	if err := judge(configuration); err != nil {
		t.Fatal(err)
	}
	doc := read(t, "../../docs/agent-config.md")
	for name, beyond := range map[string][2]string{ // the nearest values that are too small and too large
		"deprovisionHoldDuration": {"-1ns", "1h0m0.001s"},
		"leaseTTL":                {"999ms", "1h0m0.001s"},
		"placement.priority":      {"-1", "1000001"},
		"maxActionsPerRun":        {"-1", "1000001"},
		"etcd.timeout":            {"99ms", "1m0.001s"},
	} {
		last := name[strings.LastIndex(name, ".")+1:]
		row := regexp.MustCompile("(?m)^\\| `[^`]*" + regexp.QuoteMeta(name) + "` \\| (.*?)`?([0-9][0-9a-z]*)`? to `?([0-9][0-9a-z]*)`?(.*) \\| `([^`]+)`").FindStringSubmatch(doc)
		if row == nil {
			t.Errorf("docs/agent-config.md has no bounds of %s", name)
			continue
		}
		set := func(v string) string {
			return regexp.MustCompile(`\b`+last+`: \w+`).ReplaceAllString(configuration, last+": "+v)
		}
		for _, v := range []string{row[2], row[3], row[5]} {
			if err := judge(set(v)); err != nil {
				t.Errorf("%s: %s is refused, which docs/agent-config.md allows: %v", name, v, err)
			}
		}
		for _, v := range beyond {
			if err := judge(set(v)); err == nil || !strings.Contains(err.Error(), last) {
				t.Errorf("%s: %s is not refused, which is out of what docs/agent-config.md allows: %v", name, v, err)
			}
		}
		// A value that is refused is answered with the default, as an example.
		if err := judge(set("soon")); strings.HasSuffix(row[5], "s") && !strings.Contains(fmt.Sprint(err), "such as "+row[5]) {
			t.Errorf("%s: the default is not %s: %v", name, row[5], err)
		}
	}
}
