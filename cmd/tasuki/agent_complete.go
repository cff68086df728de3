package main

import (
	"net/url"

	"github.com/spf13/cobra"
)

// What a shell may complete. An agent that does not answer completes nothing.

func (t *talk) completeAddress(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	list, _ := t.client().Captures(cmd.Context())
	var words []string
	for _, c := range list {
		words = append(words, cobra.CompletionWithDesc(c.Address.String(), string(c.State)+", held by "+dash(c.Holder)))
	}
	return words, cobra.ShellCompDirectiveNoFileComp
}

func (t *talk) completeNode(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	s, _ := t.client().Status(cmd.Context())
	return s.Nodes, cobra.ShellCompDirectiveNoFileComp
}

// completeAction completes the actions in some states, or "all".
func (t *talk) completeAction(states ...string) cobra.CompletionFunc {
	q := url.Values{"state": states}
	if states[0] == "all" {
		q = url.Values{"all": {""}}
	}
	return func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		list, _ := t.client().Actions(cmd.Context(), q)
		var words []string
		for _, a := range list {
			words = append(words, cobra.CompletionWithDesc(a.Handle, string(a.Verb)+" of "+address(a)+", "+string(a.State)))
		}
		return words, cobra.ShellCompDirectiveNoFileComp
	}
}
