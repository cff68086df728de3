package executortest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ociError is the body of a refusal.
type ociError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

func refuseOCI(status int, code, format string, args ...any) ociReply {
	return ociReply{status: status, body: ociError{code, fmt.Sprintf(format, args...)}}
}

func ociNotThere() ociReply {
	return refuseOCI(http.StatusNotFound, "NotAuthorizedOrNotFound", "Authorization failed or requested resource not found.")
}

// operate does what a call asks for, in the order in which OCI looks at it: who asks, whether
// that may, and then what.
func (f *OCI) operate(r *http.Request, c *Call) ociReply {
	if why := f.authenticate(r); why != "" {
		return refuseOCI(http.StatusUnauthorized, "NotAuthenticated", "The required information to complete authentication was not provided or was incorrect. (%s)", why)
	}
	if c.Action == "" {
		return refuseOCI(http.StatusNotFound, "NotFound", "There is no operation at %s %s", r.Method, r.URL.Path)
	}
	if f.denied[c.Action] {
		return ociNotThere()
	}
	shown := f.world.shown(f.now())
	switch c.Action {
	case "GetVnic":
		n, ok := shown.vnics[c.NIC]
		if !ok {
			return ociNotThere()
		}
		return ociReply{status: http.StatusOK, body: renderVNIC(shown, n), etag: ociEtag(n.version)}
	case "UpdateVnic":
		return f.updateVNIC(c)
	case "ListPrivateIps", "ListIpv6s":
		return f.listIPs(r, c, shown)
	case "GetPrivateIp", "GetIpv6":
		o, ok := shown.ips[c.OCID]
		if !ok || o.Address.Is6() != c.six {
			return ociNotThere()
		}
		return ociReply{status: http.StatusOK, body: renderIP(o), etag: ociEtag(o.version)}
	case "CreatePrivateIp", "CreateIpv6":
		return f.create(c)
	}
	return f.changeIP(c)
}

// listIPs shows a page of a list. A page has two entries, and no etag.
func (f *OCI) listIPs(r *http.Request, c *Call, s *ociState) ociReply {
	query := r.URL.Query()
	subnet, vnic, address := query.Get("subnetId"), query.Get("vnicId"), query.Get("ipAddress")
	a, err := netip.ParseAddr(address)
	switch {
	case (subnet == "") == (vnic == ""), address != "" && (subnet == "" || err != nil):
		return refuseOCI(http.StatusBadRequest, "InvalidParameter", "Either subnetId, or vnicId, or subnetId with ipAddress must be specified")
	case vnic != "" && s.vnics[vnic].ID == "":
		return ociNotThere()
	}
	c.NIC = vnic
	all := s.list(c.six, func(o IP) bool {
		return (subnet == "" || o.Subnet == subnet) && (vnic == "" || o.VNIC == vnic) && (address == "" || o.Address == a)
	})
	const size = 2
	from, _ := strconv.Atoi(strings.TrimPrefix(query.Get("page"), "page-"))
	page := all[min(from, len(all)):min(from+size, len(all))]
	out := ociReply{status: http.StatusOK, body: mapped(page, renderIP)}
	if from+size < len(all) {
		out.next = fmt.Sprintf("page-%d", from+size)
	}
	return out
}

// ociFields are the bodies of changes. What the fake does not know it refuses.
type ociFields struct {
	VNIC      *string   `json:"vnicId"`
	Address   *string   `json:"ipAddress"`
	Name      *string   `json:"displayName"`
	SkipCheck *bool     `json:"skipSourceDestCheck"`
	NSGs      *[]string `json:"nsgIds"`
}

func parseOCIFields(c *Call) (in ociFields, bad *ociReply) {
	d := json.NewDecoder(strings.NewReader(c.Body))
	d.DisallowUnknownFields()
	if err := d.Decode(&in); err != nil {
		r := refuseOCI(http.StatusBadRequest, "CannotParseRequest", "Incorrectly formatted request. %v", err)
		return in, &r
	}
	return in, nil
}

// ociMatches says whether an if-match allows a change.
func ociMatches(c *Call, version int) (ociReply, bool) {
	if c.IfMatch != "" && c.IfMatch != ociEtag(version) {
		return refuseOCI(http.StatusPreconditionFailed, "NoEtagMatch", "The ETag %s does not match that of the resource.", c.IfMatch), false
	}
	return ociReply{}, true
}

// updateVNIC changes what the body names, and nothing else.
func (f *OCI) updateVNIC(c *Call) ociReply {
	n, ok := f.world.planned.vnics[c.NIC]
	if !ok {
		return ociNotThere()
	}
	in, bad := parseOCIFields(c)
	if bad != nil {
		return *bad
	}
	if no, ok := ociMatches(c, n.version); !ok {
		return no
	}
	if n.Lifecycle != "" {
		return refuseOCI(http.StatusConflict, "IncorrectState", "The VNIC %s is %s", n.ID, n.Lifecycle)
	}
	if in.SkipCheck != nil {
		n.Forwards = *in.SkipCheck
	}
	if in.Name != nil {
		n.DisplayName = *in.Name
	}
	if in.NSGs != nil {
		n.NSGs = slices.Clone(*in.NSGs)
	}
	n.version = f.number()
	f.accept(c, func(s *ociState) { s.vnics[n.ID] = n })
	return ociReply{status: http.StatusOK, body: renderVNIC(f.world.planned, n), etag: ociEtag(n.version)}
}

func (f *OCI) accept(c *Call, apply func(*ociState)) {
	c.Accepted = true
	f.world.accept(f.now(), c.N, apply)
}

// create makes an IP on a VNIC. An opc-retry-token that was used within a day stands for the
// request that it was used for: what that made is shown again, if it is still there.
func (f *OCI) create(c *Call) ociReply {
	in, bad := parseOCIFields(c)
	if bad != nil {
		return *bad
	}
	if in.VNIC == nil || in.Address == nil {
		return refuseOCI(http.StatusBadRequest, "MissingParameter", "vnicId and ipAddress are to be given")
	}
	a, err := netip.ParseAddr(*in.Address)
	if err != nil || a.Is6() != c.six {
		return refuseOCI(http.StatusBadRequest, "InvalidParameter", "ipAddress %s is invalid", *in.Address)
	}
	c.NIC, c.Addresses = *in.VNIC, []netip.Addr{a}
	if used, ok := f.retries[c.RetryToken]; ok && c.RetryToken != "" && f.now().Sub(used.at) < 24*time.Hour {
		if o, ok := f.world.planned.ips[used.ocid]; ok {
			return ociReply{status: http.StatusOK, body: renderIP(o), etag: ociEtag(o.version)}
		}
		return refuseOCI(http.StatusConflict, "InvalidatedRetryToken", "The provided retry token was used in an earlier request that resulted in a system update, but a subsequent operation invalidated the token.")
	}
	if no, ok := f.takes(*in.VNIC, c.six); !ok {
		return no
	}
	subnet := f.world.planned.vnics[*in.VNIC].Subnet
	if _, taken := f.world.planned.at(subnet, a); taken {
		return refuseOCI(http.StatusConflict, "Conflict", "The IP address %s is already in use.", a)
	}
	o := IP{ID: f.ocid(a), Subnet: subnet, VNIC: *in.VNIC, Address: a, version: f.number()}
	f.retries[c.RetryToken] = ociRetried{o.ID, f.now()}
	f.accept(c, func(s *ociState) { s.ips[o.ID] = o })
	return ociReply{status: http.StatusOK, body: renderIP(o), etag: ociEtag(o.version)}
}

// takes says whether a VNIC takes one more address of a family.
func (f *OCI) takes(id string, six bool) (ociReply, bool) {
	n, ok := f.world.planned.vnics[id]
	switch {
	case !ok:
		return refuseOCI(http.StatusBadRequest, "RelatedResourceNotAuthorizedOrNotFound", "VNIC %s not found", id), false
	case n.Lifecycle != "":
		return refuseOCI(http.StatusConflict, "IncorrectState", "The VNIC %s is %s", n.ID, n.Lifecycle), false
	case n.Limit > 0 && f.world.planned.count(id, six) >= n.Limit:
		return refuseOCI(http.StatusBadRequest, "LimitExceeded", "The maximum number of IP addresses per VNIC has been reached."), false
	}
	return ociReply{}, true
}

// changeIP moves, deletes or detaches an IP.
func (f *OCI) changeIP(c *Call) ociReply {
	o, ok := f.world.planned.ips[c.OCID]
	if !ok || o.Address.Is6() != c.six || o.Lifecycle == "TERMINATED" {
		return ociNotThere()
	}
	c.NIC, c.Addresses = o.VNIC, []netip.Addr{o.Address}
	if no, ok := ociMatches(c, o.version); !ok {
		return no
	}
	if o.Primary {
		return refuseOCI(http.StatusBadRequest, "InvalidParameter", "The primary private IP %s cannot be changed.", o.ID)
	}
	version := f.number()
	switch {
	case strings.HasPrefix(c.Action, "Delete"):
		if o.Reserved {
			return refuseOCI(http.StatusConflict, "Conflict", "The reserved IP %s is assigned: detach it first.", o.ID)
		}
		f.accept(c, func(s *ociState) { delete(s.ips, o.ID) })
		return ociReply{status: http.StatusNoContent}
	case strings.HasSuffix(c.Action, "Detach"):
		if !o.Reserved {
			return refuseOCI(http.StatusConflict, "Conflict", "The ephemeral IP %s cannot be detached.", o.ID)
		}
		f.accept(c, func(s *ociState) { s.change(o.ID, func(o *IP) { o.VNIC, o.version = "", version }) })
		o.VNIC = ""
		return ociReply{status: http.StatusOK, body: renderIP(o), etag: ociEtag(version)}
	}
	in, bad := parseOCIFields(c)
	if bad != nil {
		return *bad
	}
	if in.VNIC == nil {
		return refuseOCI(http.StatusBadRequest, "MissingParameter", "vnicId is to be given")
	}
	c.NIC = *in.VNIC
	if o.VNIC != *in.VNIC {
		if no, ok := f.takes(*in.VNIC, c.six); !ok {
			return no
		}
	}
	if f.world.planned.vnics[*in.VNIC].Subnet != o.Subnet {
		return refuseOCI(http.StatusBadRequest, "InvalidParameter", "The VNIC %s is not in the subnet of %s.", *in.VNIC, o.ID)
	}
	f.accept(c, func(s *ociState) { s.change(o.ID, func(o *IP) { o.VNIC, o.version = *in.VNIC, version }) })
	o.VNIC = *in.VNIC
	return ociReply{status: http.StatusOK, body: renderIP(o), etag: ociEtag(version)}
}
