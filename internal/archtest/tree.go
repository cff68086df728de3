package archtest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// pkg is one directory with Go files. Files of every operating system count.
type pkg struct {
	dir        string // below the module root, slash-separated; "." is the root itself
	name       string // of the package clause
	documented bool
	imports    map[string]string // path -> the first file outside of tests that has it
	clock      []string          // "file:line: time.Now", outside of tests
}

// load reads the packages of a module from its tree. Nested modules, testdata and names
// that start with a dot or an underscore are left out.
func load(tree fs.FS) ([]*pkg, error) {
	found := map[string]*pkg{}
	err := fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		base := path.Base(name)
		hidden := name != "." && (strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_"))
		if entry.IsDir() {
			_, err := fs.Stat(tree, path.Join(name, "go.mod"))
			nested := err == nil && name != "."
			if hidden || nested || base == "testdata" {
				return fs.SkipDir
			}
			return nil
		}
		if hidden || path.Ext(name) != ".go" {
			return nil
		}
		return read(tree, name, found)
	})
	if err != nil {
		return nil, err
	}
	var out []*pkg
	for _, p := range found {
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b *pkg) int { return strings.Compare(a.dir, b.dir) })
	return out, nil
}

func read(tree fs.FS, name string, found map[string]*pkg) error {
	source, err := fs.ReadFile(tree, name)
	if err != nil {
		return err
	}
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return fmt.Errorf("parse %s: %w", name, err)
	}
	dir := path.Dir(name)
	p := found[dir]
	if p == nil {
		p = &pkg{dir: dir, imports: map[string]string{}}
		found[dir] = p
	}
	if file.Doc.Text() != "" {
		p.documented = true
	}
	if strings.HasSuffix(name, "_test.go") {
		return nil
	}
	p.name = file.Name.Name
	for _, spec := range file.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return fmt.Errorf("parse %s: import %s: %w", name, spec.Path.Value, err)
		}
		if _, ok := p.imports[imported]; !ok {
			p.imports[imported] = name
		}
		if imported == "time" {
			p.clock = append(p.clock, clockUses(set, file, spec)...)
		}
	}
	return nil
}

// clockUses finds the uses of the clock in a file, under whatever name it imports time.
func clockUses(set *token.FileSet, file *ast.File, spec *ast.ImportSpec) (out []string) {
	local := "time"
	if spec.Name != nil {
		local = spec.Name.Name
	}
	if local == "." {
		return []string{fmt.Sprintf("%s: import . %q hides the clock", set.Position(spec.Pos()), "time")}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		selector, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if x, ok := selector.X.(*ast.Ident); ok && x.Name == local && slices.Contains(clock, selector.Sel.Name) {
			out = append(out, fmt.Sprintf("%s: time.%s", set.Position(selector.Pos()), selector.Sel.Name))
		}
		return true
	})
	return out
}
