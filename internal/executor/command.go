package executor

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os/exec"
	"runtime"
	"slices"
	"time"

	"github.com/tasuki-io/tasuki/internal/capture"
)

// Command starts executors, one process per request.
type Command struct {
	Path string        // of tasuki-executor
	Args []string      // before the name of the provider, which comes last
	Time time.Duration // after which a process is killed; zero is capture.ExecutorTime
}

// Run carries out a request in a process of its own, which it kills with all of its children
// when its time is over or ctx ends. Whatever goes wrong becomes a Result: OutcomeRefused for
// a request that is none, OutcomeRetry when the provider was certainly not asked, and
// OutcomeUnknown when it may have been.
func (c *Command) Run(ctx context.Context, q Request) Result {
	if err := q.Validate(); err != nil {
		return failed(OutcomeRefused, "%v", err)
	}
	request, err := json.Marshal(q)
	if err != nil {
		return failed(OutcomeRefused, "write the request: %v", err)
	}
	limit := cmp.Or(c.Time, capture.ExecutorTime)
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("its time, %s, is over", limit))
	defer cancel()

	stdout, stderr := head{max: maxResult}, tail{max: 4 << 10}
	child := exec.CommandContext(ctx, c.Path, append(slices.Clone(c.Args), q.Profile.Provider)...)
	child.Env = environment()
	child.Stdin, child.Stdout, child.Stderr = bytes.NewReader(request), &stdout, &stderr
	child.WaitDelay = time.Second // for a grandchild that left the group and holds the pipes
	isolate(child)

	// The child dies with the thread that started it (see isolate), so the thread stays.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := child.Start(); err != nil {
		return failed(OutcomeRetry, "start the executor: %v", err)
	}
	_ = child.Wait() // what it returns is in the state, the output and ctx
	r, err := result(q, &stdout, child.ProcessState.ExitCode())
	if err != nil {
		if ctx.Err() != nil {
			err = fmt.Errorf("it was killed: %w", context.Cause(ctx))
		}
		r = failed(OutcomeUnknown, "executor %s (%s) has not told how %s ended; it may be done yet: %v", c.Path, child.ProcessState, q.Verb, err)
		if len(stderr.data) > 0 {
			r.Message += "; it said: " + string(stderr.data)
		}
	}
	r.Code, r.Message = tidy(redact(r.Code, child.Env)), tidy(redact(r.Message, child.Env))
	return r
}

// result is what a process that has ended says of its request.
func result(q Request, stdout *head, exit int) (Result, error) {
	if stdout.full {
		return Result{}, fmt.Errorf("its result is longer than %d bytes", maxResult)
	}
	r, err := DecodeResult(stdout.data, exit)
	if err == nil && Reads(q.Verb) && r.Outcome == OutcomeDone && r.NIC == nil {
		err = fmt.Errorf("its result does not say what it has seen of %s", q.NIC)
	}
	if err == nil && r.Outcome == OutcomeDone && q.Verb == Locate && !answers(r.Places, q.Addresses) {
		err = fmt.Errorf("its result does not say where %v are", q.Addresses)
	}
	return r, err
}

// answers reports places of just the addresses that were asked for, in their order.
func answers(places []Place, asked []netip.Addr) bool {
	return slices.EqualFunc(places, asked, func(p Place, a netip.Addr) bool { return p.Address == a })
}

// head keeps the first bytes that are written to it, and takes no more.
type head struct {
	data []byte
	max  int
	full bool
}

func (h *head) Write(p []byte) (int, error) {
	if len(h.data)+len(p) > h.max {
		h.full = true
		return 0, errors.New("too long")
	}
	h.data = append(h.data, p...)
	return len(p), nil
}

// tail keeps the last bytes that are written to it.
type tail struct {
	data []byte
	max  int
}

func (t *tail) Write(p []byte) (int, error) {
	t.data = append(t.data, p...)
	t.data = t.data[max(0, len(t.data)-t.max):]
	return len(p), nil
}
