package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"time"

	"github.com/spf13/cobra"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/tasuki-io/tasuki/internal/rotation"
	"github.com/tasuki-io/tasuki/internal/rotator"
)

func newStatus() *cobra.Command {
	q := &inquiry{}
	watch, serve := false, ""
	cmd := &cobra.Command{
		Use:   "status [NODEPOOL...]",
		Short: "Show where the rotations of all NodePools stand",
		Long: `Show, of all NodePools or of those that are named: the policy, the window that is open or the next one, the NodeClaims that
may be rotated now, the rotation under way, how the last one ended, what keeps the next one from starting, and when that can
change by itself. It asks the controller's own code about the cluster of the kubeconfig, and writes nothing.

With --watch the table is drawn anew whenever it changes, until it is interrupted. Where the output is no terminal, the rows
that change are printed as lines. NO_COLOR takes the colours off.

With --serve the plans of the next 30 days and the rotations under way are pages of this machine alone, read anew while
somebody looks; 'tasuki plan -o html' is the same as a file.

It needs to get and list NodePools, NodeClaims, Nodes, RotationPolicies and Pods, and to list PodDisruptionBudgets; --watch
also to watch the first five.

Exit codes: 0 shown, or interrupted; 1 the cluster cannot be read; 2 a mistake in the command or in what it names.`,
		Example: `  tasuki status
  tasuki status api web --watch
  tasuki status --serve 127.0.0.1:8088
  tasuki status -o json | jq '.[] | select(.rotation != null)'`,
		ValidArgsFunction: q.completeObject(&karpv1.NodePoolList{}, 0),
		RunE: func(cmd *cobra.Command, pools []string) error {
			if err := q.judge(); err != nil {
				return err
			}
			if watch && q.output != "table" {
				return usageError{fmt.Errorf("--watch draws a table: leave -o %s out", q.output)}
			}
			if serve != "" && (watch || q.output != "table" || len(pools) > 0) {
				return usageError{errors.New("--serve shows all NodePools as pages: leave names, -o and --watch out")}
			}
			of, from, err := q.ask()
			if err != nil {
				return err
			}
			if serve != "" {
				read := func(ctx context.Context) (rotator.Objects, error) { return rotator.Observe(ctx, from) }
				return servePages(cmd.Context(), serve, read, planDays, cmd.OutOrStdout())
			}
			all, err := of.Overviews(cmd.Context(), pools)
			if err != nil {
				return named(err)
			}
			if watch {
				return q.follow(cmd.Context(), cmd.OutOrStdout(), of, pools)
			}
			return q.write(cmd.OutOrStdout(), all, func(out io.Writer) error { return statusTable(out, all, time.Now()) })
		},
	}
	q.flags(cmd)
	q.outputFlag(cmd)
	cmd.Flags().BoolVarP(&watch, "watch", "w", false, "draw it anew whenever it changes")
	cmd.Flags().StringVar(&serve, "serve", "", "serve pages of it at this loopback `address`, such as 127.0.0.1:8088")
	return cmd
}

const (
	// settles is how long a view waits for more of what has just begun to change.
	settles = 200 * time.Millisecond
	// looksAgain is how often it looks at what no watch tells: the pods on a node that drains.
	looksAgain = 5 * time.Second
)

// follow shows the pools until ctx ends.
func (q *inquiry) follow(ctx context.Context, out io.Writer, of *rotator.Inquiry, pools []string) error {
	config, err := q.config()
	if err != nil {
		return err
	}
	feed, err := rotator.Follow(ctx, config, q.namespace)
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	of.From = feed
	screen, told := newScreen(out, false), map[string]string{}
	defer screen.clear()
	var v statusView
	for ctx.Err() == nil {
		all, err := of.Overviews(ctx, pools)
		// A cache is silent about an API server that is away.
		now := time.Now()
		if v.fault = errors.Join(err, of.Reach(ctx), feed.Fault(now)); v.fault == nil {
			v.pools, v.read = all, now
		}
		if ctx.Err() != nil {
			break
		}
		if !screen.live {
			told = report(out, v, told, now)
		}
		for change, again := false, time.After(v.next(now)); !change; {
			v.now = time.Now()
			screen.draw(v)
			select {
			case <-ctx.Done():
				change = true
			case <-feed.Changed:
				pause(ctx, settles)
				change = true
			case <-again:
				change = true
			case <-time.After(time.Second): // the times that are shown go on
			}
		}
	}
	return nil
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// report prints the rows that are not as they were told, and returns what is told by now.
func report(out io.Writer, v statusView, told map[string]string, now time.Time) map[string]string {
	is := map[string]string{}
	if v.fault != nil {
		is["cluster"] = "cannot be read: " + v.fault.Error()
	}
	for _, o := range v.pools {
		is["NodePool "+o.NodePool] = sentence(o)
	}
	for _, what := range sorted(is) {
		if told[what] != is[what] {
			fmt.Fprintf(out, "%s %s %s\n", now.UTC().Format(time.RFC3339), what, is[what])
		}
	}
	for _, what := range sorted(told) {
		if _, there := is[what]; !there {
			fmt.Fprintf(out, "%s %s %s\n", now.UTC().Format(time.RFC3339), what, map[bool]string{true: "is read again", false: "is gone"}[what == "cluster"])
		}
	}
	return maps.Clone(is)
}

// sentence is a pool without what moves by itself.
func sentence(o rotation.Overview) string {
	text := o.Reason + ": " + o.Detail
	if f := o.Rotation; f != nil {
		text = fmt.Sprintf("%s of NodeClaim %s: %s", f.Phase, f.NodeClaim, text)
	}
	if l := o.Last; l != nil {
		text += fmt.Sprintf("; last %s at %s", l.Outcome, l.At.UTC().Format(time.RFC3339))
	}
	return text
}
