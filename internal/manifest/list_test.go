package manifest

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

const printed = "apiVersion: v1\nitems:\n- apiVersion: v1\n  kind: Node\n  metadata:\n    name: a\n\n- metadata:\n    finalizers:\n    - one\n    name: b\nkind: List\nmetadata:\n  resourceVersion: \"\"\n"

// whole reads the text at once.
func whole(text string) (any, bool) {
	value := strictly([]byte(text))
	return value, value != nil
}

// What kubectl prints is read item by item, and comes to the same.
func TestAListThatKubectlPrints(t *testing.T) {
	want, _ := whole(printed)
	got, ok := document{data: []byte(printed)}.longList()
	if diff := cmp.Diff(want, any(got)); !ok || diff != "" {
		t.Errorf("read item by item: %t (-whole +items):\n%s", ok, diff)
	}
}

// What goes on from one item into the next is not taken apart.
func TestAListThatIsReadAsAWhole(t *testing.T) {
	for name, text := range map[string]string{
		"a quotation": "items:\n- a: 'begun\n- ended'\n",
		"an alias":    "items:\n- a: &x {b: 1}\n- *x\n",
		"a comment":   "items:\n- a: 1\n# of the next\n- a: 2\n",
		"no items":    "items:\nkind: List\n",
	} {
		if list, ok := (document{data: []byte(text)}).longList(); ok {
			t.Errorf("%s: read item by item: %v", name, list)
		}
	}
}

// However it is written, a list either comes to the same item by item, or is read as a whole.
func TestAListItemByItem(t *testing.T) {
	lines := []string{
		"items:", "items: []", "items: # all", "kind: List", "kind: NodeList", "- a: 1", "- a: &x {b: 2}", "- *x", "- b: *x", "- 'begun", "- ended'", "- \"begun",
		"  ended\"", "- |", "  text", "- >-", "", "  ", "# comment", "  # comment", "- ", "-", "- - a", "  - a", "- {", "}", "- [a,", "b]", "  b: 1", "  b: 2", "- b: no", "- 0o7",
		"items: (set aside)", "- ? a", "  : b", "metadata:", "  name: x", "- <<: *x", "- !!str 1", "\t- a: 1", "- a\r",
	}
	same := 0
	rapid.Check(t, func(t *rapid.T) {
		text := ""
		if rapid.Bool().Draw(t, "list") {
			text = "items:\n"
		}
		for _, line := range rapid.SliceOfN(rapid.SampledFrom(lines), 1, 8).Draw(t, "lines") {
			text += line + "\n"
		}
		got, ok := document{data: []byte(text)}.longList()
		if !ok {
			return
		}
		want, _ := whole(text)
		if diff := cmp.Diff(want, any(got)); diff != "" {
			t.Fatalf("%q (-whole +items):\n%s", text, diff)
		}
		same++
	})
	if same == 0 && !testing.Short() {
		t.Error("no list was read item by item")
	}
}
