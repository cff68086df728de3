package capture

import (
	"net/netip"
	"time"
)

// Snapshot is everything that one decision of one node reads, seen at one moment. Its maps
// may be shared with later snapshots: a decision only reads them.
type Snapshot struct {
	Node      string
	Pools     []Pool
	Providers map[string]string // aws, azure or oci, by providerRef
	Policy    Policy
	Absent    Absent
	Returned  time.Time // see Liveness

	// Masters are the VRRP instances of which this node is proven to be MASTER, and since when
	// it is, or was said to be again.
	Masters map[string]time.Time

	// Homes holds the addresses that do not live where the configuration says.
	Homes map[Home]string

	*View

	// Begun is how many actions of the current run have begun. A run lasts until none is under
	// way any more.
	Begun int

	// Paces are those of the profiles, by providerRef, that their providers have throttled.
	Paces map[string]Pace

	// NICs is what the provider last showed of this node's interfaces.
	NICs map[Target]NIC
}

// Pace is how attempts of a profile begin that its provider has throttled: one after the other.
type Pace struct {
	Next time.Time     // when one may begin
	Gap  time.Duration // from one to the next
}

// Home names an address of a pool. Its value is the site where it lives, "" for nowhere.
type Home struct {
	Pool string
	Addr netip.Addr
}

// NIC is what the provider showed of a network interface.
type NIC struct {
	Addresses Addresses
	Forwards  bool
	At        time.Time

	// Places are the NICs that the subnet showed an address on, of those that it was asked for, and
	// Located when that was. It is asked more seldom than the NIC.
	Places  map[netip.Addr][]string
	Located time.Time
}

// shows reports whether the NIC has what a key is about.
func (n *NIC) shows(k Key) bool {
	if !k.Address.IsValid() {
		return n.Forwards
	}
	return n.Addresses.Has(k.Address)
}

// member is the node's membership in a pool, nil when it has none.
func (s *Snapshot) member(p *Pool) *Member {
	for i := range p.Members {
		if p.Members[i].Node == s.Node {
			return &p.Members[i]
		}
	}
	return nil
}

func (s *Snapshot) home(p *Pool, a *Address) string {
	if len(s.Homes) > 0 {
		if site, ok := s.Homes[Home{p.Name, a.Addr}]; ok {
			return site
		}
	}
	return a.Owner.Site
}

func (s *Snapshot) target(m *Member) Target {
	if m.Capture.Method == ProxyARP {
		return Target{Provider: Linux, NIC: m.Capture.Interface}
	}
	return Target{Provider: s.Providers[m.Capture.ProviderRef], ProviderRef: m.Capture.ProviderRef, NIC: m.Capture.NIC}
}
