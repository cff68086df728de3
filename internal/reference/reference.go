// Package reference keeps the pages and pictures that follow from the code as the code has them:
// each is made by a test, which fails when the file in docs is another one. With -reference.write,
// as make generate has it, the test writes the file.
package reference

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

var write = flag.Bool("reference.write", false, "write the files in docs that follow from the code")

// Keep holds a file below docs to its text. The test runs two directories below the root.
func Keep(t *testing.T, file, text string) {
	t.Helper()
	path := filepath.Join("../../docs", file)
	if *write {
		err := os.MkdirAll(filepath.Dir(path), 0o755)
		if err == nil {
			err = os.WriteFile(path, []byte(text), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
		return
	}
	is, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v: run make generate", err)
	}
	if string(is) != text {
		t.Errorf("docs/%s is not what the code says: run make generate\n%s", file, firstDifference(string(is), text))
	}
}

func firstDifference(is, want string) string {
	a, b := strings.Split(is, "\n"), strings.Split(want, "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return fmt.Sprintf("line %d is\n  %s\nand should be\n  %s", i+1, a[i], b[i])
		}
	}
	return fmt.Sprintf("it has %d lines, and should have %d", len(a), len(b))
}

// Page begins a page that is made of a source.
func Page(title, source string) string {
	return fmt.Sprintf("<!-- Written by make generate from %s: change that. -->\n\n# %s\n\n", source, title)
}

// Row is one of a Markdown table.
func Row(cells ...string) string {
	for i, c := range cells {
		cells[i] = strings.ReplaceAll(strings.Join(strings.Fields(c), " "), "|", `\|`)
	}
	return "| " + strings.Join(cells, " | ") + " |\n"
}

var desc = regexp.MustCompile(`fqName: "([^"]*)", help: "((?:[^"\\]|\\.)*)", constLabels: \{\}, variableLabels: \{([^}]*)\}`)

// Metrics is the table of the metrics of some collectors.
func Metrics(collectors ...prometheus.Collector) string {
	out := Row("metric", "type", "labels", "") + "|---|---|---|---|\n"
	for _, c := range collectors {
		kind := "gauge"
		switch c.(type) {
		case *prometheus.CounterVec:
			kind = "counter"
		case *prometheus.HistogramVec:
			kind = "histogram"
		}
		of := make(chan *prometheus.Desc, 100)
		c.Describe(of)
		close(of)
		for d := range of {
			m := desc.FindStringSubmatch(d.String())
			labels := ""
			if m[3] != "" {
				labels = "`" + strings.ReplaceAll(m[3], ",", "`, `") + "`"
			}
			out += Row("`"+m[1]+"`", kind, labels, m[2])
		}
	}
	return out
}

// Help is the page of a program whose flags are those of package flag: what run says of them on
// standard error.
func Help(t *testing.T, name, about string, run func()) string {
	t.Helper()
	file, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	stderr := os.Stderr
	os.Stderr = file
	run()
	os.Stderr = stderr
	text, err := os.ReadFile(file.Name())
	if err != nil {
		t.Fatal(err)
	}
	out := Page(name, "cmd/"+name) + about + "\n\n" + Row("flag", "", "", "default") + "|---|---|---|---|\n"
	for _, m := range flagUsage.FindAllStringSubmatch(string(text), -1) {
		if m[4] != "" {
			m[4] = "`" + m[4] + "`"
		}
		out += Row("`--"+m[1]+"`", m[2], m[3], m[4])
	}
	return out
}

var flagUsage = regexp.MustCompile(`(?m)^  -(\S+)(?: (\S+))?\n    \t(.*?)(?: \(default "?(.*?)"?\))?$`)
