package manifest

import (
	"bytes"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"

	yamlv4 "go.yaml.in/yaml/v4"
	"sigs.k8s.io/yaml"
)

// document is one of a file.
type document struct {
	file   string
	number int // from 1
	line   int // of the file, before its first
	data   []byte

	within  string // path of the item of a list
	subject string // kind and name, once they are known

	tree *tree // of data, for its lines
}

// tree is a YAML document with its lines, read when somebody asks for one.
type tree struct {
	once sync.Once
	root *yamlv4.Node // nil if there is none
}

// problem is something that is wrong at a path of an object.
type problem struct{ path, text string }

// documents splits a file. Empty documents do not count.
func documents(file string, data []byte) []document {
	var out []document
	d := document{file: file}
	from, at, line := 0, 0, 0
	add := func() {
		if d.data = data[from:at]; !blank(d.data) {
			d.number, d.tree = len(out)+1, &tree{}
			out = append(out, d)
		}
	}
	for text := range bytes.Lines(data) {
		line++
		if ends(text) {
			add()
			d, from = document{file: file, line: line}, at+len(text)
		}
		at += len(text)
	}
	add()
	return out
}

// ends reports a line between two documents.
func ends(line []byte) bool {
	rest, begins := bytes.CutPrefix(line, []byte("---"))
	if !begins {
		var ends bool
		if rest, ends = bytes.CutPrefix(line, []byte("...")); !ends {
			return false
		}
	}
	rest = bytes.TrimSpace(rest)
	return len(rest) == 0 || line[3] == ' ' && rest[0] == '#'
}

var yamlLine = regexp.MustCompile(`^(?:error converting YAML to JSON: )?yaml: (?:unmarshal errors:\s+)?(?:line (\d+): )?(.*)`)

// toJSON is the document in JSON, read as kubectl reads YAML.
func (d document) toJSON() ([]byte, error) {
	if d.inJSON() {
		return bytes.TrimSpace(d.data), nil
	}
	if n, first := d.endsEarly(); n > 0 {
		return nil, fmt.Errorf("%s: document %d, line %d: this is not YAML: the line is indented less than line %d, with which the document begins", d.file, d.number, d.line+n, d.line+first)
	}
	raw, err := yaml.YAMLToJSONStrict(d.data)
	if err == nil {
		return raw, nil
	}
	text := strings.ReplaceAll(err.Error(), "\n", " ")
	if m := yamlLine.FindStringSubmatch(text); m != nil {
		n, _ := strconv.Atoi(m[1])
		return nil, fmt.Errorf("%s: document %d, line %d: this is not YAML: %s", d.file, d.number, d.line+max(n, 1), m[2])
	}
	return nil, d.complain("", "this is not YAML: %s", text)
}

// endsEarly finds a line, from 1, that is indented less than the first one, for which the parser
// drops it with all that follows.
func (d document) endsEarly() (line, first int) {
	indent, n := 0, 0
	for text := range bytes.Lines(d.data) {
		n++
		content := bytes.TrimLeft(text, " ")
		switch begins := len(text) - len(content); {
		case len(bytes.TrimSpace(content)) == 0 || content[0] == '#':
		case first == 0:
			if indent, first = begins, n; indent == 0 {
				return 0, 0
			}
		case begins < indent:
			return n, first
		}
	}
	return 0, first
}

func (d document) inJSON() bool { return bytes.HasPrefix(bytes.TrimSpace(d.data), []byte("{")) }

// place is where a path of the object is, or the nearest part of it that is there.
func (d document) place(path string) string {
	return fmt.Sprintf("%s: document %d, line %d", d.file, d.number, d.line+d.lineOf(path))
}

// complain is an error about a path of the object.
func (d document) complain(path, format string, args ...any) error {
	var about string
	for _, s := range []string{d.subject, path} {
		if s != "" && (d.subject != "" || s != path) {
			about += s + ": "
		}
	}
	return fmt.Errorf("%s: %s%s", d.place(path), about, fmt.Sprintf(format, args...))
}

var pathStep = regexp.MustCompile(`[^.\[\]]+|\[[^\]]*\]`)

// lineOf is the line of the document, from 1, on which a path begins.
func (d document) lineOf(path string) int {
	n := d.tree.of(d.data)
	if n == nil {
		return 1
	}
	line := n.Line
	for _, step := range pathStep.FindAllString(strings.TrimPrefix(d.within+"."+path, "."), -1) {
		next, at := child(n, strings.Trim(step, "[]"))
		if next == nil {
			break
		}
		n, line = next, at
	}
	return line
}

func (t *tree) of(data []byte) *yamlv4.Node {
	t.once.Do(func() {
		var root yamlv4.Node
		if err := yamlv4.Unmarshal(data, &root); err == nil && len(root.Content) > 0 {
			t.root = root.Content[0]
		}
	})
	return t.root
}

// child is a member of a mapping or an item of a sequence, and the line on which it begins.
func child(n *yamlv4.Node, step string) (*yamlv4.Node, int) {
	switch n.Kind {
	case yamlv4.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value == step {
				return n.Content[i+1], n.Content[i].Line
			}
		}
	case yamlv4.SequenceNode:
		if i, err := strconv.Atoi(step); err == nil && i >= 0 && i < len(n.Content) {
			return n.Content[i], n.Content[i].Line
		}
	}
	return nil, 0
}
