package page

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/google/go-cmp/cmp"

	"github.com/tasuki-io/tasuki/internal/page"
	"github.com/tasuki-io/tasuki/internal/rotator"
)

var files = []string{"-f", "testdata/policy.yaml", "-f", "testdata/cluster.yaml"}

// mostPage is how large a page with its simulator may be, in bytes.
const mostPage = 40 << 20

// shown is what a page says of a NodePool, in the words of -o json.
type shown struct {
	NodePool, Verdict string
	Sums              map[string]string
	Findings          []string
	Occurrences       [][2]string
	Forecast          map[string]string // margin by NodeClaim; LOST of one that is lost
}

const readPage = `[...document.querySelectorAll('.pool')].map((pool) => ({
	NodePool: pool.dataset.pool,
	Verdict: pool.querySelector('.badge').className,
	Sums: Object.fromEntries([...pool.querySelectorAll('[aria-label^="Arithmetic"] tbody tr')].map((r) => [r.cells[0].innerText, r.cells[1].innerText])),
	Findings: [...pool.querySelectorAll('.findings li')].map((li) => li.textContent),
	Occurrences: [...pool.querySelectorAll('tbody[id$="-windows"] tr')].map((r) => [...r.querySelectorAll('time')].map((t) => t.dateTime)),
	Forecast: Object.fromEntries([...pool.querySelectorAll('.fleet tbody tr')].map((r) => [...r.cells].map((c) => c.innerText))
		.filter((c) => !c[8].startsWith('not in this time')).map((c) => [c[0], c[8].startsWith('LOST') ? 'LOST' : c[7]])),
}))`

// wanted is the same of what -o json says.
func wanted(t *testing.T, args ...string) []shown {
	t.Helper()
	out, _ := plan(t, append(args, "-o", "json")...)
	var plans []rotator.Plan
	if err := json.Unmarshal([]byte(out), &plans); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var want []shown
	for _, p := range plans {
		s := shown{NodePool: p.NodePool, Verdict: "badge ok", Forecast: map[string]string{}, Findings: []string{}, Sums: map[string]string{
			"expireAfter (E)": p.ExpireAfter, "terminationGracePeriod (tGP)": "not set", "window period (P)": p.WindowPeriod,
			"rotation, at most (t_rot)": p.TRot, "rotation, usually (t_rot_est)": p.TRotEstimate, "ageThreshold (A)": p.AgeThreshold,
			"lead time": p.LeadTime, "chances (G)": fmt.Sprint(p.Chances), "rotations per window (C)": fmt.Sprint(p.Capacity),
		}}
		if g := p.TerminationGracePeriod; g != nil {
			s.Sums["terminationGracePeriod (tGP)"] = *g
		}
		if p.Fatal() || p.Loses() {
			s.Verdict = "badge fatal"
		}
		sign := map[string]string{"fatal": "✖", "warn": "⚠"}
		for _, f := range p.Findings {
			s.Findings = append(s.Findings, fmt.Sprintf("%s %s %s: %s.To change that: %s.", sign[string(f.Severity)], f.Severity, f.Code, f.Message, f.Remedy))
		}
		for _, o := range p.Occurrences {
			s.Occurrences = append(s.Occurrences, [2]string{o.Start.Format(time.RFC3339), o.End.Format(time.RFC3339)})
		}
		for _, turn := range p.Forecast {
			if s.Forecast[turn.NodeClaim] = turn.Margin; turn.Occurrence == nil {
				s.Forecast[turn.NodeClaim] = "LOST"
			}
		}
		want = append(want, s)
	}
	return want
}

// The page says what -o json says, of a plan with a loss and a fatal finding, without asking
// anybody, and without starting the simulator.
func TestThePageIsThePlan(t *testing.T) {
	p := open(t)
	html, _ := plan(t, append(files, "-o", "html")...)
	if len(html) > mostPage {
		t.Errorf("the page has %d MB", len(html)>>20)
	}
	p.load(html)
	eval[bool](p, `document.querySelectorAll('details').forEach((d) => { d.open = true; }), true`)
	if diff := cmp.Diff(wanted(t, files...), eval[[]shown](p, readPage)); diff != "" {
		t.Errorf("the page (-json +page):\n%s", diff)
	}
	if eval[bool](p, `!!simulator || !!globalThis.tasukiSimulate`) {
		t.Error("the simulator was started before it was needed")
	}
	if n := eval[int](p, `performance.getEntriesByType('resource').length`); n != 0 {
		t.Errorf("the page loaded %d resources", n)
	}
	p.await(`performance.getEntriesByName('first-contentful-paint').length > 0`)
	t.Logf("the page has %.1f MB and %d elements; it was painted after %.0f ms and complete after %.0f ms", float64(len(html))/1e6,
		eval[int](p, `document.querySelectorAll('*').length`),
		eval[float64](p, `performance.getEntriesByName('first-contentful-paint')[0].startTime`),
		eval[float64](p, `performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd`))
}

// A change is planned for in the page as tasuki plan would plan for it.
func TestAChangeIsRecomputed(t *testing.T) {
	p := open(t)
	html, _ := plan(t, append(files, "-o", "html")...)
	p.load(html)
	before := eval[string](p, `document.querySelector('#pool-0').innerText`)
	p.edit("policy.yaml", "minRotationChances: 2", "minRotationChances: 1")
	said, wrong := p.recompute()
	if wrong != "" || !strings.HasPrefix(said, "Recomputed. no node is rotated in NodePool short") {
		t.Fatalf("the page says %q, and that wrong is %q", said, wrong)
	}
	text, err := os.ReadFile("testdata/policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	changed := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(changed, []byte(strings.Replace(string(text), "minRotationChances: 2", "minRotationChances: 1", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"-f", changed, "-f", "testdata/cluster.yaml"}
	eval[bool](p, `document.querySelectorAll('details').forEach((d) => { d.open = true; }), true`)
	want := wanted(t, args...)
	if diff := cmp.Diff(want, eval[[]shown](p, readPage)); diff != "" {
		t.Errorf("what was recomputed (-json +page):\n%s", diff)
	}
	if want[0].Sums["ageThreshold (A)"] != "238h43m0s" {
		t.Errorf("the threshold is %s: the change has changed nothing", want[0].Sums["ageThreshold (A)"])
	}
	eval[bool](p, `document.getElementById('reset').click(), true`)
	p.await(`document.querySelector('#pool-0').innerText.includes('142h43m0s')`)
	eval[bool](p, `document.querySelectorAll('details').forEach((d) => { d.open = false; }), true`)
	if diff := cmp.Diff(before, eval[string](p, `document.querySelector('#pool-0').innerText`)); diff != "" {
		t.Errorf("after the edits were undone (-before +after):\n%s", diff)
	}
}

// A mistake is told as tasuki plan tells it, and the plans stay.
func TestAMistakeIsTold(t *testing.T) {
	p := open(t)
	html, _ := plan(t, append(files, "-o", "html")...)
	p.load(html)
	before := eval[string](p, `document.getElementById('plans').innerHTML`)
	for old, new := range map[string]string{
		"minRotationChances: 2": "minRotationChances: two", // refused by the schema
		"spec:":                 "spec: [",                 // no YAML
		"Asia/Tokyo":            "Asia/Kyoto",              // refused by a rule
	} {
		t.Run(new, func(t *testing.T) {
			text, err := os.ReadFile("testdata/policy.yaml")
			if err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			changed := filepath.Join(dir, "policy.yaml")
			if err := os.WriteFile(changed, []byte(strings.Replace(string(text), old, new, 1)), 0o600); err != nil {
				t.Fatal(err)
			}
			_, stderr := plan(t, "-f", changed, "-f", "testdata/cluster.yaml")
			p.edit("policy.yaml", old, new)
			_, wrong := p.recompute()
			want := strings.TrimSpace(strings.ReplaceAll(stderr, dir, "testdata"))
			if diff := cmp.Diff(want, wrong); diff != "" {
				t.Errorf("what is wrong (-tasuki plan +page):\n%s", diff)
			}
			if after := eval[string](p, `document.getElementById('plans').innerHTML`); after != before {
				t.Error("the plans have changed")
			}
			p.edit("policy.yaml", new, old)
		})
	}
}

// Both colour schemes are there, and a phone needs no sideways scrolling.
func TestColoursAndPhones(t *testing.T) {
	p := open(t)
	html, _ := plan(t, append(files, "-o", "html")...)
	p.load(html)
	colours := map[string]string{}
	for _, scheme := range []string{"light", "dark"} {
		p.scheme(scheme)
		colours[scheme] = eval[string](p, `getComputedStyle(document.body).backgroundColor`)
	}
	if diff := cmp.Diff(map[string]string{"light": "rgb(255, 255, 255)", "dark": "rgb(13, 17, 23)"}, colours); diff != "" {
		t.Errorf("backgrounds (-want +got):\n%s", diff)
	}
	p.do(chromedp.EmulateViewport(360, 640, chromedp.EmulateMobile))
	eval[bool](p, `document.querySelectorAll('details').forEach((d) => { d.open = true; }), true`)
	if w := eval[int](p, `document.documentElement.scrollWidth`); w > 360 {
		t.Errorf("on 360 pixels the page is %d wide: %s", w, eval[string](p, `[...document.querySelectorAll('body *')].filter((e) => !e.closest('.scroll *, .words') && e.getBoundingClientRect().right > 361).map((e) => e.tagName + '.' + e.className).join(' ')`))
	}
}

// A desk has room for the fleet: nothing is to be scrolled sideways.
func TestADesk(t *testing.T) {
	p := open(t)
	html, _ := plan(t, append(files, "-o", "html")...)
	p.load(html)
	p.do(chromedp.EmulateViewport(1200, 800))
	eval[bool](p, `document.querySelectorAll('details').forEach((d) => { d.open = true; }), true`)
	wide := eval[[]string](p, `[...document.querySelectorAll('.scroll')].filter((e) => e.scrollWidth > e.clientWidth).map((e) => e.ariaLabel + ': ' + e.scrollWidth + ' in ' + e.clientWidth)`)
	if len(wide) > 0 {
		t.Errorf("on 1200 pixels there is to be scrolled: %s", strings.Join(wide, "; "))
	}
}

// Tab leads to everything that can be used, in the order in which it is read, and shows where it is.
func TestKeyboard(t *testing.T) {
	p := open(t)
	html, _ := plan(t, append(files, "-o", "html")...)
	p.load(html)
	want := eval[[]string](p, `(() => {
		globalThis.nameOf = (e) => e.id || e.getAttribute('aria-label') || e.textContent.slice(0, 40);
		return [...document.querySelectorAll('a[href], button:not(:disabled), input, textarea, summary, [tabindex="0"]')].filter((e) => e.checkVisibility()).map(nameOf);
	})()`)
	var got []string
	for range want {
		p.do(chromedp.KeyEvent("\t"))
		got = append(got, eval[string](p, `nameOf(document.activeElement)`))
		if !eval[bool](p, `getComputedStyle(document.activeElement).outlineStyle !== 'none'`) {
			t.Errorf("nothing shows that %s has the focus", got[len(got)-1])
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Tab (-what there is +what it reaches):\n%s", diff)
	}
	// Space and Enter do what a click does.
	eval[bool](p, `document.querySelector('summary').focus(), true`)
	p.do(chromedp.KeyEvent(" "))
	p.await(`document.querySelector('details').open`)
}

// Ten thousand nodes are as light as a hundred, and all of them can be seen.
func TestALargeFleet(t *testing.T) {
	p := open(t)
	policy, err := os.ReadFile("testdata/policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	pool, err := os.ReadFile("testdata/cluster.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	fmt.Fprintf(&all, "%s---\n%s", policy, pool[:strings.Index(string(pool), "---")])
	const nodes = 10_000
	for i := range nodes {
		fmt.Fprintf(&all, `---
{"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": {"name": "api-%05d", "creationTimestamp": "%s", "labels": {"karpenter.sh/nodepool": "api"}},
"spec": {"expireAfter": "336h", "terminationGracePeriod": "1h", "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"}, "requirements": []}}
`, i, time.Date(2026, 11, 20, 0, i/2, 0, 0, time.UTC).Format(time.RFC3339))
	}
	file := filepath.Join(t.TempDir(), "large.yaml")
	if err := os.WriteFile(file, []byte(all.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	html, _ := plan(t, "-f", file, "-o", "html")
	p.load(html)
	if n := eval[int](p, `document.querySelectorAll('*').length`); n > 5000 {
		t.Errorf("the page has %d elements", n)
	}
	const where = `document.querySelector('.pager[data-list="pool-0-nodes"] [role=status]').textContent`
	rows := eval[string](p, where)
	if !strings.HasPrefix(rows, "rows 1 to 100 of ") {
		t.Fatalf("the page says %q", rows)
	}
	seen := map[string]bool{}
	const names = `[...document.querySelectorAll('#pool-0-nodes th')].map((th) => th.textContent)`
	for page := 1; ; page++ {
		for _, name := range eval[[]string](p, names) {
			seen[name] = true
		}
		if eval[bool](p, `document.querySelector('.pager[data-list="pool-0-nodes"] [data-step="1"]').disabled`) {
			break
		}
		eval[bool](p, `document.querySelector('.pager[data-list="pool-0-nodes"] [data-step="1"]').click(), true`)
		p.await(fmt.Sprintf(`%s.startsWith('rows %d to ')`, where, page*100+1))
	}
	if len(seen) < nodes || !seen["api-00000"] || !seen["api-09999"] {
		t.Errorf("%d nodes were shown", len(seen))
	}
	if !strings.Contains(html, "is too large to be edited here") {
		t.Error("the file is shown to be edited, or nothing is said of it")
	}
}

// A live page asks its server, keeps the place of who reads it, and tells when it is out of date.
func TestLive(t *testing.T) {
	p := open(t)
	from := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
	var asked, down atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := fmt.Sprintf("api-%d", asked.Load())
		plans := []rotator.Plan{{NodePool: name, Zone: time.UTC}}
		var err error
		switch {
		case r.URL.Path != "/"+page.Fragment:
			err = page.Page{Plans: plans, From: from, To: from.AddDate(0, 0, 1), Live: 50 * time.Millisecond}.Write(w)
		case down.Load() > 0:
			http.Error(w, "the cluster cannot be shown: gone", http.StatusBadGateway)
		default:
			asked.Add(1)
			err = page.WritePlans(w, plans, from, from.AddDate(0, 0, 1))
		}
		if err != nil {
			t.Error(err)
		}
	}))
	defer server.Close()
	p.do(chromedp.Navigate(server.URL + "/"))
	eval[bool](p, `document.querySelector('#pool-0').focus(), true`)
	p.await(`document.querySelector('h2[id=pool-0-title]').textContent === 'NodePool api-3'`)
	if id := eval[string](p, `document.activeElement.id`); id != "pool-0" {
		t.Errorf("the focus is on %q", id)
	}
	down.Store(1)
	p.await(`document.getElementById('fresh').textContent === 'What is shown is out of date: the cluster cannot be shown: gone'`)
	down.Store(0)
	p.await(`document.getElementById('fresh').textContent === ''`)
	eval[bool](p, `document.getElementById('pause').click(), true`)
	if eval[string](p, `document.getElementById('pause').getAttribute('aria-pressed')`) != "true" {
		t.Error("the button does not say that the page is paused")
	}
}
