package executor

import (
	"context"
	"encoding/json"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/tasuki-io/tasuki/internal/capture"
)

// Patience is how long an executor goes on reading until what it has done shows. It leaves
// time for the answer before capture.ExecutorTime is over and the process is killed.
const Patience = 25 * time.Second

// Execute carries out one request of a provider. It returns before ctx ends, or soon after.
type Execute func(ctx context.Context, q Request) Result

// Serve is the whole of an executor's process: one Request from stdin, one Result to stdout,
// and the exit code. Executors are by provider.
func Serve(ctx context.Context, stdin io.Reader, stdout io.Writer, executors map[string]Execute) (exit int) {
	ctx, cancel := context.WithTimeout(ctx, capture.ExecutorTime-2*time.Second) // to answer in time, whatever hangs
	defer cancel()
	r := serve(ctx, stdin, executors)
	r.Version = Version
	r.Message = tidy(r.Message)
	if err := json.NewEncoder(stdout).Encode(r); err != nil {
		return OutcomeUnknown.ExitCode() // nobody reads it; what was done may be done
	}
	return r.Outcome.ExitCode()
}

func serve(ctx context.Context, stdin io.Reader, executors map[string]Execute) Result {
	q, err := ReadRequest(stdin)
	if err != nil {
		return failed(OutcomeRefused, "%v", err)
	}
	execute, ok := executors[q.Profile.Provider]
	if !ok {
		return failed(OutcomeRefused, "profile %s is of provider %q, and this executor serves %v",
			q.Profile.Name, q.Profile.Provider, slices.Sorted(maps.Keys(executors)))
	}
	return execute(ctx, q)
}
