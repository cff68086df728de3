package executortest

import (
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Call is one request to an API. Its Action is the name of the operation; of ARM, the method and
// the kind of resource.
type Call struct {
	N      int
	At     time.Time
	Action string
	// NIC is the one that the call is about; a read by filters names none.
	NIC       string
	Addresses []netip.Addr
	Reassign  bool
	DryRun    bool
	// ID is that of the executor's request, as far as a user agent can show it: see Agent. Of ARM
	// it is the correlation ID.
	ID string
	// IfMatch is the etag that the call is conditional on.
	IfMatch string
	Body    string // of a change, where it is no form
	// Attempt is the count of the SDK, as in "attempt=1; max=1".
	Attempt string

	// Code is the error that was answered, "" for none. Accepted is a change that was accepted,
	// whatever was answered. Took is when it took effect; zero is not yet.
	Code     string
	Accepted bool
	Took     time.Time

	// What only OCI has: the IP that the path names, the retry token, the client's own ID of the
	// request, and whether the SDK would repeat it ("true" or "false").
	OCID, RetryToken, RequestID, Retries string

	form url.Values // of EC2
	six  bool       // of OCI
}

// Changes reports a call that would change something.
func (c Call) Changes() bool { return !reading.MatchString(c.Action) }

var reading = regexp.MustCompile("^(Describe|Get|List|GET )")

// Agent is what a user agent can show of an ID: it has no room for every character.
func Agent(id string) string { return unfit.ReplaceAllString(id, "-") }

var unfit = regexp.MustCompile("[^0-9A-Za-z!#$%&'*+.^_`|~-]")

var agent = regexp.MustCompile(`(?:^| )tasuki/(\S+)`)

// parse reads a request as EC2 would.
func parse(r *http.Request) Call {
	form := r.PostForm
	c := Call{
		Action:   form.Get("Action"),
		NIC:      form.Get("NetworkInterfaceId"),
		Reassign: form.Get("AllowReassignment") == "true",
		DryRun:   form.Get("DryRun") == "true",
		Attempt:  r.Header.Get("Amz-Sdk-Request"),
		form:     form,
	}
	if c.NIC == "" {
		c.NIC = form.Get("NetworkInterfaceId.1")
	}
	if m := agent.FindStringSubmatch(r.UserAgent()); m != nil {
		c.ID = m[1]
	}
	for _, a := range numbered(form, "PrivateIpAddress", "Ipv6Addresses") {
		if addr, err := netip.ParseAddr(a); err == nil {
			c.Addresses = append(c.Addresses, addr)
		}
	}
	return c
}

// numbered are the members NAME.1, NAME.2 and so on of lists in a form.
func numbered(form url.Values, names ...string) (all []string) {
	for _, name := range names {
		for i := 1; form.Has(name + "." + strconv.Itoa(i)); i++ {
			all = append(all, form.Get(name+"."+strconv.Itoa(i)))
		}
	}
	return all
}

// signed says why a request would not be let in, or nothing. It looks at the signature, but
// does not compute it.
func (f *EC2) signed(r *http.Request) (code string) {
	auth, ok := strings.CutPrefix(r.Header.Get("Authorization"), "AWS4-HMAC-SHA256 ")
	if !ok {
		return "MissingAuthenticationToken"
	}
	scope := "Credential=" + f.secret.AccessKeyID + "/"
	switch {
	case !strings.HasPrefix(auth, scope),
		!strings.Contains(auth, "/"+f.region+"/ec2/aws4_request,"),
		!strings.Contains(auth, "SignedHeaders=") || !strings.Contains(auth, "host;x-amz-date"),
		!signature.MatchString(auth),
		r.Header.Get("X-Amz-Date") == "",
		r.Header.Get("X-Amz-Security-Token") != f.secret.Token:
		return "AuthFailure"
	}
	return ""
}

var signature = regexp.MustCompile(`Signature=[0-9a-f]{64}$`)
