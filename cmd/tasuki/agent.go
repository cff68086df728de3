package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/tasuki-io/tasuki/internal/agent"
)

// talk is what the commands that ask an agent share.
type talk struct {
	state  string
	output output
}

// flags adds them to a group of commands.
func (t *talk) flags(cmd *cobra.Command) {
	cmd.PersistentFlags().StringVar(&t.state, "state", "/var/lib/tasuki", "state directory of the agent to ask")
	cmd.PersistentFlags().VarP(&t.output, "output", "o", "table or json")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"table", "json"}, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.MarkPersistentFlagDirname("state")
}

func (t *talk) client() *agent.Client { return agent.NewClient(agent.Socket(t.state)) }

// output is how an answer is written.
type output string

func (o *output) String() string {
	if *o == "" {
		return "table"
	}
	return string(*o)
}

func (o *output) Type() string { return "format" }

func (o *output) Set(value string) error {
	if value != "table" && value != "json" {
		return errors.New("write table or json")
	}
	*o = output(value)
	return nil
}

// write writes an answer as JSON, or lets a table be written.
func (t *talk) write(out io.Writer, answer any, table func(io.Writer)) error {
	if t.output == "json" {
		e := json.NewEncoder(out)
		e.SetIndent("", "  ")
		e.SetEscapeHTML(false)
		return e.Encode(answer)
	}
	w := newGrid(out)
	table(w)
	return w.Flush()
}

// errRefused ends a command whose demand a rule or the gate refuses.
var errRefused = errors.New("refused")

// faulty turns an agent's fault into an error with an exit code of its own.
func faulty(err error) error {
	var f agent.FaultError
	if !errors.As(err, &f) {
		return err
	}
	switch f.Kind {
	case agent.FaultInput:
		return inputError{err}
	case agent.FaultRefused:
		return fmt.Errorf("%w: %w", errRefused, err)
	}
	return err
}

// moment tells a person when something was, and how long ago.
func moment(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	ago := time.Since(t).Round(time.Second)
	if ago < 0 {
		ago = 0
	}
	return fmt.Sprintf("%s (%s ago)", stamp(t), ago)
}

// stamp is a time of the wall clock here, to the second; of today without the date.
func stamp(t time.Time) string {
	t, now := t.Local(), time.Now()
	if t.YearDay() == now.YearDay() && t.Year() == now.Year() {
		return t.Format(time.TimeOnly)
	}
	return t.Format(time.DateTime)
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// short cuts a text that a column has no room for.
func short(s string, width int) string {
	if r := []rune(s); len(r) > width {
		return string(r[:width-1]) + "…"
	}
	return s
}

// rows labels the first of some lines.
type rows struct {
	w     io.Writer
	label string
}

func (r *rows) line(format string, args ...any) {
	fmt.Fprintf(r.w, "%s\t%s\n", r.label, fmt.Sprintf(format, args...))
	r.label = ""
}
