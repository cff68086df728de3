package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	authenticationv1 "k8s.io/api/authentication/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/tasuki-io/tasuki/internal/rotation"
	"github.com/tasuki-io/tasuki/internal/rotator"
)

func newRotate() *cobra.Command {
	q := &inquiry{}
	now := false
	cmd := &cobra.Command{
		Use:   "rotate NODECLAIM",
		Short: "Ask for one node out of turn",
		Long: `Ask the controller to rotate one node out of turn: in the next window, whatever its age, or with --now outside of windows,
too. It takes the path of any other rotation, after every gate but those two. The request is an annotation on the NodeClaim
with the name that the cluster knows you by, for one attempt; the controller's log and Event of the start quote it.

What would come to nothing is refused: a NodeClaim that is being deleted, on the rotation, requested already or never
rotated, and a NodePool that is frozen, or that no policy can rotate. What only delays it is said.

It needs what tasuki explain needs, and to patch NodeClaims.

` + exitCodes,
		Example: `  tasuki rotate api-x7k2p
  tasuki rotate api-x7k2p --now`,
		Args:              operands,
		ValidArgsFunction: q.completeObject(&karpv1.NodeClaimList{}, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			what := rotation.RequestWindow
			if now {
				what = rotation.RequestNow
			}
			return q.rotate(cmd, args[0], what)
		},
	}
	q.flags(cmd)
	cmd.Flags().BoolVar(&now, "now", false, "outside of windows, too")
	return cmd
}

func (q *inquiry) rotate(cmd *cobra.Command, claim, what string) error {
	ctx := cmd.Context()
	of, c, err := q.ask()
	if err != nil {
		return err
	}
	pool, err := of.PoolOf(ctx, claim)
	if err != nil {
		return named(err)
	}
	s, err := of.Observe(ctx, pool)
	if err != nil {
		return named(err)
	}
	who, err := whoAmI(ctx, c)
	if err != nil {
		return err
	}
	step, err := rotation.Ask(*s, claim, what, who, time.Now())
	if err != nil {
		return fmt.Errorf("%w: %w", errRefused, err)
	}
	if err := rotator.Annotate(ctx, c, step); err != nil {
		return err
	}
	was := "none"
	for i := range s.NodeClaims {
		if o := &s.NodeClaims[i]; o.Name == claim && o.Annotations[rotation.AnnotationRequested] != "" {
			was = o.Annotations[rotation.AnnotationRequested]
		}
	}
	next := ""
	if x, err := of.Explain(ctx, pool, claim); err == nil { // what is written is written
		next = fmt.Sprintf("; %s: %s", x.Reason, x.Detail)
	}
	fmt.Fprintf(cmd.OutOrStdout(), "NodeClaim %s: rotate-requested %s -> %s, by %s%s\n", claim, was, what, who, next)
	return nil
}

// whoAmI is the name that the cluster knows the caller by.
func whoAmI(ctx context.Context, c client.Client) (string, error) {
	var review authenticationv1.SelfSubjectReview
	if err := c.Create(ctx, &review); err != nil {
		return "", fmt.Errorf("ask the cluster who is asking, for the controller to quote: %w", err)
	}
	return review.Status.UserInfo.Username, nil
}
