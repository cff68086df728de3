package mutation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// variable tells a test which mutation is switched on.
const variable = "TASUKI_MUTATION"

// build compiles the test of the package of a list with all of its mutations in it: one build
// instead of one for each. The source tree stays as it is, as the compiler is shown other
// files in place of the real ones.
func build(ctx context.Context, root, work string, list []Mutation) (binary string, err error) {
	files, err := switched(root, list)
	if err != nil {
		return "", err
	}
	replace := map[string]string{}
	for file, text := range files {
		replace[file] = filepath.Join(work, fmt.Sprintf("%d.go", len(replace)))
		if err := os.WriteFile(replace[file], []byte(text), 0o600); err != nil {
			return "", err
		}
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	config := filepath.Join(work, "overlay.json")
	if err := os.WriteFile(config, overlay, 0o600); err != nil {
		return "", err
	}
	binary = filepath.Join(work, "tests")
	c := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-gcflags=-e", "-overlay="+config, "-o", binary, ".")
	c.Dir = filepath.Join(root, list[0].Package)
	if out, err := c.CombinedOutput(); err != nil {
		return "", fmt.Errorf("the mutations of %s do not build; a message begins with the id: %w\n%s", list[0].Package, err, out)
	}
	return binary, nil
}

// switched returns the files, by path, in which every mutation is a copy of its function that
// the variable switches on, and all that is wrong with the list.
func switched(root string, list []Mutation) (files map[string]string, err error) {
	byPath := map[string][]Mutation{}
	for _, m := range list {
		path := filepath.Join(root, m.Package, m.File)
		byPath[path] = append(byPath[path], m)
	}
	files = map[string]string{}
	var wrong []error
	for path, ms := range byPath {
		text, pkg, err := withCopies(path, ms)
		if err == nil {
			_, err = parser.ParseFile(token.NewFileSet(), path, text, parser.SkipObjectResolution)
		}
		wrong = append(wrong, err)
		files[path] = text
		files[filepath.Join(filepath.Dir(path), "mutation_switch.go")] = fmt.Sprintf("package %s\n\nimport \"os\"\n\nvar mutation = os.Getenv(%q)\n", pkg, variable)
	}
	return files, errors.Join(wrong...)
}

// withCopies is one file with its mutations in it, and the name of its package.
func withCopies(path string, list []Mutation) (text, pkg string, err error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return "", "", err
	}
	source, set := string(raw), token.NewFileSet()
	f, err := parser.ParseFile(set, path, source, parser.SkipObjectResolution)
	if err != nil {
		return "", "", err
	}
	offset := func(p token.Pos) int { return set.Position(p).Offset }
	branches := map[*ast.FuncDecl]string{}
	var copies strings.Builder
	var wrong []error
	for _, m := range list {
		if n := strings.Count(source, m.Old); n != 1 || m.Old == m.New {
			wrong = append(wrong, fmt.Errorf("%s: the text that goes is in %s %d times, want once and another after it: %q", m.ID, m.File, n, m.Old))
			continue
		}
		at := strings.Index(source, m.Old)
		var fn *ast.FuncDecl
		for _, d := range f.Decls {
			if d, ok := d.(*ast.FuncDecl); ok && offset(d.Name.End()) <= at && at+len(m.Old) <= offset(d.End()) {
				fn = d
			}
		}
		if fn == nil {
			wrong = append(wrong, fmt.Errorf("%s: the text that goes is not within one function of %s", m.ID, m.File))
			continue
		}
		name := fn.Name.Name + "_" + strings.ReplaceAll(m.ID, "-", "_")
		branches[fn] += fmt.Sprintf(" if mutation == %q { %s };", m.ID, call(fn, name, func(n ast.Node) string { return source[offset(n.Pos()):offset(n.End())] }))
		fmt.Fprintf(&copies, "\n//line %s:1\n%s%s%s%s%s\n", m.ID, source[offset(fn.Pos()):offset(fn.Name.Pos())], name,
			source[offset(fn.Name.End()):at], m.New, source[at+len(m.Old):offset(fn.End())])
	}
	var b strings.Builder
	done := 0
	for _, d := range f.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && branches[fn] != "" {
			body := offset(fn.Body.Lbrace) + 1
			b.WriteString(source[done:body] + branches[fn])
			done = body
		}
	}
	b.WriteString(source[done:] + copies.String())
	return b.String(), f.Name.Name, errors.Join(wrong...)
}

// call is the statement that hands a function over to its copy. A parameter without a name is
// one that the copy does not read either.
func call(fn *ast.FuncDecl, name string, text func(ast.Node) string) string {
	var args []string
	for _, p := range fn.Type.Params.List {
		names := p.Names
		if len(names) == 0 {
			names = []*ast.Ident{{Name: "_"}}
		}
		for _, n := range names {
			arg := n.Name
			if arg == "_" {
				arg = "*new(" + text(p.Type) + ")"
			} else if _, variadic := p.Type.(*ast.Ellipsis); variadic {
				arg += "..."
			}
			args = append(args, arg)
		}
	}
	if fn.Recv != nil {
		name = fn.Recv.List[0].Names[0].Name + "." + name
	}
	statement := name + "(" + strings.Join(args, ", ") + ")"
	if fn.Type.Results != nil {
		return "return " + statement
	}
	return statement + "; return"
}
