package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tasuki-io/tasuki/internal/agent"
)

const exitCodes = `Exit codes: 0 done, 1 failed, 2 a mistake in the command or in what it names, 3 refused by a rule or by the gate.`

func newCaptures() *cobra.Command {
	t := &talk{}
	cmd := &cobra.Command{
		Use:   "captures",
		Short: "See and move the mobile addresses of a host",
		Example: `  tasuki captures list
  tasuki captures explain 10.0.0.7`,
		Long: "See and move the mobile addresses of a host, through its agent.\n\n" + exitCodes,
		Args: subcommand,
		RunE: needsSubcommand,
	}
	t.flags(cmd)
	cmd.AddCommand(
		&cobra.Command{
			Use: "list", Short: "List the addresses that the agent's node may capture", Args: operands,
			Example: `  tasuki captures list
  tasuki captures list -o json | jq '.[] | select(.state != "held")'`,
			RunE: func(cmd *cobra.Command, _ []string) error { return t.captures(cmd) },
		},
		&cobra.Command{
			Use: "explain ADDRESS", Short: "Say who holds an address, at which epoch, since when, and what is pending or blocked", Args: operands,
			Example:           "  tasuki captures explain 10.0.0.7",
			ValidArgsFunction: t.completeAddress,
			RunE:              func(cmd *cobra.Command, args []string) error { return t.explain(cmd, args[0]) },
		},
		&cobra.Command{
			Use: "status", Short: "Say which configuration is in force, who is drained, and whether passes succeed", Args: operands,
			Example: "  tasuki captures status",
			RunE:    func(cmd *cobra.Command, _ []string) error { return t.status(cmd) },
		},
		newDoctor(t),
		newDrain(t),
		&cobra.Command{
			Use: "undrain NODE", Short: "Let a node back into its placements", Args: operands,
			Example:           "  tasuki captures undrain edge-a",
			ValidArgsFunction: t.completeNode,
			RunE:              func(cmd *cobra.Command, args []string) error { return t.drain(cmd, args[0], false) },
		},
		newOwn(t),
	)
	return cmd
}

func newDrain(t *talk) *cobra.Command {
	var wait bool
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:     "drain NODE",
		Short:   "Take a node out of every placement: others take its addresses",
		Example: "  tasuki captures drain edge-a --wait",
		Long: `Take a node out of every placement: others take its addresses, and it releases them when they have. Any agent that
shares the claims takes the command. With --wait, ask the agent of the node itself: the command returns when the node
has released everything, and may be turned off.`,
		Args:              operands,
		ValidArgsFunction: t.completeNode,
		RunE: func(cmd *cobra.Command, args []string) error {
			if wait {
				s, err := t.client().Status(cmd.Context())
				if err != nil {
					return faulty(err)
				}
				if s.Node != args[0] {
					return inputError{fmt.Errorf("--wait: the agent at %s is that of %s: ask that of %s", t.state, s.Node, args[0])}
				}
			}
			if err := t.drain(cmd, args[0], true); err != nil || !wait {
				return err
			}
			return t.awaitRelease(cmd, args[0], timeout)
		},
	}
	cmd.Flags().BoolVar(&wait, "wait", false, "return when the node has released everything")
	cmd.Flags().DurationVar(&timeout, "timeout", 2*time.Minute, "how long to wait")
	return cmd
}

func newOwn(t *talk) *cobra.Command {
	var own agent.Own
	cmd := &cobra.Command{
		Use:   "own ADDRESS SITE",
		Short: "Say at which site an address lives, whatever the configuration says; every other site captures it",
		Example: `  tasuki captures own 10.0.0.7 osaka --node web-1
  tasuki captures own 10.0.0.7 none`,
		Long: `Say at which site an address lives, whatever the configuration says. Members of that site never capture it, and
those of every other site do. The site "none" says that it lives nowhere: nobody captures it then.`,
		Args:              operands,
		ValidArgsFunction: t.completeAddress,
		RunE: func(cmd *cobra.Command, args []string) error {
			addr, err := agent.ParseAddress(args[0])
			if err != nil {
				return inputError{err}
			}
			if own.Address = addr; args[1] != "none" {
				own.Site = args[1]
			}
			home, err := t.client().Own(cmd.Context(), own)
			if err != nil {
				return faulty(err)
			}
			return t.write(cmd.OutOrStdout(), home, func(w io.Writer) {
				fmt.Fprintf(w, "%s lives at %s (location epoch %d)\n", addr, cmp.Or(home.Site, "no site"), home.Epoch)
			})
		},
	}
	cmd.Flags().StringVar(&own.Pool, "pool", "", "MobilityPool of the address")
	cmd.Flags().StringVar(&own.Node, "node", "", "node that owns it there")
	return cmd
}

func (t *talk) captures(cmd *cobra.Command) error {
	list, err := t.client().Captures(cmd.Context())
	if err != nil {
		return faulty(err)
	}
	return t.write(cmd.OutOrStdout(), list, func(w io.Writer) {
		fmt.Fprintln(w, "POOL\tADDRESS\tSTATE\tHOLDER\tEPOCH\tLIVES AT\tPENDING")
		for _, c := range list {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d\t%s\t%s\n", c.Pool, c.Address, c.State, dash(c.Holder), c.Epoch, dash(c.Home.Site), dash(strings.Trim(pendings(c.Pending)+", "+troubles(c), ", ")))
		}
	})
}

func (t *talk) status(cmd *cobra.Command) error {
	s, err := t.client().Status(cmd.Context())
	if err != nil {
		return faulty(err)
	}
	return t.write(cmd.OutOrStdout(), s, func(w io.Writer) {
		fmt.Fprintf(w, "Node\t%s\n", s.Node)
		fmt.Fprintf(w, "Passes\t%s\n", cmp.Or(s.Failure, "succeed"))
		fmt.Fprintf(w, "Policy\t%s\n", s.Policy)
		fmt.Fprintf(w, "Drained\t%s\n", cmp.Or(strings.Join(s.Drained, ", "), "nobody at run time"))
		fmt.Fprintf(w, "Attempts\t%d under way\n", s.Running)
		if len(s.Failed) > 0 {
			fmt.Fprintf(w, "Failed\t%d: %s actions show %s\n", len(s.Failed), called, s.Failed[0])
		}
		blind := rows{w, "Not seen"}
		for _, b := range s.Blind {
			blinded(&blind, b)
		}
		fmt.Fprintf(w, "Config\t%s, digest %s\n", strings.Join(s.Files, ", "), s.Digest)
		r := rows{w, "Refused"}
		for _, problem := range s.Refused {
			r.line("%s", problem)
		}
	})
}

func (t *talk) explain(cmd *cobra.Command, address string) error {
	list, err := t.client().Explain(cmd.Context(), address)
	if err != nil {
		return faulty(err)
	}
	return t.write(cmd.OutOrStdout(), list, func(w io.Writer) {
		for i, e := range list {
			if i > 0 {
				fmt.Fprintln(w)
			}
			explain(w, e)
		}
	})
}

// explain writes an explanation for a person, the answer first.
func explain(w io.Writer, e agent.Explanation) {
	seen := "since"
	if !e.Journalled {
		seen = "seen since"
	}
	fmt.Fprintf(w, "Address\t%s in MobilityPool %s, %s\n", e.Address, e.Pool, e.Domain)
	fmt.Fprintf(w, "Holder\t%s at epoch %d, %s %s\n", cmp.Or(e.Holder, "unknown"), e.Epoch, seen, moment(e.Since))
	fmt.Fprintf(w, "State\t%s: %s\n", e.State, phases[e.State])
	fmt.Fprintf(w, "Lives at\t%s (%s, location epoch %d)\n", cmp.Or(e.Home.Site, "no site"), e.Home.State, e.Home.Epoch)
	members := rows{w, "Members"}
	for _, m := range e.Members {
		members.line("%s at %s, priority %d%s", m.Node, m.Site, m.Priority, bar(m))
	}
	if v := e.VRRP; v != nil {
		fmt.Fprintf(w, "VRRP\t%s says %s, %s\n", v.Instance, v.Word, cmp.Or(v.Reason, "proven to be MASTER"))
	}
	if !e.Confirmed.IsZero() {
		fmt.Fprintf(w, "Journal\tthe provider confirmed the last action about it at %s\n", moment(e.Confirmed))
	}
	provider := rows{w, "Provider"}
	if s := e.Shown; s != nil {
		provider.line("NIC %s %s it and %s, looked at %s", s.NIC,
			map[bool]string{true: "has", false: "does not have"}[s.Has], map[bool]string{true: "forwards", false: "does not forward"}[s.Forwards], moment(s.Seen))
		if s.Stale {
			provider.line("  this look is older than what the journal has, or so close to it that it need not show: the next one tells")
		}
	}
	if e.Blind != nil {
		blinded(&provider, *e.Blind)
	}
	pending := rows{w, "Pending"}
	for _, p := range append(e.Pending, e.NIC...) {
		tell(&pending, p)
	}
	outbox := rows{w, "Outbox"}
	for _, id := range e.Outbox {
		outbox.line("%s", id)
	}
}

// blinded tells of a NIC that could not be looked at.
func blinded(r *rows, b agent.Blind) {
	seen := "and never was"
	if !b.Seen.IsZero() {
		seen = "and was last seen " + moment(b.Seen)
	}
	r.line("NIC %s could not be looked at, tried %s, %s: %s", b.NIC, moment(b.At), seen, b.Error)
}

// phases say what a state means for the node that was asked.
var phases = map[agent.Phase]string{
	agent.PhaseHeld:      "this node holds it: the provider has confirmed its last action, and shows nothing else since",
	agent.PhaseAcquiring: "this node is its holder, and has not got it yet",
	agent.PhaseReleasing: "this node is no longer its holder, and has yet to release it",
	agent.PhaseElsewhere: "another node is its holder",
	agent.PhaseNone:      "nobody is its holder",
	agent.PhaseUnknown:   "the epoch is unknown, and nothing is done",
}

func bar(m agent.Standing) string {
	switch m.Bar {
	case "":
		return ""
	case "home":
		return ": never captures it, as it lives there"
	case "drained":
		return ": drained"
	case "notMaster":
		return ": not proven to be MASTER"
	}
	return ": " + string(m.Bar)
}

func (t *talk) drain(cmd *cobra.Command, node string, drained bool) error {
	done, err := t.client().Drain(cmd.Context(), node, drained)
	if err != nil {
		return faulty(err)
	}
	return t.write(cmd.OutOrStdout(), done, func(w io.Writer) {
		for _, s := range done.Stranded {
			fmt.Fprintf(cmd.ErrOrStderr(), "warning: %s of MobilityPool %s is released, and nobody takes it: no live member that may hold it is left in group %s\n", s.Address, s.Pool, s.Group)
		}
		fmt.Fprintf(w, "node %s is %s\n", node, map[bool]string{true: "drained", false: "back in its placements"}[drained])
		for _, note := range done.Notes {
			fmt.Fprintf(w, "but %s\n", note)
		}
	})
}

// awaitRelease returns when a drained node has nothing left of what it held.
func (t *talk) awaitRelease(cmd *cobra.Command, node string, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
	defer cancel()
	left := "the agent has not said yet"
	for {
		captures, err := t.client().Captures(ctx)
		if err == nil {
			var actions []agent.Action
			if actions, err = t.client().Actions(ctx, nil); err == nil {
				if left = remains(node, captures, actions); left == "" {
					return nil
				}
			}
		}
		if err != nil && ctx.Err() == nil {
			return faulty(err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("node %s is drained, but has not released everything within %s: %s", node, timeout, left)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// remains is what a node has yet to release, "" for nothing.
func remains(node string, captures []agent.Capture, actions []agent.Action) string {
	// That of a NIC waits for those of its addresses.
	slices.SortStableFunc(actions, func(a, b agent.Action) int { return b.Address.Compare(a.Address) })
	for _, a := range actions {
		return fmt.Sprintf("%s of %s is %s: %s", a.Verb, address(a), a.State, cmp.Or(why(a), "it begins"))
	}
	for _, c := range captures {
		if c.Holder == node || c.State == agent.PhaseReleasing {
			return fmt.Sprintf("%s is in state %s", c.Address, c.State)
		}
	}
	return ""
}
