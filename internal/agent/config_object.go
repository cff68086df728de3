package agent

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"
)

// configObject is an object that is being read, or a part of one. Its methods read a node as
// what they are named for, and report one that is something else; a node that is nil or null
// was left out and is no problem.
type configObject struct {
	load       *configLoad
	file       string
	kind, name string
	part       string // "member a"
	at, spec   *yaml.Node
}

// configSpot is a node that a later one may collide with.
type configSpot struct {
	o *configObject
	n *yaml.Node
}

func (s configSpot) String() string { return s.o.place(s.n) }

func (o *configObject) place(n *yaml.Node) string {
	return fmt.Sprintf("%s:%d:%d", o.file, n.Line, n.Column)
}

// report notes a problem with a node; nil is the file as a whole.
func (o *configObject) report(n *yaml.Node, format string, args ...any) {
	o.load.problems = append(o.load.problems, o.problem(n, format, args...))
}

func (o *configObject) problem(n *yaml.Node, format string, args ...any) configProblem {
	p := configProblem{file: o.file, text: fmt.Sprintf(format, args...)}
	if n != nil {
		p.line, p.column = n.Line, n.Column
	}
	if o.part != "" {
		p.text = o.part + ": " + p.text
	}
	if id := strings.TrimSpace(o.kind + " " + o.name); id != "" {
		p.text = id + ": " + p.text
	}
	return p
}

// torn reports a problem that hides whole objects.
func (o *configObject) torn(n *yaml.Node, format string, args ...any) {
	o.load.torn = true
	o.report(n, format, args...)
}

// configField is a field of a mapping, and where its value goes.
type configField struct {
	name  string
	value **yaml.Node
}

// fields takes a mapping apart. It reports whether it is one.
func (o *configObject) fields(n *yaml.Node, what string, known ...configField) bool {
	if absentNode(n) {
		return true
	}
	if n.Kind != yaml.MappingNode {
		o.report(n, "%s is %s: write its fields, which are %s", what, nodeShape(n), configFieldNames(known))
		return false
	}
	for i := 0; i < len(n.Content); i += 2 {
		key := n.Content[i]
		at := slices.IndexFunc(known, func(f configField) bool { return f.name == key.Value })
		switch {
		case key.Kind != yaml.ScalarNode:
			o.report(key, "a field of %s has %s for a name: write one of %s", what, nodeShape(key), configFieldNames(known))
		case key.Tag == "!!merge":
			o.report(key, "%s merges another mapping: write its fields out", what)
		case at < 0:
			o.report(key, "%s has no field %s: %s", what, quoteValue(key.Value), suggestWord(key.Value, configFieldNames(known)))
		case *known[at].value != nil:
			o.report(key, "%s is there twice in %s: keep one", key.Value, what)
		default:
			*known[at].value = n.Content[i+1]
		}
	}
	return true
}

type configWords []string

func configFieldNames(fields []configField) configWords {
	names := make(configWords, len(fields))
	for i, f := range fields {
		names[i] = f.name
	}
	return names
}

func (n configWords) String() string { return strings.Join(n, ", ") }

// absentNode is a field that was left out, or that says nothing.
func absentNode(n *yaml.Node) bool { return n == nil || n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

// nodeShape says what a node is, for people.
func nodeShape(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "a mapping"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case n.Kind == yaml.AliasNode:
		return "an alias (which is not followed)"
	case n.Tag == "!!str":
		return "the string " + quoteValue(n.Value)
	case n.Tag == "!!int", n.Tag == "!!float":
		return "the number " + quoteValue(n.Value)
	}
	return quoteValue(n.Value) + " (" + n.Tag + ")"
}

// quoteValue shows a value on one line, and of a very long one the beginning.
func quoteValue(s string) string {
	if len(s) > 100 {
		s = s[:100] + "..."
	}
	return strconv.Quote(s)
}

// need reports a field that is missing.
func (o *configObject) need(in *yaml.Node, field string, n *yaml.Node) bool {
	if absentNode(n) || n.Kind == yaml.ScalarNode && n.Value == "" {
		o.report(in, "%s is missing: write it", field)
		return false
	}
	return true
}

func (o *configObject) text(n *yaml.Node, field string) string {
	switch {
	case absentNode(n):
		return ""
	case n.Kind == yaml.ScalarNode && (n.Tag == "!!str" || n.Tag == "!!timestamp"):
		return n.Value
	case n.Kind == yaml.ScalarNode:
		o.report(n, "%s is %s: put it in quotes", field, nodeShape(n))
	default:
		o.report(n, "%s is %s: write a string", field, nodeShape(n))
	}
	return ""
}

// What names may consist of. They become parts of keys and domains, which have colons and
// slashes between them: a name has none, so that no two keys are the same by accident.
var (
	configName = form{regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$`), 253}
	configWord = form{regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$`), 253}
)

// form is what a name may consist of, and how long it may be: an expression that counts takes as
// much memory as what it counts to.
type form struct {
	of   *regexp.Regexp
	most int // bytes
}

func (f form) fits(s string) bool { return len(s) <= f.most && f.of.MatchString(s) }

func (o *configObject) word(n *yaml.Node, field string) string {
	return o.named(n, field, configWord, "letters, digits, -, . and _")
}

func (o *configObject) named(n *yaml.Node, field string, f form, of string) string {
	s := o.text(n, field)
	if s != "" && !f.fits(s) {
		o.report(n, "%s %s is no name: write %s, at most 253, a letter or digit first and last", field, quoteValue(s), of)
		return ""
	}
	return s
}

func oneOfWords[T ~string](o *configObject, n *yaml.Node, field string, words ...T) T {
	s := T(o.text(n, field))
	if s != "" && !slices.Contains(words, s) {
		names := make(configWords, len(words))
		for i, w := range words {
			names[i] = string(w)
		}
		o.report(n, "%s %s is unknown: %s", field, quoteValue(string(s)), suggestWord(string(s), names))
		return ""
	}
	return s
}

func (o *configObject) boolean(n *yaml.Node, field string, otherwise bool) bool {
	if absentNode(n) {
		return otherwise
	}
	if n.Kind == yaml.ScalarNode && n.Tag == "!!bool" {
		switch strings.ToLower(n.Value) {
		case "true":
			return true
		case "false":
			return false
		}
	}
	o.report(n, "%s is %s: write true or false", field, nodeShape(n))
	return otherwise
}

func (o *configObject) number(n *yaml.Node, field string, most int) int {
	if absentNode(n) {
		return 0
	}
	i, err := strconv.Atoi(n.Value)
	if n.Kind != yaml.ScalarNode || n.Tag != "!!int" || err != nil || strconv.Itoa(i) != n.Value || i < 0 || i > most {
		o.report(n, "%s is %s: write a whole number from 0 to %d", field, nodeShape(n), most)
		return 0
	}
	return i
}

func (o *configObject) duration(n *yaml.Node, field string, otherwise, least, most time.Duration) time.Duration {
	if absentNode(n) {
		return otherwise
	}
	d, err := time.ParseDuration(n.Value)
	if n.Kind != yaml.ScalarNode || n.Tag != "!!str" || err != nil || d < least || d > most {
		o.report(n, "%s is %s: write a duration from %s to %s, such as %s", field, nodeShape(n), least, most, otherwise)
		return otherwise
	}
	return d
}

func (o *configObject) list(n *yaml.Node, field string) []*yaml.Node {
	switch {
	case absentNode(n):
		return nil
	case n.Kind != yaml.SequenceNode:
		o.report(n, "%s is %s: write a list", field, nodeShape(n))
		return nil
	}
	return n.Content
}
