package executortest

import (
	"bytes"
	"io"
	"net/http"
	"net/netip"
	"regexp"
	"strings"
)

// ociOperations are those that the fake serves, by method and path.
var ociOperations = []struct {
	method string
	path   *regexp.Regexp
	action string
}{
	{"GET", regexp.MustCompile(`^/20160918/vnics/([^/]+)$`), "GetVnic"},
	{"PUT", regexp.MustCompile(`^/20160918/vnics/([^/]+)$`), "UpdateVnic"},
	{"GET", regexp.MustCompile(`^/20160918/privateIps$`), "ListPrivateIps"},
	{"POST", regexp.MustCompile(`^/20160918/privateIps$`), "CreatePrivateIp"},
	{"GET", regexp.MustCompile(`^/20160918/privateIps/([^/]+)$`), "GetPrivateIp"},
	{"PUT", regexp.MustCompile(`^/20160918/privateIps/([^/]+)$`), "UpdatePrivateIp"},
	{"DELETE", regexp.MustCompile(`^/20160918/privateIps/([^/]+)$`), "DeletePrivateIp"},
	{"POST", regexp.MustCompile(`^/20160918/privateIps/([^/]+)/actions/detach$`), "PrivateIpVnicDetach"},
	{"GET", regexp.MustCompile(`^/20160918/ipv6$`), "ListIpv6s"},
	{"POST", regexp.MustCompile(`^/20160918/ipv6$`), "CreateIpv6"},
	{"GET", regexp.MustCompile(`^/20160918/ipv6/([^/]+)$`), "GetIpv6"},
	{"PUT", regexp.MustCompile(`^/20160918/ipv6/([^/]+)$`), "UpdateIpv6"},
	{"DELETE", regexp.MustCompile(`^/20160918/ipv6/([^/]+)$`), "DeleteIpv6"},
	{"POST", regexp.MustCompile(`^/20160918/ipv6/([^/]+)/actions/detach$`), "Ipv6VnicDetach"},
}

// parseOCI reads a request as the API would. It leaves the body to be read again.
func parseOCI(r *http.Request) Call {
	body, _ := io.ReadAll(r.Body) // what is missing of it fails the check of its hash
	r.Body = io.NopCloser(bytes.NewReader(body))
	c := Call{
		IfMatch:    r.Header.Get("if-match"),
		RetryToken: r.Header.Get("opc-retry-token"),
		RequestID:  r.Header.Get("opc-request-id"),
		Retries:    r.Header.Get("opc-client-retries"),
		Body:       string(body),
	}
	for _, o := range ociOperations {
		if m := o.path.FindStringSubmatch(r.URL.Path); m != nil && r.Method == o.method {
			c.Action = o.action
			switch {
			case strings.HasSuffix(o.action, "Vnic"):
				c.NIC = m[1]
			case len(m) > 1:
				c.OCID = m[1]
			}
		}
	}
	c.six = strings.Contains(c.Action, "Ipv6")
	if m := agent.FindStringSubmatch(r.UserAgent()); m != nil {
		c.ID = m[1]
	}
	if a, err := netip.ParseAddr(r.URL.Query().Get("ipAddress")); err == nil {
		c.Addresses = []netip.Addr{a}
	}
	return c
}
