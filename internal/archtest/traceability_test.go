package archtest

import (
	"bufio"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// docs/traceability.md names tests that exist, under every id once, and leaves out no case
// and no override.
func TestTraceability(t *testing.T) {
	root := os.DirFS("../..")
	tests, err := testsOf(root)
	if err != nil {
		t.Fatal(err)
	}
	const file = "docs/traceability.md"
	f, err := root.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	seen := map[string]bool{}
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		cells := strings.Split(strings.Trim(strings.TrimSpace(lines.Text()), "|"), " | ")
		if !strings.HasPrefix(lines.Text(), "| ") || strings.TrimSpace(cells[0]) == "id" {
			continue
		}
		if len(cells) != 3 {
			t.Errorf("%s:%d: %d cells, want an id, what must hold, and the tests", file, n, len(cells))
			continue
		}
		id := strings.TrimSpace(cells[0])
		if seen[id] {
			t.Errorf("%s:%d: %s was there before", file, n, id)
		}
		seen[id] = true
		for _, why := range unfounded(tests, cells[2]) {
			t.Errorf("%s:%d: %s: %s", file, n, id, why)
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	var want []string
	for i := 1; i <= 28; i++ {
		want = append(want, fmt.Sprintf("r%02d", i))
	}
	for i := 1; i <= 14; i++ {
		want = append(want, fmt.Sprintf("B%d", i))
	}
	for _, id := range want {
		if !seen[id] {
			t.Errorf("%s: no row for %s", file, id)
		}
	}
}

var quoted = regexp.MustCompile("`([^`]+)`")

// unfounded says what is wrong with the tests that a cell names.
func unfounded(tests map[string][]string, cell string) (why []string) {
	names := quoted.FindAllStringSubmatch(cell, -1)
	if len(names) == 0 {
		return []string{"it names no test"}
	}
	for _, name := range names {
		function, sub, _ := strings.Cut(name[1], "/")
		literals, ok := tests[function]
		switch {
		case !ok:
			why = append(why, "there is no "+function)
		case sub != "" && !slices.Contains(literals, sub):
			why = append(why, fmt.Sprintf("%s has no case %q", function, sub))
		}
	}
	return why
}

// testsOf finds every test function as "package.TestName", with the string literals in it,
// among them the names of its cases, and every transcript by the name of its file. A
// package is named by the last element of its directory.
func testsOf(root fs.FS) (map[string][]string, error) {
	found := map[string][]string{}
	err := fs.WalkDir(root, ".", func(name string, e fs.DirEntry, err error) error {
		base := path.Base(name)
		switch {
		case err != nil:
			return err
		case e.IsDir() && name != "." && (strings.HasPrefix(base, ".") || base == "bin"):
			return fs.SkipDir
		case path.Ext(name) == ".txtar":
			found[base] = nil
			found["rotation.TestTranscripts"] = append(found["rotation.TestTranscripts"], strings.TrimSuffix(base, ".txtar"))
		case strings.HasSuffix(name, "_test.go"):
			return testsIn(root, name, found)
		}
		return nil
	})
	return found, err
}

var isTest = regexp.MustCompile("^(Test|Fuzz|Benchmark)[A-Z]")

func testsIn(root fs.FS, name string, found map[string][]string) error {
	source, err := fs.ReadFile(root, name)
	if err != nil {
		return err
	}
	file, err := parser.ParseFile(token.NewFileSet(), name, source, 0)
	if err != nil {
		return err
	}
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Recv != nil || !isTest.MatchString(f.Name.Name) {
			continue
		}
		key := path.Base(path.Dir(name)) + "." + f.Name.Name
		found[key] = append(found[key], "")
		ast.Inspect(f, func(n ast.Node) bool {
			if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING {
				if text, err := strconv.Unquote(l.Value); err == nil {
					found[key] = append(found[key], text)
				}
			}
			return true
		})
	}
	return nil
}

func TestUnfounded(t *testing.T) {
	tests := map[string][]string{"rotation.TestTerms": {"", "Never"}, "r03.txtar": nil}
	for cell, want := range map[string]string{
		"`rotation.TestTerms`":         "",
		"`r03.txtar`, see ADR 4":       "",
		"`rotation.TestTerms/Never`":   "",
		"`rotation.TestTerms/Ever`":    `rotation.TestTerms has no case "Ever"`,
		"`rotation.TestTerm`":          "there is no rotation.TestTerm",
		"`r03.txtar`, `r04.txtar`":     "there is no r04.txtar",
		"rotation.TestTerms, as prose": "it names no test",
	} {
		if got := strings.Join(unfounded(tests, cell), "; "); got != want {
			t.Errorf("%s: %q, want %q", cell, got, want)
		}
	}
}
