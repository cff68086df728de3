package agent

import (
	"context"
	"fmt"
	"net/http"

	"golang.org/x/sync/errgroup"

	"github.com/tasuki-io/tasuki/internal/capture"
	"github.com/tasuki-io/tasuki/internal/executor"
)

// Rehearsal is what would become of an action.
type Rehearsal struct {
	ID      string           `json:"id"`
	Handle  string           `json:"handle"`
	Verb    capture.Verb     `json:"verb"`
	Epoch   capture.Epoch    `json:"epoch"`
	NIC     string           `json:"nic"`
	Address string           `json:"address,omitempty"`
	Stale   capture.Stale    `json:"stale,omitempty"`   // why the gate would refuse it
	Missing []Missing        `json:"missing,omitempty"` // what the policy would have to allow
	Outcome executor.Outcome `json:"outcome,omitempty"` // the provider's word; "" when it was not asked
	Code    string           `json:"code,omitempty"`
	Detail  string           `json:"detail,omitempty"`
}

// rehearse asks the gate, the policy and the provider about actions, and changes nothing: a
// dry run uses up neither an approval nor a key (spec C6).
func (c Control) rehearse(r *http.Request) (any, error) {
	in, err := body[Choice](r)
	if err != nil {
		return nil, err
	}
	rows, err := c.named(r.Context(), in.IDs)
	if err != nil {
		return nil, err
	}
	list := make([]Rehearsal, len(rows))
	var group errgroup.Group
	group.SetLimit(abreast)
	for i := range rows {
		group.Go(func() error {
			list[i] = c.agent.rehearse(r.Context(), rows[i].Action)
			return nil
		})
	}
	return list, group.Wait()
}

func (a *Agent) rehearse(ctx context.Context, row capture.Action) Rehearsal {
	out := Rehearsal{ID: row.ID(), Handle: Handle(row.ID()), Verb: row.Verb, Epoch: row.Epoch, NIC: row.NIC}
	if row.Key.Address.IsValid() {
		out.Address = row.Key.Address.String()
	}
	current, err := a.store.Claim(ctx, row.Key)
	if err != nil {
		out.Detail = fmt.Sprintf("the claims store did not answer: %v", err)
		return out
	}
	if out.Stale = capture.Gate(current, row.Token); out.Stale != "" {
		return out
	}
	a.mu.RLock()
	policy, profile := a.config.Policy, a.config.profile(row.Target)
	a.mu.RUnlock()
	out.Missing = missing(policy, row, a.now())
	if !policy.Reads(row.Target) {
		out.Detail = "the provider is not asked: the policy allows not even to look at this NIC"
		return out
	}
	t := attempt{row: row, profile: profile}
	request := t.request()
	request.DryRun = true
	ctx, cancel := context.WithTimeout(ctx, capture.ExecutorTime)
	defer cancel()
	answer := a.execute(ctx, request)
	out.Outcome, out.Code, out.Detail = answer.Outcome, answer.Code, answer.Message
	return out
}
