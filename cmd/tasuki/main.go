// Command tasuki hands over what a machine holds before the machine goes.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	_ "time/tzdata" // windows are in IANA time zones, and a machine may have none

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/tasuki-io/tasuki/internal/build"
)

// Exit codes, of every subcommand that does not say otherwise.
const (
	exitOK      = 0
	exitFailure = 1
	exitUsage   = 2
	exitRefused = 3 // by a rule or by the gate
	exitAiling  = 4 // the doctor has found something
)

func main() {
	// What matters of the libraries' own lines is in their errors.
	log.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	called = calledBy(os.Args[0])
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run executes one command line and returns its exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	return runOn(ctx, args, os.Stdin, stdout, stderr)
}

func runOn(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	// What fails before a command runs is the command line itself.
	running := false
	root := newRoot(stdout, stderr)
	root.PersistentPreRun = func(*cobra.Command, []string) { running = true }
	root.SetArgs(args)
	root.SetIn(stdin)
	command, err := root.ExecuteContextC(ctx)
	if err == nil {
		return exitOK
	}
	fmt.Fprintf(stderr, "%s: %s\n", called, asCalled(root, advised(err).Error()))
	var usage usageError
	if !running || errors.As(err, &usage) {
		fmt.Fprintf(stderr, "Run '%s --help' for usage.\n", command.CommandPath())
		if code, err := strconv.Atoi(command.Annotations[usageCode]); err == nil {
			return code
		}
		return exitUsage
	}
	var coded codedError
	if errors.As(err, &coded) {
		return coded.code
	}
	return failureCode(err)
}

func newRoot(stdout, stderr io.Writer) *cobra.Command {
	root := &cobra.Command{
		Use:   strings.ReplaceAll(called, " ", "-"),
		Short: "Hand over what a machine holds before the machine goes",
		Long: `Hand over what a machine holds before the machine goes: the pods of a Karpenter node, and mobile addresses.

plan, status, explain, rotate and freeze are about the nodes of a cluster; captures and actions about the addresses of this
host; lab and demo show it all on this machine.`,
		Example: `  tasuki plan -f policy.yaml -f nodepool.yaml
  tasuki status`,
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: called},
		Args:          subcommand,
		RunE:          needsSubcommand,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.Version = build.Version()
	root.SetVersionTemplate("{{.DisplayName}} {{.Version}}\n")
	root.AddCommand(newLab(), newDemo(), newPlan(), newStatus(), newExplain(), newRotate(), newFreeze(), newUnfreeze(), newCaptures(), newActions(), &cobra.Command{
		Use: "version", Short: "Print the version", Args: operands, Example: "  tasuki version",
		Run: func(cmd *cobra.Command, _ []string) { fmt.Fprintln(cmd.OutOrStdout(), called, root.Version) },
	})
	root.SetOut(stdout)
	root.SetErr(stderr)
	root.SetFlagErrorFunc(wrongFlag)
	completeShells(root)
	helpKnows(root)
	speak(root, root)
	return root
}

// usageCode is the annotation of a command whose mistakes in the command line have an exit code
// of their own.
const usageCode = "exit-code-of-usage"

func exitsUsage(cmd *cobra.Command, code int) *cobra.Command {
	cmd.Annotations = map[string]string{usageCode: strconv.Itoa(code)}
	return cmd
}

// codedError ends a command with an exit code of its own.
type codedError struct {
	code int
	error
}

func (e codedError) Unwrap() error { return e.error }

// usageError is a mistake in the command line that a command finds while it runs.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// inputError is a command line that is right, and names something that is not.
type inputError struct{ error }

func (e inputError) Unwrap() error { return e.error }
