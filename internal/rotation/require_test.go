package rotation

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

const zoneKey = corev1.LabelTopologyZone

func TestReplicate(t *testing.T) {
	in := func(key string, values ...string) corev1.NodeSelectorRequirement {
		return corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpIn, Values: values}
	}
	for _, tt := range []struct {
		name    string
		labels  map[string]string
		claim   []Requirement
		pool    []Requirement
		keys    []string
		want    []corev1.NodeSelectorRequirement
		dropped []string
	}{
		{name: "r13: the zone of the node", labels: map[string]string{zoneKey: "a"}, pool: []Requirement{{zoneKey, "In", []string{"a", "b"}}},
			keys: []string{zoneKey}, want: []corev1.NodeSelectorRequirement{in(zoneKey, "a")}},
		{name: "the label wins over the claim", labels: map[string]string{zoneKey: "a"}, claim: []Requirement{{zoneKey, "In", []string{"b"}}},
			keys: []string{zoneKey}, want: []corev1.NodeSelectorRequirement{in(zoneKey, "a")}},
		{name: "without a label, the claim's values, sorted", claim: []Requirement{{"x", "In", []string{"c", "b", "a"}}},
			keys: []string{"x"}, want: []corev1.NodeSelectorRequirement{in("x", "a", "b", "c")}},
		{name: "only what the pool permits of them", claim: []Requirement{{"x", "In", []string{"c", "b", "a"}}}, pool: []Requirement{{"x", "NotIn", []string{"b"}}},
			keys: []string{"x"}, want: []corev1.NodeSelectorRequirement{in("x", "a", "c")}},
		{name: "other operators of the claim say no value", claim: []Requirement{{"x", "NotIn", []string{"3"}}, {"x", "Exists", nil}}, keys: []string{"x"}},
		{name: "values and a bound of the claim hold together", claim: []Requirement{{"x", "In", []string{"3", "8"}}, {"x", "Gt", []string{"3"}}},
			keys: []string{"x"}, want: []corev1.NodeSelectorRequirement{in("x", "8")}},
		{name: "values that its bound leaves none of", claim: []Requirement{{"x", "In", []string{"3"}}, {"x", "Gt", []string{"3"}}}, keys: []string{"x"}, dropped: []string{"x"}},
		{name: "known to neither", keys: []string{"x"}},
		{name: "no longer permitted by the pool", labels: map[string]string{zoneKey: "c"}, pool: []Requirement{{zoneKey, "In", []string{"a", "b"}}},
			keys: []string{zoneKey}, dropped: []string{zoneKey}},
		{name: "every requirement of the pool must permit it", labels: map[string]string{"cpu": "8"},
			pool: []Requirement{{"cpu", "Gt", []string{"4"}}, {"cpu", "Lt", []string{"8"}}}, keys: []string{"cpu"}, dropped: []string{"cpu"}},
		{name: "in the order of the keys", labels: map[string]string{"x": "1", "y": "2"}, keys: []string{"y", "x"},
			want: []corev1.NodeSelectorRequirement{in("y", "2"), in("x", "1")}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			claim := NodeClaim{Requirements: tt.claim}
			got, dropped := replicate(tt.keys, Node{Labels: tt.labels}, &claim, NodePool{Requirements: tt.pool})
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if diff := cmp.Diff(tt.dropped, dropped); diff != "" {
				t.Errorf("dropped (-want +got):\n%s", diff)
			}
		})
	}
	claim := NodeClaim{Requirements: []Requirement{{"x", "In", []string{"b", "a"}}}}
	replicate([]string{"x"}, Node{}, &claim, NodePool{Requirements: []Requirement{{"x", "NotIn", []string{"a"}}}})
	if diff := cmp.Diff([]string{"b", "a"}, claim.Requirements[0].Values); diff != "" {
		t.Errorf("the claim's own values have changed:\n%s", diff)
	}
}

func TestPermits(t *testing.T) {
	for _, tt := range []struct {
		operator string
		values   []string
		yes, no  []string
	}{
		{"In", []string{"a", "b"}, []string{"a", "b"}, []string{"c", ""}},
		{"NotIn", []string{"a"}, []string{"b"}, []string{"a"}},
		{"Exists", nil, []string{"a", ""}, nil},
		{"DoesNotExist", nil, nil, []string{"a"}},
		{"Gt", []string{"4"}, []string{"5", "10"}, []string{"4", "3", "x"}},
		{"Gte", []string{"4"}, []string{"4", "5"}, []string{"3", "x"}},
		{"Lt", []string{"4"}, []string{"3", "-1"}, []string{"4", "5", "x"}},
		{"Lte", []string{"4"}, []string{"4", "3"}, []string{"5", "x"}},
		{"Gt", []string{"x"}, nil, []string{"5"}},
		{"Gt", []string{"1", "2"}, nil, []string{"5"}},
		{"Near", []string{"5"}, nil, []string{"5"}},
	} {
		r := []Requirement{{Key: "k", Operator: tt.operator, Values: tt.values}}
		for _, v := range tt.yes {
			if !permits(r, "k", v) {
				t.Errorf("%s %v refuses %q", tt.operator, tt.values, v)
			}
		}
		for _, v := range tt.no {
			if permits(r, "k", v) {
				t.Errorf("%s %v accepts %q", tt.operator, tt.values, v)
			}
			if !permits(r, "other", v) {
				t.Errorf("%s %v says something about another key", tt.operator, tt.values)
			}
		}
	}
}

func TestPlaceholder(t *testing.T) {
	w := newWorld(date(t, "2026-06-10T02:00:00Z"))
	w.NodePool = NodePool{
		Object: w.object(KindNodePool, "blue"), Requirements: []Requirement{{"team", "In", []string{"web"}}},
		Taints: []corev1.Taint{{Key: "dedicated", Value: "web", Effect: corev1.TaintEffectNoSchedule}},
	}
	for _, name := range []string{"a", "b", "c", "d"} {
		w.join(NodeClaim{Object: Object{Name: name}, NodeName: "node-" + name, Ready: true})
	}
	w.change("node-a", func(n *Node) { n.Labels[zoneKey] = "z1"; n.Labels["rack"] = "7"; n.Labels["team"] = "db" })
	w.change("node-d", func(n *Node) { delete(n.Labels, labelHostname) })
	w.Pods["node-a"] = []*corev1.Pod{runningPod("web", "cpu", "1")}
	p := &Policy{Required: []string{zoneKey, "team"}, Preferred: []string{"rack", "team"}}

	got := w.placeholder(p, w.claim("a"), []*NodeClaim{w.claim("a"), w.claim("c"), w.claim("d")})
	want := PlaceholderSpec{
		Name: "noderotation-surge-a", NodePool: "blue", SurgeFor: "a", For: w.claim("a").Object,
		Requests:    list("cpu", "1"),
		Tolerations: []corev1.Toleration{{Key: "dedicated", Operator: corev1.TolerationOpEqual, Value: "web", Effect: corev1.TaintEffectNoSchedule}},
		Required:    []corev1.NodeSelectorRequirement{{Key: zoneKey, Operator: "In", Values: []string{"z1"}}},
		Preferred: []corev1.NodeSelectorRequirement{
			{Key: "rack", Operator: "In", Values: []string{"7"}},
			{Key: labelHostname, Operator: "NotIn", Values: []string{"node-a", "node-c"}},
		},
		Sizing:  Sizing{Pods: 1, Sum: list("cpu", "1"), Overhead: list(), Requests: list("cpu", "1")},
		Avoided: []string{"node-a", "node-c"},
		Dropped: []string{"team", "team"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got = w.placeholder(&Policy{}, w.claim("d"), nil); got.Preferred != nil || got.Avoided != nil {
		t.Errorf("a node without a hostname has nothing to be avoided by: %+v", got)
	}
}

// Nodes past their own threshold are kept in mind whatever else holds them.
func TestThePlaceholderAvoidsNodesThatAreDueThemselves(t *testing.T) {
	w := newWorld(date(t, "2026-06-10T02:00:00Z"))
	w.Governance.Policy = policyOn(t, "Wed,Sat 02:00-06:00 UTC")
	w.NodePool = NodePool{Object: w.object(KindNodePool, "blue"), ExpireAfter: ptr(14 * day), GracePeriod: ptr(day)}
	for name, c := range map[string]NodeClaim{
		"due":      {Created: w.now.Add(-8 * day), Ready: true},
		"later":    {Created: w.now.Add(-7 * day), Ready: true},
		"notready": {Created: w.now.Add(-7 * day)},
		"young":    {Created: w.now.Add(-day), Ready: true},
	} {
		c.Name, c.NodeName, c.ExpireAfter = name, "node-"+name, ptr(14*day)
		w.join(c)
	}
	d := w.decide()
	spec := d.Plan[len(d.Plan)-1].Create
	if diff := cmp.Diff([]string{"node-due", "node-later", "node-notready"}, spec.Avoided); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestPlaceholderName(t *testing.T) {
	if got, want := PlaceholderName("blue-x7k2p"), "noderotation-surge-blue-x7k2p"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	longest := strings.Repeat("a", 253-len(placeholderPrefix))
	if got := PlaceholderName(longest); got != placeholderPrefix+longest {
		t.Errorf("a name that fits was shortened: %s", got)
	}
	seen := map[string]string{}
	for _, claim := range []string{
		longest + "a", longest + "b", longest + "ab", longest[:216] + "." + strings.Repeat("b", 40), longest[:216] + "-" + strings.Repeat("b", 40),
	} {
		name := PlaceholderName(claim)
		if bad := validation.IsDNS1123Subdomain(name); len(bad) > 0 {
			t.Errorf("%d characters: %s is no name for a pod: %v", len(name), name, bad)
		}
		if other, taken := seen[name]; taken {
			t.Errorf("%s and %s share a placeholder", claim, other)
		}
		seen[name] = claim
		if name != PlaceholderName(claim) {
			t.Error("the name is not stable")
		}
	}
}
