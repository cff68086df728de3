package page

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tasuki-io/tasuki/internal/manifest"
	"github.com/tasuki-io/tasuki/internal/rotation"
	"github.com/tasuki-io/tasuki/internal/rotator"
)

const policy = `apiVersion: noderotation.io/v1alpha1
kind: RotationPolicy
metadata: {name: api}
spec:
  nodePoolSelector: {matchLabels: {workload: api}}
  maintenanceWindows:
  - {timezone: Asia/Tokyo, days: [Wed, Sat], start: "22:00", end: "02:00"}
`

const nodePool = `apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: api, labels: {workload: api}}
spec:
  template:
    spec:
      expireAfter: 336h
      terminationGracePeriod: 1h
      nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}
      requirements:
      - {key: kubernetes.io/arch, operator: In, values: [amd64]}
`

const nodeClaim = `apiVersion: karpenter.sh/v1
kind: NodeClaim
metadata: {name: %s, creationTimestamp: "%s", labels: {karpenter.sh/nodepool: api}}
spec:
  expireAfter: 336h
  terminationGracePeriod: 1h
  nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}
  requirements: []
`

func request(texts ...string) Request {
	r := Request{At: "2026-12-01T00:00:00Z", Days: 10}
	for i, text := range texts {
		r.Files = append(r.Files, struct {
			Name string `json:"name"`
			Text string `json:"text"`
		}{fmt.Sprintf("%d.yaml", i+1), text})
	}
	return r
}

// plansOf is what files come to in ten days from 2026-12-01.
func plansOf(t *testing.T, texts ...string) (plans []rotator.Plan, from, to time.Time) {
	t.Helper()
	r, err := reader()
	if err != nil {
		t.Fatal(err)
	}
	var files []manifest.File
	for _, text := range texts {
		files = append(files, manifest.File{Name: "stdin", Text: []byte(text)})
	}
	read, err := r.ReadFiles(files)
	if err != nil {
		t.Fatal(err)
	}
	o, _, err := rotator.ObjectsOf(read)
	if err != nil {
		t.Fatal(err)
	}
	from = time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
	to = from.AddDate(0, 0, 10)
	return o.Plans(from, to), from, to
}

func write(t *testing.T, p Page) string {
	t.Helper()
	var out strings.Builder
	if err := p.Write(&out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// Whatever the cluster holds is shown, and none of it becomes markup or script.
func TestWhatIsFoundIsText(t *testing.T) {
	const evil = `</textarea></script><img src=x onerror="alert(1)">`
	from := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
	name := evil
	p := rotator.Plan{
		NodePool: evil, Policy: &name, Zone: time.UTC, Why: evil, Now: evil, Selected: []rotator.Selected{{Policy: evil, Constraints: 1}},
		Findings:   []rotator.PlanFinding{{Code: evil, Severity: rotation.Fatal, Message: evil, Remedy: evil}},
		Arithmetic: []rotation.Sum{{Name: evil, Value: evil, How: evil}},
		Lives:      []rotation.Life{{NodeClaim: evil, Created: from, Turn: &rotation.Turn{NodeClaim: evil, Start: from, Lost: evil}}},
		Flight:     &rotation.Flight{NodeClaim: evil, Surge: evil, Mode: evil},
	}
	out := write(t, Page{
		Plans: []rotator.Plan{p}, From: from, To: from.AddDate(0, 0, 10), Source: evil, Notes: []string{evil}, Version: evil, Pools: []string{evil},
		Files: []manifest.File{{Name: evil, Text: []byte(evil)}}, Simulator: Simulator{Exec: "", Wasm: "AAAA"},
	})
	if strings.Contains(out, "<img") {
		t.Errorf("markup got through: %s", out[strings.Index(out, "<img")-200:][:400])
	}
	if n := strings.Count(out, "&lt;img"); n < 20 {
		t.Errorf("only %d of the values are shown", n)
	}
	if n := strings.Count(out, "</textarea>"); n != 1 {
		t.Errorf("the text area is closed %d times", n)
	}
}

// The page runs its own script and nothing else, and asks nobody for anything.
func TestPolicyOfThePage(t *testing.T) {
	plans, from, to := plansOf(t, policy, nodePool)
	p := Page{Plans: plans, From: from, To: to, Simulator: Simulator{Exec: "exec()", Wasm: "AAAA"}}
	out := write(t, p)
	content := regexp.MustCompile(`http-equiv="Content-Security-Policy" content="([^"]*)"`).FindStringSubmatch(out)
	if content == nil {
		t.Fatal("the page has no Content-Security-Policy")
	}
	policy := strings.NewReplacer("&#39;", "'", "&#43;", "+").Replace(content[1])
	for _, m := range regexp.MustCompile(`(?s)<(?:script|style)>(.*?)</(?:script|style)>`).FindAllStringSubmatch(out, -1) {
		if !strings.Contains(policy, hash(m[1])) {
			t.Errorf("the policy does not let this run: %.60s", m[1])
		}
	}
	for _, want := range []string{"default-src 'none'", "connect-src 'none'", "base-uri 'none'", "form-action 'none'"} {
		if !strings.Contains(policy, want) {
			t.Errorf("the policy %s is without %s", policy, want)
		}
	}
	for _, no := range []string{"unsafe-inline", "unsafe-eval' ", "http://", "https://"} {
		if strings.Contains(strings.ReplaceAll(policy, "wasm-unsafe-eval", ""), no) {
			t.Errorf("the policy %s has %s", policy, no)
		}
	}
	if m := regexp.MustCompile(`(?i) (style|on[a-z]+)="| (?:src|href)="(?:[^#d"]|data:[^,])`).FindString(out); m != "" {
		t.Errorf("the page has %q: an inline style or handler, or something to load", m)
	}
	p.Live = time.Second
	if out := write(t, p); !strings.Contains(out, "connect-src &#39;self&#39;") {
		t.Error("a live page may not ask its server")
	}
}

// Without a simulator the page says so, and has no fields that lead nowhere.
func TestWithoutSimulator(t *testing.T) {
	plans, from, to := plansOf(t, policy, nodePool)
	out := write(t, Page{Plans: plans, From: from, To: to, Files: []manifest.File{{Name: "a.yaml", Text: []byte(policy)}}})
	if !strings.Contains(out, "This page has no simulator") || strings.Contains(out, "<textarea") {
		t.Error("the page does not say that it has no simulator, or has fields for it")
	}
}

// A file that no browser could show to be edited is still planned with, and that is said.
func TestALargeFile(t *testing.T) {
	plans, from, to := plansOf(t, policy, nodePool)
	large := manifest.File{Name: "nodes.yaml", Text: []byte(strings.Repeat("# a line of a file that is large\n", 10_000))}
	out := write(t, Page{Plans: plans, From: from, To: to, Files: []manifest.File{{Name: "a.yaml", Text: []byte(policy)}, large}, Simulator: Simulator{Wasm: "AAAA"}})
	if strings.Count(out, "<textarea") != 1 || !strings.Contains(out, "nodes.yaml (322 KiB) is too large to be edited here") || strings.Contains(out, "a line of a file") {
		t.Error("the large file is shown, or nothing is said of it")
	}
}

// Ten thousand nodes are a page of a hundred rows, which says so, and carries the others.
func TestTenThousandNodes(t *testing.T) {
	plans, from, to := plansOf(t, policy, nodePool)
	p := &plans[0]
	for i := range 10_000 {
		p.Lives = append(p.Lives, rotation.Life{NodeClaim: fmt.Sprintf("api-%05d", i), Created: from.AddDate(0, 0, -3), Due: to, Deadline: to.AddDate(0, 0, 1), Standing: rotation.NotDue})
		p.Findings = append(p.Findings, rotator.PlanFinding{Code: "ShortLead", Severity: rotation.Warn, Message: fmt.Sprint(i)})
	}
	var all strings.Builder
	if err := WritePlans(&all, plans, from, to); err != nil {
		t.Fatal(err)
	}
	out := all.String()
	if n := strings.Count(out, "<"); n > 6000 {
		t.Errorf("the page has %d tags", n)
	}
	if len(out) > 1<<20 {
		t.Errorf("the page has %d bytes", len(out))
	}
	for _, want := range []string{"rows 1 to 100 of 10000 are shown", "ShortLead: 9995 more are left out here", "api-00099<"} {
		if !strings.Contains(out, want) {
			t.Errorf("the page does not say: %s", want)
		}
	}
	if strings.Contains(out, "api-00100<") {
		t.Error("the 101st node is in the page")
	}
}

// Many NodePools are shown a few at a time; all are in the summary.
func TestManyNodePools(t *testing.T) {
	plans, from, to := plansOf(t, policy, nodePool)
	for i := range 24 {
		p := plans[0]
		p.NodePool = fmt.Sprintf("more-%02d", i)
		plans = append(plans, p)
	}
	var all strings.Builder
	if err := WritePlans(&all, plans, from, to); err != nil {
		t.Fatal(err)
	}
	out := all.String()
	if n := strings.Count(out, `class="pool"`); n != mostPools {
		t.Errorf("%d NodePools are shown in full", n)
	}
	for _, want := range []string{`data-part="2">more-23</a>`, "NodePools 1 to 10 of 25 are shown"} {
		if !strings.Contains(out, want) {
			t.Errorf("the page does not say: %s", want)
		}
	}
}

// The simulator plans for what it is given, and refuses as tasuki plan does.
func TestSimulate(t *testing.T) {
	claim := fmt.Sprintf(nodeClaim, "api-a", "2026-11-20T00:00:00Z")
	a := Simulate(request(policy, nodePool, claim))
	if a.Error != "" || !strings.Contains(a.HTML, "api-a") || a.Verdict != "Nothing is lost, and no finding is fatal." {
		t.Errorf("error %q, verdict %q", a.Error, a.Verdict)
	}
	plans, from, to := plansOf(t, policy, nodePool, claim)
	var same strings.Builder
	if err := WritePlans(&same, plans, from, to); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(same.String(), a.HTML); diff != "" {
		t.Errorf("what is simulated differs from what is planned (-planned +simulated):\n%s", diff)
	}
	for name, c := range map[string]struct {
		change func(*Request)
		want   string
	}{
		"a misspelt field": {func(r *Request) { r.Files[0].Text += "  surge: {coolDownAfter: 5m}\n" }, "1.yaml: document 1, line 8: RotationPolicy api: spec.surge.coolDownAfter: unknown field"},
		"no NodePool":      {func(r *Request) { r.Files = r.Files[:1] }, "there is no NodePool to plan for"},
		"another NodePool": {func(r *Request) { r.Pools = []string{"web"} }, "there is no NodePool web"},
		"no time":          {func(r *Request) { r.At = "soon" }, `planned from "soon": write a time such as 2026-12-02T02:00:00Z or 2026-12-02T11:00:00+09:00`},
		"too far":          {func(r *Request) { r.Days = 401 }, "401 days: write a number from 1 to 400"},
	} {
		t.Run(name, func(t *testing.T) {
			r := request(policy, nodePool)
			c.change(&r)
			if a := Simulate(r); a.Error != c.want || a.HTML != "" {
				t.Errorf("error is %q, want %q", a.Error, c.want)
			}
		})
	}
}

// A window past midnight is on both of its days, in the zone of the windows.
func TestCalendar(t *testing.T) {
	plans, from, to := plansOf(t, policy, nodePool, fmt.Sprintf(nodeClaim, "api-a", "2026-11-20T00:00:00Z"))
	months := monthsOf(plans[0], from, to)
	if len(months) != 1 || months[0].Name != "December 2026" {
		t.Fatalf("months: %+v", months)
	}
	got := map[int]string{}
	for _, week := range months[0].Weeks {
		for column, d := range week {
			if d.Number == 3 && column != 3 {
				t.Errorf("3 December is in column %d, and is a Thursday", column)
			}
			if d.Number > 0 && !d.Outside {
				got[d.Number] = d.Says()
			}
		}
	}
	want := map[int]string{
		1: "", 2: "open 22:00-24:00; 1 rotated", 3: "open 00:00-02:00", 4: "", 5: "open 22:00-24:00", 6: "open 00:00-02:00",
		7: "", 8: "", 9: "open 22:00-24:00; 1 rotated", 10: "open 00:00-02:00", 11: "",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("days (-want +got):\n%s", diff)
	}
}

// A bar is the part of a life that is on the axis, and nothing is drawn beside it.
func TestBars(t *testing.T) {
	at := func(days int) time.Time { return time.Date(2026, 12, 1+days, 0, 0, 0, 0, time.UTC) }
	c := chart{at(0), at(10)}
	for name, one := range map[string]struct {
		life rotation.Life
		want bar
	}{
		"rotated":       {rotation.Life{Created: at(-5), Due: at(1), Deadline: at(9), Turn: &rotation.Turn{Start: at(2)}}, bar{Start: 0, End: 200, Due: 100, Rotates: 200, Deadline: 900, Lost: -1}},
		"lost":          {rotation.Life{Created: at(-5), Due: at(-1), Deadline: at(4), Turn: &rotation.Turn{Start: at(4), Lost: "outOfWindow"}}, bar{Start: 0, End: 400, Due: -1, Rotates: -1, Deadline: -1, Lost: 400}},
		"quiet":         {rotation.Life{Created: at(5), Due: at(15), Deadline: at(20)}, bar{Start: 500, End: 1000, Due: -1, Rotates: -1, Deadline: -1, Lost: -1}},
		"never expires": {rotation.Life{Created: at(-5)}, bar{Start: 0, End: 1000, Due: -1, Rotates: -1, Deadline: -1, Lost: -1}},
	} {
		if diff := cmp.Diff(one.want, c.bar(one.life)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// Durations are as long as those of the arithmetic beside them look.
func TestDurations(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", 59 * time.Second: "0s", 77*time.Minute + 5*time.Second: "1h17m0s", 143 * time.Hour: "143h0m0s", -2 * time.Hour: "-2h0m0s",
	} {
		if got := duration(d); got != want {
			t.Errorf("%s is %q, want %q", d, got, want)
		}
	}
}
