package page

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
)

// axe returns axe-core as tools/axe pins it, fetched by npm once for each of its versions.
func axe(t *testing.T) string {
	t.Helper()
	npm, err := exec.LookPath("npm")
	if err != nil {
		t.Skip("there is no npm to fetch axe-core with: apt-get install npm")
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	lock, err := os.ReadFile("../../tools/axe/package-lock.json")
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(cache, "tasuki", fmt.Sprintf("axe-%.8x", sha256.Sum256(lock)))
	script := filepath.Join(dir, "node_modules", "axe-core", "axe.min.js")
	if text, err := os.ReadFile(script); err == nil {
		return string(text)
	}
	if err := os.CopyFS(dir, os.DirFS("../../tools/axe")); err != nil && !os.IsExist(err) {
		t.Fatal(err)
	}
	cmd := exec.Command(npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("npm ci in %s: %v\n%s", dir, err, out)
	}
	text, err := os.ReadFile(script)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Everybody can read the page and use it, as far as a program can tell: axe-core finds nothing, in
// dark and in light, on a screen and on a phone, and when something is wrong.
func TestAccessibility(t *testing.T) {
	p := open(t)
	script := axe(t)
	html, _ := plan(t, append(files, "-o", "html")...)
	p.load(html)
	eval[bool](p, script+`; document.querySelectorAll('details').forEach((d) => { d.open = true; }), true`)
	judge := func(t *testing.T) {
		t.Helper()
		passes := eval[int](p, `axe.run(document).then((r) => { globalThis.judged = r; return r.passes.length; })`)
		if passes < 20 {
			t.Errorf("only %d rules were applied", passes)
		}
		for _, v := range eval[[]string](p, `judged.violations.map((v) => v.impact + ' ' + v.id + ': ' + v.help + '\n' + v.nodes.slice(0, 3).map((n) => n.html).join('\n'))`) {
			t.Error(v)
		}
	}
	for _, scheme := range []string{"light", "dark"} {
		p.scheme(scheme)
		t.Run(scheme, judge)
	}
	p.edit("policy.yaml", "spec:", "spec: [")
	if _, wrong := p.recompute(); wrong == "" {
		t.Error("nothing is wrong")
	}
	t.Run("mistake", judge)
	p.do(chromedp.EmulateViewport(360, 640, chromedp.EmulateMobile))
	t.Run("phone", judge)
}
