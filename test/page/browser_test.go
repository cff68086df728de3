package page

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// at is the instant that everything is planned from.
const at = "2026-12-01T00:00:00Z"

var built string // the directory of the program under test

func TestMain(m *testing.M) {
	code := m.Run()
	os.RemoveAll(built)
	os.Exit(code)
}

// program builds tasuki with its simulator, once in a run of the tests, and returns its path.
var program = sync.OnceValues(func() (path string, err error) {
	if built, err = os.MkdirTemp("", "tasuki-page-"); err != nil {
		return "", err
	}
	path = filepath.Join(built, "tasuki")
	for _, args := range [][]string{
		{"generate", "github.com/tasuki-io/tasuki/internal/simulator"},
		{"build", "-o", path, "github.com/tasuki-io/tasuki/cmd/tasuki"},
	} {
		if out, err := exec.Command("go", args...).CombinedOutput(); err != nil {
			return "", fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, out)
		}
	}
	return path, nil
})

// chromium is the browser, or "" if there is none.
func chromium() string {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

// plan runs tasuki plan on files, and returns what it writes.
func plan(t *testing.T, args ...string) (stdout, stderr string) {
	t.Helper()
	tasuki, err := program()
	if err != nil {
		t.Fatal(err)
	}
	var out, errs strings.Builder
	cmd := exec.Command(tasuki, append([]string{"plan", "--at", at}, args...)...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil && !errors.As(err, new(*exec.ExitError)) {
		t.Fatal(err)
	}
	return out.String(), errs.String()
}

// tab is one of a browser.
type tab struct {
	t   *testing.T
	ctx context.Context
}

// open starts a browser. It skips the test if there is none.
func open(t *testing.T) tab {
	t.Helper()
	if testing.Short() {
		t.Skip("needs a browser, and builds the simulator: run without -short")
	}
	path := chromium()
	if path == "" {
		t.Skip("there is no chromium: apt-get install chromium")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path))
	if os.Getuid() == 0 {
		options = append(options, chromedp.NoSandbox)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute) // of a test that hangs
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewExecAllocator(ctx, options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	return tab{t, ctx}
}

func (p tab) do(actions ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	if err := chromedp.Do(p.ctx, actions...); err != nil {
		p.t.Fatal(err)
	}
}

// load writes a page to a file and opens that.
func (p tab) load(html string) string {
	p.t.Helper()
	file := filepath.Join(p.t.TempDir(), "plan.html")
	if err := os.WriteFile(file, []byte(html), 0o600); err != nil {
		p.t.Fatal(err)
	}
	p.do(chromedp.Navigate("file://" + file))
	return file
}

// scheme asks for dark or light.
func (p tab) scheme(name string) {
	p.t.Helper()
	p.do(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}},
		})
		return err
	}))
}

// eval is the value of an expression in the page, once it is there.
func eval[T any](p tab, expression string) T {
	p.t.Helper()
	v, err := chromedp.Run(p.ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		p.t.Fatalf("%s: %v", expression, err)
	}
	return v
}

// await waits until an expression holds.
func (p tab) await(expression string) {
	p.t.Helper()
	eval[bool](p, fmt.Sprintf(`new Promise((done) => { const look = () => (%s) ? done(true) : setTimeout(look, 20); look(); })`, expression))
}

// edit replaces text in a file of the simulator, as typing does.
func (p tab) edit(file, old, new string) {
	p.t.Helper()
	if !eval[bool](p, fmt.Sprintf(`(() => {
		const field = [...document.querySelectorAll('textarea')].find((f) => f.dataset.file.endsWith(%s));
		const text = field.value.replace(%s, %s);
		const changed = text !== field.value;
		field.value = text;
		field.dispatchEvent(new Event('input', {bubbles: true}));
		return changed;
	})()`, quote(file), quote(old), quote(new))) {
		p.t.Fatalf("%s has no %q", file, old)
	}
}

// recompute presses the button, and returns what the page says then.
func (p tab) recompute() (said, wrong string) {
	p.t.Helper()
	eval[bool](p, `document.getElementById('recompute').click(), true`)
	p.await(`/^(Recomputed|Not recomputed)/.test(document.getElementById('said').textContent)`)
	return eval[string](p, `document.getElementById('said').textContent`),
		eval[string](p, `document.getElementById('wrong').hidden ? '' : document.getElementById('wrong').textContent`)
}

func quote(s string) string {
	out, _ := json.Marshal(s) // strings always can be
	return string(out)
}
