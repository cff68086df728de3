package azure

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tasuki-io/tasuki/internal/capture"
	"github.com/tasuki-io/tasuki/internal/executor"
	"github.com/tasuki-io/tasuki/internal/executor/executortest"
)

func TestAHostWithoutAnIdentityIsToldWhatToGiveIt(t *testing.T) {
	h := newHost(t)
	h.Identity("")
	h.Want(h.ask(capture.Assign, mobile), executor.OutcomePermanent, "managed identity")
	h.Identity("there-is-one")
	t.Setenv("AZURE_CLIENT_ID", "00000000-0000-4000-8000-0000000000c9") // but not this one
	h.Want(h.ask(capture.Assign, mobile), executor.OutcomePermanent, "managed identity")
	if n := len(h.Calls()); n != 0 {
		t.Errorf("ARM was asked %d times, want never", n)
	}
}

func TestAMetadataServiceThatIsAwayOrIllIsTriedAgain(t *testing.T) {
	ill := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }))
	defer ill.Close()
	for _, at := range []string{"http://127.0.0.1:1", ill.URL} {
		h := newHost(t)
		t.Setenv("AZURE_POD_IDENTITY_AUTHORITY_HOST", at)
		h.Want(h.ask(capture.Assign, mobile), executor.OutcomeRetry)
		if n := len(h.Calls()); n != 0 {
			t.Errorf("ARM was asked %d times, want never", n)
		}
	}
}

func TestAMetadataServiceThatWouldShowTheTokenIsNotAsked(t *testing.T) {
	h := newHost(t)
	t.Setenv("AZURE_POD_IDENTITY_AUTHORITY_HOST", "http://metadata.example.com")
	h.Want(h.ask(capture.Assign, mobile), executor.OutcomePermanent, "AZURE_POD_IDENTITY_AUTHORITY_HOST", "metadata.example.com")
}

// The token of an instance passes no proxy, whatever the environment says.
func TestTheMetadataServiceIsAskedPastEveryProxy(t *testing.T) {
	m, err := newMetadata("")
	if err != nil {
		t.Fatal(err)
	}
	if m.at.String() != "http://169.254.169.254" || m.client.Transport.(*http.Transport).Proxy != nil {
		t.Errorf("it is asked at %s, through a proxy: %t", m.at, m.client.Transport.(*http.Transport).Proxy != nil)
	}
}

func TestATokenOfAnotherCloudIsNotAccepted(t *testing.T) {
	h := newHost(t)
	h.meanwhile(func() { h.Identity("another") })
	r := h.ask(capture.Assign, mobile)
	h.Want(r, executor.OutcomePermanent, "does not accept the identity", "cloud")
	if r.Code != "InvalidAuthenticationToken" {
		t.Errorf("code %q, want the one of ARM", r.Code)
	}
}

func TestTheCloudFollowsTheEndpoint(t *testing.T) {
	for _, c := range []struct {
		endpoint, env string
		want          place
	}{
		{"", "", place{"https://management.azure.com", "https://management.core.windows.net/", "https://login.microsoftonline.com/", true}},
		{"https://management.azure.com/", "", place{"https://management.azure.com", "https://management.core.windows.net/", "https://login.microsoftonline.com/", true}},
		{"https://westeurope.management.azure.com", "", place{"https://westeurope.management.azure.com", "https://management.core.windows.net/", "https://login.microsoftonline.com/", true}},
		{"https://Management.ChinaCloudAPI.cn", "", place{"https://Management.ChinaCloudAPI.cn", "https://management.core.chinacloudapi.cn/", "https://login.chinacloudapi.cn/", true}},
		{"https://management.usgovcloudapi.net", "", place{"https://management.usgovcloudapi.net", "https://management.core.usgovcloudapi.net/", "https://login.microsoftonline.us/", true}},
		{"https://management.usgovcloudapi.net", "https://login.microsoftonline.com/", place{"https://management.usgovcloudapi.net", "https://management.core.usgovcloudapi.net/", "https://login.microsoftonline.com/", true}},
		{"https://arm.sovereign.example/", "https://login.sovereign.example/", place{"https://arm.sovereign.example", "https://arm.sovereign.example", "https://login.sovereign.example/", false}},
		{"https://arm.sovereign.example", "", place{"https://arm.sovereign.example", "https://arm.sovereign.example", "https://login.microsoftonline.com/", true}},
		{"https://management.azure.com.example.com", "", place{"https://management.azure.com.example.com", "https://management.azure.com.example.com", "https://login.microsoftonline.com/", true}},
		{"https://notmanagement.azure.com", "", place{"https://notmanagement.azure.com", "https://notmanagement.azure.com", "https://login.microsoftonline.com/", true}},
	} {
		t.Setenv("AZURE_AUTHORITY_HOST", c.env)
		if got, err := find(c.endpoint); err != nil || got != c.want {
			t.Errorf("%s: %+v, %v, want %+v", c.endpoint, got, err, c.want)
		}
	}
}

func TestANICIsANameOrAWholeID(t *testing.T) {
	h := newHost(t)
	far := strings.Replace(h.ID("nic-far"), "/edge/", "/far/", 1)
	h.AddNIC(far, netip.MustParseAddr("10.0.0.20"))
	bare := func(q *executor.Request) { q.Profile.Subscription, q.Profile.ResourceGroup = "", "" }
	h.Want(h.ask(executor.Describe, netip.Addr{}, bare, func(q *executor.Request) { q.NIC = far }), executor.OutcomeDone)
	h.Want(h.ask(executor.Describe, netip.Addr{}, bare, func(q *executor.Request) { q.NIC = strings.ToUpper(far) }), executor.OutcomeDone)
	for nic, says := range map[string]string{
		"nic-a":                               "subscription and resourceGroup",
		"edge/nic-a":                          "whole resource ID",
		"/subscriptions/s":                    "only a NIC of its own",
		h.ID("nic-a") + "/ipConfigurations/x": "only a NIC of its own",
		"/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/virtualMachineScaleSets/x/virtualMachines/0/networkInterfaces/nic": "only a NIC of its own",
	} {
		h.Want(h.ask(executor.Describe, netip.Addr{}, bare, func(q *executor.Request) { q.NIC = nic }), executor.OutcomePermanent, nic, says)
	}
	half := func(q *executor.Request) { q.Profile.ResourceGroup = "" }
	h.Want(h.ask(executor.Describe, netip.Addr{}, half), executor.OutcomePermanent, "resourceGroup")
	odd := func(q *executor.Request) { q.NIC = "nic-a?api-version=1999-01-01#" }
	h.Want(h.ask(executor.Describe, netip.Addr{}, odd), executor.OutcomePermanent, "there is no nic-a?")
}

// A workload identity is told by an authority, for an assertion that the host was given in a
// file. The agent passes on where they are; no secret of its environment comes along.
func TestAWorkloadIdentityIsUsedWhereThereIsOne(t *testing.T) {
	h := newHost(t)
	var authority *httptest.Server
	var form map[string][]string
	authority = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch r.URL.Path {
		case "/tenant/v2.0/.well-known/openid-configuration":
			json.NewEncoder(w).Encode(map[string]string{
				"issuer": authority.URL + "/tenant/v2.0", "authorization_endpoint": authority.URL + "/tenant/authorize", "token_endpoint": authority.URL + "/tenant/token",
			})
		case "/tenant/token":
			r.ParseForm()
			form = r.PostForm
			json.NewEncoder(w).Encode(map[string]any{"access_token": "of-the-workload", "expires_in": 3600, "token_type": "Bearer"})
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	defer authority.Close()
	dir := t.TempDir()
	write := func(name string, data []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	t.Setenv("SSL_CERT_FILE", write("ca.pem", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: authority.Certificate().Raw})))
	t.Setenv("AZURE_AUTHORITY_HOST", authority.URL)
	t.Setenv("AZURE_TENANT_ID", "tenant")
	t.Setenv("AZURE_CLIENT_ID", "client")
	t.Setenv("AZURE_CLIENT_SECRET", "planted-secret")
	t.Setenv("AZURE_FEDERATED_TOKEN_FILE", write("token", []byte("the-assertion")))
	h.Identity("of-the-workload")
	run := (&executor.Command{Path: executortest.Binary(t)}).Run
	r := run(context.Background(), executor.Request{Version: executor.Version, Verb: executor.Describe, NIC: "nic-a", Profile: h.Profile()})
	h.Want(r, executor.OutcomeDone)
	if form["client_assertion"][0] != "the-assertion" || form["client_id"][0] != "client" || !strings.HasPrefix(form["scope"][0], h.URL()+"/.default") || form["client_secret"] != nil {
		t.Errorf("the authority was asked for %v", form)
	}
}
