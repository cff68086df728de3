package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/tasuki-io/tasuki/internal/rotation"
	"github.com/tasuki-io/tasuki/internal/rotator"
)

func newFreeze() *cobra.Command {
	q := &inquiry{}
	var until string
	var shorten bool
	cmd := &cobra.Command{
		Use:   "freeze NODEPOOL --until TIME|DURATION",
		Short: "Start no rotation in a NodePool until an instant",
		Long: `Start no rotation in a NodePool until an instant. A surge that is pending is held; a drain goes on; and Karpenter's expiry
knows of no freeze. A freeze that ends later, or that cannot be read and so does not end, is not shortened without --shorten.

It needs to get and patch NodePools.

` + exitCodes,
		Example: `  tasuki freeze api --until 12h
  tasuki freeze api --until 2026-12-27T00:00:00Z`,
		Args:              operands,
		ValidArgsFunction: q.completeObject(&karpv1.NodePoolList{}, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			now := time.Now()
			end, err := readUntil(until, now)
			if err != nil {
				return usageError{err}
			}
			return q.freeze(cmd, args[0], func(pool rotation.NodePool) (rotation.Step, string, error) {
				return rotation.Freeze(pool, end, shorten, now)
			})
		},
	}
	q.cluster.flags(cmd)
	cmd.Flags().StringVar(&until, "until", "", "when it ends, as 2026-12-27T00:00:00Z, or how long it lasts, as 12h")
	cmd.Flags().BoolVar(&shorten, "shorten", false, "also if the NodePool is frozen for longer")
	return cmd
}

func newUnfreeze() *cobra.Command {
	q := &inquiry{}
	cmd := &cobra.Command{
		Use:   "unfreeze NODEPOOL",
		Short: "End the freeze of a NodePool",
		Long: `End the freeze of a NodePool: rotations may start again at once.

It needs to get and patch NodePools.

` + exitCodes,
		Example:           "  tasuki unfreeze api",
		Args:              operands,
		ValidArgsFunction: q.completeObject(&karpv1.NodePoolList{}, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return q.freeze(cmd, args[0], func(pool rotation.NodePool) (rotation.Step, string, error) {
				step, was := rotation.Unfreeze(pool)
				return step, was, nil
			})
		},
	}
	q.cluster.flags(cmd)
	return cmd
}

// freeze changes the freeze of a pool, and says what it was and is.
func (q *inquiry) freeze(cmd *cobra.Command, name string, change func(rotation.NodePool) (rotation.Step, string, error)) error {
	of, c, err := q.ask()
	if err != nil {
		return err
	}
	pool, err := of.ReadPool(cmd.Context(), name)
	if err != nil {
		return named(err)
	}
	step, was, err := change(pool)
	switch {
	case errors.Is(err, rotation.ErrShortens):
		return fmt.Errorf("%w: %w: --shorten does it all the same", errRefused, err)
	case err != nil:
		return inputError{err}
	case !step.Changes():
		fmt.Fprintf(cmd.OutOrStdout(), "NodePool %s: freeze %s, unchanged\n", name, was)
		return nil
	}
	if err := rotator.Annotate(cmd.Context(), c, step); err != nil {
		return err
	}
	is := "none"
	if v, ok := step.Set[rotation.AnnotationFreeze]; ok {
		is = v
	}
	fmt.Fprintf(cmd.OutOrStdout(), "NodePool %s: freeze %s -> %s\n", name, was, is)
	return nil
}

// readUntil reads an instant, or a duration from now.
func readUntil(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, errors.New("--until is missing: when does the freeze end?")
	}
	if d, err := time.ParseDuration(text); err == nil {
		return now.Add(d), nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}, fmt.Errorf("--until %q: write a time such as 2026-12-27T00:00:00Z, or a duration such as 12h (3 days are 72h)", text)
	}
	return at, nil
}
