package executortest

import (
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// query does what a call asks for, in the order in which EC2 looks at it: who asks, whether
// that may, whether it is meant, and then what.
func (f *EC2) carry(r *http.Request, c *Call) (reply, *refusal) {
	if code := f.signed(r); code != "" {
		return nil, refuse(http.StatusUnauthorized, code, "AWS was not able to validate the provided access credentials")
	}
	if v := c.form.Get("Version"); v != "2016-11-15" {
		return nil, refuse(http.StatusBadRequest, "NoSuchVersion", "The requested version (%s) of service AmazonEC2 does not exist", v)
	}
	if f.denied[c.Action] {
		return nil, refuse(http.StatusForbidden, "UnauthorizedOperation",
			"You are not authorized to perform this operation. User: arn:aws:sts::000000000000:assumed-role/%s/i-00000000000000001 is not authorized to perform: ec2:%s because no identity-based policy allows the ec2:%s action. Encoded authorization failure message: %s",
			f.role, c.Action, c.Action, strings.Repeat("A", 400))
	}
	if c.DryRun {
		if c.Action != "ModifyNetworkInterfaceAttribute" && c.Action != "DescribeNetworkInterfaces" {
			return nil, refuse(http.StatusBadRequest, "UnknownParameter", "The parameter DryRun is not recognized")
		}
		return nil, refuse(http.StatusPreconditionFailed, "DryRunOperation", "Request would have succeeded, but DryRun flag is set.")
	}
	switch c.Action {
	case "DescribeNetworkInterfaces":
		return f.describeNICs(c)
	case "AssignPrivateIpAddresses", "AssignIpv6Addresses":
		return f.assign(c)
	case "UnassignPrivateIpAddresses", "UnassignIpv6Addresses":
		return f.unassign(c)
	case "ModifyNetworkInterfaceAttribute":
		return f.modify(c)
	}
	return nil, refuse(http.StatusBadRequest, "InvalidAction", "The action %s is not valid for this web service.", c.Action)
}

func (f *EC2) describeNICs(c *Call) (reply, *refusal) {
	s := f.world.shown(f.now())
	if ids := numbered(c.form, "NetworkInterfaceId"); len(ids) > 0 {
		for _, id := range ids {
			if _, ok := s.nics[id]; !ok {
				return nil, unknownNIC(id)
			}
		}
		return describe(s, func(n *Interface) bool { return slices.Contains(ids, n.ID) }), nil
	}
	var filters []func(*Interface) bool
	for i := 1; c.form.Has(fmt.Sprintf("Filter.%d.Name", i)); i++ {
		prefix := "Filter." + strconv.Itoa(i)
		values := numbered(c.form, prefix+".Value")
		match, ok := filterable[c.form.Get(prefix+".Name")]
		if !ok {
			return nil, refuse(http.StatusBadRequest, "InvalidParameterValue", "The filter '%s' is invalid", c.form.Get(prefix+".Name"))
		}
		filters = append(filters, func(n *Interface) bool {
			return slices.ContainsFunc(match(n), func(v string) bool { return slices.Contains(values, v) })
		})
	}
	return describe(s, func(n *Interface) bool {
		return !slices.ContainsFunc(filters, func(f func(*Interface) bool) bool { return !f(n) })
	}), nil
}

// filterable is what the fake filters by.
var filterable = map[string]func(*Interface) []string{
	"network-interface-id":         func(n *Interface) []string { return []string{n.ID} },
	"subnet-id":                    func(n *Interface) []string { return []string{n.Subnet} },
	"vpc-id":                       func(n *Interface) []string { return []string{n.VPC} },
	"addresses.private-ip-address": func(n *Interface) []string { return texts(n, false) },
	"ipv6-addresses.ipv6-address":  func(n *Interface) []string { return texts(n, true) },
}

func texts(n *Interface, six bool) (out []string) {
	for _, a := range n.all() {
		if a.Is6() == six {
			out = append(out, a.String())
		}
	}
	return out
}

// assign accepts an assignment, or says why not. IPv6 addresses are never reassigned.
func (f *EC2) assign(c *Call) (reply, *refusal) {
	s := f.world.planned
	n, ok := s.nics[c.NIC]
	six := c.Action == "AssignIpv6Addresses"
	if !ok {
		return nil, unknownNIC(c.NIC)
	}
	if r := f.family(c, six); r != nil {
		return nil, r
	}
	room := n.Limit - n.count(six)
	for _, a := range c.Addresses {
		has, taken := s.holder(n.Subnet, a)
		if !slices.Contains(n.all(), a) {
			room--
		}
		switch {
		case taken && six:
			return nil, refuse(http.StatusBadRequest, "InvalidParameterValue", "%s is already assigned.", a)
		case taken && has.ID != n.ID && (!c.Reassign || a == has.Primary):
			return nil, refuse(http.StatusBadRequest, "InvalidParameterValue", "[%s] assigned, but move is not allowed.", a)
		case n.Limit > 0 && room < 0:
			return nil, refuse(http.StatusBadRequest, "PrivateIpAddressLimitExceeded", "Number of private addresses will exceed limit.")
		}
	}
	f.accept(c, func(s *state) {
		for _, a := range c.Addresses {
			s.assign(c.NIC, a)
		}
	})
	return changed(c), nil
}

func (f *EC2) unassign(c *Call) (reply, *refusal) {
	n, ok := f.world.planned.nics[c.NIC]
	if !ok {
		return nil, unknownNIC(c.NIC)
	}
	if r := f.family(c, c.Action == "UnassignIpv6Addresses"); r != nil {
		return nil, r
	}
	for _, a := range c.Addresses {
		switch {
		case a == n.Primary, a == n.Primary6:
			return nil, refuse(http.StatusBadRequest, "InvalidParameterValue", "The primary address %s of an interface cannot be unassigned.", a)
		case !slices.Contains(n.Secondary, a):
			return nil, refuse(http.StatusBadRequest, "InvalidParameterValue", "Some of the specified addresses are not assigned to interface %s", c.NIC)
		}
	}
	f.accept(c, func(s *state) {
		for _, a := range c.Addresses {
			s.unassign(c.NIC, a)
		}
	})
	return changed(c), nil
}

// family says what is wrong with the addresses of a call.
func (f *EC2) family(c *Call, six bool) *refusal {
	if len(c.Addresses) == 0 || slices.ContainsFunc(c.Addresses, func(a netip.Addr) bool { return a.Is6() != six }) {
		return refuse(http.StatusBadRequest, "InvalidParameterValue", "%v are no addresses for %s", c.Addresses, c.Action)
	}
	return nil
}

func (f *EC2) modify(c *Call) (reply, *refusal) {
	if _, ok := f.world.planned.nics[c.NIC]; !ok {
		return nil, unknownNIC(c.NIC)
	}
	check, err := strconv.ParseBool(c.form.Get("SourceDestCheck.Value"))
	if err != nil {
		return nil, refuse(http.StatusBadRequest, "InvalidParameterCombination", "No attributes specified.")
	}
	f.accept(c, func(s *state) {
		n := s.nics[c.NIC]
		n.Forwards = !check
		s.nics[c.NIC] = n
	})
	return changed(c), nil
}

func unknownNIC(id string) *refusal {
	return refuse(http.StatusBadRequest, "InvalidNetworkInterfaceID.NotFound", "The networkInterface ID '%s' does not exist", id)
}
