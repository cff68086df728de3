package executortest

import (
	"cmp"
	"encoding/xml"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// The answers of the API, as far as an SDK reads them.
type (
	describeAnswer struct {
		XMLName   xml.Name `xml:"http://ec2.amazonaws.com/doc/2016-11-15/ DescribeNetworkInterfacesResponse"`
		RequestID string   `xml:"requestId"`
		NICs      []nicXML `xml:"networkInterfaceSet>item"`
	}
	nicXML struct {
		ID              string       `xml:"networkInterfaceId"`
		Subnet          string       `xml:"subnetId"`
		VPC             string       `xml:"vpcId"`
		Status          string       `xml:"status"`
		InterfaceType   string       `xml:"interfaceType"`
		PrivateAddress  string       `xml:"privateIpAddress,omitempty"`
		SourceDestCheck bool         `xml:"sourceDestCheck"`
		Addresses       []addressXML `xml:"privateIpAddressesSet>item"`
		Addresses6      []v6XML      `xml:"ipv6AddressesSet>item"`
	}
	addressXML struct {
		Address     string          `xml:"privateIpAddress"`
		Primary     bool            `xml:"primary"`
		Association *associationXML `xml:"association"`
	}
	associationXML struct {
		PublicIP      string `xml:"publicIp"`
		AssociationID string `xml:"associationId"`
	}
	v6XML struct {
		Address string `xml:"ipv6Address"`
		Primary bool   `xml:"isPrimaryIpv6"`
	}

	// changeAnswer is the answer of a change. An action has its own of these elements.
	changeAnswer struct {
		XMLName     xml.Name
		RequestID   string       `xml:"requestId"`
		NIC         string       `xml:"networkInterfaceId,omitempty"`
		Assigned    []addressXML `xml:"assignedPrivateIpAddressesSet>item,omitempty"`
		Assigned6   []string     `xml:"assignedIpv6Addresses>item,omitempty"`
		Unassigned6 []string     `xml:"unassignedIpv6Addresses>item,omitempty"`
		Return      bool         `xml:"return,omitempty"`
	}

	errorAnswer struct {
		Status    int      `xml:"-"`
		XMLName   xml.Name `xml:"Response"`
		Code      string   `xml:"Errors>Error>Code"`
		Message   string   `xml:"Errors>Error>Message"`
		RequestID string   `xml:"RequestID"`
	}
)

func (a *describeAnswer) write(w http.ResponseWriter, n int) {
	a.RequestID = requestID(n)
	writeXML(w, http.StatusOK, a)
}

func (a *changeAnswer) write(w http.ResponseWriter, n int) {
	a.RequestID = requestID(n)
	writeXML(w, http.StatusOK, a)
}

func (a *errorAnswer) write(w http.ResponseWriter, n int) {
	a.RequestID = requestID(n)
	writeXML(w, a.Status, a)
}

func writeXML(w http.ResponseWriter, status int, out any) {
	w.Header().Set("Content-Type", "text/xml;charset=UTF-8")
	w.WriteHeader(status)
	fmt.Fprint(w, xml.Header)
	if err := xml.NewEncoder(w).Encode(out); err != nil {
		panic(http.ErrAbortHandler) // the caller has left
	}
}

// Throttled is how EC2 asks for patience.
var Throttled = Fault{Status: 503, Code: "RequestLimitExceeded", Message: "Request limit exceeded."}

// describe renders the interfaces that a read is to show, in the order of their IDs.
func describe(s *state, which func(*Interface) bool) *describeAnswer {
	out := &describeAnswer{}
	for _, n := range s.nics {
		if which(&n) {
			out.NICs = append(out.NICs, render(s, &n))
		}
	}
	slices.SortFunc(out.NICs, func(a, b nicXML) int { return cmp.Compare(a.ID, b.ID) })
	return out
}

func render(s *state, n *Interface) nicXML {
	x := nicXML{ID: n.ID, Subnet: n.Subnet, VPC: n.VPC, Status: "in-use", InterfaceType: "interface", SourceDestCheck: !n.Forwards}
	for _, a := range n.all() {
		if a.Is6() {
			x.Addresses6 = append(x.Addresses6, v6XML{a.String(), a == n.Primary6})
			continue
		}
		item := addressXML{Address: a.String(), Primary: a == n.Primary}
		if public, ok := s.eips[eip{n.Subnet, a}]; ok {
			item.Association = &associationXML{public.String(), "eipassoc-" + strings.ReplaceAll(public.String(), ".", "")}
		}
		x.Addresses = append(x.Addresses, item)
	}
	if n.Primary.IsValid() {
		x.PrivateAddress = n.Primary.String()
	}
	return x
}

// changed is the answer of an accepted change.
func changed(c *Call) *changeAnswer {
	out := &changeAnswer{XMLName: xml.Name{Space: "http://ec2.amazonaws.com/doc/2016-11-15/", Local: c.Action + "Response"}}
	text := func(a netip.Addr) string { return a.String() }
	switch c.Action {
	case "AssignPrivateIpAddresses":
		out.NIC, out.Return = c.NIC, true
		for _, a := range c.Addresses {
			out.Assigned = append(out.Assigned, addressXML{Address: a.String()})
		}
	case "AssignIpv6Addresses":
		out.NIC, out.Assigned6 = c.NIC, mapped(c.Addresses, text)
	case "UnassignIpv6Addresses":
		out.NIC, out.Unassigned6 = c.NIC, mapped(c.Addresses, text)
	default:
		out.Return = true
	}
	return out
}

func mapped[A, B any](in []A, f func(A) B) []B {
	out := make([]B, len(in))
	for i, a := range in {
		out[i] = f(a)
	}
	return out
}
