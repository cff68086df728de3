package page

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"strings"
	"time"

	"github.com/tasuki-io/tasuki/internal/manifest"
	"github.com/tasuki-io/tasuki/internal/rotator"
)

// Page is what is shown.
type Page struct {
	Plans    []rotator.Plan
	From, To time.Time
	Source   string   // where the objects are from, for people
	Notes    []string // what is to be said of them
	Version  string   // of tasuki

	Files     []manifest.File // what the plans are of, to be edited
	Pools     []string        // the NodePools that are planned for; all if empty
	Zone      string          // in which the simulator plans; that of the windows if empty
	Simulator Simulator       // the zero value leaves it out, and says so

	Live time.Duration // how often the page asks its server for Fragment; 0 is a page without one
}

// Simulator is Simulate, compiled for the browser.
type Simulator struct {
	Exec string // Go's wasm_exec.js
	Wasm string // WebAssembly under gzip, in base64
}

// Fragment is the path under which a server has the plans alone, as WritePlans writes them.
const Fragment = "plans"

//go:embed page.css
var style string

//go:embed page.js
var script string

//go:embed *.html
var templates embed.FS

var html = template.Must(template.New("").Funcs(template.FuncMap{
	"mark": mark, "stamp": stampOf, "zone": zoneOf,
}).ParseFS(templates, "*.html"))

// mostEditable is how many bytes a file may have that is shown to be edited: browsers are slow
// with more in one field.
const mostEditable = 256 << 10

// Write writes the page.
func (p Page) Write(w io.Writer) error {
	v := struct {
		Page
		Policy        string
		Style, Script template.HTML
		Exec, Wasm    template.HTML
		Body          template.HTML
		PoolNames, At string // for the simulator
		Days          int
		Editable      []file
	}{Page: p, Policy: p.policy(), At: p.From.Format(time.RFC3339), Days: int(p.To.Sub(p.From).Hours()/24 + 0.5)}
	names, err := json.Marshal(append([]string{}, p.Pools...))
	if err != nil {
		return err
	}
	v.PoolNames = string(names)
	v.Style, v.Script = "<style>"+template.HTML(style)+"</style>", "<script>"+template.HTML(script)+"</script>"
	if p.Simulator.Wasm != "" {
		v.Exec = "<script>" + template.HTML(p.Simulator.Exec) + "</script>"
		v.Wasm = template.HTML(p.Simulator.Wasm)
		for i, f := range p.Files {
			one := file{ID: fmt.Sprintf("file-%d", i), Name: f.Name, Text: string(f.Text), Rows: 6 + min(bytes.Count(f.Text, []byte("\n")), 18)}
			if len(f.Text) > mostEditable {
				one.Size, one.Packed, one.Text = len(f.Text)>>10, pack(one.Text), ""
			}
			v.Editable = append(v.Editable, one)
		}
	}
	var body bytes.Buffer
	if err := WritePlans(&body, p.Plans, p.From, p.To); err != nil {
		return err
	}
	v.Body = template.HTML(body.String())
	return html.ExecuteTemplate(w, "page.html", v)
}

// file is one of the input, to be edited or, packed, as it is.
type file struct {
	ID, Name, Text string
	Rows           int
	Size           int // in KiB, if it is packed
	Packed         template.HTML
}

// WritePlans writes the part of the page that plans make.
func WritePlans(w io.Writer, plans []rotator.Plan, from, to time.Time) error {
	v, err := viewOf(plans, from, to)
	if err != nil {
		return err
	}
	return html.ExecuteTemplate(w, "plans.html", v)
}

// mark is a sign for a severity, for those who do not tell colours apart.
func mark(level string) string {
	switch level {
	case "fatal":
		return "\u2716"
	case "warn":
		return "\u26a0"
	}
	return "\u2714"
}

// policy is the Content-Security-Policy of the page: its own style and scripts, by their hashes,
// and WebAssembly; no other origin. A live page also asks its own server.
func (p Page) policy() string {
	scripts := hash(script)
	if p.Simulator.Wasm != "" {
		scripts += " " + hash(p.Simulator.Exec) + " 'wasm-unsafe-eval'"
	}
	connect := "'none'"
	if p.Live > 0 {
		connect = "'self'"
	}
	return strings.Join([]string{
		"default-src 'none'", "script-src " + scripts, "style-src " + hash(style), "img-src data:",
		"connect-src " + connect, "base-uri 'none'", "form-action 'none'",
	}, "; ")
}

func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}
