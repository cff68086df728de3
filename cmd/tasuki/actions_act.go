package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/tasuki-io/tasuki/internal/agent"
	"github.com/tasuki-io/tasuki/internal/capture"
	"github.com/tasuki-io/tasuki/internal/executor"
)

func newActionsApprove(t *talk) *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use: "approve ID... | --all", Short: "Approve pending actions; the agent executes them if its policy permits",
		Long: `Approve pending actions; the agent executes them if its policy permits. One that is not pending any more stays as it
is, and the command fails with exit code 3 when it has approved none.`,
		Example: `  tasuki actions approve 3fa827c0
  tasuki actions approve --all`,
		ValidArgsFunction: t.completeAction("pending"),
		RunE: func(cmd *cobra.Command, ids []string) error {
			if all == (len(ids) > 0) {
				return usageError{errors.New("name the actions to approve, or give --all")}
			}
			if all {
				var err error
				if ids, err = t.chosen(cmd.Context(), nil, capture.Pending); err != nil {
					return faulty(err)
				}
			}
			return t.approve(cmd, ids)
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "approve everything that is pending")
	return cmd
}

func (t *talk) approve(cmd *cobra.Command, ids []string) error {
	done := []string{}
	if len(ids) > 0 {
		var err error
		if done, err = t.client().Approve(cmd.Context(), ids...); err != nil {
			return faulty(err)
		}
	}
	err := t.write(cmd.OutOrStdout(), agent.Choice{IDs: done}, func(w io.Writer) {
		for _, id := range done {
			fmt.Fprintf(w, "approved %s\t%s\n", agent.Handle(id), id)
		}
		if len(ids) == 0 {
			fmt.Fprintln(w, "nothing is pending")
		}
	})
	if err == nil && len(done) == 0 && len(ids) > 0 {
		return fmt.Errorf("%w: none of the %d is pending: `tasuki actions list --all` shows what they are", errRefused, len(ids))
	}
	return err
}

func newActionsRollback(t *talk) *cobra.Command {
	return &cobra.Command{
		Use: "rollback ID", Short: "Plan the reverse of an action that has succeeded; the gate and allowUndo decide", Args: operands,
		Example:           "  tasuki actions rollback 3fa827c0",
		ValidArgsFunction: t.completeAction("succeeded"),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := t.client().Rollback(cmd.Context(), args[0])
			if err != nil {
				return faulty(err)
			}
			return t.write(cmd.OutOrStdout(), agent.Choice{IDs: []string{id}}, func(w io.Writer) {
				fmt.Fprintf(w, "planned %s\t%s\n", agent.Handle(id), id)
			})
		},
	}
}

func newActionsExecute(t *talk) *cobra.Command {
	var dry, approved bool
	var timeout time.Duration
	cmd := &cobra.Command{
		Use: "execute --dry-run | --approved [ID...]", Short: "Rehearse actions, or have the approved ones executed now",
		Long: `With --dry-run, ask the gate, the policy and the provider what would become of the actions that are not over.
Nothing is changed, and no approval is used up. The exit code is 1 when the provider says of one that it would fail,
or has not answered; what the policy blocks, or is stale, does not count.

With --approved, have the approved actions executed now, those that have failed and wait for their next attempt
among them, and return when each of them has ended or is blocked: with exit code 1 when one has failed, and 3 when
one was not executed.`,
		Example: `  tasuki actions execute --dry-run
  tasuki actions execute --approved 3fa827c0`,
		ValidArgsFunction: t.completeAction("pending", "approved", "failed"),
		RunE: func(cmd *cobra.Command, ids []string) error {
			if dry == approved {
				return usageError{errors.New("give either --dry-run or --approved")}
			}
			if dry {
				return t.rehearse(cmd, ids)
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
			defer cancel()
			return t.execute(ctx, cmd.OutOrStdout(), ids)
		},
	}
	cmd.Flags().BoolVar(&dry, "dry-run", false, "ask what would become of them")
	cmd.Flags().BoolVar(&approved, "approved", false, "execute those that are approved")
	cmd.Flags().DurationVar(&timeout, "timeout", 2*time.Minute, "how long to wait for the ends")
	return cmd
}

// chosen are the named actions, or all in one of these states.
func (t *talk) chosen(ctx context.Context, ids []string, states ...capture.State) ([]string, error) {
	if len(ids) > 0 {
		return ids, nil
	}
	q := url.Values{}
	for _, s := range states {
		q.Add("state", string(s))
	}
	list, err := t.client().Actions(ctx, q)
	for _, a := range list {
		ids = append(ids, a.ID)
	}
	return ids, err
}

func (t *talk) rehearse(cmd *cobra.Command, ids []string) error {
	ids, err := t.chosen(cmd.Context(), ids, capture.Pending, capture.Approved, capture.Failed)
	if err != nil {
		return faulty(err)
	}
	list, err := t.client().Rehearse(cmd.Context(), ids...)
	if err != nil {
		return faulty(err)
	}
	err = t.write(cmd.OutOrStdout(), list, func(w io.Writer) {
		for _, r := range list {
			rehearsal(w, r)
		}
		if len(list) == 0 {
			fmt.Fprintln(w, "nothing is to be executed")
		}
	})
	return errors.Join(err, doomed(list))
}

// doomed is an error when the provider says of one that it would fail, or nobody has answered.
// What the policy blocks and what is stale is no failure of a rehearsal: it is what was asked for.
func doomed(list []agent.Rehearsal) error {
	failed := 0
	for _, r := range list {
		asked := r.Outcome != "" || r.Stale == "" && len(r.Missing) == 0
		if asked && r.Outcome != executor.OutcomeDone && r.Outcome != executor.OutcomeAlready && r.Outcome != executor.OutcomeAgain {
			failed++
		}
	}
	if failed == 0 {
		return nil
	}
	return fmt.Errorf("%d of %d actions would fail, or it is not known that they would not", failed, len(list))
}

// rehearsal writes what would become of an action.
func rehearsal(w io.Writer, r agent.Rehearsal) {
	lines := rows{w, r.Handle}
	of := ""
	if r.Address != "" {
		of = " of " + r.Address
	}
	lines.line("%s%s on %s at epoch %d", r.Verb, of, r.NIC, r.Epoch)
	if r.Stale != "" {
		lines.line("  gate: refuses it: %s", r.Stale)
		return
	}
	lines.line("  gate: passes")
	if len(r.Missing) == 0 {
		lines.line("  policy: permits it")
	}
	lacking(&lines, r.Missing)
	detail := r.Detail
	if r.Code != "" {
		detail = r.Code + ": " + detail
	}
	if r.Outcome != "" {
		detail = string(r.Outcome) + ": " + detail
	}
	lines.line("  provider: %s", detail)
}

// execute makes actions due, and waits until each has made an attempt or is held.
func (t *talk) execute(ctx context.Context, out io.Writer, ids []string) error {
	ids, err := t.chosen(ctx, ids, capture.Approved, capture.Failed)
	if err != nil {
		return faulty(err)
	}
	ended := []agent.Action{}
	for some := range slices.Chunk(ids, 100) {
		before, err := t.client().Actions(ctx, url.Values{"id": some})
		if err != nil {
			return faulty(err)
		}
		if _, err = t.client().Execute(ctx, some...); err != nil {
			return faulty(err)
		}
		for _, b := range before {
			a, err := t.await(ctx, b)
			if err != nil {
				return err
			}
			ended = append(ended, a)
		}
	}
	err = t.write(out, ended, func(w io.Writer) {
		if len(ended) == 0 {
			fmt.Fprintln(w, "nothing is approved")
			return
		}
		table(w, ended)
	})
	return errors.Join(err, judge(ended))
}

// await returns an action when it has made an attempt that has ended, or when something holds
// it for longer.
func (t *talk) await(ctx context.Context, before agent.Action) (agent.Action, error) {
	for held := 0; ; {
		list, err := t.client().Actions(ctx, url.Values{"id": {before.ID}})
		if err != nil {
			return before, faulty(err)
		}
		a := list[0]
		switch {
		case !a.State.Open():
			return a, nil
		case a.State != capture.Running && a.Attempts > before.Attempts:
			return a, nil
		case a.State == capture.Pending, a.Rule != "" && a.Rule != capture.RuleMaxPerRun,
			a.Wait == capture.WaitTakeover, a.Wait == capture.WaitHold, a.Wait == capture.WaitCaptured:
			if held++; held > 5 { // the pass that the command has brought about has been
				return a, nil
			}
		}
		select {
		case <-ctx.Done():
			return a, fmt.Errorf("action %s has not ended in time: it is %s: `tasuki actions show %s` says why", a.Handle, a.State, a.Handle)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// judge is an error when not all of them succeeded.
func judge(ended []agent.Action) error {
	failed, held := 0, 0
	for _, a := range ended {
		switch {
		case a.State == capture.Succeeded, a.State == capture.RolledBack:
		case a.State == capture.Failed, a.State == capture.Approved && a.Code != "":
			failed++
		default:
			held++
		}
	}
	switch {
	case failed > 0:
		return fmt.Errorf("%d of %d actions failed", failed, len(ended))
	case held > 0:
		return fmt.Errorf("%w: %d of %d actions were not executed", errRefused, held, len(ended))
	}
	return nil
}
