package agent

import (
	"bytes"
	"errors"
	"io"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

const configVersion = "mobility.tasuki.io/v1alpha1"

// The kinds.
const (
	kindPool    = "MobilityPool"
	kindProfile = "CloudProviderProfile"
	kindPolicy  = "ProviderActionPolicy"
)

// parse returns the objects of a file. Empty documents are skipped; an empty file is refused,
// as one that an editor is still writing looks so.
func (l *configLoad) parse(f configFile) (objects []*configObject) {
	file := &configObject{load: l, file: f.name}
	before := len(l.problems)
	defer func() {
		if len(objects) == 0 && len(l.problems) == before {
			file.torn(nil, "holds no object: remove it, or write a %s, %s, %s or %s", kindPool, kindProfile, kindPolicy, kindStore)
		}
	}()
	if f.err != nil {
		file.torn(nil, "%v", f.err)
		return nil
	}
	if line, column, ok := unreadableByte(f.data); ok {
		file.torn(&yaml.Node{Line: line, Column: column}, "this is not text in UTF-8: save the file anew")
		return nil
	}
	loader, err := yaml.NewLoader(bytes.NewReader(f.data))
	for err == nil {
		var root yaml.Node
		if err = loader.Load(&root); err != nil {
			break
		}
		if n := root.Content[0]; !absentNode(n) {
			if o := file.object(n); o != nil {
				objects = append(objects, o)
			}
		}
	}
	var syntax *yaml.LoadError
	switch {
	case errors.As(err, &syntax):
		file.torn(&yaml.Node{Line: max(syntax.Mark.Line, 1), Column: max(syntax.Mark.Column, 1)}, "this is not YAML: %s", syntax.Message)
	case !errors.Is(err, io.EOF):
		file.torn(nil, "this is not YAML: %v", err)
	}
	return objects
}

// unreadableByte finds the first byte that is no text, of which the YAML library does not tell the
// place.
func unreadableByte(data []byte) (line, column int, found bool) {
	line, column = 1, 1
	for i := 0; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		switch {
		case r == utf8.RuneError && size == 1, r < ' ' && r != '\t' && r != '\n' && r != '\r', r == 0x7f:
			return line, column, true
		case r == '\n':
			line, column = line+1, 0
		}
		i, column = i+size, column+1
	}
	return 0, 0, false
}

// object returns the object of a document, nil when it is none that anything can be read of.
func (file *configObject) object(n *yaml.Node) *configObject {
	o := *file
	o.at = n
	o.kind, o.name = peekNode(n, "kind").Value, peekNode(peekNode(n, "metadata"), "name").Value
	if !configName.fits(o.name) {
		o.name = ""
	}
	if !configWord.fits(o.kind) {
		o.kind = ""
	}
	var version, kind, metadata, name *yaml.Node
	if !(o.fields(n, "an object", configField{"apiVersion", &version}, configField{"kind", &kind}, configField{"metadata", &metadata}, configField{"spec", &o.spec}) &&
		o.need(n, "apiVersion", version) && oneOfWords(&o, version, "apiVersion", configVersion) != "" &&
		o.need(n, "kind", kind) && oneOfWords(&o, kind, "kind", kindPool, kindProfile, kindPolicy, kindStore) != "" &&
		o.need(n, "metadata", metadata) && o.fields(metadata, "metadata", configField{"name", &name}) &&
		o.need(metadata, "name", name) && o.named(name, "name", configName, "lower case letters, digits, - and .") != "") {
		o.load.torn = true
		return nil
	}
	if first := o.load.names[o.kind+" "+o.name]; first != nil {
		o.report(name, "there is another one of this name at %s: rename or remove one", first.place(first.at))
		return nil
	}
	o.load.names[o.kind+" "+o.name] = &o
	return &o
}

// peekNode is a value of a mapping before anything of it was judged.
func peekNode(n *yaml.Node, key string) *yaml.Node {
	if n.Kind == yaml.MappingNode {
		for i := 0; i < len(n.Content); i += 2 {
			if n.Content[i].Value == key {
				return n.Content[i+1]
			}
		}
	}
	return &yaml.Node{}
}
