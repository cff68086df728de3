package agent

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/yaml"

	"github.com/tasuki-io/tasuki/internal/capture"
)

const (
	guide  = "../../docs/capture.md"
	alerts = "../../charts/tasuki/files/capture-alerts.yaml"
)

// Whatever the agent may say has a place in the operator's guide.
func TestTheGuideExplainsEveryWord(t *testing.T) {
	text := contents(t, guide)
	n := 0
	explained := func(word string) {
		if n++; !strings.Contains(text, "`"+word+"`") {
			t.Errorf("%s does not explain `%s`", guide, word)
		}
	}
	for _, dir := range []string{".", "../capture", "../executor"} {
		for kind, words := range typed(t, dir) {
			if slices.Contains([]string{"Rule", "Wait", "Bar", "Cause", "State", "Phase", "Outcome", "DriftKind", "AilmentKind"}, kind) {
				for _, word := range words {
					explained(word)
				}
			}
		}
	}
	k := capture.Key{}
	for _, c := range []capture.Claim{{}, {Epoch: 2}, {Epoch: 1, Holder: "b"}} {
		explained(capture.Gate(c, capture.Token{Verb: capture.Assign, Key: k, Epoch: 1, Holder: "a"}).Why())
	}
	explained(capture.Gate(capture.Claim{Epoch: 1, Holder: "a"}, capture.Token{Verb: capture.Unassign, Key: k, Epoch: 1, Holder: "a"}).Why())
	for _, where := range []string{whereImport, whereSweep, whereExecution} {
		explained(where)
	}
	for _, name := range metricNames() {
		explained(strings.TrimPrefix(name, namespace+"_"))
	}
	for _, line := range logLines(t) {
		explained(line)
	}
	if n < 70 {
		t.Errorf("only %d words were found", n)
	}
}

// Every alert is about metrics that there are, has all its parts, a test, and a link that leads
// somewhere.
func TestCaptureAlerts(t *testing.T) {
	var file struct {
		Groups []struct {
			Name  string
			Rules []struct {
				Alert, Expr, For    string
				Labels, Annotations map[string]string
			}
		}
	}
	if err := yaml.UnmarshalStrict([]byte(contents(t, alerts)), &file); err != nil {
		t.Fatal(err)
	}
	tested, known, n := contents(t, "../../docs/capture-alerts_test.yaml"), metricNames(), 0
	for _, m := range regexp.MustCompile(`(?m)^#+ (.+)$`).FindAllStringSubmatch(contents(t, guide), -1) {
		known = append(known, "#"+strings.ReplaceAll(strings.ToLower(m[1]), " ", "-"))
	}
	for _, g := range file.Groups {
		for _, r := range g.Rules {
			n++
			for _, m := range regexp.MustCompile(namespace+`_\w+`).FindAllString(r.Expr, -1) {
				if !slices.Contains(known, m) {
					t.Errorf("%s: nothing exports %s", r.Alert, m)
				}
			}
			_, anchor, _ := strings.Cut(r.Annotations["runbook_url"], "docs/capture.md")
			if !slices.Contains(known, anchor) {
				t.Errorf("%s: %s has no %s", r.Alert, guide, anchor)
			}
			if r.Annotations["summary"] == "" || r.Annotations["description"] == "" || r.Labels["severity"] == "" {
				t.Errorf("%s is not complete: %+v", r.Alert, r)
			}
			if !strings.Contains(tested, "alertname: "+r.Alert+"\n") {
				t.Errorf("nothing tests %s", r.Alert)
			}
		}
	}
	if n < 10 {
		t.Errorf("only %d alerts were found", n)
	}
}

// metricNames are the names of all metrics of the agent's own.
func metricNames() (names []string) {
	registry := prometheus.NewRegistry()
	a := &Agent{tell: &announcer{metrics: newMetrics()}}
	a.tell.register(registry, a)
	descs := make(chan *prometheus.Desc, 100)
	for _, c := range []prometheus.Collector{a.tell.actions, a.tell.metrics.fenced, a.tell.drift, a.tell.duration, a.tell.success, a.tell.failing, a.tell.alive, a.tell.metrics.refused, levels{a}} {
		c.Describe(descs)
	}
	close(descs)
	for d := range descs {
		_, name, _ := strings.Cut(d.String(), `fqName: "`)
		name, _, _ = strings.Cut(name, `"`)
		names = append(names, name)
	}
	return names
}

// sources are the files of a package, without its tests.
func sources(t *testing.T, dir string) (files []*ast.File) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	return files
}

// typed are the string constants of a package by the names of their types.
func typed(t *testing.T, dir string) map[string][]string {
	found := map[string][]string{}
	for _, file := range sources(t, dir) {
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || len(spec.Values) != 1 {
				return true
			}
			kind, ok := spec.Type.(*ast.Ident)
			if word, err := unquote(spec.Values[0]); ok && err == nil && word != "" {
				found[kind.Name] = append(found[kind.Name], word)
			}
			return true
		})
	}
	return found
}

// logLines are the messages that the agent logs.
func logLines(t *testing.T) (lines []string) {
	for _, file := range sources(t, ".") {
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) == 0 {
				return true
			}
			f, ok := call.Fun.(*ast.SelectorExpr)
			if ok && slices.Contains([]string{"Info", "Warn", "Error"}, f.Sel.Name) {
				if line, err := unquote(call.Args[0]); err == nil {
					lines = append(lines, line)
				}
			}
			return true
		})
	}
	return lines
}

func unquote(e ast.Expr) (string, error) {
	lit, ok := e.(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return "", strconv.ErrSyntax
	}
	return strconv.Unquote(lit.Value)
}

func contents(t *testing.T, name string) string {
	t.Helper()
	raw, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// What the guide has a host's identity allow is valid, and all that the executor of EC2 asks for.
func TestTheIdentitiesAllowWhatIsCalled(t *testing.T) {
	doc := contents(t, "../../docs/capture-hosts.md")
	blocks := regexp.MustCompile(`(?m)^    \{\n(    .*\n)+`).FindAllString(doc, -1)
	if len(blocks) != 2 {
		t.Fatalf("%d JSON documents, want one for AWS and one for Azure", len(blocks))
	}
	for _, b := range blocks {
		if !json.Valid([]byte(b)) {
			t.Errorf("this is not JSON:\n%s", b)
		}
	}
	calls := 0
	for _, file := range sources(t, "../executor/aws") {
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.SelectorExpr)
			if ok && regexp.MustCompile(`^(Assign|Unassign|Modify|Describe)\w+(Addresses|Attribute|Interfaces)$`).MatchString(call.Sel.Name) {
				calls++
				if !strings.Contains(blocks[0], `"ec2:`+call.Sel.Name+`"`) {
					t.Errorf("the policy for AWS lacks ec2:%s", call.Sel.Name)
				}
			}
			return true
		})
	}
	if calls < 5 || !strings.Contains(blocks[0], `"ec2:DescribeNetworkInterfaces"`) {
		t.Errorf("%d calls that change something were found; the policy is\n%s", calls, blocks[0])
	}
}
