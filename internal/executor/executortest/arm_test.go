package executortest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/arm"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/cloud"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"pgregory.net/rapid"
)

// bearer is a credential that the fake knows, or not.
type bearer string

func (b bearer) GetToken(context.Context, policy.TokenRequestOptions) (azcore.AccessToken, error) {
	return azcore.AccessToken{Token: string(b), ExpiresOn: time.Now().Add(time.Hour)}, nil
}

// azure is the official pipeline to a fake.
type azure struct {
	*testing.T
	*ARM
	pipeline runtime.Pipeline
}

func newAzure(t *testing.T, token bearer, clock *Clock) *azure {
	f := StartARM(t, clock)
	f.AddNIC("nic-a", netip.MustParseAddr("10.0.0.10"))
	f.AddNIC("nic-b", netip.MustParseAddr("10.0.0.11"))
	c, err := arm.NewClient("test", "v1.0.0", token, &arm.ClientOptions{
		DisableRPRegistration: true,
		ClientOptions: azcore.ClientOptions{
			Cloud:                           cloud.Configuration{Services: map[cloud.ServiceName]cloud.ServiceConfiguration{cloud.ResourceManager: {Endpoint: f.URL(), Audience: f.URL()}}},
			Retry:                           policy.RetryOptions{MaxRetries: -1},
			InsecureAllowCredentialWithHTTP: true,
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return &azure{t, f, c.Pipeline()}
}

// send sends one request, with a document if it is a put.
func (z *azure) send(method, path, query string, doc document, etag string) (*http.Response, error) {
	z.Helper()
	r, err := runtime.NewRequest(context.Background(), method, z.URL()+path)
	if err != nil {
		z.Fatal(err)
	}
	r.Raw().URL.RawQuery = query
	if doc != nil {
		if err := runtime.MarshalAsJSON(r, doc); err != nil {
			z.Fatal(err)
		}
	}
	if etag != "" {
		r.Raw().Header.Set("If-Match", etag)
	}
	answer, err := z.pipeline.Do(r)
	if err == nil && answer.StatusCode != http.StatusOK {
		return nil, runtime.NewResponseError(answer)
	}
	return answer, err
}

const version = "api-version=2025-05-01"

func (z *azure) get(path, query string) document {
	z.Helper()
	var doc document
	answer, err := z.send(http.MethodGet, path, query, nil, "")
	if err == nil {
		err = runtime.UnmarshalAsJSON(answer, &doc)
	}
	if err != nil {
		z.Fatal(err)
	}
	return doc
}

func (z *azure) put(nic string, doc document, etag string) (*http.Response, error) {
	return z.send(http.MethodPut, z.ID(nic), version, doc, etag)
}

// add puts an address on a NIC as it should be done.
func (z *azure) add(nic string, a netip.Addr) error {
	z.Helper()
	doc := z.get(z.ID(nic), version)
	addConfiguration(doc, "of-"+strings.ReplaceAll(a.String(), ":", "-"), a, false)
	_, err := z.put(nic, doc, doc["etag"].(string))
	return err
}

func armCode(err error) string {
	var answer *azcore.ResponseError
	if errors.As(err, &answer) {
		return answer.ErrorCode
	}
	return ""
}

func TestARMLetsNobodyInWithoutATokenAndAVersion(t *testing.T) {
	z := newAzure(t, "fake-access-token", nil)
	for query, want := range map[string]string{"": "MissingApiVersionParameter", "api-version=1999-01-01": "NoRegisteredProviderFound", version: ""} {
		if _, err := z.send(http.MethodGet, z.ID("nic-a"), query, nil, ""); armCode(err) != want {
			t.Errorf("%q is answered with %v, want %q", query, err, want)
		}
	}
	z.Identity("rotated")
	if _, err := z.send(http.MethodGet, z.ID("nic-a"), version, nil, ""); armCode(err) != "InvalidAuthenticationToken" {
		t.Errorf("an old token is answered with %v", err)
	}
	answer, err := http.Get(z.URL() + z.ID("nic-a") + "?" + version)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusUnauthorized {
		t.Errorf("no token is answered with %s", answer.Status)
	}
}

func TestAzuresMetadataServiceWantsItsHeader(t *testing.T) {
	z := newAzure(t, "fake-access-token", nil)
	ask := func(header, audience string) int {
		r, err := http.NewRequest(http.MethodGet, z.URL()+"/metadata/identity/oauth2/token?api-version=2018-02-01&resource="+url.QueryEscape(audience), nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Metadata", header)
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		return answer.StatusCode
	}
	if got := []int{ask("true", z.URL()), ask("", z.URL()), ask("true", "https://management.core.windows.net/")}; !slices.Equal(got, []int{200, 400, 400}) {
		t.Errorf("it is answered %v", got)
	}
}

func TestAPutReplacesTheWholeNIC(t *testing.T) {
	z := newAzure(t, "fake-access-token", nil)
	z.Edit("nic-a", func(p document) { p["ofAnother"] = document{"writer": true} })
	doc := z.get(z.ID("nic-a"), version)
	if _, err := z.put("nic-a", doc, doc["etag"].(string)); err != nil {
		t.Fatal(err)
	}
	if z.Properties("nic-a")["ofAnother"] == nil {
		t.Error("what was sent back is gone")
	}
	again := z.get(z.ID("nic-a"), version)
	if _, err := z.put("nic-a", doc, doc["etag"].(string)); armCode(err) != "PreconditionFailed" || again["etag"] == doc["etag"] {
		t.Errorf("an old etag is answered with %v", err)
	}
	delete(properties(again), "ofAnother")
	if _, err := z.put("nic-a", again, ""); err != nil || z.Properties("nic-a")["ofAnother"] != nil {
		t.Errorf("what was left out is still there, %v", err)
	}
	delete(again, "location")
	if _, err := z.put("nic-a", again, ""); armCode(err) != "LocationRequired" {
		t.Errorf("no location is answered with %v", err)
	}
}

func TestWhatNoNICCanBe(t *testing.T) {
	z := newAzure(t, "fake-access-token", nil)
	z.Place("nic-a", one)
	for want, edit := range map[string]func(doc document){
		"IpConfigDeleteNotSupported":   func(doc document) { properties(doc)["ipConfigurations"] = configurations(doc)[1:] },
		"DuplicateResourceName":        func(doc document) { addConfiguration(doc, "ipconfig1", two, false) },
		"SubnetIsRequired":             func(doc document) { delete(properties(configurations(doc)[1].(document)), "subnet") },
		"IpConfigurationLimitExceeded": func(doc document) { addConfiguration(doc, "x", two, false) },
		"PrivateIPAddressIsAllocated": func(doc document) {
			properties(configurations(doc)[1].(document))["privateIPAddress"] = "10.0.0.11"
		},
	} {
		z.Limit("nic-a", 2)
		doc := z.get(z.ID("nic-a"), version)
		edit(doc)
		if _, err := z.put("nic-a", doc, ""); armCode(err) != want {
			t.Errorf("it is answered with %v, want %s", err, want)
		}
	}
	if err := z.add("nic-b", one); !strings.Contains(fmt.Sprint(err), "is using the private IP address 10.0.0.1 which is already allocated to resource "+z.ID("nic-a")+"/ipConfigurations/by-hand-10.0.0.1.") {
		t.Errorf("it is answered with %v", err)
	}
	if _, err := z.put("nic-none", document{"location": "x"}, ""); armCode(err) != "ResourceNotFound" {
		t.Errorf("it is answered with %v", err)
	}
}

// The SDK's poller follows an operation, while the NIC shows already what is to be.
func TestAnOperationTakesItsTime(t *testing.T) {
	clock := NewClock()
	z := newAzure(t, "fake-access-token", clock)
	z.Place("nic-a", one)
	z.Lag(5*time.Second, 0)
	doc := z.get(z.ID("nic-a"), version)
	properties(doc)["ipConfigurations"] = configurations(doc)[:1]
	answer, err := z.put("nic-a", doc, doc["etag"].(string))
	if err != nil {
		t.Fatal(err)
	}
	poller, err := runtime.NewPoller[document](answer, z.pipeline, nil)
	if err != nil {
		t.Fatal(err)
	}
	state := func() any { return properties(z.get(z.ID("nic-a"), version))["provisioningState"] }
	poll := func() bool {
		if _, err := poller.Poll(context.Background()); err != nil {
			t.Fatal(err)
		}
		return poller.Done()
	}
	if state() != "Updating" || poll() || !slices.Equal(z.Holders(one), []string{"nic-a"}) {
		t.Errorf("it is %v at once, and on %v", state(), z.Holders(one))
	}
	if err := z.add("nic-a", two); armCode(err) != "AnotherOperationInProgress" {
		t.Errorf("a second change is answered with %v", err)
	}
	if err := z.add("nic-b", one); armCode(err) != "PrivateIPAddressIsAllocated" {
		t.Errorf("an address that is leaving is assigned elsewhere, with %v", err)
	}
	clock.Sleep(context.Background(), 5*time.Second)
	if state() != "Succeeded" || !poll() || len(z.Holders(one)) != 0 {
		t.Errorf("after 5 s it is %v, and on %v", state(), z.Holders(one))
	}
	if err := z.add("nic-b", one); err != nil {
		t.Error(err)
	}
	if c := z.Calls()[1]; !c.Accepted || c.Took.Sub(c.At) != 5*time.Second {
		t.Errorf("the log says %+v, want it accepted, and effective after 5 s", c)
	}
}

func TestAnOperationThatFailsLeavesTheNICAsItWas(t *testing.T) {
	z := newAzure(t, "fake-access-token", nil)
	z.Fail("InternalServerError", "An error occurred.")
	doc := z.get(z.ID("nic-a"), version)
	addConfiguration(doc, "x", one, false)
	answer, err := z.put("nic-a", doc, "")
	if err != nil {
		t.Fatal(err)
	}
	poller, err := runtime.NewPoller[document](answer, z.pipeline, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := poller.PollUntilDone(context.Background(), &runtime.PollUntilDoneOptions{Frequency: time.Millisecond}); armCode(err) != "InternalServerError" {
		t.Errorf("it ends with %v", err)
	}
	shown := z.get(z.ID("nic-a"), version)
	if len(z.Holders(one)) != 0 || properties(shown)["provisioningState"] != "Failed" || len(configurations(shown)) != 2 {
		t.Errorf("it is on %v, and ARM shows %v", z.Holders(one), shown)
	}
}

func TestReadsOfARMMayBeOld(t *testing.T) {
	clock := NewClock()
	z := newAzure(t, "fake-access-token", clock)
	z.Lag(0, 10*time.Second)
	if err := z.add("nic-a", one); err != nil {
		t.Fatal(err)
	}
	for _, want := range []int{1, 2} {
		doc := z.get(z.ID("nic-a"), version)
		if got := len(configurations(doc)); got != want {
			t.Errorf("it shows %d IP configurations, want %d", got, want)
		}
		if _, err := z.put("nic-a", doc, doc["etag"].(string)); want == 1 && armCode(err) != "PreconditionFailed" {
			t.Errorf("what was read long ago is put with %v", err)
		}
		clock.Sleep(context.Background(), 10*time.Second)
	}
}

func TestASubnetShowsWhoIsInIt(t *testing.T) {
	z := newAzure(t, "fake-access-token", nil)
	for query, want := range map[string]int{version: 0, version + "&$expand=ipConfigurations": 2} {
		list, shown := configurations(z.get(armSubnet, query)), 0
		for _, c := range list {
			if addressOf(c).IsValid() {
				shown++
			}
		}
		if len(list) != 2 || shown != want {
			t.Errorf("%s shows %v", query, list)
		}
	}
	if got := z.get(strings.TrimSuffix(z.ID(""), "/"), version)["value"].([]any); len(got) != 2 {
		t.Errorf("the resource group shows %v", got)
	}
}

// Whatever is put, wherever it is placed by hand, and however late it takes effect.
func TestI9AnAddressIsOnAtMostOneNICOfAzure(t *testing.T) {
	clock := NewClock()
	z := newAzure(t, "fake-access-token", clock)
	nics, all := []string{"nic-a", "nic-b"}, []netip.Addr{one, two, netip.MustParseAddr("2001:db8::1")}
	rapid.Check(t, func(t *rapid.T) {
		for range rapid.IntRange(1, 8).Draw(t, "steps") {
			nic, a := rapid.SampledFrom(nics).Draw(t, "nic"), rapid.SampledFrom(all).Draw(t, "address")
			switch rapid.IntRange(0, 3).Draw(t, "step") {
			case 0:
				z.add(nic, a)
			case 1:
				doc := z.get(z.ID(nic), version)
				properties(doc)["ipConfigurations"] = configurations(doc)[:1]
				z.put(nic, doc, "")
			case 2:
				z.Place(rapid.SampledFrom(append(nics, "")).Draw(t, "place"), a)
			case 3:
				z.Lag(time.Duration(rapid.IntRange(0, 9).Draw(t, "lag"))*time.Second, 0)
			}
			clock.Sleep(context.Background(), time.Duration(rapid.IntRange(0, 5).Draw(t, "wait"))*time.Second)
			for _, a := range all {
				if on := z.Holders(a); len(on) > 1 {
					t.Fatalf("%s is on %v", a, on)
				}
			}
		}
	})
}
