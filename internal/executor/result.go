package executor

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// maxResult bounds a result in bytes. A NIC with every address that it can have takes some
// ten KiB.
const maxResult = 1 << 20

// DecodeResult reads what an executor has written before it ended with an exit code. It is
// refused when it is not exactly one Result of this version, or when the exit code says
// something else.
func DecodeResult(data []byte, exit int) (Result, error) {
	if len(data) > maxResult {
		return Result{}, fmt.Errorf("it is longer than %d bytes", maxResult)
	}
	var r Result
	if err := strict(data, &r); err != nil {
		return Result{}, err
	}
	switch {
	case r.Version != Version:
		return Result{}, fmt.Errorf("it is of version %d, and this agent speaks %d: agent and executor have to be of one release", r.Version, Version)
	case !slices.Contains(outcomes, r.Outcome):
		return Result{}, fmt.Errorf("outcome %q is none of %v", r.Outcome, outcomes)
	case r.Outcome.ExitCode() != exit:
		return Result{}, fmt.Errorf("outcome %q goes with exit code %d, and it ended with %d", r.Outcome, r.Outcome.ExitCode(), exit)
	case r.RetryAfter < 0 || r.RetryAfter > 0 && r.Outcome != OutcomeThrottled:
		return Result{}, fmt.Errorf("retryAfter %d: only outcome %q has it, and it is no less than 0", r.RetryAfter, OutcomeThrottled)
	case r.Calls < 0:
		return Result{}, fmt.Errorf("calls %d: it cannot have sent fewer than none", r.Calls)
	}
	return r, nil
}

var outcomes = []Outcome{
	OutcomeDone, OutcomeAlready, OutcomeAgain, OutcomeThrottled,
	OutcomeRetry, OutcomePermanent, OutcomeUnknown, OutcomeRefused,
}

// Resultf is a result with the provider's own word for it, if it has one, and a message.
func Resultf(o Outcome, code, format string, args ...any) Result {
	return Result{Outcome: o, Code: code, Message: fmt.Sprintf(format, args...)}
}

// failed is a result that says why it is one, for people.
func failed(o Outcome, format string, args ...any) Result {
	return Result{Version: Version, Outcome: o, Message: tidy(fmt.Sprintf(format, args...))}
}

// maxMessage bounds a message in bytes.
const maxMessage = 8 << 10

// tidy makes one line that prints out of what a provider or a process has said.
func tidy(s string) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsGraphic(r) {
			return r
		}
		return ' '
	}, s)
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > maxMessage {
		s = strings.ToValidUTF8(s[:maxMessage], "") + " ..."
	}
	return s
}
