package main

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tasuki-io/tasuki/lab/trial"
)

// view is all that one frame of the live status shows.
type view struct {
	now, begun time.Time
	threshold  time.Duration // zero while unknown
	scene      trial.Scene
	account    trial.Account
}

// age is how old the node is that waits for its rotation, if that is what we wait for.
func (v view) age() (age time.Duration, waiting bool) {
	if v.threshold == 0 || !v.account.Started.IsZero() || len(v.scene.Nodes) == 0 {
		return 0, false
	}
	return v.now.Sub(v.scene.Nodes[0].Born), true
}

// style is an ANSI colour; empty is none.
type style string

const (
	green  style = "32"
	yellow style = "33"
	red    style = "31"
	cyan   style = "36"
	faint  style = "2"
	bold   style = "1"
)

// span is text of one style. All its characters are one column wide.
type span struct {
	text  string
	style style
}

type line []span

func (l line) width() int {
	n := 0
	for _, s := range l {
		n += utf8.RuneCountInString(s.text)
	}
	return n
}

// render cuts the line at width, so that the terminal never wraps it.
func (l line) render(width int, colour bool) string {
	var b strings.Builder
	for _, s := range l {
		text := cut(s.text, width)
		width -= utf8.RuneCountInString(text)
		if colour && s.style != "" && text != "" {
			fmt.Fprintf(&b, "\x1b[%sm%s\x1b[0m", s.style, text)
		} else {
			b.WriteString(text)
		}
	}
	return strings.TrimRight(b.String(), " ")
}

// frame renders the status: one string per row, none wider than width.
func (v view) frame(width int, colour bool) []string {
	lines := []line{nil, v.stepper(width)}
	if age, waiting := v.age(); waiting {
		lines = append(lines, ageBar(age, v.threshold))
	}
	lines = append(lines, nil)
	for i, n := range v.scene.Nodes {
		lines = append(lines, v.node(i, n))
	}
	if len(v.scene.Unbound) > 0 {
		l := line{{pad("     not bound to a node", columns), yellow}}
		lines = append(lines, append(l, glyphs(v.scene.Unbound)...))
	}
	lines = append(lines, nil, v.legend())
	rows := make([]string, len(lines))
	for i, l := range lines {
		rows[i] = l.render(width, colour)
	}
	return rows
}

// stepper shows the phases, and the time since the demo began at the right.
func (v view) stepper(width int) line {
	phases := []string{phaseWait, phaseSurge, phaseHandOver, phaseDrain, phaseRelease, phaseDone}
	present := 0
	for i, p := range phases {
		if p == phaseOf(v.account) {
			present = i
		}
	}
	l := line{{" ", ""}}
	for i, p := range phases {
		if i > 0 {
			l = append(l, span{" ─ ", faint})
		}
		switch {
		case i < present, p == phaseDone && i == present:
			l = append(l, span{"✔ " + p, green})
		case i == present:
			l = append(l, span{"▶ " + p, bold})
		default:
			l = append(l, span{"· " + p, faint})
		}
	}
	elapsed := clock(v.now.Sub(v.begun))
	if gap := width - l.width() - len(elapsed) - 1; gap > 0 {
		l = append(l, span{strings.Repeat(" ", gap), ""}, span{elapsed, bold})
	}
	return l
}

// ageBar counts the age of the node up to where it is due.
func ageBar(age, threshold time.Duration) line {
	const length = 30
	full := min(length, max(0, int(length*age/threshold)))
	rest := fmt.Sprintf("due in %s", clock(threshold-age))
	if age > threshold {
		rest = "due"
	}
	return line{
		{" node age ", ""}, {clock(age), bold}, {" of " + clock(threshold) + " ", ""},
		{strings.Repeat("━", full), cyan}, {strings.Repeat("─", length-full), faint}, {" " + rest, ""},
	}
}

// The widths of a node's columns, and where its pods begin.
const (
	widthWhich = 5
	widthName  = 28
	widthClaim = 12
	widthState = 20
	columns    = widthWhich + widthName + widthClaim + widthState
)

// node is one row: which it is, its name and claim, how it is, its pods.
func (v view) node(i int, n trial.SceneNode) line {
	which, colour := "old", style("")
	if i > 0 || n.Name != "" && n.Name == v.account.NewNode || v.account.Claim != "" && n.Claim != v.account.Claim {
		which, colour = "new", cyan
	}
	name := n.Name
	if name == "" {
		name = "(no node yet)"
	}
	l := line{
		{pad(" "+which, widthWhich), colour}, {pad(name, widthName), bold}, {pad(n.Claim, widthClaim), ""},
		{pad(nodeState(n), widthState), stateStyle(n)},
	}
	return append(l, glyphs(n.Pods)...)
}

func nodeState(n trial.SceneNode) string {
	switch {
	case n.Leaving:
		return "draining"
	case n.Name == "":
		return "launching"
	case !n.Ready:
		return "registering"
	case n.Cordoned:
		return "Ready, cordoned"
	case n.Protected:
		return "Ready, protected"
	}
	return "Ready"
}

func stateStyle(n trial.SceneNode) style {
	switch {
	case n.Leaving:
		return red
	case n.Ready && !n.Cordoned:
		return green
	}
	return yellow
}

// pad makes text precisely so wide, with a space behind it.
func pad(text string, width int) string {
	if utf8.RuneCountInString(text) >= width {
		text = cut(text, width-2) + "…"
	}
	return text + strings.Repeat(" ", width-utf8.RuneCountInString(text))
}

// cut shortens text to so many characters.
func cut(text string, width int) string {
	if r := []rune(text); len(r) > max(width, 0) {
		return string(r[:max(width, 0)])
	}
	return text
}

func glyphs(pods []trial.ScenePod) line {
	var l line
	for i, p := range pods {
		if i > 0 {
			l = append(l, span{" ", ""})
		}
		l = append(l, glyph(p))
	}
	return l
}

func glyph(p trial.ScenePod) span {
	if p.Placeholder {
		return span{"▢", cyan}
	}
	switch p.State {
	case trial.PodServing:
		return span{"●", green}
	case trial.PodDeparts:
		return span{"◌", red}
	case trial.PodUnbound:
		return span{"?", yellow}
	}
	return span{"◐", yellow}
}

func (v view) legend() line {
	return line{
		{" ", ""}, {"●", green}, {" ready  ", faint}, {"◐", yellow}, {" starting  ", faint}, {"◌", red}, {" leaving  ", faint},
		{"▢", cyan}, {" placeholder  ", faint}, {fmt.Sprintf("%d of %d pods Ready", v.scene.Ready, v.scene.Replicas), ""},
	}
}
