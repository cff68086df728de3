package azure

import (
	"bytes"
	"encoding/json"
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const document = `{
	"name": "nic", "etag": "W/\"1\"", "location": "westeurope", "zones": ["1"], "later": {"than": 12345678901234567890, "<&>": 1e400},
	"properties": {
		"provisioningState": "Succeeded", "enableIPForwarding": false, "later": [null, 0.10],
		"ipConfigurations": [
			{"name": "ipconfig1", "properties": {"primary": true, "privateIPAddress": "10.0.0.10", "subnet": {"id": "/subnet"}, "later": 1.0}},
			{"name": "old", "properties": {"primary": false, "privateIPAddress": "10.0.0.50", "subnet": {"id": "/subnet"}, "later": "<&>"}}
		]
	}
}`

// The SDK's types would drop what is later than they are.
func TestAnEditLeavesEverythingElseAsItIsWritten(t *testing.T) {
	n, err := decode([]byte(document))
	if err != nil {
		t.Fatal(err)
	}
	with, err := n.with(netip.MustParseAddr("10.0.0.100"))
	if err != nil {
		t.Fatal(err)
	}
	added, err := decode(with)
	if err != nil {
		t.Fatal(err)
	}
	back, err := added.without(netip.MustParseAddr("10.0.0.100"))
	if err != nil {
		t.Fatal(err)
	}
	for name, got := range map[string][]byte{"added and removed": back, "whole": must(n.whole()), "not there": must(n.without(netip.MustParseAddr("10.0.0.99"))), "primary": must(n.without(netip.MustParseAddr("10.0.0.10")))} {
		if diff := cmp.Diff(literal(t, []byte(document)), literal(t, got)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if bytes.Contains(with, []byte(`\u00`)) {
		t.Errorf("it is written as %s", with)
	}
}

func must(data []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return data
}

// literal decodes JSON with numbers as they are written.
func literal(t *testing.T, data []byte) (v any) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

// Whatever ARM shows: what is added is there, what is removed is not, and nothing else differs.
func FuzzAnEditChangesNothingElse(f *testing.F) {
	f.Add([]byte(document))
	f.Add([]byte(`{"properties":{"IPConfigurations":[{"properties":{"privateIPAddress":"10.0.0.100"}}],"ipConfigurations":[{"properties":{"privateIPAddress":"10.0.0.100","primary":true}},{"properties":{"privateIPAddress":"10.0.0.100"}}]}}`))
	f.Add([]byte(`{"properties":{"ipConfigurations":null},"Properties":1}`))
	f.Add([]byte(`{}`))
	f.Add([]byte(`{"properties":null}`))
	a := netip.MustParseAddr("10.0.0.100")
	f.Fuzz(func(t *testing.T, data []byte) {
		n, err := decode(data)
		if err != nil {
			return
		}
		for _, edited := range [][]byte{must(n.with(a)), must(n.without(a)), must(n.edited(forwarding, !n.forwards))} {
			got, err := decode(edited)
			if err != nil {
				t.Fatalf("%s became %s: %v", data, edited, err)
			}
			others := func(n *nic) (out []string) {
				for _, c := range n.configs {
					if c.address != a || c.primary {
						out = append(out, compact(c.whole))
					}
				}
				return out
			}
			if !slices.Equal(others(n), others(got)) {
				t.Fatalf("%s became %s", data, edited)
			}
			for _, part := range []struct{ before, after object }{{n.document, got.document}, {n.properties, got.properties}} {
				if len(part.after) < len(part.before) {
					t.Fatalf("%s became %s", data, edited)
				}
				for name, raw := range part.before {
					if name != "properties" && name != configurations && name != forwarding && compact(raw) != compact(part.after[name]) {
						t.Fatalf("%s of %s became %s", name, data, part.after[name])
					}
				}
			}
		}
		if got, _ := decode(must(n.without(a))); got != nil {
			if c, ok := got.has(a); ok && !c.primary {
				t.Fatalf("it is still there: %s", data)
			}
		}
		if got, _ := decode(must(n.with(a))); got != nil {
			if _, ok := got.has(a); !ok {
				t.Fatalf("it is not there: %s", data)
			}
		}
	})
}

func compact(raw []byte) string {
	var out bytes.Buffer
	if json.Compact(&out, raw) != nil {
		return string(raw)
	}
	return out.String()
}
