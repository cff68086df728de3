// Command tasuki-executor carries out one action at a provider: one JSON request on
// its standard input, one JSON result on its standard output. The agent starts it.
package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/tasuki-io/tasuki/internal/build"
	"github.com/tasuki-io/tasuki/internal/executor"
	"github.com/tasuki-io/tasuki/internal/executor/aws"
	"github.com/tasuki-io/tasuki/internal/executor/azure"
	"github.com/tasuki-io/tasuki/internal/executor/linux"
	"github.com/tasuki-io/tasuki/internal/executor/oci"
)

// executors are those that this command can be.
var executors = map[string]executor.Execute{
	"aws":   aws.Execute,
	"linux": linux.Execute,
	"azure": azure.Execute,
	"oci":   oci.Execute,
}

const usage = `Usage: tasuki-executor PROVIDER < request.json
       tasuki-executor --version

Carries out one request of tasuki-agent at a provider (%s), with the identity
that the host has there, and writes the result to its standard output.

Exit codes:
  0  done, or it was so before
  2  the request, or the command line, is not one that it serves
  3  a part is done: ask again
  4  throttled
  5  failed, and may not fail the next time
  6  fails until somebody changes something
  7  not answered: it may be done yet
`

func main() {
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

func run(args []string, stdin io.Reader, stdout, stderr io.Writer) (exit int) {
	providers := strings.Join(slices.Sorted(maps.Keys(executors)), ", ")
	if len(args) == 1 && slices.Contains([]string{"-h", "-help", "--help"}, args[0]) {
		fmt.Fprintf(stdout, usage, providers)
		return 0
	}
	if len(args) == 1 && (args[0] == "-version" || args[0] == "--version") {
		fmt.Fprintln(stdout, "tasuki-executor", build.Version())
		return 0
	}
	if len(args) != 1 || executors[args[0]] == nil {
		fmt.Fprintf(stderr, "tasuki-executor: arguments %q: give it one provider (%s), or --help\n", args, providers)
		return executor.OutcomeRefused.ExitCode()
	}
	one := map[string]executor.Execute{args[0]: executors[args[0]]}
	return executor.Serve(context.Background(), stdin, stdout, one)
}
