package reference

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// What rotations write on objects, as package rotation has it.
func TestReferenceOfTheAnnotations(t *testing.T) {
	files, err := filepath.Glob("../rotation/*.go")
	if err != nil {
		t.Fatal(err)
	}
	out, n := Page("Annotations and labels", "internal/rotation"), 0
	out += `The state of a rotation is annotations on the objects themselves; there is no other store. tasuki sets no finalizer, and
takes back only what carries its marks. Times are RFC 3339 in UTC, durations Go's. An operator writes
` + "`noderotation.io/freeze` and `noderotation.io/rotate-requested`" + `, best by [tasuki freeze and tasuki rotate](../explain.md), and
` + "`karpenter.sh/do-not-disrupt`" + `; the others are the controller's.
`
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			block, ok := d.(*ast.GenDecl)
			if !ok || block.Tok != token.CONST {
				continue
			}
			intro := block.Doc.Text()
			for _, spec := range block.Specs {
				c := spec.(*ast.ValueSpec)
				if !regexp.MustCompile(`^(Annotation|Label)[A-Z]`).MatchString(c.Names[0].Name) || len(c.Values) != 1 {
					continue
				}
				if c.Doc != nil {
					intro = c.Doc.Text()
				}
				note := c.Comment.Text()
				if of, own := strings.CutPrefix(intro, c.Names[0].Name+" "); own { // of one that stands alone
					intro, note = "On the placeholder pods.", of
				}
				if intro != "" {
					out += "\n" + strings.TrimSpace(section.ReplaceAllString(intro, "")) + "\n\n" + Row("key", "value") + "|---|---|\n"
					intro = ""
				}
				out += Row("`"+value(t, c.Values[0])+"`", strings.TrimSpace(note))
				n++
			}
		}
	}
	if n < 20 {
		t.Fatalf("only %d keys", n)
	}
	Keep(t, "reference/annotations.md", out)
}

// section is the reference of a comment to the design.
var section = regexp.MustCompile(` \((§|ADR)[^)]*\)`)

// value is that of a constant: a literal, or one behind the prefix of all keys.
func value(t *testing.T, e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		if err == nil {
			return text
		}
	case *ast.BinaryExpr:
		if x, ok := e.X.(*ast.Ident); ok && x.Name == "prefix" {
			return "noderotation.io/" + value(t, e.Y)
		}
	}
	t.Fatalf("an expression of a kind that is not known: %T", e)
	return ""
}

// Every field of the agent's files has its row in docs/agent-config.md, and no row is about a field
// that there is not.
func TestTheAgentsFieldsAreDocumented(t *testing.T) {
	files, err := filepath.Glob("../agent/config_*.go")
	if err != nil {
		t.Fatal(err)
	}
	var known []string
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if l, ok := n.(*ast.CompositeLit); ok && len(l.Elts) == 2 {
				if of, ok := l.Type.(*ast.Ident); ok && of.Name == "configField" {
					known = append(known, value(t, l.Elts[0]))
				}
			}
			return true
		})
	}
	known = slices.DeleteFunc(known, func(name string) bool {
		return slices.Contains([]string{"apiVersion", "kind", "metadata", "name", "spec"}, name)
	})
	var told []string
	for line := range strings.Lines(read(t, "../../docs/agent-config.md")) {
		first, _, _ := strings.Cut(strings.TrimPrefix(line, "| "), " | ")
		if !strings.HasPrefix(line, "| `") || !regexp.MustCompile("^(`[A-Za-z.\\[\\]]+`(, )?)+$").MatchString(first) {
			continue
		}
		for _, part := range regexp.MustCompile(`\w+`).FindAllString(first, -1) {
			told = append(told, part)
			if !slices.Contains(known, part) {
				t.Errorf("docs/agent-config.md tells of a field %s, which there is not", part)
			}
		}
	}
	for _, name := range known {
		if !slices.Contains(told, name) {
			t.Errorf("docs/agent-config.md does not tell of %s", name)
		}
	}
	if len(known) < 40 {
		t.Errorf("only %d fields", len(known))
	}
}
