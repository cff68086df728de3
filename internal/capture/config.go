package capture

import (
	"net/netip"
	"time"
)

// Pool is a MobilityPool: addresses that move between its members.
type Pool struct {
	Name      string
	Prefix    netip.Prefix
	Addresses []Address     // in order, each once
	Hold      time.Duration // deprovisionHoldDuration
	LeaseTTL  time.Duration
	Members   []Member
}

// Address is a mobile address and where the configuration says that it lives.
type Address struct {
	Addr  netip.Addr
	Owner Location
}

// Location is the place where an address lives: nobody captures it there.
type Location struct{ Node, Site string }

// Role says what kind of place a member is in.
type Role string

// The roles.
const (
	RoleOnPrem Role = "onprem"
	RoleCloud  Role = "cloud"
)

// Method is how a member captures an address.
type Method string

// The methods.
const (
	SecondaryIP Method = "provider-secondary-ip"
	ProxyARP    Method = "proxy-arp"
)

// Member is one node of a pool.
type Member struct {
	Node  string
	Site  string
	Role  Role
	Group string // of the placement; a member without one is always active

	Priority int // 0 to 1000000, the lower wins
	Drain    bool
	Capture  Capture
}

// Capture is with what a member captures an address.
type Capture struct {
	Method        Method
	ProviderRef   string // of SecondaryIP
	NIC           string // of SecondaryIP
	Interface     string // of ProxyARP
	GratuitousARP bool
	Instance      string // the VRRP instance whose master the member has to be
}

// Domain is the captureDomain of a member.
func (m *Member) Domain() Domain {
	scope := ":node:" + m.Node
	if m.Group != "" {
		scope = ":placement:" + m.Group
	}
	if m.Role == RoleOnPrem {
		return Domain("onprem:" + m.Site + scope)
	}
	return Domain("provider:" + m.Capture.ProviderRef + scope)
}
