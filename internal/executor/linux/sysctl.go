package linux

import (
	"net/netip"
	"os"
	"strings"
)

// family is that of an address, as the kernel spells it.
func family(a netip.Addr) string {
	if a.Is4() {
		return "ipv4"
	}
	return "ipv6"
}

func (p *port) path(family, name string) string {
	return "/proc/sys/net/" + family + "/conf/" + p.name + "/" + name
}

// sysctl reads a switch of the interface.
func (p *port) sysctl(family, name string) (on bool, err error) {
	p.calls++
	data, err := os.ReadFile(p.path(family, name))
	if err != nil {
		return false, kernel(err, "read net.%s.conf.%s.%s", family, p.name, name)
	}
	return strings.TrimSpace(string(data)) != "0", nil
}

// set turns a switch of the interface.
func (p *port) set(family, name string, on bool) (changed bool, err error) {
	if is, err := p.sysctl(family, name); err != nil || is == on {
		return false, err
	}
	value := "0"
	if on {
		value = "1"
	}
	p.calls++
	if err := os.WriteFile(p.path(family, name), []byte(value), 0); err != nil {
		return false, kernel(err, "set net.%s.conf.%s.%s to %s", family, p.name, name, value)
	}
	return true, nil
}
