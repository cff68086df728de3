package agent

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
)

// FuzzLoadConfig: whatever the bytes, nothing panics; what is refused is refused with its
// place; and what is accepted keeps the promises of a configuration.
func FuzzLoadConfig(f *testing.F) {
	names, err := filepath.Glob("testdata/config/*.txtar")
	if err != nil || len(names) == 0 {
		f.Fatalf("no archives: %v", err)
	}
	for _, name := range names {
		archive, err := txtar.ParseFile(name)
		if err != nil {
			f.Fatal(err)
		}
		var all strings.Builder
		for _, file := range archive.Files[:len(archive.Files)-1] {
			f.Add(file.Data)
			fmt.Fprintf(&all, "---\n%s", file.Data)
		}
		f.Add([]byte(all.String()))
	}
	f.Add([]byte(laughsConfig(5)))
	problem := regexp.MustCompile(`^(f\.yaml:[1-9]\d*:[1-9]\d*: |f\.yaml: |path: there is no )`)
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := parseConfig("path", []configFile{{name: "f.yaml", data: data}})
		if err == nil {
			checkConfig(t, c)
			return
		}
		for line := range strings.SplitSeq(err.Error(), "\n") {
			if !problem.MatchString(line) {
				t.Errorf("a problem without a place: %q", line)
			}
		}
	})
}

func BenchmarkLoadConfig(b *testing.B) {
	var s strings.Builder
	s.WriteString(strings.Replace(minimalConfig("web"), "spec: {prefix: 10.0.0.0/24}", "spec:\n  prefix: 10.0.0.0/8\n  addresses:", 1))
	const addresses = 100_000
	for i := range addresses {
		fmt.Fprintf(&s, "  - address: 10.%d.%d.%d\n    owner:\n      node: node-%d\n      site: tokyo\n", i>>16, i>>8&255, i&255, i%9)
	}
	files := []configFile{{name: "f.yaml", data: []byte(s.String())}}
	for b.Loop() {
		c, err := parseConfig("path", files)
		if err != nil || len(c.Pools[0].Addresses) != addresses {
			b.Fatal(err)
		}
	}
}
