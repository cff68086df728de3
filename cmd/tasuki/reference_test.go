package main

import (
	"cmp"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/tasuki-io/tasuki/internal/agent"
	"github.com/tasuki-io/tasuki/internal/reference"
	"github.com/tasuki-io/tasuki/internal/rotation"
	"github.com/tasuki-io/tasuki/internal/rotator"
)

// Every command with its flags and examples, as --help has them.
func TestReferenceOfTheCommands(t *testing.T) {
	out := reference.Page("Commands of tasuki", "cmd/tasuki")
	all := commands()
	for _, line := range slices.Sorted(maps.Keys(all)) {
		c := all[line]
		out += "## " + line + "\n\n" + strings.TrimSpace(cmp.Or(c.Long, c.Short)) + "\n\n"
		if c.Runnable() && !c.HasAvailableSubCommands() {
			out += "    " + c.UseLine() + "\n\n"
		}
		for _, part := range []struct{ title, text string }{
			{"Examples", c.Example}, {"Flags", c.NonInheritedFlags().FlagUsages()}, {"Flags of all commands of this group", c.InheritedFlags().FlagUsages()},
		} {
			if part.text != "" {
				out += part.title + ":\n\n" + strings.TrimRight(regexp.MustCompile(`(?m)^  `).ReplaceAllString(part.text, "    "), "\n") + "\n\n"
			}
		}
	}
	reference.Keep(t, "reference/tasuki.md", out)
}

// outputs are the commands that answer in JSON, and the types of their answers.
var outputs = map[string]any{
	"tasuki plan":              []rotator.Plan{},
	"tasuki explain nodepool":  rotation.Explanation{},
	"tasuki explain nodeclaim": rotation.Explanation{},
	"tasuki status":            []rotation.Overview{},
	"tasuki captures list":     []agent.Capture{},
	"tasuki captures explain":  []agent.Explanation{},
	"tasuki captures status":   agent.Status{},
	"tasuki captures doctor":   []agent.Ailment{},
	"tasuki captures drain":    agent.Drain{},
	"tasuki captures undrain":  agent.Drain{},
	"tasuki captures own":      agent.Residence{},
	"tasuki actions list":      []agent.Action{},
	"tasuki actions show":      shown{},
	"tasuki actions journal":   []agent.Event{},
	"tasuki actions approve":   agent.Choice{},
	"tasuki actions rollback":  agent.Choice{},
	// A rehearsal, or what became of the actions.
	"tasuki actions execute": execution{},
}

// execution is what tasuki actions execute answers: one list or the other.
type execution struct{}

func schemaOf(t testing.TB, line string) *jsonschema.Schema {
	t.Helper()
	if outputs[line] == (execution{}) {
		return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{schemaFor(t, []agent.Rehearsal{}), schemaFor(t, []agent.Action{})}}
	}
	return schemaFor(t, outputs[line])
}

// Every command that answers in JSON has a schema of its answers.
func TestReferenceOfTheAnswers(t *testing.T) {
	n := 0
	for line, c := range commands() {
		if c.HasSubCommands() || c.Flag("output") == nil {
			continue
		}
		if n++; outputs[line] == nil {
			t.Errorf("%s has no type of its answer in outputs", line)
			continue
		}
		s := schemaOf(t, line)
		s.Schema = "https://json-schema.org/draft/2020-12/schema"
		s.Title = line + " -o json"
		text, err := json.MarshalIndent(s, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		reference.Keep(t, schemaFile(line), string(text)+"\n")
	}
	if n != len(outputs) {
		t.Errorf("%d commands answer in JSON, and outputs has %d", n, len(outputs))
	}
}

// obeys is an error if a command was asked for JSON, and its answer is not what its schema says.
func obeys(args []string, out string) error {
	c, rest, err := newRoot(io.Discard, io.Discard).Find(args)
	if err != nil || out == "" {
		return nil
	}
	if err := c.ParseFlags(rest); err != nil || c.Flag("output") == nil || c.Flag("output").Value.String() != "json" {
		return nil
	}
	text, err := os.ReadFile(filepath.Join(docs, schemaFile(c.CommandPath())))
	if err != nil {
		return err
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(text, &s); err != nil {
		return err
	}
	resolved, err := s.Resolve(nil)
	if err != nil {
		return err
	}
	var answer any
	if err := json.Unmarshal([]byte(out), &answer); err != nil {
		return err
	}
	return resolved.Validate(answer)
}

var docs, _ = filepath.Abs("../../docs")

func schemaFile(line string) string {
	return "reference/schema/" + strings.ReplaceAll(strings.TrimPrefix(line, "tasuki "), " ", "-") + ".json"
}

func schemaFor(t testing.TB, answer any) *jsonschema.Schema {
	of := reflect.TypeOf(answer)
	s, err := jsonschema.ForType(of, &jsonschema.ForOptions{TypeSchemas: map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[netip.Addr](): {Type: "string"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	explainFields(t, s, of)
	return s
}

// explainFields gives a schema the words that the code has for the fields, and lets it take fields
// that a later version adds.
func explainFields(t testing.TB, s *jsonschema.Schema, of reflect.Type) {
	for of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	switch {
	case s.Items != nil:
		s.Type, s.Types = "array", nil
		explainFields(t, s.Items, of.Elem())
	case of.Kind() == reflect.Map:
		explainFields(t, s.AdditionalProperties, of.Elem())
	case len(s.Properties) > 0:
		s.AdditionalProperties = nil
		for _, f := range reflect.VisibleFields(of) {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			p := s.Properties[name]
			if p == nil {
				continue
			}
			in := of // the struct that declares it
			for _, i := range f.Index[:len(f.Index)-1] {
				if in = in.Field(i).Type; in.Kind() == reflect.Pointer {
					in = in.Elem()
				}
			}
			p.Description = strings.Join(strings.Fields(comments(t, in)[in.Name()+"."+f.Name]), " ")
			if f.Type == reflect.TypeFor[time.Time]() || f.Type == reflect.TypeFor[*time.Time]() {
				p.Format = "date-time"
			}
			explainFields(t, p, f.Type)
		}
	}
}

// read are the comments of the packages that were read.
var read = map[string]map[string]string{}

// comments are those of the fields of a type's package, as "Type.Field".
func comments(t testing.TB, of reflect.Type) map[string]string {
	dir, inside := strings.CutPrefix(of.PkgPath(), "github.com/tasuki-io/tasuki/")
	if !inside || read[dir] != nil {
		return read[dir]
	}
	found := map[string]string{}
	files, err := filepath.Glob(filepath.Join("../..", dir, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no files in %s: %v", dir, err)
	}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if of, ok := n.(*ast.TypeSpec); ok {
				if body, ok := of.Type.(*ast.StructType); ok {
					for _, f := range body.Fields.List {
						for _, name := range f.Names {
							found[of.Name.Name+"."+name.Name] = cmp.Or(f.Comment.Text(), f.Doc.Text())
						}
					}
				}
			}
			return true
		})
	}
	read[dir] = found
	return found
}
