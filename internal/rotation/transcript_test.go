package rotation

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
	corev1 "k8s.io/api/core/v1"
)

var update = flag.Bool("update", false, "write the transcripts in testdata anew")

// TestTranscripts replays every incident in testdata: its script line by line against the
// model, and what came of it against its transcript. README in testdata says what a
// script may say.
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) { replay(t, file) })
	}
}

func replay(t *testing.T, file string) {
	archive, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if len(archive.Files) == 0 || archive.Files[0].Name != "script" || len(bytes.TrimSpace(archive.Comment)) == 0 {
		t.Fatalf("%s: want a report of the incident, then -- script --, then -- transcript --", file)
	}
	got, err := transcribe(string(archive.Files[0].Data))
	if err != nil {
		t.Fatalf("%s: %v\nso far:\n%s", file, err, got)
	}
	if *update {
		archive.Files = append(archive.Files[:1], txtar.File{Name: "transcript", Data: []byte(got)})
		if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if len(archive.Files) != 2 || archive.Files[1].Name != "transcript" {
		t.Fatalf("%s: there is no transcript: run the test with -update and read what it writes", file)
	}
	if diff := cmp.Diff(string(archive.Files[1].Data), got); diff != "" {
		t.Errorf("%s (-want +got; -update accepts it):\n%s", file, diff)
	}
}

func TestAScriptWithAnUnknownWordIsRefused(t *testing.T) {
	const begin = "clock 2026-06-10T02:00:00Z\npolicy\npool blue\nclaim blue-a node=node-a age=6d\n"
	for _, line := range []string{
		"dance", "decide twice", "act one", "wait long", "clock noon", "policy colour=red", "pool blue big",
		"claim blue-b node=node-b sleepy", "pod p on=node-x", "node node-a asleep", "placeholder running", "gone blue-x",
		"annotate nobody freeze=x", "cordon node-x", "act stale", "policy windows=never", "show me",
	} {
		if _, err := transcribe(begin + line + "\n"); err == nil {
			t.Errorf("%q was accepted", line)
		}
	}
}

// transcriber plays a script.
type transcriber struct {
	*world
	out    strings.Builder
	last   Decision
	stale  *Snapshot
	writes int
}

// transcribe plays a script and returns its transcript.
func transcribe(script string) (string, error) {
	r := &transcriber{world: newWorld(time.Time{})}
	for n, text := range strings.Split(script, "\n") {
		text = strings.TrimSpace(text)
		if text == "" || text[0] == '#' {
			fmt.Fprintln(&r.out, text)
			continue
		}
		fmt.Fprintf(&r.out, "> %s\n", text)
		l, err := parseLine(text)
		if err == nil {
			err = r.play(l)
		}
		if err != nil {
			return r.out.String(), fmt.Errorf("script line %d %q: %w", n+1, text, err)
		}
	}
	return strings.TrimSpace(r.out.String()) + "\n", nil
}

// line is one line of a script: a verb, words, and options.
type line struct {
	verb  string
	words []string
	opts  map[string]string
	order []string // the keys of opts as written
}

func parseLine(text string) (*line, error) {
	l := &line{opts: map[string]string{}}
	var words []string
	var word strings.Builder
	quoted := false
	for _, c := range text + " " {
		switch {
		case c == '"':
			quoted = !quoted
		case c == ' ' && !quoted:
			if word.Len() > 0 {
				words = append(words, word.String())
				word.Reset()
			}
		default:
			word.WriteRune(c)
		}
	}
	if quoted {
		return nil, errors.New("a quotation mark has no partner")
	}
	l.verb = words[0]
	for _, w := range words[1:] {
		if k, v, ok := strings.Cut(w, "="); ok {
			l.opts[k] = v
			l.order = append(l.order, k)
		} else {
			l.words = append(l.words, w)
		}
	}
	return l, nil
}

// next takes the next word; it is empty when there is none.
func (l *line) next() string {
	if len(l.words) == 0 {
		return ""
	}
	w := l.words[0]
	l.words = l.words[1:]
	return w
}

// flag takes a word wherever it stands.
func (l *line) flag(word string) bool {
	i := slices.Index(l.words, word)
	if i < 0 {
		return false
	}
	l.words = slices.Delete(l.words, i, i+1)
	return true
}

func (l *line) option(key string) (string, bool) {
	v, ok := l.opts[key]
	delete(l.opts, key)
	return v, ok
}

// rest is an error if anything was not understood.
func (l *line) rest() error {
	if len(l.words) > 0 {
		return fmt.Errorf("unknown word %q", l.words[0])
	}
	for _, k := range l.order {
		if _, left := l.opts[k]; left {
			return fmt.Errorf("unknown option %q", k)
		}
	}
	return nil
}

func (l *line) duration(key string, to *time.Duration) error {
	v, ok := l.option(key)
	if !ok {
		return nil
	}
	d, err := parseDuration(v)
	*to = d
	return err
}

// optional reads a duration that may be absent; word stands for its absence.
func (l *line) optional(key, word string, to **time.Duration) error {
	if l.opts[key] == word {
		l.option(key)
		*to = nil
		return nil
	}
	if _, ok := l.opts[key]; !ok {
		return nil
	}
	d := new(time.Duration)
	*to = d
	return l.duration(key, d)
}

// resources takes the options that begin with a prefix, as quantities.
func (l *line) resources(under string) corev1.ResourceList {
	var found corev1.ResourceList
	for _, k := range l.order {
		name, ok := strings.CutPrefix(k, under)
		if v, left := l.opts[k]; ok && left {
			if found == nil {
				found = corev1.ResourceList{}
			}
			found[corev1.ResourceName(name)] = list("x", v)["x"]
			delete(l.opts, k)
		}
	}
	return found
}

// parseDuration reads a Go duration, or days: "14d".
func parseDuration(s string) (time.Duration, error) {
	if days, ok := strings.CutSuffix(s, "d"); ok {
		n, err := strconv.Atoi(days)
		return time.Duration(n) * 24 * time.Hour, err
	}
	return time.ParseDuration(s)
}

func (r *transcriber) play(l *line) error {
	verbs := map[string]func(*line) error{
		"clock": r.playClock, "wait": r.playWait, "wake": r.playWake,
		"policy": r.playPolicy, "ungoverned": r.playUngoverned, "conflict": r.playConflict,
		"pool": r.playPool, "claim": r.playClaim, "pod": r.playPod,
		"register": r.playRegister, "delete": r.playDelete, "gone": r.playGone,
		"node": r.playNode, "cordon": r.playCordon, "uncordon": r.playUncordon,
		"annotate": r.playAnnotate, "unannotate": r.playUnannotate,
		"placeholder": r.playPlaceholder,
		"remember":    r.playRemember, "decide": r.playDecide, "act": r.playAct, "show": r.playShow,
	}
	play, ok := verbs[l.verb]
	if !ok {
		return fmt.Errorf("unknown word %q", l.verb)
	}
	if err := play(l); err != nil {
		return err
	}
	return l.rest()
}

func (r *transcriber) printf(format string, args ...any) {
	fmt.Fprintf(&r.out, "  "+format+"\n", args...)
}

// Time.

func (r *transcriber) playClock(l *line) (err error) {
	r.now, err = time.Parse(time.RFC3339, l.next())
	return err
}

func (r *transcriber) playWait(l *line) error {
	d, err := parseDuration(l.next())
	r.now = r.now.Add(d)
	r.printf("it is %s", r.now.Format("Mon 2006-01-02 15:04:05"))
	return err
}

func (r *transcriber) playWake(*line) error {
	if r.last.Wake.IsZero() {
		return errors.New("the last decision named no wake-up")
	}
	r.now = r.last.Wake
	r.printf("it is %s", r.now.Format("Mon 2006-01-02 15:04:05.999999999"))
	return nil
}

// Questions and writes.

func (r *transcriber) playDecide(*line) error {
	r.last = r.decide()
	r.report(r.last)
	for _, st := range r.last.Plan {
		r.printf("would %s", st)
		r.detail(st)
	}
	return nil
}

func (r *transcriber) playAct(l *line) error {
	d, n := r.decide(), -1
	if l.flag("stale") {
		if r.stale == nil {
			return errors.New("there is nothing to remember")
		}
		d = Decide(*r.stale, r.now)
	}
	if word := l.next(); word != "" {
		var err error
		if n, err = strconv.Atoi(word); err != nil {
			return err
		}
	}
	done, err := r.act(d.Plan, n)
	for _, st := range done {
		if st.Act == ActHoldClaim {
			r.printf("check: %s", st)
			continue
		}
		r.writes++
		r.printf("write %d: %s", r.writes, st)
		r.detail(st)
	}
	switch {
	case errors.As(err, &unlawful{}):
		return err
	case err != nil:
		r.printf("stopped: %v", err)
	case n >= 0 && n < len(d.Plan):
		r.printf("crash, with %d of %d steps done", n, len(d.Plan))
	}
	if len(d.Plan) == 0 {
		r.report(d)
	} else {
		r.warn(d)
	}
	r.last = d
	return nil
}

func (r *transcriber) report(d Decision) {
	who := "no rotation"
	if d.Active != "" {
		who = "rotation of " + d.Active
	}
	switch {
	case d.Detail != "":
		r.printf("%s: %s: %s", who, d.Reason, d.Detail)
	case d.Reason != "":
		r.printf("%s: %s", who, d.Reason)
	default:
		r.printf("%s", who)
	}
	if !d.Wake.IsZero() {
		r.printf("wake in %s", d.Wake.Sub(r.now))
	}
	r.warn(d)
}

func (r *transcriber) warn(d Decision) {
	for _, w := range d.Warnings {
		on := ""
		if w.On.Name != "" {
			on = " on " + w.On.Name
		}
		r.printf("warning %s%s: %s", w.Code, on, w.Message)
	}
}

// detail prints what a step creates or announces beyond its own line.
func (r *transcriber) detail(st Step) {
	if c := st.Create; c != nil {
		r.detailPlaceholder(c)
	}
	f := st.Facts
	switch {
	case st.Act == ActMissWindow:
		r.printf("    missed: open since %s, %d eligible, %d in backoff", f.WindowOpened.Format(time.RFC3339), f.Eligible, f.InBackoff)
	case f.Outcome == Failure:
		r.printf("    failure: %s; attempt %d, the next may start at %s", f.Reason, f.RetryCount, f.BackoffUntil.Format(time.RFC3339))
		if f.Kept != "" {
			r.printf("    kept: %s", f.Kept)
		}
	case f.Outcome == Success:
		if f.Mode == ModeFallback {
			r.printf("    success: without a surge; drained in %s", f.Drain)
			break
		}
		r.printf("    success: surge %s %s, waited %s; drained in %s", f.SurgeNode, f.SurgePath, f.SurgeWait, f.Drain)
	case f.Outcome == Gone:
		r.printf("    expired")
	case st.Act == ActReleaseAnchor && f.Reason != "":
		r.printf("    given up: %s", f.Reason)
	}
}

func (r *transcriber) detailPlaceholder(c *PlaceholderSpec) {
	size := fmt.Sprintf("for %d pods: requests %s", c.Sizing.Pods, quantities(c.Requests))
	if len(c.Limits) > 0 {
		size += "; limits " + quantities(c.Limits)
	}
	if c.Sizing.Clamped {
		size += "; clamped from " + quantities(c.Sizing.Sum)
	}
	if c.Sizing.Raised {
		size += "; a whole node"
	}
	if c.Sizing.Refused != "" {
		size += "; the clamp is refused for " + string(c.Sizing.Refused)
	}
	r.printf("    %s", size)
	if code, message := c.ClampNotice(); code != "" {
		r.printf("    %s: %s", code, message)
	}
	for _, q := range c.Required {
		r.printf("    requires %s %s %s", q.Key, q.Operator, strings.Join(q.Values, ","))
	}
	for _, q := range c.Preferred {
		r.printf("    prefers %s %s %s", q.Key, q.Operator, strings.Join(q.Values, ","))
	}
	for _, t := range c.Tolerations {
		r.printf("    tolerates %s=%s:%s", t.Key, t.Value, t.Effect)
	}
	for _, key := range c.Dropped {
		r.printf("    drops %s: the pool permits no such node", key)
	}
}

func (r *transcriber) playRemember(*line) error {
	s := r.view()
	r.stale = &s
	return nil
}

func (r *transcriber) playShow(*line) error {
	marks := r.marks()
	for _, m := range marks {
		r.printf("%s", m)
	}
	if len(marks) == 0 {
		r.printf("no mark on any object")
	}
	return nil
}
