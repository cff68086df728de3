package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// What a shell completes. A person waits for it: what does not answer soon completes nothing, and
// says why.
var completesWithin = 2 * time.Second

// completeObject completes the names of the objects of one kind, at most so many; 0 is any number.
func (c *cluster) completeObject(list client.ObjectList, most int) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
		if most > 0 && len(args) >= most {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		if err := c.list(cmd.Context(), list); err != nil {
			return unanswered(err)
		}
		var names []string
		_ = meta.EachListItem(list, func(o runtime.Object) error {
			of := o.(client.Object)
			name := of.GetName()
			if !strings.HasPrefix(name, word) || slices.Contains(args, name) {
				return nil
			}
			if pool := of.GetLabels()[karpv1.NodePoolLabelKey]; pool != "" {
				name = cobra.CompletionWithDesc(name, "of NodePool "+pool)
			}
			names = append(names, name)
			return nil
		})
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

func (c *cluster) list(ctx context.Context, list client.ObjectList) error {
	c.overrides.Timeout = completesWithin.String()
	from, err := c.reader()
	if err != nil {
		return err
	}
	return from.List(ctx, list)
}

// completeEntry completes the contexts, clusters or users of the kubeconfig.
func (c *cluster) completeEntry(of string) cobra.CompletionFunc {
	return func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		config, err := c.rules().Load()
		if err != nil {
			return unanswered(err)
		}
		var names []string
		switch of {
		case "context":
			names = slices.Sorted(maps.Keys(config.Contexts))
		case "cluster":
			names = slices.Sorted(maps.Keys(config.Clusters))
		case "user":
			names = slices.Sorted(maps.Keys(config.AuthInfos))
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

func (c *cluster) completeNamespace(cmd *cobra.Command, _ []string, word string) ([]string, cobra.ShellCompDirective) {
	return c.completeObject(&corev1.NamespaceList{}, 0)(cmd, nil, word)
}

// unanswered completes nothing, and has the shell say why below the command line.
func unanswered(err error) ([]string, cobra.ShellCompDirective) {
	why := strings.Join(strings.Fields(err.Error()), " ") // a shell takes one line
	return cobra.AppendActiveHelp(nil, "nothing to complete: "+why), cobra.ShellCompDirectiveNoFileComp
}

// completeShells adds the command that writes the completion of each shell, and of kubectl, which
// asks a program of this name to complete a plugin.
func completeShells(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	completion, _, err := root.Find([]string{"completion"})
	if err != nil {
		panic(err) // cobra has it
	}
	for shell, line := range map[string]string{
		"bash": "source <(tasuki completion bash)", "zsh": "source <(tasuki completion zsh)",
		"fish": "tasuki completion fish | source", "powershell": "tasuki completion powershell | Out-String | Invoke-Expression",
	} {
		if c, _, err := completion.Find([]string{shell}); err == nil {
			c.Example = "  " + line
		}
	}
	completion.Args, completion.RunE = subcommand, needsSubcommand
	completion.Example = "  source <(tasuki completion bash)"
	completion.AddCommand(&cobra.Command{
		Use: "kubectl", Short: "Generate the program by which kubectl completes 'kubectl tasuki'",
		Long: `Generate the program by which kubectl completes 'kubectl tasuki', in whatever shell kubectl completes in. It has to be
executable, in PATH, and named kubectl_complete-tasuki; tasuki itself as kubectl-tasuki.`,
		Example: "  tasuki completion kubectl > ~/.local/bin/kubectl_complete-tasuki && chmod +x ~/.local/bin/kubectl_complete-tasuki",
		Args:    operands,
		Run: func(cmd *cobra.Command, _ []string) {
			fmt.Fprint(cmd.OutOrStdout(), "#!/bin/sh\nexec kubectl-tasuki __complete \"$@\"\n")
		},
	})
}
