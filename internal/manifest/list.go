package manifest

import (
	"bytes"
	"slices"

	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// longList reads a list as kubectl prints it, item by item and so on all processors. It has no
// answer for any other document, nor for one with a mistake in it: what goes on from one item
// into the next, as a quotation or an alias does, is a mistake in the one or the other.
func (d document) longList() (map[string]any, bool) {
	rest, texts := cut(d.data)
	if len(texts) == 0 {
		return nil, false
	}
	list, _ := strictly(rest).(map[string]any)
	if list["items"] != aside { // to the parser it is no mistake to end early
		return nil, false
	}
	items := make([]any, len(texts))
	atOnce(len(texts), func(i int) {
		if one, ok := strictly(texts[i]).([]any); ok && len(one) == 1 {
			items[i] = one[0]
		}
	})
	if slices.Contains(items, nil) {
		return nil, false
	}
	list["items"] = items
	return list, true
}

// strictly is what a text in YAML holds, nil if there is a mistake in it.
func strictly(text []byte) any {
	raw, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		return nil
	}
	var value any
	if strict, err := kjson.UnmarshalStrict(raw, &value); err != nil || len(strict) > 0 {
		return nil
	}
	return value
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
