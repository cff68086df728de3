package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
)

// errAiling ends a command that has found something wrong.
var errAiling = errors.New("something is wrong")

func newDoctor(t *talk) *cobra.Command {
	return &cobra.Command{
		Use:     "doctor",
		Short:   "List what is wrong, what will be done about it, and by whom",
		Example: "  tasuki captures doctor",
		Long: `List what is wrong as far as the agent of this host knows, what will be done about it, and by whom: by a node, or by
you. Each host knows of its own NICs and of what it holds: ask all of them.

Exit codes: 0 nothing is wrong, 4 something is, 1 no agent answers, 2 a mistake in the command.`,
		Args: operands,
		RunE: func(cmd *cobra.Command, _ []string) error {
			list, err := t.client().Doctor(cmd.Context())
			if err != nil {
				return faulty(err)
			}
			err = t.write(cmd.OutOrStdout(), list, func(w io.Writer) {
				if len(list) == 0 {
					fmt.Fprintln(w, "nothing is wrong, as far as this host knows")
				}
				for _, a := range list {
					will := a.By + " " + a.Will
					if a.By == "you" {
						will = "you have to: " + a.Will
					}
					if !a.Until.IsZero() {
						will += ", not before " + stamp(a.Until)
					}
					fmt.Fprintf(w, "%s\t%s\t%s\n\t\t%s\n", a.Kind, dash(a.About), a.What, will)
				}
			})
			if err == nil && len(list) > 0 {
				err = fmt.Errorf("%w: %d of these", errAiling, len(list))
			}
			return err
		},
	}
}
