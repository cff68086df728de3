// Package mutation proves the guards of the product, one by one.
//
// A guard is a condition, a precondition, an order or a refusal that keeps a promise. The
// lists in testdata take each of them out once and name the test that fails without it. A
// guard whose removal no test notices is either missing a test or not needed.
//
// The ordinary test of this package keeps the lists true while code moves: every mutation
// still applies, and the test that it names exists. With -mutate they are carried out: all
// mutations of a package are compiled into one test, each as a copy of its function that an
// environment variable switches on. make mutate does that and writes docs/mutation.md.
package mutation

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Mutation takes one guard out of one file.
type Mutation struct {
	ID      string
	Promise string // what holds because of the guard
	Package string // the directory of the package and its test, below the root of the module
	File    string // relative to Package
	Test    string // TestX or TestX/sub, as written in the source
	Old     string // occurs once in File, within one function
	New     string
}

// Read reads every list in a directory, in the order of their names.
func Read(dir string) ([]Mutation, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.txt"))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("no list in %s: %v", dir, err)
	}
	var all []Mutation
	taken := map[string]bool{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		list, err := parse(string(text))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		for _, m := range list {
			if taken[m.ID] {
				return nil, fmt.Errorf("%s: id %s is taken: ids are unique over all lists", file, m.ID)
			}
			taken[m.ID] = true
		}
		all = append(all, list...)
	}
	return all, nil
}

// parse reads one list. Its mutations are apart by blank lines; a line that begins with - or
// + is one of the text before and after, and what follows the sign is taken as it is.
//
//	package: internal/rotation
//
//	id: window-closed
//	promise: Nothing starts outside a maintenance window.
//	file: gates.go
//	test: TestTheFirstClosedGateAnswers
//	-	if !open {
//	+	if false {
func parse(text string) ([]Mutation, error) {
	var list []Mutation
	var dir string
	for i, block := range strings.Split(text, "\n\n") {
		m := Mutation{Package: dir}
		var before, after []string
		for _, line := range strings.Split(strings.Trim(block, "\n"), "\n") {
			switch key, value, _ := strings.Cut(line, ": "); {
			case line == "" || line[0] == '#':
			case line[0] == '-':
				before = append(before, line[1:])
			case line[0] == '+':
				after = append(after, line[1:])
			case key == "package":
				dir = value
			case key == "id":
				m.ID = value
			case key == "promise":
				m.Promise = value
			case key == "file":
				m.File = value
			case key == "test":
				m.Test = value
			default:
				return nil, fmt.Errorf("block %d: %q is neither a field nor a line of text", i+1, line)
			}
		}
		m.Old, m.New = strings.Join(before, "\n"), strings.Join(after, "\n")
		switch {
		case m == Mutation{Package: m.Package}:
		case m.Package == "" || m.ID == "" || m.Promise == "" || m.File == "" || m.Test == "" || m.Old == "":
			return nil, fmt.Errorf("block %d, id %q: want a package above, and id, promise, file, test and the text that goes", i+1, m.ID)
		default:
			list = append(list, m)
		}
	}
	return list, nil
}

// Tests knows the tests of one package by what is written in its test files.
type Tests struct{ named, written map[string]bool }

// TestsOf reads the test files of a directory.
func TestsOf(dir string) (Tests, error) {
	t := Tests{named: map[string]bool{}, written: map[string]bool{}}
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		return t, err
	}
	for _, file := range files {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			return t, err
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				t.named[n.Name.Name] = n.Recv == nil
			case *ast.BasicLit:
				if text, err := strconv.Unquote(n.Value); err == nil {
					t.written[text] = true
				}
			}
			return true
		})
	}
	scripts, err := filepath.Glob(filepath.Join(dir, "testdata", "*.txtar"))
	for _, script := range scripts {
		t.written[strings.TrimSuffix(filepath.Base(script), ".txtar")] = true
	}
	return t, err
}

// Have reports whether there is a test function of that name and, for TestX/sub, the name of
// a case as a string or as a script in testdata.
func (t Tests) Have(name string) bool {
	function, sub, cased := strings.Cut(name, "/")
	return strings.HasPrefix(function, "Test") && t.named[function] && (!cased || t.written[sub])
}
