package executortest

import (
	"context"
	"net/netip"
	"testing"

	"github.com/tasuki-io/tasuki/internal/capture"
	"github.com/tasuki-io/tasuki/internal/executor"
)

// Run holds an executor to everything that an agent relies on, once inside of the process of
// the test and once as a process of its own.
func Run(t *testing.T, p Provider) {
	modes := []struct {
		name   string
		runner func(*testing.T, string) runner
	}{
		{"within", func(_ *testing.T, provider string) runner { return within(p.Execute, provider) }},
		{"process", process},
	}
	for _, mode := range modes {
		t.Run(mode.name, func(t *testing.T) {
			for _, l := range laws {
				t.Run(l.name, func(t *testing.T) {
					w := p.New(t)
					l.holds(newTrial(t, p, w, mode.runner(t, w.Profile().Provider)))
				})
			}
		})
	}
}

// trial is one law on trial.
type trial struct {
	*Check
	World
	runner
	provider           Provider
	here, there, where string
	address            netip.Addr
}

func newTrial(t *testing.T, p Provider, w World, r runner) *trial {
	tr := &trial{Check: NewCheck(t, w), World: w, runner: r, provider: p, address: w.Address()}
	tr.here, tr.there, tr.where = w.NICs()
	return tr
}

// option changes a request.
type option func(*executor.Request)

func reassign(q *executor.Request)    { q.Reassign = true }
func readFirst(q *executor.Request)   { q.ReadFirst = true }
func dryRun(q *executor.Request)      { q.DryRun = true }
func on(nic string) option            { return func(q *executor.Request) { q.NIC = nic } }
func about(address netip.Addr) option { return func(q *executor.Request) { q.Address = address } }
func among(addresses ...netip.Addr) option {
	return func(q *executor.Request) { q.Addresses = addresses }
}

func (t *trial) request(v capture.Verb, options ...option) executor.Request {
	q := executor.Request{Version: executor.Version, Verb: v, Profile: t.Profile(), NIC: t.here}
	if v == capture.Assign || v == capture.Unassign {
		q.Address = t.address
	}
	if !executor.Reads(v) {
		q.ID = "mobility:edge:" + q.Profile.Provider + ":" + q.NIC + ":" + string(v) + ":" + t.address.String() + ":epoch:7"
	}
	for _, o := range options {
		o(&q)
	}
	return q
}

// ask has a request carried out. Whatever comes of it, the provider was not asked for more
// than one change.
func (t *trial) ask(v capture.Verb, options ...option) executor.Result {
	t.Helper()
	return t.askWithin(context.Background(), v, options...)
}

func (t *trial) askWithin(ctx context.Context, v capture.Verb, options ...option) executor.Result {
	t.Helper()
	before, _ := t.Changes()
	r := t.run(ctx, t.request(v, options...))
	if after, _ := t.Changes(); after > before+1 {
		t.Errorf("%s asked the provider for %d changes, want one at most", v, after-before)
	}
	return r
}

func (t *trial) wantChanges(asked, accepted int) {
	t.Helper()
	if gotAsked, gotAccepted := t.Changes(); gotAsked != asked || gotAccepted != accepted {
		t.Errorf("the provider was asked for %d changes and accepted %d, want %d and %d", gotAsked, gotAccepted, asked, accepted)
	}
}
