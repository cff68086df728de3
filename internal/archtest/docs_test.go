package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

const (
	runbook = "../../docs/runbook.md"
	alerts  = "../../charts/tasuki/files/alerts.yaml"
)

// literals are the string literals of a package, outside of its tests, by where they stand:
// the type of the constant that they are the value of, or "".
func literals(t *testing.T, dir string) map[string]string {
	t.Helper()
	files, err := filepath.Glob("../../" + dir + "/*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("no Go files in %s: %v", dir, err)
	}
	found := map[string]string{}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		kind := ""
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ValueSpec:
				kind = ""
				if of, ok := n.Type.(*ast.Ident); ok {
					kind = of.Name
				}
			case *ast.FuncDecl:
				kind = ""
			case *ast.BasicLit:
				if text, err := strconv.Unquote(n.Value); err == nil && n.Kind == token.STRING && found[text] == "" {
					found[text] = kind
				}
			}
			return true
		})
	}
	return found
}

// code is how a finding or the reason of an Event is spelt. What else is spelt so:
var code = regexp.MustCompile(`^([A-Z]{2,}[a-z]|[A-Z][a-z]+[A-Z])[A-Za-z]*$`)

var noCode = []string{
	"DaemonSet", "DoesNotExist", "InstanceTerminating", "NodeClaim", "NodePool", "NotIn", "PodDisruptionBudget", "RollBack", "RotationPolicy", "StatefulSet",
	"VolumesDetached",
}

// Whatever tasuki may say has an anchor in the runbook, and the runbook explains nothing that
// it does not say.
func TestRunbookExplainsEveryWord(t *testing.T) {
	words := map[string]bool{}
	for _, dir := range []string{"internal/rotation", "internal/rotator"} {
		for text, kind := range literals(t, dir) {
			if kind == "Reason" || kind == "Standing" || code.MatchString(text) && !slices.Contains(noCode, text) {
				words[text] = true
			}
		}
	}
	for _, m := range regexp.MustCompile(`(?m)^\tReason\w+\s+= "(\w+)"`).FindAllStringSubmatch(contents(t, "../../api/v1alpha1/status_types.go"), -1) {
		words[m[1]] = true
	}
	if len(words) < 50 {
		t.Fatalf("found %d words only: %v", len(words), slices.Sorted(maps.Keys(words)))
	}
	text := contents(t, runbook)
	known := anchors(text)
	for word := range words {
		if !known[strings.ToLower(word)] || !strings.Contains(text, "`"+word+"`") {
			t.Errorf("%s: nothing explains `%s` under the anchor %s", runbook, word, strings.ToLower(word))
		}
	}
	for _, row := range regexp.MustCompile(`(?m)^\| (?:<a id="[a-z_-]+"></a>)+`+"`([A-Za-z]+)`").FindAllStringSubmatch(text, -1) {
		if !words[row[1]] {
			t.Errorf("%s explains %s, which nothing says", runbook, row[1])
		}
	}
}

// anchors are the targets of links into a Markdown file.
func anchors(text string) map[string]bool {
	found := map[string]bool{}
	for _, m := range regexp.MustCompile(`<a\s+id="([^"]+)">`).FindAllStringSubmatch(text, -1) {
		found[m[1]] = true
	}
	for _, m := range regexp.MustCompile(`(?m)^#+ (.+)$`).FindAllStringSubmatch(text, -1) {
		found[strings.ReplaceAll(strings.ToLower(m[1]), " ", "-")] = true
	}
	return found
}

// A link of the runbook to itself, and that of every alert, leads somewhere.
func TestRunbookLinks(t *testing.T) {
	text := contents(t, runbook)
	known := anchors(text)
	links := regexp.MustCompile(`\]\(#([^)]+)\)`).FindAllStringSubmatch(text, -1)
	links = append(links, regexp.MustCompile(`runbook\.md#(\S+)`).FindAllStringSubmatch(contents(t, alerts), -1)...)
	for _, link := range links {
		if !known[link[1]] {
			t.Errorf("there is no #%s in %s", link[1], runbook)
		}
	}
}

// Every alert is complete, under a name of its own, and is about metrics that there are.
func TestAlerts(t *testing.T) {
	exists := map[string]bool{}
	for name := range literals(t, "internal/rotator") {
		exists["noderotation_"+name] = true
	}
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
	tested := contents(t, "../../docs/alerts_test.yaml")
	seen := map[string]bool{}
	for _, g := range file.Groups {
		for _, r := range g.Rules {
			if seen[r.Alert] {
				t.Errorf("%s is there twice", r.Alert)
			}
			seen[r.Alert] = true
			used := regexp.MustCompile(`noderotation_\w+`).FindAllString(r.Expr, -1)
			if len(used) == 0 {
				t.Errorf("%s is about no metric", r.Alert)
			}
			for _, m := range used {
				if !exists[m] {
					t.Errorf("%s: nothing exports %s", r.Alert, m)
				}
			}
			if !slices.Contains([]string{"critical", "warning", "info"}, r.Labels["severity"]) {
				t.Errorf("%s: severity %q", r.Alert, r.Labels["severity"])
			}
			for _, what := range []string{"summary", "description", "runbook_url"} {
				if r.Annotations[what] == "" {
					t.Errorf("%s has no %s", r.Alert, what)
				}
			}
			if !strings.Contains(tested, "alertname: "+r.Alert+"\n") {
				t.Errorf("docs/alerts_test.yaml does not test %s", r.Alert)
			}
		}
	}
	if len(seen) < 9 {
		t.Errorf("%d alerts only", len(seen))
	}
}

func contents(t *testing.T, name string) string {
	t.Helper()
	raw, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}
