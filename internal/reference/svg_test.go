package reference

import (
	"encoding/xml"
	"fmt"
	"strings"
	"testing"
)

// picture is an SVG in the making, for dark and light. Whoever cannot see it is read its title and
// its description.
type picture struct {
	width, height int
	title, about  string
	body          strings.Builder
}

const style = `
:root { color-scheme: light dark; --bg: #fff; --fg: #1b1f24; --soft: #57606a; --line: #c8ccd1; --panel: #eef1f4; --mark: #0550ae; --ok: #116329; --warn: #9a5b00; --fatal: #a40e26; }
@media (prefers-color-scheme: dark) { :root { --bg: #0d1117; --fg: #e6edf3; --soft: #a3adb8; --line: #3d444d; --panel: #1f262e; --mark: #79b8ff; --ok: #56d364; --warn: #e3b341; --fatal: #ff8e86; } }
text { font: 13px system-ui, sans-serif; fill: var(--fg); } .soft { fill: var(--soft); } .small { font-size: 11px; } .strong { font-weight: 600; } .mid { text-anchor: middle; } .end { text-anchor: end; }
.bg { fill: var(--bg); } .panel { fill: var(--panel); } .open { fill: var(--ok); fill-opacity: .28; } .calm { fill: var(--line); } .due { fill: var(--warn); } .over { fill: var(--fatal); } .ok { fill: var(--ok); } .mark { fill: var(--mark); } .on { fill: var(--bg); }
.edge { stroke: var(--line); } .rule { stroke: var(--fg); } .go { stroke: var(--mark); stroke-width: 2; fill: none; } .no { stroke: var(--fatal); stroke-width: 2; stroke-dasharray: 5 4; fill: none; }
`

func (p *picture) add(format string, args ...any) { fmt.Fprintf(&p.body, format+"\n", args...) }

func (p *picture) rect(x, y, w, h int, class string) {
	p.add(`<rect x="%d" y="%d" width="%d" height="%d" class="%s"/>`, x, y, w, h, class)
}

func (p *picture) line(x1, y1, x2, y2 int, class string) {
	p.add(`<line x1="%d" y1="%d" x2="%d" y2="%d" class="%s"/>`, x1, y1, x2, y2, class)
}

// arrow goes along a row.
func (p *picture) arrow(x1, x2, y int, class string) {
	back := 6
	if x2 < x1 {
		back = -6
	}
	p.add(`<path d="M%d %dH%dm%d -5l%d 5l%d 5" class="%s"/>`, x1, y, x2, -back, back, -back, class)
}

func (p *picture) text(x, y int, class, format string, args ...any) {
	var escaped strings.Builder
	_ = xml.EscapeText(&escaped, fmt.Appendf(nil, format, args...))
	p.add(`<text x="%d" y="%d" class="%s">%s</text>`, x, y, class, escaped.String())
}

// number is a step with its number.
func (p *picture) number(x, y, n int) {
	p.add(`<circle cx="%d" cy="%d" r="9" class="mark"/>`, x, y)
	p.text(x, y+4, "small mid strong on", "%d", n)
}

// keep holds it to a file in docs/pictures.
func (p *picture) keep(t *testing.T, name string) {
	t.Helper()
	var title, about strings.Builder
	_ = xml.EscapeText(&title, []byte(p.title))
	_ = xml.EscapeText(&about, []byte(p.about))
	text := fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" aria-labelledby="title about">
<title id="title">%s</title>
<desc id="about">%s</desc>
<style>%s</style>
<rect width="100%%" height="100%%" class="bg"/>
%s</svg>
`, p.width, p.height, p.width, p.height, title.String(), about.String(), style, p.body.String())
	if err := xml.Unmarshal([]byte(text), new(struct{})); err != nil {
		t.Fatalf("%s is not XML: %v", name, err)
	}
	Keep(t, "pictures/"+name, text)
}
