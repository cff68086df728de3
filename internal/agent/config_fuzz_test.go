package agent

import (
	"fmt"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/tools/txtar"

	"github.com/tasuki-io/tasuki/internal/capture"
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

// manyAddresses is a configuration of one pool.
func manyAddresses(addresses int) []configFile {
	var s strings.Builder
	s.WriteString(strings.Replace(minimalConfig("web"), "spec: {prefix: 10.0.0.0/24}", "spec:\n  prefix: 10.0.0.0/8\n  addresses:", 1))
	for i := range addresses {
		fmt.Fprintf(&s, "  - address: 10.%d.%d.%d\n    owner:\n      node: node-%d\n      site: tokyo\n", i>>16, i>>8&255, i&255, i%9)
	}
	return []configFile{{name: "f.yaml", data: []byte(s.String())}}
}

// The text of a configuration and what it is parsed into are many times as large as what is
// read of it.
func TestAConfigurationKeepsNothingOfItsFiles(t *testing.T) {
	const addresses = 2000
	var before, after runtime.MemStats
	files := manyAddresses(addresses)
	runtime.GC()
	runtime.ReadMemStats(&before)
	c, err := parseConfig("path", files)
	if err != nil {
		t.Fatal(err)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	kept := (float64(after.HeapAlloc) - float64(before.HeapAlloc)) / addresses
	if most := 3 * float64(unsafe.Sizeof(capture.Address{})); kept > most {
		t.Errorf("%.0f bytes are kept of an address, want at most %.0f", kept, most)
	}
	runtime.KeepAlive(c)
	runtime.KeepAlive(files)
}

func BenchmarkLoadConfig(b *testing.B) {
	const addresses = 100_000
	files := manyAddresses(addresses)
	for b.Loop() {
		c, err := parseConfig("path", files)
		if err != nil || len(c.Pools[0].Addresses) != addresses {
			b.Fatal(err)
		}
	}
}
