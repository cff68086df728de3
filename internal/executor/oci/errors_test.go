package oci

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tasuki-io/tasuki/internal/capture"
	"github.com/tasuki-io/tasuki/internal/executor"
	"github.com/tasuki-io/tasuki/internal/executor/executortest"
)

func TestAMissingPermissionIsNamedWithThePolicyThatGivesIt(t *testing.T) {
	for _, c := range []struct {
		verb   capture.Verb
		addr   netip.Addr
		on     string
		action string
		policy string
	}{
		{capture.Assign, mobile, "", "GetVnic", "inspect vnics"},
		{capture.Assign, mobile, "", "ListPrivateIps", "inspect private-ips"},
		{capture.Assign, mobile, "", "CreatePrivateIp", "use private-ips"},
		{capture.Assign, mobile, "vnic-b", "UpdatePrivateIp", "use private-ips"},
		{capture.Unassign, mobile, "vnic-a", "DeletePrivateIp", "use subnets"},
		{capture.Assign, mobile6, "", "ListIpv6s", "inspect ipv6s"},
		{capture.Assign, mobile6, "", "CreateIpv6", "manage ipv6s"},
		{capture.Assign, mobile6, "vnic-b", "UpdateIpv6", "manage ipv6s"},
		{capture.Unassign, mobile6, "vnic-a", "DeleteIpv6", "manage ipv6s"},
		{capture.EnableForwarding, netip.Addr{}, "", "UpdateVnic", "use vnics"},
		{executor.Describe, netip.Addr{}, "", "ListIpv6s", "inspect ipv6s"},
	} {
		t.Run(string(c.verb)+" "+c.action, func(t *testing.T) {
			h := newHost(t)
			if c.addr.IsValid() {
				h.Place(c.on, c.addr)
			}
			h.Deny(c.action)
			start := h.clock.Now()
			r := h.ask(c.verb, c.addr, func(q *executor.Request) {
				q.Profile.Compartment, q.Reassign = "ocid1.compartment.oc1..edge", c.verb == capture.Assign
			})
			h.Want(r, executor.OutcomePermanent, "vnic-a", c.action, "Allow dynamic-group GROUP to "+c.policy+" in compartment id ocid1.compartment.oc1..edge")
			if waited := h.clock.Now().Sub(start); r.Code != "NotAuthorizedOrNotFound" || waited > doubtTime {
				t.Errorf("code %q after %s, want the one of OCI", r.Code, waited)
			}
		})
	}
}

// A list shows an address, and its object is refused: it is not known where it is.
func TestAnAddressThatIsListedAndNotShownIsNeitherTakenNorGone(t *testing.T) {
	h := newHost(t)
	h.Place("vnic-a", mobile)
	h.Deny("GetPrivateIp")
	for _, v := range []capture.Verb{capture.Assign, capture.Unassign} {
		h.Want(h.ask(v, mobile), executor.OutcomeRetry, "shows none")
	}
	h.wantChanges(0)
}

func TestAnAcceptedChangeThatMayNotBeReadIsUnknownAtOnce(t *testing.T) {
	h := newHost(t)
	h.beforeChange(func() { h.Deny("ListPrivateIps") })
	start := h.clock.Now()
	h.Want(h.ask(capture.Assign, mobile), executor.OutcomeUnknown, "accepted", "ListPrivateIps")
	if waited := h.clock.Now().Sub(start); waited != 0 {
		t.Errorf("it went on reading for %s", waited)
	}
}

func TestRefusalsAreClassed(t *testing.T) {
	for _, c := range []struct {
		status int
		code   string
		want   executor.Outcome
	}{
		{429, "TooManyRequests", executor.OutcomeThrottled},
		{409, "IncorrectState", executor.OutcomeRetry},
		{409, "Conflict", executor.OutcomeRetry},
		{409, "InvalidatedRetryToken", executor.OutcomeRetry},
		{412, "NoEtagMatch", executor.OutcomeRetry},
		{400, "LimitExceeded", executor.OutcomePermanent},
		{400, "QuotaExceeded", executor.OutcomePermanent},
		{400, "InvalidParameter", executor.OutcomePermanent},
		{400, "RelatedResourceNotAuthorizedOrNotFound", executor.OutcomePermanent},
		{401, "NotAuthenticated", executor.OutcomePermanent},
		{403, "NotAuthorized", executor.OutcomePermanent},
		{404, "NotAuthorizedOrNotFound", executor.OutcomePermanent},
		{404, "NotAuthorizedOrResourceAlreadyExists", executor.OutcomePermanent},
		{408, "RequestTimeout", executor.OutcomeUnknown},
		{502, "BadGateway", executor.OutcomeUnknown},
	} {
		t.Run(c.code, func(t *testing.T) {
			for _, a := range both {
				h := newHost(t)
				h.Inject(executortest.Rule{Match: executortest.Changing, Fault: executortest.Fault{Status: c.status, Code: c.code, Message: "because"}})
				r := h.ask(capture.Assign, a)
				h.Want(r, c.want, a.String(), "vnic-a", "because", "opc-request-id 0")
				if r.Code != c.code {
					t.Errorf("code %q, want %q", r.Code, c.code)
				}
				h.wantChanges(1)
			}
		})
	}
}

func TestAVNICThatIsNotReadyIsTriedAgain(t *testing.T) {
	h := newHost(t)
	h.Edit("vnic-a", func(n *executortest.VNIC) { n.Lifecycle = "PROVISIONING" })
	h.Place("vnic-b", mobile6)
	for _, r := range []executor.Result{h.ask(capture.Assign, mobile), h.ask(capture.Assign, mobile6, reassign), h.ask(capture.EnableForwarding, netip.Addr{})} {
		h.Want(r, executor.OutcomeRetry, "PROVISIONING")
	}
}

// The SDK would send a change three times that is refused with 401.
func TestAnIdentityThatIsRefusedIsNotTriedAgain(t *testing.T) {
	h := newHost(t)
	h.beforeChange(h.Revoke)
	h.Want(h.ask(capture.Assign, mobile), executor.OutcomePermanent, "clock", "CreatePrivateIp")
	h.wantChanges(1)
}

func TestAnEndpointThatRefusesTheConnectionWasNotAsked(t *testing.T) {
	h := newHost(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	q := executor.Request{Verb: capture.Assign, ID: "a", NIC: "vnic-a", Address: mobile, Profile: executor.Profile{Endpoint: "http://" + l.Addr().String()}}
	r := execute(context.Background(), q, h.clock, h.limits)
	h.Want(r, executor.OutcomeRetry, "refused")
	if r.Calls != 0 {
		t.Errorf("%d calls, want none", r.Calls)
	}
}

// A redirection is followed by no call: whoever answers so is not the API.
func TestNoCallIsRedirected(t *testing.T) {
	h := newHost(t)
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, h.URL()+r.URL.RequestURI(), http.StatusTemporaryRedirect)
	}))
	defer elsewhere.Close()
	q := executor.Request{Verb: capture.Assign, ID: "a", NIC: "vnic-a", Address: mobile, Profile: executor.Profile{Endpoint: elsewhere.URL}}
	h.Want(execute(context.Background(), q, h.clock, h.limits), executor.OutcomeRetry, "redirected")
	if n := len(h.Calls()); n != 0 {
		t.Errorf("OCI was asked %d times, want never", n)
	}
}

// OCI, or a proxy before it, may repeat parts of the request.
func TestI12NoSecretInAMessage(t *testing.T) {
	h := newHost(t)
	h.Before(func(c executortest.Call) {
		if c.Changes() {
			return
		}
		for _, token := range h.Tokens() {
			h.Inject(executortest.Rule{Match: executortest.Changing, Fault: executortest.Fault{Status: 400, Code: "InvalidParameter-" + token, Message: `keyId="ST$` + token + `" is odd`}})
		}
	})
	r := h.ask(capture.Assign, mobile)
	h.Want(r, executor.OutcomePermanent, "[redacted]")
	for _, token := range h.Tokens() {
		if strings.Contains(r.Message+r.Code, token) {
			t.Errorf("message %q, code %q: one holds the security token", r.Message, r.Code)
		}
	}
}

// An instance whose metadata service, or the Auth service of its region, does not do.
func TestAHostWithoutAnIdentityIsToldSo(t *testing.T) {
	for name, c := range map[string]struct {
		ail    string
		status int
		want   executor.Outcome
	}{
		"no instance":                  {"metadata", 404, executor.OutcomePermanent},
		"a metadata service that ails": {"metadata", 500, executor.OutcomeRetry},
		"one that asks for patience":   {"metadata", 429, executor.OutcomeRetry},
		"a certificate nobody trusts":  {"auth", 401, executor.OutcomePermanent},
		"an Auth service that ails":    {"auth", 503, executor.OutcomeRetry},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			h.Ail(c.ail, c.status)
			q := executor.Request{Verb: executor.Describe, NIC: "vnic-a", Profile: executor.Profile{Endpoint: h.URL()}}
			r := execute(context.Background(), q, h.clock, limits{time.Second, time.Second, 5 * time.Second})
			h.Want(r, c.want, "no OCI identity", http.StatusText(c.status))
			if n := len(h.Calls()); n != 0 || r.Calls != 0 {
				t.Errorf("OCI was asked %d times, want never", n)
			}
		})
	}
}

// The SDK would ask it eight times, with a minute of waiting.
func TestAMetadataServiceThatRefusesIsAskedOnce(t *testing.T) {
	h := newHost(t)
	var asked atomic.Int64
	metadata := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		w.WriteHeader(http.StatusNotFound)
	}))
	defer metadata.Close()
	t.Setenv("OCI_METADATA_BASE_URL", metadata.URL)
	q := executor.Request{Verb: executor.Describe, NIC: "vnic-a", Profile: executor.Profile{Endpoint: h.URL()}}
	h.Want(execute(context.Background(), q, h.clock, limits{time.Second, time.Second, 10 * time.Second}), executor.OutcomePermanent, "404")
	if n := asked.Load(); n != 1 {
		t.Errorf("it was asked %d times, want once", n)
	}
}

func TestAMetadataServiceThatIsAwayIsTriedAgain(t *testing.T) {
	h := newHost(t)
	t.Setenv("OCI_METADATA_BASE_URL", "http://127.0.0.1:1/opc/v2")
	q := executor.Request{Verb: executor.Describe, NIC: "vnic-a", Profile: executor.Profile{Endpoint: h.URL()}}
	h.Want(execute(context.Background(), q, h.clock, limits{time.Second, time.Second, 5 * time.Second}), executor.OutcomeRetry, "refused")
}

func TestTheRegionIsThatOfTheProfileOrElseOfTheHost(t *testing.T) {
	newHost(t)
	for region, want := range map[string]string{"eu-zurich-1": "eu-zurich-1", "": "eu-frankfurt-1", "ZRH": "eu-zurich-1"} {
		id, r := identify(context.Background(), executor.Profile{Region: region}, 10*time.Second)
		if id == nil {
			t.Fatal(r.Message)
		}
		client, err := id.client(newWire(context.Background(), limits{}), executor.Request{})
		if err != nil || !strings.HasPrefix(client.Host, "https://iaas."+want+".") {
			t.Errorf("region %q is served by %s (%v), want one of %s", region, client.Host, err, want)
		}
	}
}

func TestAnEndpointIsOneThatTheSDKTakes(t *testing.T) {
	const base = "https://iaas.eu-frankfurt-1.oraclecloud.com"
	if got, err := safeEndpoint(base + "/"); got != base || err != nil {
		t.Errorf("got %s (%v), want it without the slash", got, err)
	}
	for _, no := range []string{base + "/20160918", base + "?a=b", base + "#a"} {
		if got, err := safeEndpoint(no); err == nil {
			t.Errorf("%s is taken as %s, want it refused", no, got)
		}
	}
}

// front is an endpoint before the fake that has its way with what that answers.
func (h *host) front(change func(*http.Response)) *httptest.Server {
	to, err := url.Parse(h.URL())
	if err != nil {
		h.Fatal(err)
	}
	front := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite:        func(r *httputil.ProxyRequest) { r.SetURL(to); r.Out.Host = r.In.Host },
		ModifyResponse: func(r *http.Response) error { change(r); return nil },
	})
	h.Cleanup(front.Close)
	return front
}

// The endpoint is gone between the last read and the change: there is nothing to wait for.
func TestAChangeThatNeverLeftIsRetriedAtOnce(t *testing.T) {
	h := newHost(t)
	var front *httptest.Server
	front = h.front(func(r *http.Response) {
		r.Header.Set("Connection", "close")
		if strings.HasSuffix(r.Request.URL.Path, "/privateIps") {
			front.Listener.Close()
		}
	})
	q := executor.Request{Verb: capture.Assign, ID: "a", NIC: "vnic-a", Address: mobile, Profile: executor.Profile{Endpoint: front.URL}}
	start := h.clock.Now()
	r := execute(context.Background(), q, h.clock, h.limits)
	h.Want(r, executor.OutcomeRetry, "refused")
	if waited := h.clock.Now().Sub(start); waited != 0 || r.Calls != 2 {
		t.Errorf("%d calls, and it waited for %s, want 2 and no wait", r.Calls, waited)
	}
}

// Without an etag nothing says what a change rests on; with an empty if-match it would rest on
// nothing.
func TestWhatIsShownWithoutAnEtagIsNotChanged(t *testing.T) {
	h := newHost(t)
	strip := ""
	front := h.front(func(r *http.Response) {
		if strings.Contains(r.Request.URL.Path, strip) {
			r.Header.Del("etag")
		}
	})
	for _, c := range []struct {
		strip string // where
		verb  capture.Verb
		addr  netip.Addr
	}{
		{"/vnics/", capture.EnableForwarding, netip.Addr{}},
		{"/privateIps/", capture.Unassign, mobile},
		{"/ipv6/", capture.Unassign, mobile6},
	} {
		strip = c.strip
		if c.addr.IsValid() {
			h.Place("vnic-a", c.addr)
		}
		q := executor.Request{Verb: c.verb, ID: "a", NIC: "vnic-a", Address: c.addr, Profile: executor.Profile{Endpoint: front.URL}}
		h.Want(execute(context.Background(), q, h.clock, h.limits), executor.OutcomeRetry, "without an etag")
	}
	h.wantChanges(0)
}

// A list says one thing of an OCID, and the object another.
func TestAnObjectThatIsAnotherAddressIsLeftAlone(t *testing.T) {
	for _, a := range both {
		h := newHost(t)
		h.Place("vnic-a", a)
		h.Before(func(c executortest.Call) {
			if c.OCID != "" && !c.Changes() {
				h.AddIP(executortest.IP{ID: c.OCID, Subnet: "subnet-1", VNIC: "vnic-a", Address: a.Next()})
			}
		})
		h.Want(h.ask(capture.Unassign, a), executor.OutcomeRetry, a.String(), a.Next().String())
		h.wantChanges(0)
	}
}

// The environment of a host often names a proxy, which would answer for the metadata service.
func TestTheMetadataServiceIsNotAskedThroughAProxy(t *testing.T) {
	if os.Getenv("HTTP_PROXY") == "http://192.0.2.1:3128" { // read once in a process
		for target, want := range map[string]bool{"http://169.254.169.254/opc/v2/": false, "https://auth.eu-frankfurt-1.oraclecloud.com": true} {
			r, err := http.NewRequest(http.MethodGet, target, nil)
			if err != nil {
				t.Fatal(err)
			}
			if proxy, err := transport.Proxy(r); err != nil || (proxy != nil) != want {
				t.Errorf("%s goes through %v (%v), want a proxy: %t", target, proxy, err, want)
			}
		}
		return
	}
	child := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	child.Env = append(os.Environ(), "HTTP_PROXY=http://192.0.2.1:3128", "HTTPS_PROXY=http://192.0.2.1:3128", "NO_PROXY=", "no_proxy=", "http_proxy=", "https_proxy=")
	if out, err := child.CombinedOutput(); err != nil || !strings.Contains(string(out), "PASS: "+t.Name()) {
		t.Errorf("%v\n%s", err, out)
	}
}
