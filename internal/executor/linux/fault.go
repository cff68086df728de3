package linux

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/tasuki-io/tasuki/internal/executor"
)

// Fault is why something was not done.
type Fault struct {
	Code    string
	Outcome executor.Outcome
	err     error
}

func (f *Fault) Error() string { return f.err.Error() }

// Unwrap is what the kernel has said, if it has.
func (f *Fault) Unwrap() error { return f.err }

func fault(o executor.Outcome, code, format string, args ...any) error {
	return &Fault{Code: code, Outcome: o, err: fmt.Errorf(format, args...)}
}

// kernel is a fault of which the kernel is the judge.
func kernel(err error, format string, args ...any) error {
	what := fmt.Sprintf(format, args...)
	if errors.Is(err, os.ErrPermission) || errors.Is(err, unix.EROFS) {
		return fault(executor.OutcomePermanent, "NotPermitted", "%s: %w: give this process CAP_NET_ADMIN and CAP_NET_RAW, and a /proc/sys that can be written", what, err)
	}
	return fault(executor.OutcomeRetry, "Kernel", "%s: %w", what, err)
}
