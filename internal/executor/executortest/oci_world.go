package executortest

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
)

// VNIC is a virtual network interface of the fake.
type VNIC struct {
	ID, Subnet  string
	Primary     netip.Addr // its primary private IP
	Limit       int        // addresses of each family; zero is no limit
	Forwards    bool       // skipSourceDestCheck
	DisplayName string
	NSGs        []string
	Lifecycle   string // AVAILABLE if it is ""

	version int // its etag
}

// IP is a private IP or an IPv6 of the fake. It keeps its OCID when it moves.
type IP struct {
	ID, Subnet string
	VNIC       string // "" is one that is reserved and on none
	Address    netip.Addr
	Primary    bool
	Reserved   bool
	Prefix     int    // of a block of addresses; zero is a single one
	Lifecycle  string // of an IPv6: AVAILABLE if it is ""

	version int
}

// ociState is the Core API's world at one time.
type ociState struct {
	vnics map[string]VNIC
	ips   map[string]IP
}

func (s *ociState) clone() *ociState { return &ociState{maps.Clone(s.vnics), maps.Clone(s.ips)} }

// at is the IP of a subnet that has an address.
func (s *ociState) at(subnet string, a netip.Addr) (IP, bool) {
	for _, o := range s.ips {
		if o.Subnet == subnet && o.Address == a && o.Lifecycle != "TERMINATED" {
			return o, true
		}
	}
	return IP{}, false
}

// list is the IPs of one family that match, in the order of their OCIDs.
func (s *ociState) list(six bool, match func(IP) bool) (out []IP) {
	for _, o := range s.ips {
		if o.Address.Is6() == six && match(o) {
			out = append(out, o)
		}
	}
	slices.SortFunc(out, func(a, b IP) int { return cmp.Compare(a.ID, b.ID) })
	return out
}

func (s *ociState) count(vnic string, six bool) int {
	return len(s.list(six, func(o IP) bool { return o.VNIC == vnic }))
}

// change changes one IP.
func (s *ociState) change(id string, f func(*IP)) {
	if o, ok := s.ips[id]; ok {
		f(&o)
		s.ips[id] = o
	}
}

// number returns one that was not there before: for an OCID, or an etag.
func (f *OCI) number() int {
	f.numbers++
	return f.numbers
}

func (f *OCI) ocid(a netip.Addr) string {
	kind := "privateip"
	if a.Is6() {
		kind = "ipv6"
	}
	return fmt.Sprintf("ocid1.%s.oc1.%s.%08d", kind, f.region, f.number())
}

// ociEtag is that of a version.
func ociEtag(version int) string { return fmt.Sprintf("%08x", uint32(version)*2654435761) }

// alter changes the world by hand, once what was accepted before has taken effect.
func (f *OCI) alter(change func(*ociState)) {
	f.world.hurry(f.now())
	f.settle()
	f.world.alter(change)
}

// AddVNIC adds a virtual network interface with its primary private IP, or replaces the one of
// that ID.
func (f *OCI) AddVNIC(n VNIC) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n.version = f.number()
	primary := IP{ID: f.ocid(n.Primary), Subnet: n.Subnet, VNIC: n.ID, Address: n.Primary, Primary: true, version: f.number()}
	f.alter(func(s *ociState) {
		maps.DeleteFunc(s.ips, func(_ string, o IP) bool { return o.VNIC == n.ID && o.Primary })
		if has, taken := s.at(n.Subnet, n.Primary); taken {
			panic(fmt.Sprintf("%s is on %s, and cannot be on %s too", n.Primary, has.VNIC, n.ID))
		}
		s.vnics[n.ID] = n
		if n.Primary.IsValid() {
			s.ips[primary.ID] = primary
		}
	})
}

// VNIC is a virtual network interface as it is now, whatever reads show.
func (f *OCI) VNIC(id string) VNIC {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.settle()
	return f.world.current().vnics[id]
}

// Edit has somebody else change a VNIC.
func (f *OCI) Edit(id string, change func(*VNIC)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	version := f.number()
	f.alter(func(s *ociState) {
		n := s.vnics[id]
		change(&n)
		n.version = version
		s.vnics[id] = n
	})
}

// AddIP adds an IP as it is, with an OCID if it has none.
func (f *OCI) AddIP(o IP) {
	f.mu.Lock()
	defer f.mu.Unlock()
	o.ID, o.version = cmp.Or(o.ID, f.ocid(o.Address)), f.number()
	f.alter(func(s *ociState) { s.ips[o.ID] = o })
}

// IPs lists what there is of an address now, in every subnet, whatever reads show.
func (f *OCI) IPs(a netip.Addr) []IP {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.settle()
	return f.world.current().list(a.Is6(), func(o IP) bool { return o.Address == a && o.Lifecycle != "TERMINATED" })
}

// Holders lists the VNICs that have an address now, in order, whatever reads show.
func (f *OCI) Holders(a netip.Addr) (ids []string) {
	for _, o := range f.IPs(a) {
		if o.VNIC != "" {
			ids = append(ids, o.VNIC)
		}
	}
	slices.Sort(ids)
	return ids
}

// Place puts an address on a VNIC by hand, with the OCID that it has, if it has one. On no
// VNIC ("") it is deleted.
func (f *OCI) Place(id string, a netip.Addr) {
	f.mu.Lock()
	defer f.mu.Unlock()
	fresh := IP{ID: f.ocid(a), VNIC: id, Address: a, version: f.number()}
	f.alter(func(s *ociState) {
		if id == "" {
			maps.DeleteFunc(s.ips, func(_ string, o IP) bool { return o.Address == a && !o.Primary })
			return
		}
		o, ok := s.at(s.vnics[id].Subnet, a)
		if !ok {
			o = fresh
		}
		o.VNIC, o.Subnet, o.version = id, s.vnics[id].Subnet, fresh.version
		s.ips[o.ID] = o
	})
}

// Double puts an address on a VNIC by hand, and leaves it where else it is: as another object, which
// the real API would not have in one subnet.
func (f *OCI) Double(id string, a netip.Addr) {
	f.AddIP(IP{Subnet: f.VNIC(id).Subnet, VNIC: id, Address: a})
}

// ociVNICJSON and ociIPJSON are the bodies of answers, as far as an SDK reads them.
type ociVNICJSON struct {
	ID            string   `json:"id"`
	Compartment   string   `json:"compartmentId"`
	Domain        string   `json:"availabilityDomain"`
	Created       string   `json:"timeCreated"`
	Lifecycle     string   `json:"lifecycleState"`
	Subnet        string   `json:"subnetId"`
	DisplayName   string   `json:"displayName"`
	PrivateIP     string   `json:"privateIp,omitempty"`
	SkipCheck     bool     `json:"skipSourceDestCheck"`
	NSGs          []string `json:"nsgIds"`
	Ipv6Addresses []string `json:"ipv6Addresses,omitempty"`
}

type ociIPJSON struct {
	ID          string  `json:"id"`
	Compartment string  `json:"compartmentId"`
	Created     string  `json:"timeCreated"`
	DisplayName string  `json:"displayName"`
	Subnet      string  `json:"subnetId"`
	VNIC        *string `json:"vnicId"`
	Address     string  `json:"ipAddress"`
	Prefix      *int    `json:"cidrPrefixLength,omitempty"`
	Primary     *bool   `json:"isPrimary,omitempty"`      // of a private IP
	Lifecycle   string  `json:"lifecycleState,omitempty"` // of an IPv6
	State       string  `json:"ipState"`
	Lifetime    string  `json:"lifetime"`
}

const (
	ociCompartment = "ocid1.compartment.oc1..fake"
	ociCreated     = "2026-01-01T00:00:00.000Z"
)

func renderVNIC(s *ociState, n VNIC) ociVNICJSON {
	out := ociVNICJSON{ID: n.ID, Compartment: ociCompartment, Domain: "Fake:EU-FRANKFURT-1-AD-1", Created: ociCreated,
		Lifecycle: cmp.Or(n.Lifecycle, "AVAILABLE"), Subnet: n.Subnet, DisplayName: n.DisplayName, SkipCheck: n.Forwards, NSGs: n.NSGs}
	if n.Primary.IsValid() {
		out.PrivateIP = n.Primary.String()
	}
	for _, o := range s.list(true, func(o IP) bool { return o.VNIC == n.ID }) {
		out.Ipv6Addresses = append(out.Ipv6Addresses, o.Address.String())
	}
	return out
}

func renderIP(o IP) ociIPJSON {
	out := ociIPJSON{ID: o.ID, Compartment: ociCompartment, Created: ociCreated, DisplayName: strings.ReplaceAll(o.Address.String(), ".", "-"),
		Subnet: o.Subnet, Address: o.Address.String(), State: "AVAILABLE", Lifetime: "EPHEMERAL"}
	if o.VNIC != "" {
		out.VNIC, out.State = &o.VNIC, "ASSIGNED"
	}
	if o.Reserved {
		out.Lifetime = "RESERVED"
	}
	if o.Prefix != 0 {
		out.Prefix = &o.Prefix
	}
	if o.Address.Is6() {
		// The API writes an IPv6 address in full.
		out.Address, out.Lifecycle = o.Address.StringExpanded(), cmp.Or(o.Lifecycle, "AVAILABLE")
	} else {
		out.Primary = &o.Primary
	}
	return out
}
