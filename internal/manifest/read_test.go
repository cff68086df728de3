package manifest_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	karpapis "sigs.k8s.io/karpenter/pkg/apis"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/tasuki-io/tasuki/api/v1alpha1"
	"github.com/tasuki-io/tasuki/internal/manifest"
)

func newReader(t *testing.T) *manifest.Reader {
	t.Helper()
	crd, err := os.ReadFile("../../charts/tasuki/crds/noderotation.io_rotationpolicies.yaml")
	if err != nil {
		t.Fatal(err)
	}
	r, err := manifest.NewReader(
		manifest.Kind{APIVersion: "noderotation.io/v1alpha1", Kind: "RotationPolicy", Definition: crd, New: func() any { return &v1alpha1.RotationPolicy{} }},
		manifest.Kind{APIVersion: "v1", Kind: "Node", New: func() any { return &corev1.Node{} }},
	)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

const policy = `apiVersion: noderotation.io/v1alpha1
kind: RotationPolicy
metadata: {name: api}
spec:
  nodePoolSelector: {}
  maintenanceWindows:
  - {timezone: UTC, days: [Wed], start: "02:00", end: "06:00"}
`

// What is right is read with the defaults that the API server would store, from several
// documents, lists, JSON, directories and stdin.
func TestReads(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"b.json":   `{"apiVersion": "v1", "kind": "NodeList", "items": [{"metadata": {"name": "b1"}}, {"metadata": {"name": "b2"}}]}`,
		"a.yaml":   "# nothing\n---\n" + policy + "--- # a node\napiVersion: v1\nkind: Node\nmetadata: {name: a}\n---\n",
		"notes.md": "not a manifest",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	objects, err := newReader(t).Read([]string{dir, "-"}, strings.NewReader("kind: List\napiVersion: v1\nitems:\n- {apiVersion: v1, kind: Node, metadata: {name: c}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, o := range objects {
		got = append(got, o.Kind+" "+o.Name+" "+strings.TrimPrefix(o.Place(), dir+"/"))
	}
	want := []string{
		"RotationPolicy api a.yaml: document 1, line 3", "Node a a.yaml: document 2, line 11",
		"Node b1 b.json: document 1, line 1", "Node b2 b.json: document 1, line 1", "Node c stdin: document 1, line 4",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
	if p := objects[0].Value.(*v1alpha1.RotationPolicy).Spec; p.MinRotationChances != 2 || p.Surge.ReadyTimeout.Duration.String() != "15m0s" {
		t.Errorf("the defaults are missing: %+v", p)
	}
}

// What is like an object before it comes to what it comes to alone.
func TestReadsWhatIsAlike(t *testing.T) {
	read := func(text string) ([]manifest.Object, error) {
		r, err := manifest.NewReader(manifest.Kind{APIVersion: "karpenter.sh/v1", Kind: "NodePool", Definition: karpapis.NodePoolCRD, New: func() any { return &karpv1.NodePool{} }})
		if err != nil {
			t.Fatal(err)
		}
		return r.Read([]string{"-"}, strings.NewReader(text))
	}
	const bare = "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: a}\nspec:\n  template: {spec: {nodeClassRef: {group: g, kind: K, name: default}, requirements: []}}\n"
	for name, first := range map[string]string{"with the defaults": strings.Replace(bare, "[]}", "[], expireAfter: 720h}", 1) + "  disruption: {consolidateAfter: 0s, consolidationPolicy: WhenEmptyOrUnderutilized, budgets: [{nodes: 10%}]}\n", "without them": bare} {
		second := strings.Replace(first, "name: a", "name: b", 1)
		alone, err := read(second)
		if err != nil {
			t.Fatal(err)
		}
		both, err := read(first + "---\n" + second)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(alone[0].Value, both[1].Value); both[1].Name != "b" || diff != "" {
			t.Errorf("%s: %s, read after one like it (-alone +after):\n%s", name, both[1].Name, diff)
		}
		for want, bad := range map[string]string{
			"status.seen: unknown field":    second + "status: {seen: 1}\n",
			"metadata: name is missing":     strings.Replace(second, "name: b", "generateName: b", 1),
			"spec.nodePools: unknown field": second + "  nodePools: []\n",
			"kind may not be empty":         strings.Replace(second, "kind: K", "kind: ''", 1),
		} {
			_, err := read(first + "---\n" + bad + "---\n" + strings.Replace(bad, "ame: b", "ame: c", 1))
			if err == nil || strings.Count(err.Error(), want) != 2 {
				t.Errorf("%s: read with two after it of which each has %q: %v", name, want, err)
			}
		}
	}
}

// What is wrong is refused with the file, the document, the line and the field.
func TestRefuses(t *testing.T) {
	r := newReader(t)
	node := "apiVersion: v1\nkind: Node\nmetadata: {name: a}\n"
	for name, c := range map[string]struct{ in, want string }{
		"a misspelt field":     {policy + "  surge: {coolDownAfter: 5m}\n", "stdin: document 1, line 8: RotationPolicy api: spec.surge.coolDownAfter: unknown field"},
		"in the second one":    {node + "---\n" + strings.Replace(policy, "02:00", "2:00", 1), "stdin: document 2, line 11: RotationPolicy api: spec.maintenanceWindows[0].start: \"2:00\": write HH:MM from 00:00 to 23:59"},
		"a rule":               {strings.Replace(policy, "[Wed]", "[]", 1), "stdin: document 1, line 7: RotationPolicy api: spec.maintenanceWindows[0].days: write at least one of Mon, Tue, Wed, Thu, Fri, Sat, Sun"},
		"what is required":     {strings.Replace(policy, "  nodePoolSelector: {}\n", "", 1), "stdin: document 1, line 4: RotationPolicy api: spec.nodePoolSelector: Required value"},
		"a built-in kind":      {node + "spec: {unscheduleable: true}\n", "stdin: document 1, line 4: Node a: spec.unscheduleable: unknown field"},
		"an unknown kind":      {"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\n", "stdin: document 1, line 2: kind \"Deployment\" of apiVersion \"apps/v1\" is none of RotationPolicy (noderotation.io/v1alpha1), Node (v1): leave it out"},
		"an item of a list":    {"apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Node\n  metadata: {name: a}\n  speck: {}\n", "stdin: document 1, line 7: Node a: speck: unknown field"},
		"no name":              {"apiVersion: v1\nkind: Node\nmetadata: {generateName: a}\n", "stdin: document 1, line 3: Node: metadata: name is missing"},
		"no object":            {"- a\n- b\n", "stdin: document 1, line 1: this is not a Kubernetes object, but a list of 2: it has neither apiVersion nor kind: leave the file out"},
		"a number":             {"[]\n---\n42\n", "stdin: document 1, line 1: this is not a Kubernetes object, but a list of 0: it has neither apiVersion nor kind: leave the file out\nstdin: document 2, line 3: this is not a Kubernetes object, but the value 42: it has neither apiVersion nor kind: leave the file out"},
		"a text":               {"just words\n", "stdin: document 1, line 1: this is not a Kubernetes object, but the text \"just words\": it has neither apiVersion nor kind: leave the file out"},
		"an object of others":  {`{"name": "page", "version": "1.0.0"}`, "stdin: document 1, line 1: this is not a Kubernetes object: it has neither apiVersion nor kind: leave it out"},
		"an unknown time zone": {strings.Replace(policy, "UTC", "Asia/Kyoto", 1), "stdin: document 1, line 7: RotationPolicy api: spec.maintenanceWindows[0].timezone: \"Asia/Kyoto\": unknown time zone Asia/Kyoto: write a name of the IANA time zone database, such as Asia/Tokyo, UTC or Etc/GMT+9"},
		"a duration in days":   {policy + "  surge: {readyTimeout: 1d}\n", "stdin: document 1, line 8: RotationPolicy api: spec.surge.readyTimeout: \"1d\": write a duration longer than 0 and at most 8760h, such as 15m, 1h30m or 1.5h; no unit is longer than the hour: 1d is 24h"},
		"a threshold in weeks": {policy + "  ageThreshold: 2 weeks\n", "stdin: document 1, line 8: RotationPolicy api: spec.ageThreshold: \"2 weeks\": write auto, or a duration longer than 0 and at most 8760h, such as 120h (there is no unit for days: 5 days are 120h); no unit is longer than the hour: 2 weeks is 336h"},
		"no YAML":              {node + "---\nkind: Node\n\tx: 1\n", "stdin: document 2, line 6: this is not YAML: found a tab character that violates indentation"},
		"a first line too far": {"# it\n  apiVersion: v1\n  kind: Node\n  metadata: {name: a}\n---\n  apiVersion: v1\n  kind: Node\n  metadata: {name: b}\nspec: {unschedulable: true}\n", "stdin: document 2, line 9: this is not YAML: the line is indented less than line 6, with which the document begins"},
		"a key twice":          {node + "kind: Node\n", "stdin: document 1, line 4: this is not YAML: key \"kind\" already set in map"},
		"an object twice":      {node + "---\n" + node, "stdin: document 2, line 5: Node a is there already, at stdin: document 1, line 1: remove one"},
		"after the end":        {node + "...\n" + node, "stdin: document 2, line 5: Node a is there already, at stdin: document 1, line 1: remove one"},
		"an older API version": {strings.Replace(node, "v1", "v1beta1", 1), "stdin: document 1, line 2: kind \"Node\" of apiVersion \"v1beta1\" is none of RotationPolicy (noderotation.io/v1alpha1), Node (v1): leave it out"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := r.Read([]string{"-"}, strings.NewReader(c.in))
			if err == nil {
				t.Fatal("accepted")
			}
			if diff := cmp.Diff(c.want, err.Error()); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
		})
	}
}

// A file that is not there, and a directory without manifests, are mistakes.
func TestNothingToRead(t *testing.T) {
	empty := t.TempDir()
	for _, name := range []string{empty, filepath.Join(empty, "missing.yaml")} {
		if _, err := newReader(t).Read([]string{name}, nil); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
