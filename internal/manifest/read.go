package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	kjson "sigs.k8s.io/json"
)

// Kind is a kind of object that may be read.
type Kind struct {
	APIVersion, Kind string

	// Definition is the CustomResourceDefinition that defaults and judges it. A built-in kind
	// has none: only its fields are judged.
	Definition []byte

	New func() any // a pointer to the Go type
}

// Object is one that was read, as what New of its Kind returns.
type Object struct {
	Kind, Name string
	Value      any

	in document
}

// Place is the file, document and line, for people.
func (o Object) Place() string { return o.in.place("") }

// Reader reads objects of some kinds.
type Reader struct {
	kinds     []Kind
	admission map[string]*admission // by kind
}

// NewReader returns a reader of these kinds, and of lists of them.
func NewReader(kinds ...Kind) (*Reader, error) {
	r := &Reader{kinds: kinds, admission: map[string]*admission{}}
	for _, k := range kinds {
		if k.Definition == nil {
			continue
		}
		_, version, _ := strings.Cut(k.APIVersion, "/")
		a, err := newAdmission(k.Definition, version)
		if err != nil {
			return nil, err
		}
		r.admission[k.Kind] = a
	}
	return r, nil
}

// Read reads the objects of files as Load finds them.
func (r *Reader) Read(names []string, stdin io.Reader) ([]Object, error) {
	files, err := Load(names, stdin)
	if err != nil {
		return nil, err
	}
	return r.ReadFiles(files)
}

// ReadFiles reads the objects of files. What is wrong is reported in full, one line each.
func (r *Reader) ReadFiles(files []File) ([]Object, error) {
	var all []document
	for _, f := range files {
		all = append(all, documents(f.Name, f.Text)...)
	}
	found := make([][]item, len(all))
	atOnce(len(all), func(i int) { found[i] = all[i].items() })
	items := slices.Concat(found...)
	read := make([]result, len(items))
	atOnce(len(items), func(i int) { read[i] = r.object(items[i]) })

	var objects []Object
	var errs []error
	for _, one := range read {
		if errs = append(errs, one.errs...); one.errs == nil {
			objects = append(objects, one.Object)
		}
	}
	return objects, errors.Join(append(errs, twice(objects)...)...)
}

// atOnce calls do with every number below n, on all processors.
func atOnce(n int, do func(int)) {
	var next atomic.Int64
	var workers sync.WaitGroup
	for range min(n, runtime.GOMAXPROCS(0)) {
		workers.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				do(i)
			}
		})
	}
	workers.Wait()
}

// item is the object of a document, or one of its list.
type item struct {
	document
	err error // why it is none

	object map[string]any // read when it is asked for, if the JSON is there

	json   []byte // with no key twice
	fields map[string]json.RawMessage
}

// result is what became of an item.
type result struct {
	Object
	errs []error
}

// items are the object of a document, or those of its list.
func (d document) items() []item {
	if list := d.longList(); list != nil {
		return list
	}
	raw, err := d.toJSON()
	if err != nil {
		return []item{{err: err}}
	}
	if fields := decoded[map[string]json.RawMessage](raw); fields != nil && !d.inJSON() && !isList(decoded[string](fields["kind"])) {
		return []item{{document: d, json: raw, fields: fields}}
	}
	value, err := d.value(raw)
	if err != nil {
		return []item{{err: err}}
	}
	object, ok := value.(map[string]any)
	switch {
	case value == nil:
		return nil
	case !ok:
		return []item{{err: d.complain("", "%s", noObject(value))}}
	case !isList(object["kind"]):
		return []item{{document: d, object: object}}
	}
	list, ok := object["items"].([]any)
	if !ok {
		return []item{{err: d.complain("", "%s has no items", text(object["kind"]))}}
	}
	items := make([]item, len(list))
	for i, one := range list {
		items[i] = d.item(i)
		of := &items[i]
		if of.object, ok = one.(map[string]any); !ok {
			of.err = of.complain("", "this is not a Kubernetes object")
			continue
		}
		// The items of a typed list leave out what its kind says already.
		if kind := strings.TrimSuffix(text(object["kind"]), "List"); kind != "" && of.object["kind"] == nil {
			of.object["kind"], of.object["apiVersion"] = kind, object["apiVersion"]
		}
	}
	return items
}

// item is one of the document's list.
func (d document) item(i int) item {
	d.within = fmt.Sprintf("items[%d]", i)
	return item{document: d}
}

// value is what JSON of the document holds.
func (d document) value(raw []byte) (any, error) {
	var value any
	strict, err := kjson.UnmarshalStrict(raw, &value) // integers stay integers
	if err = errors.Join(append(strict, err)...); err != nil {
		return nil, d.complain("", "%v", err)
	}
	return value, nil
}

// object judges an item, and reads it.
func (r *Reader) object(d item) result {
	if d.err != nil {
		return result{errs: []error{d.err}}
	}
	if o, ok := r.alike(d); ok {
		return result{Object: o}
	}
	if d.object == nil {
		value, err := d.value(d.json)
		if err != nil {
			return result{errs: []error{err}}
		}
		d.object, _ = value.(map[string]any)
	}
	version, kind := text(d.object["apiVersion"]), text(d.object["kind"])
	i := r.kind(version, kind)
	if i < 0 && version == "" && kind == "" {
		return result{errs: []error{d.complain("", "this is not a Kubernetes object: it has neither apiVersion nor kind: leave it out")}}
	}
	if i < 0 {
		return result{errs: []error{d.complain("kind", "kind %q of apiVersion %q is none of %s: leave it out", kind, version, r.known())}}
	}
	metadata, _ := d.object["metadata"].(map[string]any)
	name := text(metadata["name"])
	d.subject = strings.TrimSpace(kind + " " + name)
	if name == "" {
		return result{errs: []error{d.complain("metadata", "name is missing")}}
	}
	var errs []error
	if a := r.admission[kind]; a != nil {
		for _, p := range a.admit(d.object) {
			errs = append(errs, d.complain(p.path, "%s", p.text))
		}
	}
	if len(errs) > 0 {
		return result{errs: errs}
	}
	raw, err := json.Marshal(d.object)
	if err != nil {
		return result{errs: []error{d.complain("", "%v", err)}}
	}
	value := r.kinds[i].New()
	strict, err := kjson.UnmarshalStrict(raw, value)
	if err != nil {
		return result{errs: []error{d.complain("", "%v", err)}}
	}
	for _, err := range strict {
		path := ""
		if _, quoted, ok := strings.Cut(err.Error(), `unknown field "`); ok {
			path = strings.TrimSuffix(quoted, `"`)
			err = errors.New("unknown field")
		}
		errs = append(errs, d.complain(path, "%v", err))
	}
	return result{Object{Kind: kind, Name: name, Value: value, in: d.document}, errs}
}

// alike reads an object that is good as it is, which is known from one before that differs only
// in what that does not depend on. It is what object comes to as well, and takes half as long.
func (r *Reader) alike(d item) (Object, bool) {
	i := r.kind(decoded[string](d.fields["apiVersion"]), decoded[string](d.fields["kind"]))
	if i < 0 {
		return Object{}, false
	}
	kind := r.kinds[i].Kind
	if a := r.admission[kind]; a != nil && !a.passes(d.fields) {
		return Object{}, false
	}
	value := r.kinds[i].New()
	strict, err := kjson.UnmarshalStrict(d.json, value)
	named, ok := value.(interface{ GetName() string })
	if err != nil || len(strict) > 0 || !ok || named.GetName() == "" {
		return Object{}, false
	}
	d.subject = kind + " " + named.GetName()
	return Object{Kind: kind, Name: named.GetName(), Value: value, in: d.document}, true
}

// kind is which kind that is, -1 if it is not read.
func (r *Reader) kind(version, kind string) int {
	return slices.IndexFunc(r.kinds, func(k Kind) bool { return k.APIVersion == version && k.Kind == kind })
}

func (r *Reader) known() string {
	var names []string
	for _, k := range r.kinds {
		names = append(names, fmt.Sprintf("%s (%s)", k.Kind, k.APIVersion))
	}
	return strings.Join(names, ", ")
}

// twice complains of objects that were read before.
func twice(objects []Object) []error {
	var errs []error
	first := map[string]Object{}
	for _, o := range objects {
		key := o.Kind + " " + o.Name
		if namespaced, ok := o.Value.(interface{ GetNamespace() string }); ok {
			key += " " + namespaced.GetNamespace()
		}
		if there, ok := first[key]; ok {
			errs = append(errs, fmt.Errorf("%s: %s %s is there already, at %s: remove one", o.Place(), o.Kind, o.Name, there.Place()))
			continue
		}
		first[key] = o
	}
	return errs
}

func text(v any) string {
	s, _ := v.(string)
	return s
}

// decoded is what JSON holds, nothing if that is something else.
func decoded[T any](raw []byte) (value T) {
	if json.Unmarshal(raw, &value) != nil {
		return *new(T)
	}
	return value
}

func isList(kind any) bool { return strings.HasSuffix(text(kind), "List") }

// blank reports a document without content.
func blank(data []byte) bool {
	for line := range bytes.Lines(data) {
		if line = bytes.TrimSpace(line); len(line) > 0 && line[0] != '#' {
			return false
		}
	}
	return true
}
