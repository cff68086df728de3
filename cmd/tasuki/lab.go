package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tasuki-io/tasuki/lab"
)

func newLab() *cobra.Command {
	name := labName(lab.DefaultName)
	cmd := &cobra.Command{
		Use:   "lab",
		Short: "Run a real control plane on this machine: Kubernetes, Karpenter and KWOK",
		Example: `  tasuki lab up
  export KUBECONFIG=$(tasuki lab kubeconfig)
  tasuki lab down`,
		Long: `Run a real control plane on this machine: etcd, the Kubernetes API server, controller manager and scheduler,
Karpenter with its KWOK provider, and KWOK in place of kubelets. It needs neither containers nor root. The first start
builds the programs from pinned Go modules, which takes minutes; later starts take seconds.

Built programs and labs are kept in the user's cache folder, or in $TASUKI_CACHE.`,
		Args: subcommand,
		RunE: needsSubcommand,
	}
	cmd.PersistentFlags().Var(&name, "name", "name of the lab; labs run side by side")
	cmd.AddCommand(newLabUp(&name), newLabStatus(&name), newLabDown(&name), newLabKubeconfig(&name))
	return cmd
}

// labName is a flag that takes only what may name a lab.
type labName string

func (n *labName) String() string { return string(*n) }
func (n *labName) Type() string   { return "name" }

func (n *labName) Set(value string) error {
	*n = labName(value)
	return lab.ValidName(value)
}

func newLabUp(name *labName) *cobra.Command {
	var ready, gone time.Duration
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Start a lab and return when it is ready",
		Example: `  tasuki lab up
  tasuki lab up --name slow --pod-ready-delay 12s`,
		Args: operands,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if ready < 0 || gone < 0 {
				return usageError{errors.New("--pod-ready-delay and --pod-delete-delay must not be negative")}
			}
			return labUp(cmd.Context(), lab.Options{
				Name: name.String(), Detached: true, PodReadyDelay: ready, PodDeleteDelay: gone,
				Progress: lab.ProgressTo(cmd.ErrOrStderr()),
			}, cmd.OutOrStdout())
		},
	}
	pods := "of pods labelled " + lab.SlowLabel + "=true"
	cmd.Flags().DurationVar(&ready, "pod-ready-delay", 0, "time from binding to Ready, "+pods)
	cmd.Flags().DurationVar(&gone, "pod-delete-delay", 0, "time from deletion request to disappearance, "+pods)
	return cmd
}

func labUp(ctx context.Context, o lab.Options, out io.Writer) error {
	if l, err := lab.Find(o.Name); err == nil && l.Ready() {
		if err := l.Check(); err != nil {
			return fmt.Errorf("lab %s is up, but not whole: run '%s' and start it again: %w", o.Name, labCommand("down", o.Name), err)
		}
		fmt.Fprintf(out, "Lab %s is up already.\n\n", o.Name)
		printHints(out, l)
		return nil
	}
	begun := time.Now()
	l, err := lab.Up(ctx, o)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "Lab %s is ready after %s.\n\n", l.Name(), time.Since(begun).Round(100*time.Millisecond))
	printHints(out, l)
	return nil
}

func printHints(out io.Writer, l *lab.Lab) {
	fmt.Fprintf(out, "export KUBECONFIG=%s\n", l.Kubeconfig())
	fmt.Fprintf(out, "kubectl get nodepools,nodeclaims,nodes,pods -A\n\n")
	fmt.Fprintf(out, "Stop it with '%s'.\n", labCommand("down", l.Name()))
}

func labCommand(verb, name string) string {
	if name == lab.DefaultName {
		return called + " lab " + verb
	}
	return called + " lab " + verb + " --name " + name
}

func newLabStatus(name *labName) *cobra.Command {
	return &cobra.Command{
		Use:     "status",
		Short:   "Show a lab's components; fails when one is dead",
		Example: "  tasuki lab status",
		Args:    operands,
		RunE: func(cmd *cobra.Command, _ []string) error {
			l, err := lab.Find(name.String())
			if err != nil {
				return err
			}
			return printStatus(cmd.OutOrStdout(), l.Name(), l.Status(cmd.Context()))
		},
	}
}

func printStatus(out io.Writer, name string, all []lab.ComponentStatus) error {
	table := newGrid(out)
	fmt.Fprintln(table, "COMPONENT\tPID\tADDRESS\tSTATE\tLOG")
	var wrong []string
	for _, c := range all {
		fmt.Fprintf(table, "%s\t%d\t%s\t%s\t%s\n", c.Name, c.PID, c.Address, c.State, c.Log)
		if c.State != lab.Ready {
			wrong = append(wrong, fmt.Sprintf("%s is %s", c.Name, c.State))
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, c := range all {
		if c.State == lab.Ready {
			continue
		}
		fmt.Fprintf(out, "\n%s is %s: %s\n", c.Name, c.State, c.Reason)
		for _, line := range c.Lines {
			fmt.Fprintf(out, "    %s\n", line)
		}
	}
	if len(wrong) > 0 {
		return fmt.Errorf("lab %s: %s; '%s' and up again makes a new one", name, strings.Join(wrong, ", "), labCommand("down", name))
	}
	return nil
}

func newLabDown(name *labName) *cobra.Command {
	return &cobra.Command{
		Use:     "down",
		Short:   "Stop a lab and remove its files; the built programs stay",
		Example: "  tasuki lab down",
		Args:    operands,
		RunE: func(cmd *cobra.Command, _ []string) error {
			out := cmd.OutOrStdout()
			l, err := lab.Find(name.String())
			if errors.Is(err, lab.ErrNotFound) {
				fmt.Fprintf(out, "Lab %s is not up: nothing to stop.\n", *name)
				return nil
			}
			if err != nil {
				return err
			}
			running := l.Running()
			if err := l.Down(cmd.Context()); err != nil {
				return err
			}
			for _, c := range running {
				fmt.Fprintf(out, "Stopped %s.\n", c)
			}
			fmt.Fprintf(out, "Removed %s.\n", l.Dir())
			return nil
		},
	}
}

func newLabKubeconfig(name *labName) *cobra.Command {
	return &cobra.Command{
		Use:     "kubeconfig",
		Short:   "Print the path of a lab's kubeconfig: export KUBECONFIG=$(tasuki lab kubeconfig)",
		Example: "  export KUBECONFIG=$(tasuki lab kubeconfig)",
		Args:    operands,
		RunE: func(cmd *cobra.Command, _ []string) error {
			l, err := lab.Find(name.String())
			if err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout(), l.Kubeconfig())
			return nil
		},
	}
}
