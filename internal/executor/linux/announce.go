package linux

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/mdlayher/ndp"
	"golang.org/x/sys/unix"

	"github.com/tasuki-io/tasuki/internal/executor"
)

// Announce tells all hosts on an interface once that addresses are to be found at its MAC:
// by gratuitous ARP, and by an unsolicited neighbour advertisement for IPv6. Every address
// is tried. Nobody acknowledges it, so a caller repeats it.
func Announce(iface string, addrs ...netip.Addr) error {
	p, err := open(iface)
	if err != nil {
		return err
	}
	var errs []error
	for _, a := range addrs {
		errs = append(errs, p.announce(a))
	}
	return errors.Join(errs...)
}

func (p *port) announce(a netip.Addr) error {
	if len(p.mac) != 6 {
		return fault(executor.OutcomePermanent, "NotEthernet", "interface %s has the hardware address %q: %s can only be announced on Ethernet", p.name, p.mac, a)
	}
	p.calls++
	send := p.advertise
	if a.Is4() {
		send = p.arp
	}
	if err := send(a); err != nil {
		return kernel(err, "announce %s on %s", a, p.name)
	}
	return nil
}

// arp sends an ARP announcement (RFC 5227 §2.3).
func (p *port) arp(a netip.Addr) error {
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	to := &unix.SockaddrLinklayer{Ifindex: p.index, Protocol: binary.NativeEndian.Uint16([]byte{0x08, 0x06}), Halen: 6}
	return unix.Sendto(fd, announcement(p.mac, a), 0, to)
}

// announcement is the frame of an ARP request for an address, from that address, to all.
func announcement(mac net.HardwareAddr, a netip.Addr) []byte {
	frame := []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
	frame = append(frame, mac...)
	frame = append(frame, 0x08, 0x06, // ARP
		0, 1, 8, 0, 6, 4, // of IPv4 on Ethernet
		0, 1) // a request
	frame = append(append(frame, mac...), a.AsSlice()...)
	return append(append(frame, 0, 0, 0, 0, 0, 0), a.AsSlice()...)
}

// advertise sends an unsolicited neighbour advertisement (RFC 4861 §7.2.6).
func (p *port) advertise(a netip.Addr) error {
	conn, _, err := ndp.Listen(&net.Interface{Index: p.index, Name: p.name, HardwareAddr: p.mac}, ndp.LinkLocal)
	if err != nil {
		return fmt.Errorf("from a link-local address: %w", err)
	}
	defer conn.Close()
	return conn.WriteTo(&ndp.NeighborAdvertisement{
		Router: true, Override: true, TargetAddress: a,
		Options: []ndp.Option{&ndp.LinkLayerAddress{Direction: ndp.Target, Addr: p.mac}},
	}, nil, netip.IPv6LinkLocalAllNodes())
}
