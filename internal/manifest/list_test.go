package manifest

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

const printed = "apiVersion: v1\nitems:\n- apiVersion: v1\n  kind: Node\n  metadata:\n    name: a\n\n- kind: Node\n  metadata:\n    finalizers:\n    - one\n    name: b\nkind: List\nmetadata:\n  resourceVersion: \"\"\n"

// whole are the items of a list that is read at once.
func whole(text string) any { return strictly[map[string]any]([]byte(text))["items"] }

// byItem are those that are read one by one, nil if they are not.
func byItem(text string) (all []any) {
	for _, i := range (document{data: []byte(text)}).longList() {
		var value any
		if err := json.Unmarshal(i.json, &value); err != nil {
			panic(err)
		}
		all = append(all, value)
	}
	return all
}

// What kubectl prints is read item by item, and comes to the same.
func TestAListThatKubectlPrints(t *testing.T) {
	if diff := cmp.Diff(whole(printed), any(byItem(printed))); diff != "" {
		t.Errorf("read item by item (-whole +items):\n%s", diff)
	}
}

// What goes on from one item into the next is not taken apart.
func TestAListThatIsReadAsAWhole(t *testing.T) {
	for name, text := range map[string]string{
		"a quotation":           "items:\n- kind: 'begun\n- ended'\nkind: List\n",
		"an alias":              "items:\n- &x {kind: a}\n- *x\nkind: List\n",
		"a comment":             "items:\n- kind: a\n# of the next\n- kind: b\nkind: List\n",
		"no items":              "items:\nkind: List\n",
		"no list":               "items:\n- kind: a\nkind: Node\n",
		"an item without kind":  "items:\n- kind: a\n- b: 1\nkind: NodeList\n",
		"an item that is text":  "items:\n- kind: a\n- kind\nkind: List\n",
		"an item that is twice": "items:\n- kind: a\n  kind: b\nkind: List\n",
	} {
		if list := byItem(text); list != nil {
			t.Errorf("%s: read item by item: %v", name, list)
		}
	}
}

// However it is written, a list either comes to the same item by item, or is read as a whole.
func TestAListItemByItem(t *testing.T) {
	lines := []string{
		"items:", "items: []", "items: # all", "kind: List", "kind: NodeList", "- kind: a", "- kind: &x {b: 2}", "- *x", "- b: *x", "- 'begun", "- ended'", "- \"begun",
		"  ended\"", "- |", "  text", "- >-", "", "  ", "# comment", "  # comment", "- ", "-", "- - a", "  - a", "- {", "kind: x}", "- [a,", "b]", "  b: 1", "  b: 2", "  kind: no", "- b: no", "- 0o7",
		"items: (set aside)", "- ? a", "  : b", "metadata:", "  name: x", "- <<: *x", "- !!str 1", "\t- a: 1", "- a\r",
	}
	same := 0
	rapid.Check(t, func(t *rapid.T) {
		text := ""
		if rapid.Bool().Draw(t, "list") {
			text = "items:\n"
		}
		for range rapid.IntRange(0, 3).Draw(t, "items") {
			text += rapid.SampledFrom([]string{"", "- kind: a\n"}).Draw(t, "begins")
			for _, line := range rapid.SliceOfN(rapid.SampledFrom(lines), 0, 3).Draw(t, "lines") {
				text += line + "\n"
			}
		}
		if rapid.Bool().Draw(t, "kind") {
			text += "kind: List\n"
		}
		got := byItem(text)
		if got == nil {
			return
		}
		if diff := cmp.Diff(whole(text), any(got)); diff != "" {
			t.Fatalf("%q (-whole +items):\n%s", text, diff)
		}
		same++
	})
	if same == 0 && !testing.Short() {
		t.Error("no list was read item by item")
	}
}
