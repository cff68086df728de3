// Command tasuki hands over what a machine holds before the machine goes.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

// Exit codes, of every subcommand.
const (
	exitOK      = 0
	exitFailure = 1
	exitUsage   = 2
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run executes one command line and returns its exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	// What fails before a command runs is the command line itself.
	running := false
	root := newRoot()
	root.PersistentPreRun = func(*cobra.Command, []string) { running = true }
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	command, err := root.ExecuteContextC(ctx)
	if err == nil {
		return exitOK
	}
	fmt.Fprintf(stderr, "tasuki: %v\n", err)
	var usage usageError
	if !running || errors.As(err, &usage) {
		fmt.Fprintf(stderr, "Run '%s --help' for usage.\n", command.CommandPath())
		return exitUsage
	}
	return failureCode(err)
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:           "tasuki",
		Short:         "Hand over what a machine holds before the machine goes",
		Args:          cobra.NoArgs,
		RunE:          needsSubcommand,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.CompletionOptions.HiddenDefaultCmd = true
	root.AddCommand(newLab(), newDemo())
	return root
}

// usageError is a mistake in the command line that a command finds while it runs.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// needsSubcommand runs a command that is only a group of others: help without arguments, else a mistake.
func needsSubcommand(cmd *cobra.Command, args []string) error {
	return usageError{fmt.Errorf("%s needs a subcommand", cmd.CommandPath())}
}
