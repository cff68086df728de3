package cloud

import (
	"context"

	"github.com/tasuki-io/tasuki/internal/capture"
	"github.com/tasuki-io/tasuki/internal/executor"
)

// Verbs are how a provider carries out what it is asked.
type Verbs struct {
	Assign, Unassign, Describe, Locate func(context.Context) executor.Result
	Forward                            func(ctx context.Context, on bool) executor.Result
}

// Perform carries out a request.
func (v Verbs) Perform(ctx context.Context, q executor.Request) executor.Result {
	switch q.Verb {
	case capture.Assign:
		return v.Assign(ctx)
	case capture.Unassign:
		return v.Unassign(ctx)
	case capture.EnableForwarding:
		return v.Forward(ctx, true)
	case capture.DisableForwarding:
		return v.Forward(ctx, false)
	case executor.Describe:
		return v.Describe(ctx)
	case executor.Locate:
		return v.Locate(ctx)
	}
	return executor.Resultf(executor.OutcomeRefused, "", "%s serves no verb %q", q.Profile.Provider, q.Verb)
}
