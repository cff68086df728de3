package charts_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/jsonpath"
	"sigs.k8s.io/yaml"
)

// What make generate writes to deploy/ is what helm makes of the chart.
func TestDeployIsTheChart(t *testing.T) {
	out, err := helm(t, "template", "tasuki", "charts/tasuki", "-n", "node-rotation-system", "--include-crds", "--set", "namespace.create=true")
	if err != nil {
		t.Fatal(err)
	}
	committed, err := os.ReadFile(filepath.Join(root, "deploy", "tasuki.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(out, string(committed)); diff != "" {
		t.Errorf("deploy/tasuki.yaml is not the chart: run make generate (-chart +deploy):\n%s", diff)
	}
}

// kustomize makes the same objects of it.
func TestKustomize(t *testing.T) {
	out, err := tool(t, "kustomize", "build", "deploy")
	if err != nil {
		t.Fatal(err)
	}
	byName := func(objects []*unstructured.Unstructured) map[string]any {
		m := map[string]any{}
		for _, o := range objects {
			m[o.GetKind()+" "+o.GetName()] = o.Object
		}
		return m
	}
	if diff := cmp.Diff(byName(objects(t)), byName(read(t, out))); diff != "" {
		t.Errorf("kustomize build deploy (-manifest +built):\n%s", diff)
	}
}

// A release owns no namespace: helm makes it, or whoever installs.
func TestReleaseOwnsNoNamespace(t *testing.T) {
	got, err := render(t, "{}")
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range got {
		if o.GetKind() == "Namespace" {
			t.Errorf("the release has Namespace %s", o.GetName())
		}
	}
	if len(got)+2 != len(objects(t)) { // and the CustomResourceDefinition, which helm installs by itself
		t.Errorf("%d objects, want those of deploy/ but two", len(got))
	}
}

const (
	controller = "Deployment tasuki-controller"
	agent      = "DaemonSet tasuki-agent"
	policy     = "NetworkPolicy tasuki-controller"

	pod       = "{.spec.template.spec."
	container = pod + "containers[0]."
	absent    = "absent" // said of an object
)

// settings are each value of the chart, and what it does to an object: what kubectl would
// print with -o jsonpath.
var settings = []struct{ values, object, path, want string }{
	{`image: {repository: registry.example.com/tasuki}`, controller, container + "image}", "registry.example.com/tasuki:0.1.0"},
	{`image: {tag: edge}`, controller, container + "image}", "ghcr.io/tasuki-io/tasuki:edge"},
	{`image: {tag: edge, digest: "` + digest + `"}`, controller, container + "image}", "ghcr.io/tasuki-io/tasuki@" + digest},
	{`image: {pullPolicy: Always}`, controller, container + "imagePullPolicy}", "Always"},
	{`imagePullSecrets: [{name: registry}]`, controller, pod + "imagePullSecrets[*].name}", "registry"},
	{`namespace: {create: true}`, "Namespace node-rotation-system", `{.metadata.labels.pod-security\.kubernetes\.io/enforce}`, "restricted"},

	{`{controller: {enabled: false}` + andAgent, controller, "", absent},
	{`{controller: {enabled: false}` + andAgent, "ClusterRole tasuki-controller", "", absent},
	{`{controller: {enabled: false}` + andAgent, "PodDisruptionBudget tasuki-controller", "", absent},
	{`{controller: {enabled: false}` + andAgent, "Service tasuki-controller", "", absent},
	{`{controller: {enabled: false}` + andAgent, "PriorityClass noderotation-placeholder", "", absent},
	{`{controller: {enabled: false}` + andAgent, "ServiceAccount tasuki-controller", "", absent},
	{`controller: {replicas: 3}`, controller, "{.spec.replicas}", "3"},
	{`controller: {logFormat: text}`, controller, container + "args[6]}", "--log-format=text"},
	{`controller: {resources: {requests: {cpu: 100m}}}`, controller, container + "resources.requests.cpu}", "100m"},
	{`controller: {resources: {requests: {memory: 1Gi}}}`, controller, container + "resources.requests.memory}", "1Gi"},
	{`controller: {resources: {limits: {memory: 1Gi}}}`, controller, container + "resources.limits.memory}", "1Gi"},
	{`controller: {priorityClassName: ""}`, controller, pod + "priorityClassName}", ""},
	{`controller: {nodeSelector: {pool: system}}`, controller, pod + "nodeSelector.pool}", "system"},
	{`controller: {tolerations: [{key: system, operator: Exists}]}`, controller, pod + "tolerations[*].key}", "system"},
	{`controller: {affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Exists}]}]}}}}`, controller, pod + "affinity.nodeAffinity..key}", "a"},
	{`controller: {topologySpreadConstraints: [{topologyKey: rack, maxSkew: 1, whenUnsatisfiable: DoNotSchedule}]}`, controller, pod + "topologySpreadConstraints[*].topologyKey}", "rack"},
	{`controller: {podLabels: {team: x}}`, controller, "{.spec.template.metadata.labels.team}", "x"},
	{`controller: {podAnnotations: {note: x}}`, controller, "{.spec.template.metadata.annotations.note}", "x"},
	{`podDisruptionBudget: {enabled: false}`, "PodDisruptionBudget tasuki-controller", "", absent},
	{`podDisruptionBudget: {maxUnavailable: 50%}`, "PodDisruptionBudget tasuki-controller", "{.spec.maxUnavailable}", "50%"},
	{`placeholder: {image: registry.example.com/pause:1}`, controller, container + "args[4]}", "--placeholder-image=registry.example.com/pause:1"},

	{`metrics: {enabled: false}`, controller, container + "args[2]}", "--metrics-bind-address=0"},
	{`metrics: {enabled: false}`, "Service tasuki-controller", "", absent},
	{`{metrics: {enabled: false}` + andAgent, agent, container + "args[4]}", "--metrics-bind-address=127.0.0.1:9480"},
	{`{metrics: {enabled: false}` + andAgent, agent, container + "readinessProbe.httpGet.host}", "127.0.0.1"},
	{`metrics: {serviceMonitor: {enabled: true}}`, "ServiceMonitor tasuki-controller", "{.spec.endpoints[*].port}", "metrics"},
	{`metrics: {serviceMonitor: {enabled: true, interval: 1m}}`, "ServiceMonitor tasuki-controller", "{.spec.endpoints[*].interval}", "1m"},
	{`metrics: {serviceMonitor: {enabled: true, labels: {release: prom}}}`, "ServiceMonitor tasuki-controller", "{.metadata.labels.release}", "prom"},
	{`{metrics: {serviceMonitor: {enabled: true}}` + andAgent, "ServiceMonitor tasuki-agent", `{.spec.selector.matchLabels.app\.kubernetes\.io/component}`, "agent"},
	{`metrics: {prometheusRule: {enabled: true}}`, "PrometheusRule tasuki-controller", "{.spec.groups[*].name}", "tasuki"},
	{`metrics: {prometheusRule: {enabled: true, labels: {release: prom}}}`, "PrometheusRule tasuki-controller", "{.metadata.labels.release}", "prom"},
	{`{metrics: {prometheusRule: {enabled: true}}` + andAgent, "PrometheusRule tasuki-agent", "{.spec.groups[*].name}", "tasuki-capture"},
	{`metrics: {dashboards: {enabled: true}}`, "ConfigMap tasuki-controller-dashboard", "{.metadata.labels.grafana_dashboard}", "1"},
	{`metrics: {dashboards: {enabled: true, labels: {grafana_dashboard: "yes"}}}`, "ConfigMap tasuki-controller-dashboard", "{.metadata.labels.grafana_dashboard}", "yes"},
	{`metrics: {dashboards: {enabled: true, annotations: {folder: x}}}`, "ConfigMap tasuki-controller-dashboard", "{.metadata.annotations.folder}", "x"},

	{`networkPolicy: {enabled: true}`, policy, "{.spec.egress[*].ports[*].port}", "53 53 443 6443"},
	{`networkPolicy: {enabled: true}`, policy, "{.spec.ingress[*].ports[*].port}", "metrics"},
	{`networkPolicy: {enabled: true, apiServer: {ports: [8443]}}`, policy, "{.spec.egress[1].ports[*].port}", "8443"},
	{`networkPolicy: {enabled: true, apiServer: {cidrs: [10.0.0.0/16, "fd00::/8"]}}`, policy, "{.spec.egress[1].to[*].ipBlock.cidr}", "10.0.0.0/16 fd00::/8"},
	{`networkPolicy: {enabled: true, metricsFrom: [{namespaceSelector: {matchLabels: {name: mon}}}]}`, policy, "{.spec.ingress[*].from[*].namespaceSelector.matchLabels.name}", "mon"},
	{`{networkPolicy: {enabled: true}, metrics: {enabled: false}}`, policy, "{.spec.ingress}", ""},

	{`{namespace: {create: true}` + andAgent, "Namespace node-rotation-system", `{.metadata.labels.pod-security\.kubernetes\.io/enforce}`, "privileged"},
	{`agent: {enabled: true, config: "kind: MobilityPool\n"}`, "ConfigMap tasuki-agent", `{.data.tasuki\.yaml}`, "kind: MobilityPool\n"},
	{`agent: {enabled: true, config: x}`, agent, pod + "volumes[0].configMap.name}", "tasuki-agent"},
	{`agent: {enabled: true, configMap: mine}`, agent, pod + "volumes[0].configMap.name}", "mine"},
	{`agent: {enabled: true, configMap: mine}`, "ConfigMap tasuki-agent", "", absent},
	{`agent: {enabled: true, config: x, secret: etcd}`, agent, pod + "volumes[2].secret.secretName}", "etcd"},
	{`agent: {enabled: true, config: x, state: /srv/tasuki}`, agent, container + "args[2]} " + pod + "volumes[1].hostPath.path} " + container + "volumeMounts[1].mountPath}", "--state=/srv/tasuki /srv/tasuki /srv/tasuki"},
	{`agent: {enabled: true, config: x, logFormat: text}`, agent, container + "args[5]}", "--log-format=text"},
	{`agent: {enabled: true, config: x, resources: {requests: {cpu: 100m}}}`, agent, container + "resources.requests.cpu}", "100m"},
	{`agent: {enabled: true, config: x, resources: {requests: {memory: 1Gi}}}`, agent, container + "resources.requests.memory}", "1Gi"},
	{`agent: {enabled: true, config: x, resources: {limits: {memory: 1Gi}}}`, agent, container + "resources.limits.memory}", "1Gi"},
	{`agent: {enabled: true, config: x, priorityClassName: ""}`, agent, pod + "priorityClassName}", ""},
	{`agent: {enabled: true, config: x, nodeSelector: {router: "true"}}`, agent, pod + "nodeSelector.router}", "true"},
	{`agent: {enabled: true, config: x, tolerations: [{operator: Exists}]}`, agent, pod + "tolerations[*].operator}", "Exists"},
	{`agent: {enabled: true, config: x, podLabels: {team: x}}`, agent, "{.spec.template.metadata.labels.team}", "x"},
	{`agent: {enabled: true, config: x, podAnnotations: {note: x}}`, agent, "{.spec.template.metadata.annotations.note}", "x"},
}

const (
	digest   = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	andAgent = `, agent: {enabled: true, config: x}}`
)

func TestSettings(t *testing.T) {
	for _, c := range settings {
		t.Run(c.values, func(t *testing.T) {
			got, err := render(t, c.values)
			if err != nil {
				t.Fatal(err)
			}
			o := find(got, c.object)
			switch {
			case c.want == absent && o != nil:
				t.Errorf("there is a %s", c.object)
			case c.want == absent:
			case o == nil:
				t.Errorf("there is no %s", c.object)
			default:
				if text := lookup(t, o, c.path); text != c.want {
					t.Errorf("%s of %s is %q, want %q", c.path, c.object, text, c.want)
				}
			}
		})
	}
}

func lookup(t *testing.T, o *unstructured.Unstructured, path string) string {
	t.Helper()
	p := jsonpath.New(path).AllowMissingKeys(true)
	if err := p.Parse(path); err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	if err := p.Execute(&text, o.Object); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

// No setting is without a case above, and none is unknown to the schema.
func TestEverySettingIsTried(t *testing.T) {
	tried := map[string]bool{}
	for _, c := range settings {
		for path := range leaves(t, []byte(c.values)) {
			for ; path != ""; path = path[:max(0, strings.LastIndex(path, "."))] {
				tried[path] = true
			}
		}
	}
	values, err := os.ReadFile("tasuki/values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	known := leaves(t, values)
	if len(known) < 40 {
		t.Fatalf("values.yaml has %d settings only", len(known))
	}
	for _, path := range slices.Sorted(maps.Keys(known)) {
		if !tried[path] {
			t.Errorf("values.yaml has %s, which no case sets", path)
		}
	}
	schema, err := os.ReadFile("tasuki/values.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var top map[string]any
	if err := yaml.UnmarshalStrict(schema, &top); err != nil {
		t.Fatal(err)
	}
	delete(top["properties"].(map[string]any), "global") // is helm's
	var inSchema func(prefix string, node map[string]any)
	inSchema = func(prefix string, node map[string]any) {
		properties, isObject := node["properties"].(map[string]any)
		if !isObject {
			if _, ok := known[prefix]; !ok && !slices.ContainsFunc(slices.Collect(maps.Keys(known)), func(k string) bool { return strings.HasPrefix(k, prefix+".") }) {
				t.Errorf("the schema has %s, and values.yaml does not", prefix)
			}
			return
		}
		if node["additionalProperties"] != false {
			t.Errorf("the schema lets anything into %q", prefix)
		}
		for name, child := range properties {
			inSchema(strings.TrimPrefix(prefix+"."+name, "."), child.(map[string]any))
		}
	}
	inSchema("", top)
}

// leaves are the settings of a file of values: what is no map, or an empty one.
func leaves(t *testing.T, values []byte) map[string]bool {
	t.Helper()
	var top map[string]any
	if err := yaml.UnmarshalStrict(values, &top); err != nil {
		t.Fatal(fmt.Errorf("%w\n%s", err, values))
	}
	found := map[string]bool{}
	var walk func(prefix string, node any)
	walk = func(prefix string, node any) {
		m, ok := node.(map[string]any)
		if !ok || len(m) == 0 {
			found[prefix] = true
			return
		}
		for name, child := range m {
			walk(strings.TrimPrefix(prefix+"."+name, "."), child)
		}
	}
	walk("", top)
	return found
}

// What cannot be meant is refused, with the name of the setting.
func TestRefusedValues(t *testing.T) {
	for values, want := range map[string][]string{
		`controler: {replicas: 3}`:                                   {"controler", "not allowed"},
		`controller: {replica: 3}`:                                   {"/controller", "replica", "not allowed"},
		`controller: {replicas: "3"}`:                                {"/controller/replicas", "got string, want integer"},
		`controller: {replicas: 99}`:                                 {"/controller/replicas", "99"},
		`controller: {logFormat: xml}`:                               {"/controller/logFormat", "'json', 'text'"},
		`controller: {resources: {limits: {memory: 256Mib}}}`:        {"/controller/resources/limits/memory", "256Mib"},
		`controller: {podLabels: {app.kubernetes.io/name: x}}`:       {"/controller/podLabels/app.kubernetes.io~1name"},
		`controller: {nodeSelector: {gpu: true}}`:                    {"/controller/nodeSelector/gpu", "got boolean, want string"},
		`image: {tag: "a b"}`:                                        {"/image/tag", "a b"},
		`image: {digest: 0123}`:                                      {"/image/digest"},
		`image: {repository: ""}`:                                    {"/image/repository"},
		`imagePullSecrets: [registry]`:                               {"/imagePullSecrets/0", "got string, want object"},
		`podDisruptionBudget: {maxUnavailable: 0}`:                   {"/podDisruptionBudget/maxUnavailable"},
		`metrics: {serviceMonitor: {interval: often}}`:               {"/metrics/serviceMonitor/interval", "often"},
		`networkPolicy: {apiServer: {ports: []}}`:                    {"/networkPolicy/apiServer/ports", "minItems"},
		`networkPolicy: {apiServer: {cidrs: [10.0.0.1]}}`:            {"/networkPolicy/apiServer/cidrs/0", "10.0.0.1"},
		`agent: {state: var/lib}`:                                    {"/agent/state", "var/lib"},
		`controller: {enabled: false}`:                               {"nothing to install: set controller.enabled or agent.enabled"},
		`agent: {enabled: true}`:                                     {"the agent needs a configuration: set agent.config, or agent.configMap"},
		`agent: {enabled: true, config: x, configMap: z}`:            {"agent.config and agent.configMap are both set"},
		`metrics: {enabled: false, serviceMonitor: {enabled: true}}`: {"metrics.serviceMonitor.enabled scrapes what metrics.enabled=false does not serve"},
	} {
		t.Run(values, func(t *testing.T) {
			_, err := render(t, values)
			if err == nil {
				t.Fatal("helm takes it")
			}
			for _, words := range want {
				if !strings.Contains(err.Error(), words) {
					t.Errorf("the message lacks %q:\n%v", words, err)
				}
			}
		})
	}
}

// everything has each optional object.
const everything = `
namespace: {create: true}
metrics: {serviceMonitor: {enabled: true}, prometheusRule: {enabled: true}, dashboards: {enabled: true}}
networkPolicy: {enabled: true}
agent: {enabled: true, config: x, secret: etcd}
`

func TestLint(t *testing.T) {
	for name, values := range map[string]string{"defaults": "{}", "everything": everything} {
		t.Run(name, func(t *testing.T) {
			file := valuesFile(t)
			if err := os.WriteFile(file, []byte(values), 0o600); err != nil {
				t.Fatal(err)
			}
			if out, err := helm(t, "lint", "--strict", "charts/tasuki", "-f", file); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// The notes name objects that there are.
func TestNotes(t *testing.T) {
	for values, want := range map[string][]string{
		"controller.replicas=2":             {"rollout status deployment/tasuki-controller", "examples/policy.yaml", "enforce=restricted"},
		"agent.enabled=true,agent.config=x": {"exec daemonset/tasuki-agent", "enforce=privileged"},
		"namespace.create=true":             {"kubectl get rotationpolicies"},
	} {
		out, err := helm(t, "install", "tasuki", "charts/tasuki", "-n", "node-rotation-system", "--dry-run=client", "--set", values)
		if err != nil {
			t.Fatal(err)
		}
		_, notes, _ := strings.Cut(out, "NOTES:")
		for _, words := range want {
			if !strings.Contains(notes, words) {
				t.Errorf("%s: the notes lack %q:\n%s", values, words, notes)
			}
		}
		if strings.Contains(notes, "enforce=") == strings.Contains(values, "namespace.create") {
			t.Errorf("%s: the notes speak of labels for the namespace: %t", values, strings.Contains(notes, "enforce="))
		}
	}
}

// The rules are those of the files, to the letter.
func TestRulesAreTheFiles(t *testing.T) {
	got, err := render(t, everything)
	if err != nil {
		t.Fatal(err)
	}
	for name, file := range map[string]string{"tasuki-controller": "alerts.yaml", "tasuki-agent": "capture-alerts.yaml"} {
		text, err := os.ReadFile(filepath.Join("tasuki", "files", file))
		if err != nil {
			t.Fatal(err)
		}
		var want Rules
		if err := yaml.UnmarshalStrict(text, &want); err != nil {
			t.Fatal(err)
		}
		o := find(got, "PrometheusRule "+name)
		if o == nil {
			t.Fatalf("no PrometheusRule %s", name)
		}
		if diff := cmp.Diff(want, as[PrometheusRule](t, o).Spec); diff != "" || len(want.Groups) == 0 {
			t.Errorf("%s (-file +rule):\n%s", file, diff)
		}
	}
}
