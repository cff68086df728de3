package linux

import (
	"errors"
	"os"
	"strings"

	"github.com/tasuki-io/tasuki/internal/executor"
)

// errNotThere is that of a family that the interface does not have.
var errNotThere = os.ErrNotExist

// Forward has an interface forward, or not. IPv6 forwarding is not turned on where the
// interface takes its configuration from router advertisements (accept_ra 1): it would lose
// it. It is not turned off while the interface answers for any address.
func Forward(iface string, on bool) (changed bool, err error) {
	p, err := open(iface)
	if err != nil {
		return false, err
	}
	return p.forward(on)
}

func (p *port) forward(on bool) (changed bool, err error) {
	if err := p.idle(on); err != nil {
		return false, err
	}
	changed, err = p.set("ipv4", "forwarding", on)
	if err != nil || on && p.listens() {
		return changed, err
	}
	six, err := p.set("ipv6", "forwarding", on)
	if errors.Is(err, errNotThere) {
		err = nil
	}
	return changed || six, err
}

// idle refuses to turn forwarding off below an entry.
func (p *port) idle(on bool) error {
	if on {
		return nil
	}
	all, err := p.entries()
	if err == nil && len(all) > 0 {
		err = fault(executor.OutcomeRetry, "StillCaptured", "%s answers for %s still, and has to forward to it", p.name, all[0].addr)
	}
	return err
}

// listens reports an interface that takes its IPv6 configuration from routers for as long
// as it is none.
func (p *port) listens() bool {
	p.calls++
	data, _ := os.ReadFile(p.path("ipv6", "accept_ra"))
	forwards, _ := p.sysctl("ipv6", "forwarding")
	return strings.TrimSpace(string(data)) == "1" && !forwards
}
