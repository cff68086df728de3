package main

import (
	"context"
	"net/url"

	"github.com/spf13/cobra"
)

// What a shell completes of an agent.

func (t *talk) completeAddress(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), completesWithin)
	defer cancel()
	list, err := t.client().Captures(ctx)
	if err != nil {
		return unanswered(err)
	}
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
	ctx, cancel := context.WithTimeout(cmd.Context(), completesWithin)
	defer cancel()
	s, err := t.client().Status(ctx)
	if err != nil {
		return unanswered(err)
	}
	return s.Nodes, cobra.ShellCompDirectiveNoFileComp
}

// completeAction completes the actions in some states, or "all".
func (t *talk) completeAction(states ...string) cobra.CompletionFunc {
	q := url.Values{"state": states}
	if states[0] == "all" {
		q = url.Values{"all": {""}}
	}
	return func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(cmd.Context(), completesWithin)
		defer cancel()
		list, err := t.client().Actions(ctx, q)
		if err != nil {
			return unanswered(err)
		}
		var words []string
		for _, a := range list {
			words = append(words, cobra.CompletionWithDesc(a.Handle, string(a.Verb)+" of "+address(a)+", "+string(a.State)))
		}
		return words, cobra.ShellCompDirectiveNoFileComp
	}
}
