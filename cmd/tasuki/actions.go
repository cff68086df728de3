package main

import (
	"fmt"
	"io"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"github.com/tasuki-io/tasuki/internal/agent"
)

func newActions() *cobra.Command {
	t := &talk{}
	cmd := &cobra.Command{
		Use:   "actions",
		Short: "See and approve what an agent asks of a provider",
		Example: `  tasuki actions list
  tasuki actions execute --dry-run
  tasuki actions approve --all`,
		Long: `See and approve what an agent asks of a provider: the rows of its journal. An ID on the command line is that of the
tables, or the whole one, as logs and JSON have it.

` + exitCodes,
		Args: subcommand,
		RunE: needsSubcommand,
	}
	t.flags(cmd)
	cmd.AddCommand(newActionsList(t), newActionsApprove(t), newActionsExecute(t), newActionsJournal(t), newActionsRollback(t),
		&cobra.Command{
			Use: "show ID", Short: "Show an action and its history", Args: operands, ValidArgsFunction: t.completeAction("all"),
			Example: "  tasuki actions show 3fa827c0",
			RunE:    func(cmd *cobra.Command, args []string) error { return t.show(cmd, args[0]) },
		})
	return cmd
}

func newActionsList(t *talk) *cobra.Command {
	var all bool
	var states []string
	var address string
	cmd := &cobra.Command{
		Use: "list", Short: "List the actions that are not over, or all", Args: operands,
		Example: `  tasuki actions list
  tasuki actions list --in pending,failed --address 10.0.0.7`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			q := url.Values{"state": states}
			if all {
				q.Set("all", "")
			}
			if address != "" {
				q.Set("address", address)
			}
			list, err := t.client().Actions(cmd.Context(), q)
			if err != nil {
				return faulty(err)
			}
			return t.write(cmd.OutOrStdout(), list, func(w io.Writer) { table(w, list) })
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "those that are over, too")
	cmd.Flags().StringSliceVar(&states, "in", nil, "only those in one of these states")
	cmd.Flags().StringVar(&address, "address", "", "only those of this address")
	_ = cmd.RegisterFlagCompletionFunc("in", cobra.FixedCompletions(
		[]string{"pending", "approved", "running", "succeeded", "failed", "skipped", "rolledBack"}, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("address", t.completeAddress)
	return cmd
}

// table lists actions, within 120 columns unless an address is one of IPv6.
func table(w io.Writer, list []agent.Action) {
	fmt.Fprintln(w, "STATE\tID\tVERB\tADDRESS\tEPOCH\tWHY")
	for _, a := range list {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d\t%s\n", a.State, a.Handle, a.Verb, address(a), a.Epoch, dash(short(why(a), 56)))
	}
}

func address(a agent.Action) string {
	if !a.Address.IsValid() {
		return "the NIC"
	}
	return a.Address.String()
}

// shown is an action and its history.
type shown struct {
	agent.Action
	Events []agent.Event `json:"events"`
}

func (t *talk) show(cmd *cobra.Command, id string) error {
	list, err := t.client().Actions(cmd.Context(), url.Values{"id": {id}})
	if err != nil {
		return faulty(err)
	}
	events, err := t.client().Journal(cmd.Context(), list[0].ID, 1000)
	if err != nil {
		return faulty(err)
	}
	return t.write(cmd.OutOrStdout(), shown{list[0], events}, func(w io.Writer) {
		a := list[0]
		fmt.Fprintf(w, "ID\t%s\n", a.ID)
		fmt.Fprintf(w, "Action\t%s of %s on %s (%s)\n", a.Verb, address(a), a.NIC, a.Profile)
		fmt.Fprintf(w, "Token\tepoch %d, for %s, in %s\n", a.Epoch, a.Holder, a.Domain)
		tell(&rows{w, "State"}, a.Pending)
		if a.Approver != "" {
			fmt.Fprintf(w, "Approved by\t%s\n", a.Approver)
		}
		if a.Undoes != "" {
			fmt.Fprintf(w, "Takes back\t%s\n", a.Undoes)
		}
		if a.Superseded {
			fmt.Fprintf(w, "Superseded\tthe epoch had moved on when it succeeded\n")
		}
		history := rows{w, "History"}
		for _, e := range events {
			history.line("%s  %-9s  %s", e.At.Local().Format(time.DateTime), e.To, e.Detail)
		}
	})
}

func newActionsJournal(t *talk) *cobra.Command {
	var limit int
	cmd := &cobra.Command{
		Use: "journal [ID]", Short: "Show the last changes of all actions, or of one, the newest last", Args: cobra.MaximumNArgs(1),
		Example: `  tasuki actions journal --limit 10
  tasuki actions journal 3fa827c0 -o json`,
		ValidArgsFunction: t.completeAction("all"),
		RunE: func(cmd *cobra.Command, args []string) error {
			id := ""
			if len(args) > 0 {
				id = args[0]
			}
			events, err := t.client().Journal(cmd.Context(), id, limit)
			if err != nil {
				return faulty(err)
			}
			return t.write(cmd.OutOrStdout(), events, func(w io.Writer) {
				fmt.Fprintln(w, "TIME\tID\tVERB\tADDRESS\tEPOCH\tCHANGE\tDETAIL")
				for _, e := range events {
					a := agent.Action{Address: e.Address}
					fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d\t%s\t%s\n", e.At.Local().Format(time.DateTime), e.Handle, e.Verb, address(a), e.Epoch, e.To, dash(short(e.Detail, 40)))
				}
			})
		},
	}
	cmd.Flags().IntVar(&limit, "limit", 50, "how many changes")
	return cmd
}
