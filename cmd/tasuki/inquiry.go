package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/tasuki-io/tasuki/internal/rotator"
)

// inquiry is what the commands that ask a cluster about its rotations share.
type inquiry struct {
	cluster
	namespace string
	output    string
}

// flags adds them to a command.
func (q *inquiry) flags(cmd *cobra.Command) {
	q.cluster.flags(cmd)
	cmd.Flags().StringVarP(&q.namespace, "namespace", "n", "node-rotation-system", "namespace of the controller and its placeholders")
	_ = cmd.RegisterFlagCompletionFunc("namespace", q.completeNamespace)
}

// outputFlag adds the form of the answer.
func (q *inquiry) outputFlag(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&q.output, "output", "o", "table", "table, json or yaml")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"table", "json", "yaml"}, cobra.ShellCompDirectiveNoFileComp))
}

// ask connects to the cluster.
func (q *inquiry) ask() (*rotator.Inquiry, client.Client, error) {
	c, err := q.client()
	if err != nil {
		return nil, nil, err
	}
	return &rotator.Inquiry{From: c, Live: c, Namespace: q.namespace, Now: time.Now}, c, nil
}

// judge refuses a form that there is none of.
func (q *inquiry) judge() error {
	if !slices.Contains([]string{"table", "json", "yaml"}, q.output) {
		return usageError{fmt.Errorf("-o %q: write table, json or yaml", q.output)}
	}
	return nil
}

// write writes an answer as data, or lets a table be written.
func (q *inquiry) write(out io.Writer, answer any, table func(io.Writer) error) error {
	switch q.output {
	case "json":
		e := json.NewEncoder(out)
		e.SetIndent("", "  ")
		e.SetEscapeHTML(false)
		return e.Encode(answer)
	case "yaml":
		text, err := yaml.Marshal(answer)
		if err != nil {
			return err
		}
		_, err = out.Write(text)
		return err
	}
	return table(out)
}

// named turns the error of an object that is not there into one of the command line.
func named(err error) error {
	if errors.Is(err, rotator.ErrNotThere) {
		return inputError{err}
	}
	return err
}

// away is an instant on the wall clock here, and how far away it is.
func away(t, now time.Time) string {
	switch d := t.Sub(now); {
	case t.IsZero():
		return "-"
	case d < 0:
		return fmt.Sprintf("%s, %s ago", wallClock(t), duration.HumanDuration(-d))
	default:
		return fmt.Sprintf("%s, in %s", wallClock(t), duration.HumanDuration(d))
	}
}
