package linux

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"time"

	"github.com/tasuki-io/tasuki/internal/executor"
)

// The announcements of an Assign. Who holds an address repeats them after it.
const (
	announcements = 3
	pause         = 200 * time.Millisecond
)

// Assign has this host answer for an address on an interface, and announces it. It is
// announced again when it was so before, which is how an address is asserted again. When ctx
// has ended nothing is placed.
func Assign(ctx context.Context, iface string, a netip.Addr) (changed bool, err error) {
	p, err := open(iface)
	if err != nil {
		return false, err
	}
	return p.assign(ctx, a, false)
}

func (p *port) assign(ctx context.Context, a netip.Addr, silent bool) (changed bool, err error) {
	there, err := p.check(a)
	if err != nil {
		return false, err
	}
	if ctx.Err() != nil {
		return false, kernel(context.Cause(ctx), "capture %s on %s", a, p.name)
	}
	if a.Is6() {
		if changed, err = p.set("ipv6", "proxy_ndp", true); err != nil {
			return false, err
		}
	}
	if !there {
		changed = true
		if err := p.add(a); err != nil {
			return false, err
		}
		if e, ok, err := p.find(a); err != nil {
			return true, err
		} else if !ok || !e.ours() {
			return true, fault(executor.OutcomeRetry, "NotPlaced", "the proxy neighbour entry of %s on %s does not show after it was placed", a, p.name)
		}
	}
	if silent {
		return changed, nil
	}
	for i := range announcements {
		if i > 0 {
			select {
			case <-ctx.Done():
				return changed, kernel(context.Cause(ctx), "repeat the announcement of %s on %s", a, p.name)
			case <-time.After(pause):
			}
		}
		if err := p.announce(a); err != nil {
			return changed, err
		}
	}
	return changed, nil
}

// check says whether our entry of an address is there, and why it could not be.
func (p *port) check(a netip.Addr) (there bool, err error) {
	e, there, err := p.find(a)
	if err != nil {
		return false, err
	}
	if there && !e.ours() {
		return false, fault(executor.OutcomePermanent, "ForeignEntry", "%s has a proxy neighbour entry for %s that somebody else has placed (protocol %d): remove it (ip neigh del proxy %s dev %s)", p.name, a, e.protocol, a, p.name)
	}
	return there, p.ready(a)
}

// Unassign has this host no longer answer for an address on an interface, as far as we had
// it answer.
func Unassign(iface string, a netip.Addr) (changed bool, err error) {
	p, err := open(iface)
	if err != nil {
		return false, err
	}
	return p.unassign(a)
}

func (p *port) unassign(a netip.Addr) (changed bool, err error) {
	e, there, err := p.find(a)
	if err != nil {
		return false, err
	}
	if there && e.ours() {
		changed = true
		if err := p.remove(a); err != nil {
			return false, err
		}
	}
	return changed, p.quiet()
}

// quiet turns off what would answer, or is of no more use, without our entries.
func (p *port) quiet() error {
	all, err := p.entries()
	if err != nil || slices.ContainsFunc(all, func(e entry) bool { return e.addr.Is6() }) {
		return err
	}
	if _, err := p.set("ipv6", "proxy_ndp", false); err != nil && !errors.Is(err, errNotThere) {
		return err
	}
	return nil
}

// Withdraw fails closed: it takes all of these addresses away from an interface, and turns
// its proxy_arp off. It goes on whatever fails, and returns all errors. An interface that is
// not there answers for nothing.
func Withdraw(iface string, addrs ...netip.Addr) error {
	p, err := open(iface)
	if err != nil {
		var f *Fault
		if errors.As(err, &f) && f.Code == "NoInterface" {
			return nil
		}
		return err
	}
	all, err := p.entries()
	errs := []error{err}
	for _, e := range all {
		if e.ours() && slices.Contains(addrs, e.addr) {
			errs = append(errs, p.remove(e.addr))
		}
	}
	_, err = p.set("ipv4", "proxy_arp", false)
	return errors.Join(append(errs, err, p.quiet())...)
}
