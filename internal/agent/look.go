package agent

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"time"

	"github.com/tasuki-io/tasuki/internal/capture"
	"github.com/tasuki-io/tasuki/internal/executor"
)

// How often a NIC is looked at: rarely to find drift, closely while a late call of a former holder
// may bring it about, often while a release waits for the next holder to show.
const (
	lookRarely  = time.Minute
	lookClosely = 5 * time.Second
	lookOften   = 2 * time.Second
	settles     = 30 * time.Second // in which a cloud need not show what was done, as capture has it
)

// look is the last look at a NIC.
type look struct {
	began   time.Time
	located time.Time // when it was last asked where addresses are
	under   bool      // it has not ended yet
	err     error     // why the last one has shown nothing, or not everything
}

// due returns the NICs of this node that are to be looked at now, and when the next one is.
// Reading is a call, too: a policy that allows none of a profile is asked first.
func (a *Agent) due(now time.Time, d capture.Decision) (due []capture.Target, next time.Time) {
	often := map[capture.Target]bool{}
	for _, h := range d.Held {
		if h.Wait == capture.WaitTakeover {
			often[h.Action.Target] = true
		}
	}
	for _, t := range a.targets() {
		every, last := lookRarely, a.looks[t]
		switch {
		case often[t]:
			every = lookOften
		case last.began.Before(d.Late[t]):
			every = lookClosely
		}
		switch at := last.began.Add(every); {
		case last.under: // its end makes a pass
		case !now.Before(at):
			due = append(due, t)
		default:
			next = sooner(next, at)
		}
	}
	return due, next
}

// targets are the NICs with which this node captures, and those on which something that it once
// asked for may yet be done.
func (a *Agent) targets() []capture.Target {
	var list []capture.Target
	seen := map[capture.Target]bool{}
	add := func(t capture.Target) {
		if !seen[t] && a.config.Policy.Reads(t) && a.config.profile(t).Provider == t.Provider {
			seen[t] = true
			list = append(list, t)
		}
	}
	for i := range a.config.Pools {
		for j := range a.config.Pools[i].Members {
			m := &a.config.Pools[i].Members[j]
			if m.Node == a.node {
				add(a.config.target(m))
			}
		}
	}
	for _, t := range a.view.Doubtful() {
		add(t)
	}
	return list
}

// placed are the addresses of which it is to be seen now where they are: those that this node
// holds on a NIC, as rarely as it is looked for drift.
func (a *Agent) placed(t capture.Target, now time.Time) (list []netip.Addr) {
	if t.Provider == capture.Linux || now.Before(a.looks[t].located.Add(lookRarely)) {
		return nil
	}
	for k := range a.servedBy(func(m *capture.Member) bool { return a.config.target(m) == t }) {
		line := a.view.Line(k)
		if line.Claim.Holder == capture.Holder(a.node) && line.Acquired.Epoch == line.Claim.Epoch && line.Acquired.Target == t && len(list) < executor.MaxLocated {
			list = append(list, k.Address)
		}
	}
	return list
}

// see asks what a NIC shows, and where its subnet shows some addresses, if there are any. It may
// show the NIC alone, with an error. It may be called by any goroutine.
func (a *Agent) see(ctx context.Context, t capture.Target, profile executor.Profile, placed ...netip.Addr) (capture.NIC, error) {
	began := a.now()
	ctx, cancel := context.WithTimeout(ctx, capture.ExecutorTime)
	defer cancel()
	q := executor.Request{Version: executor.Version, Verb: executor.Describe, Profile: profile, NIC: t.NIC, Addresses: placed}
	if len(placed) > 0 {
		q.Verb = executor.Locate
	}
	q.ID = string(q.Verb) + ":" + t.NIC
	r := a.execute(ctx, q)
	var failed error
	if r.Outcome != executor.OutcomeDone || r.NIC == nil {
		failed = &unseen{t.NIC, r}
	}
	if r.NIC == nil {
		return capture.NIC{}, failed
	}
	addrs := r.NIC.Addresses
	if r.NIC.Primary.IsValid() {
		addrs = append(addrs, r.NIC.Primary)
	}
	nic := capture.NIC{Addresses: capture.NewAddresses(addrs...), Forwards: r.NIC.Forwards, At: began}
	if len(r.Places) > 0 {
		nic.Places, nic.Located = map[netip.Addr][]string{}, began
	}
	for _, p := range r.Places {
		nic.Places[p.Address] = p.NICs
	}
	return nic, failed
}

// unseen is why a look has shown nothing, or not everything.
type unseen struct {
	nic string
	executor.Result
}

func (u *unseen) Error() string {
	return fmt.Sprintf("look at NIC %s: %s: %s %s", u.nic, u.Outcome, u.Code, u.Message)
}

// readsOf is the lane of the looks at a NIC.
func readsOf(t capture.Target) lane { return lane{t.ProviderRef, true} }

// looking takes note that a look at a NIC begins, and whether it locates addresses.
func (a *Agent) looking(t capture.Target, locates bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	l := a.looks[t]
	l.began, l.under = a.now(), true
	if locates {
		l.located = l.began
	}
	a.looks[t] = l
	a.pace(readsOf(t)).begins(l.began)
}

// looked takes note of what a look has shown, or that it has shown nothing.
func (a *Agent) looked(t capture.Target, nic capture.NIC, err error) {
	answer := executor.Result{Outcome: executor.OutcomeDone}
	if why := (*unseen)(nil); errors.As(err, &why) {
		answer = why.Result
	}
	l := a.looks[t]
	a.heard(readsOf(t), answer.Outcome, answer.Wish(), l.began, a.now())
	a.mu.Lock()
	defer a.mu.Unlock()
	l.under, l.err = false, err
	a.looks[t] = l
	switch {
	case err != nil && nic.At.IsZero():
		a.tell.log.Warn("a NIC cannot be looked at: what happens to it by other hands is not seen", "nic", t.NIC, "error", err)
		return
	case err != nil:
		a.tell.log.Warn("it is not seen on which NICs addresses are, but for the own one", "nic", t.NIC, "error", err)
	}
	if nic.At.Before(a.nics[t].At) { // something newer is known
		a.looks[t] = look{}
		return
	}
	if nic.Located.IsZero() {
		nic.Places, nic.Located = a.nics[t].Places, a.nics[t].Located
	}
	a.nics = maps.Clone(a.nics) // a decision may still hold the old one
	a.nics[t] = nic
}
