package main

import (
	"io"
	"time"

	"github.com/spf13/cobra"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

func newExplain() *cobra.Command {
	q := &inquiry{}
	cmd := &cobra.Command{
		Use:   "explain",
		Short: "Say why a node is not rotating, and when it will",
		Long: `Say why a NodeClaim or a NodePool is not rotating, and when it will: the first thing in the way, by the word that log and
Events have for it, its numbers, when it is gone by itself, what else is in the way, how many windows are left before the
deadline, and what the forecast expects. Of a rotation under way it says what that waits for, and names the
PodDisruptionBudget, the pod or the NodeClaim that holds it.

It asks the controller's own code about the cluster of the kubeconfig, and writes nothing. It needs to get and list NodePools,
NodeClaims, Nodes, RotationPolicies and Pods, and to list PodDisruptionBudgets.

Exit codes: 0 answered, 1 the cluster cannot be read, 2 a mistake in the command or in what it names.`,
		Example: `  tasuki explain nodeclaim api-x7k2p
  tasuki explain nodepool api
  tasuki explain nodepool api -o json | jq -r '.reason, .detail'`,
		Args: subcommand,
		RunE: needsSubcommand,
	}
	cmd.AddCommand(
		&cobra.Command{
			Use: "nodeclaim NAME", Aliases: []string{"nodeclaims"}, Short: "Say why a NodeClaim is not rotating, and when it will", Args: operands,
			Example:           "  tasuki explain nodeclaim api-x7k2p",
			ValidArgsFunction: q.completeObject(&karpv1.NodeClaimList{}, 1),
			RunE:              func(cmd *cobra.Command, args []string) error { return q.explain(cmd, "", args[0]) },
		},
		&cobra.Command{
			Use: "nodepool NAME", Aliases: []string{"nodepools"}, Short: "Say why no node of a NodePool is rotating, and when one will", Args: operands,
			Example:           "  tasuki explain nodepool api -o yaml",
			ValidArgsFunction: q.completeObject(&karpv1.NodePoolList{}, 1),
			RunE:              func(cmd *cobra.Command, args []string) error { return q.explain(cmd, args[0], "") },
		},
	)
	for _, of := range cmd.Commands() {
		q.flags(of)
		q.outputFlag(of)
	}
	return cmd
}

// explain answers for a pool, or for a NodeClaim of whatever pool.
func (q *inquiry) explain(cmd *cobra.Command, pool, claim string) error {
	if err := q.judge(); err != nil {
		return err
	}
	of, _, err := q.ask()
	if err != nil {
		return err
	}
	if claim != "" {
		if pool, err = of.PoolOf(cmd.Context(), claim); err != nil {
			return named(err)
		}
	}
	x, err := of.Explain(cmd.Context(), pool, claim)
	if err != nil {
		return named(err)
	}
	return q.write(cmd.OutOrStdout(), x, func(out io.Writer) error { return explainTable(out, x, time.Now()) })
}
