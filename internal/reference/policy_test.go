package reference

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/tasuki-io/tasuki/deploy"
)

// RotationPolicy, as an API server knows it.
func TestReferenceOfThePolicy(t *testing.T) {
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal(deploy.CRD(), &crd); err != nil {
		t.Fatal(err)
	}
	version := crd.Spec.Versions[0]
	schema := version.Schema.OpenAPIV3Schema
	var all []field
	for _, part := range []string{"spec", "status"} {
		all = append(all, fields(part, schema.Properties[part], slices.Contains(schema.Required, part))...)
	}
	if len(all) < 35 {
		t.Fatalf("only %d fields", len(all))
	}
	out := Page("RotationPolicy", "api/"+version.Name)
	out += fmt.Sprintf("`apiVersion: %s/%s`, `kind: %s`, of the scope %s, for short `%s`.\n\n%s\n\n",
		crd.Spec.Group, version.Name, crd.Spec.Names.Kind, crd.Spec.Scope, crd.Spec.Names.ShortNames[0], schema.Description)
	out += "A rule is a [CEL](https://kubernetes.io/docs/reference/using-api/cel/) expression: what does not meet it is refused, with the words before it.\n\n"
	out += Row("field", "type", "default") + "|---|---|---|\n"
	for _, f := range all {
		out += Row(fmt.Sprintf("[%s](#%s)", f.path, anchor(f.path)), f.kind(), f.standard())
	}
	for _, f := range all {
		out += "\n## " + f.path + "\n\n" + strings.Join(f.facts(), ", ") + ".\n"
		if f.Description != "" {
			out += "\n" + f.Description + "\n"
		}
		for _, of := range []*apiextensionsv1.JSONSchemaProps{&f.JSONSchemaProps, items(f.JSONSchemaProps)} {
			if of == nil || of == items(f.JSONSchemaProps) && of.Type == "object" { // whose rules are its own
				continue
			}
			for _, rule := range of.XValidations {
				out += "\n- " + strings.Join(strings.Fields(rule.Message), " ") + "\n\n      " + strings.Join(strings.Fields(rule.Rule), " ") + "\n"
			}
		}
	}
	Keep(t, "reference/rotationpolicy.md", out)
}

// field is one of an object, by its path.
type field struct {
	path     string
	required bool
	apiextensionsv1.JSONSchemaProps
}

// fields are an object and what is below it, in the order of their names.
func fields(path string, s apiextensionsv1.JSONSchemaProps, required bool) []field {
	all := []field{{path, required, s}}
	of, below := &s, path
	if item := items(s); item != nil {
		of, below = item, path+"[]"
		if item.Type == "object" && path != "status.conditions" { // which every Kubernetes API has alike
			all = append(all, field{below, true, *item})
		}
	}
	if path == "status.conditions" {
		return all
	}
	for _, name := range slices.Sorted(maps.Keys(of.Properties)) {
		all = append(all, fields(below+"."+name, of.Properties[name], slices.Contains(of.Required, name))...)
	}
	return all
}

func items(s apiextensionsv1.JSONSchemaProps) *apiextensionsv1.JSONSchemaProps {
	if s.Items == nil {
		return nil
	}
	return s.Items.Schema
}

func anchor(path string) string {
	anchor := strings.ToLower(strings.NewReplacer(".", "", "[", "", "]", "").Replace(path))
	if strings.HasSuffix(path, "[]") { // the second of this name
		anchor += "-1"
	}
	return anchor
}

func (f field) kind() string {
	switch item := items(f.JSONSchemaProps); {
	case item != nil:
		return "list of " + item.Type
	case f.AdditionalProperties != nil && f.AdditionalProperties.Schema != nil:
		return "map of " + f.AdditionalProperties.Schema.Type
	}
	return f.Type
}

func (f field) standard() string {
	switch {
	case f.Default != nil:
		var v any
		_ = json.Unmarshal(f.Default.Raw, &v)
		if s, ok := v.(string); ok {
			return "`" + s + "`"
		}
		return "`" + string(f.Default.Raw) + "`"
	case f.required && !strings.HasSuffix(f.path, "[]"):
		return "required"
	}
	return ""
}

// facts are what can be said of a field in a word.
func (f field) facts() []string {
	out := []string{f.kind()}
	switch s := f.standard(); s {
	case "":
	case "required":
		out = append(out, s)
	default:
		out = append(out, "default "+s)
	}
	bound := func(s *apiextensionsv1.JSONSchemaProps, of string) {
		for _, b := range []struct {
			n    *int64
			text string
		}{
			{s.MaxLength, "at most %d characters"}, {s.MaxItems, "at most %d entries"}, {s.MaxProperties, "at most %d keys"},
			{s.MinLength, "at least %d characters"}, {s.MinItems, "at least %d entries"},
		} {
			if b.n != nil {
				out = append(out, of+fmt.Sprintf(b.text, *b.n))
			}
		}
	}
	bound(&f.JSONSchemaProps, "")
	if item := items(f.JSONSchemaProps); item != nil {
		bound(item, "each ")
		if t := f.XListType; t != nil && *t == "set" {
			out = append(out, "none twice")
		}
	}
	if m := f.AdditionalProperties; m != nil && m.Schema != nil {
		bound(m.Schema, "each ")
	}
	return out
}
