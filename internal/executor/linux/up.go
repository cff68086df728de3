package linux

import (
	"context"
	"net"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Ups calls up whenever an interface has come up, until ctx ends. It returns an error when
// it cannot tell any more; the caller has to begin again, and to take the interface for one
// that has come up.
func Ups(ctx context.Context, iface string, up func()) error {
	updates, done := make(chan netlink.LinkUpdate), make(chan struct{})
	defer close(done)
	var lost error
	err := netlink.LinkSubscribeWithOptions(updates, done, netlink.LinkSubscribeOptions{ErrorCallback: func(err error) { lost = err }})
	if err != nil {
		return kernel(err, "watch the interface %s", iface)
	}
	p, err := open(iface)
	was := err == nil && running(p.name)
	for {
		select {
		case <-ctx.Done():
			return nil
		case u, ok := <-updates:
			if !ok {
				return kernel(lost, "watch the interface %s", iface)
			}
			if u.Attrs().Name != iface {
				continue
			}
			is := u.Header.Type == unix.RTM_NEWLINK && u.Attrs().RawFlags&unix.IFF_RUNNING != 0
			if is && !was {
				up()
			}
			was = is
		}
	}
}

// running reports an interface that has a carrier.
func running(name string) bool {
	i, err := net.InterfaceByName(name)
	return err == nil && i.Flags&net.FlagRunning != 0
}
