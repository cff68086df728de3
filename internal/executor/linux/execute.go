package linux

import (
	"context"
	"errors"
	"fmt"

	"github.com/tasuki-io/tasuki/internal/capture"
	"github.com/tasuki-io/tasuki/internal/executor"
)

// Execute carries out one request. It is an executor.Execute. The NIC of a request is the
// name of an interface; Reassign means nothing here, as nothing is taken from anybody.
func Execute(ctx context.Context, q executor.Request) executor.Result {
	p, err := open(q.NIC)
	if err != nil {
		return result(false, err)
	}
	var r executor.Result
	switch {
	case q.Verb == executor.Describe:
		r = p.describe()
	case q.DryRun:
		r = p.rehearse(q)
	case q.Verb == capture.Assign:
		r = result(p.assign(ctx, q.Address, q.Silent))
	case q.Verb == capture.Unassign:
		r = result(p.unassign(q.Address))
	case q.Verb == capture.EnableForwarding:
		r = result(p.forward(true))
	case q.Verb == capture.DisableForwarding:
		r = result(p.forward(false))
	default:
		r = executor.Result{Outcome: executor.OutcomeRefused, Message: fmt.Sprintf("linux serves no verb %q", q.Verb)}
	}
	r.Calls = p.calls
	return r
}

func result(changed bool, err error) executor.Result {
	var f *Fault
	switch {
	case errors.As(err, &f):
		return executor.Result{Outcome: f.Outcome, Code: f.Code, Message: err.Error()}
	case err != nil:
		return executor.Result{Outcome: executor.OutcomeRetry, Message: err.Error()}
	case changed:
		return executor.Result{Outcome: executor.OutcomeDone}
	}
	return executor.Result{Outcome: executor.OutcomeAlready}
}

// rehearse says whether a request could be carried out, and changes nothing.
func (p *port) rehearse(q executor.Request) executor.Result {
	var err error
	switch q.Verb {
	case capture.Assign:
		_, err = p.check(q.Address)
	case capture.DisableForwarding:
		err = p.idle(false)
	}
	if err != nil {
		return result(false, err)
	}
	return executor.Result{Outcome: executor.OutcomeDone, Message: fmt.Sprintf("nothing keeps this host from %s on %s", q.Verb, p.name)}
}

// describe shows the addresses that we have this host answer for.
func (p *port) describe() executor.Result {
	primary, err := p.primary()
	forwards, err2 := p.sysctl("ipv4", "forwarding")
	all, err3 := p.entries()
	if err := errors.Join(err, err2, err3); err != nil {
		return result(false, err)
	}
	n := &executor.NIC{Primary: primary, Forwards: forwards}
	for _, e := range all {
		if e.ours() {
			n.Addresses = append(n.Addresses, e.addr)
		}
	}
	return executor.Result{Outcome: executor.OutcomeDone, NIC: n}
}
