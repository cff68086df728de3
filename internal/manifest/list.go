package manifest

import (
	"bytes"
	"encoding/json"
	"slices"

	"sigs.k8s.io/yaml"
)

// longList reads the objects of a list as kubectl prints it, one by one and so on all processors.
// It finds none in any other document, nor in one with a mistake in it: what goes on from one item
// into the next, as a quotation or an alias does, is a mistake in the one or the other.
func (d document) longList() []item {
	rest, texts := cut(d.data)
	if len(texts) == 0 {
		return nil
	}
	list := strictly[map[string]any](rest)
	if list["items"] != aside || !isList(list["kind"]) { // to the parser it is no mistake to end early
		return nil
	}
	items := make([]item, len(texts))
	atOnce(len(texts), func(i int) {
		if one := strictly[[]json.RawMessage](texts[i]); len(one) == 1 {
			items[i] = d.item(i)
			items[i].json, items[i].fields = one[0], decoded[map[string]json.RawMessage](one[0])
		}
	})
	if slices.ContainsFunc(items, func(i item) bool { return i.fields["kind"] == nil }) { // which its list may tell
		return nil
	}
	return items
}

// strictly is what a text in YAML holds, nothing if there is a mistake in it.
func strictly[T any](text []byte) (value T) {
	raw, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		return value
	}
	return decoded[T](raw)
}

// aside is what the rest of a list has in the place of its items.
const aside = "(set aside)"

// cut takes the items out of a list, each of which begins on a line with a dash.
func cut(data []byte) (rest []byte, items [][]byte) {
	const head = "items:\n"
	begin := 0
	if !bytes.HasPrefix(data, []byte(head)) {
		begin = bytes.Index(data, []byte("\n"+head)) + 1
		if begin == 0 {
			return nil, nil
		}
	}
	from := begin + len(head)
	at, end := from, len(data)
	for line := range bytes.Lines(data[from:]) {
		if bytes.HasPrefix(line, []byte("- ")) {
			if at > from {
				items = append(items, data[from:at])
			}
			from = at
		} else if at == from || line[0] != ' ' && line[0] != '\n' {
			end = at
			break
		}
		at += len(line)
	}
	if at > from {
		items = append(items, data[from:at])
	}
	return slices.Concat(data[:begin], []byte("items: "+aside+"\n"), data[end:]), items
}
