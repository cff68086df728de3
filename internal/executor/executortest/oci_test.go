package executortest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/oracle/oci-go-sdk/v65/common"
	"github.com/oracle/oci-go-sdk/v65/common/auth"
	"github.com/oracle/oci-go-sdk/v65/core"
	"pgregory.net/rapid"
)

// ociSDK is the official client, with the identity of the instance, got over the wire.
func ociSDK(t *testing.T, f *OCI) core.VirtualNetworkClient {
	t.Helper()
	for _, entry := range f.Environment() {
		name, value, _ := strings.Cut(entry, "=")
		t.Setenv(name, value)
	}
	id, err := auth.InstancePrincipalConfigurationProvider()
	if err != nil {
		t.Fatal(err)
	}
	c, err := core.NewVirtualNetworkClientWithConfigurationProvider(struct{ common.ConfigurationProvider }{id})
	if err != nil {
		t.Fatal(err)
	}
	once := common.NoRetryPolicy()
	c.Host, c.Configuration.RetryPolicy, c.Configuration.CircuitBreaker = f.URL(), &once, nil
	return c
}

func ociCode(err error) string {
	var said common.ServiceError
	if errors.As(err, &said) {
		return said.GetCode()
	}
	return ""
}

func twoVNICs(t *testing.T, clock *Clock) *OCI {
	f := StartOCI(t, clock)
	f.AddVNIC(VNIC{ID: "vnic-a", Subnet: "subnet-1", Primary: netip.MustParseAddr("10.0.0.10"), DisplayName: "a", NSGs: []string{"nsg-1"}})
	f.AddVNIC(VNIC{ID: "vnic-b", Subnet: "subnet-1", Primary: netip.MustParseAddr("10.0.0.11")})
	return f
}

var six = netip.MustParseAddr("2001:db8::1")

func create(c core.VirtualNetworkClient, vnic string, a netip.Addr, token string) (core.CreatePrivateIpResponse, error) {
	return c.CreatePrivateIp(context.Background(), core.CreatePrivateIpRequest{OpcRetryToken: &token,
		CreatePrivateIpDetails: core.CreatePrivateIpDetails{VnicId: &vnic, IpAddress: common.String(a.String())}})
}

func TestTheOCISDKReadsEverythingThatTheFakeShows(t *testing.T) {
	f := twoVNICs(t, nil)
	c, ctx := ociSDK(t, f), context.Background()
	f.Place("vnic-a", one)
	f.Place("vnic-a", six)
	f.AddIP(IP{ID: "reserved", Subnet: "subnet-1", Address: two, Reserved: true})
	n, err := c.GetVnic(ctx, core.GetVnicRequest{VnicId: common.String("vnic-a")})
	if err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprint(*n.Id, *n.SubnetId, *n.PrivateIp, *n.SkipSourceDestCheck, n.LifecycleState, n.NsgIds, n.Ipv6Addresses, *n.Etag != "", *n.OpcRequestId != "")
	if want := "vnic-asubnet-110.0.0.10falseAVAILABLE[nsg-1] [2001:db8::1] true true"; got != want {
		t.Errorf("the VNIC is %s, want %s", got, want)
	}
	p, err := c.ListPrivateIps(ctx, core.ListPrivateIpsRequest{SubnetId: common.String("subnet-1"), IpAddress: common.String("10.0.0.1")})
	if err != nil || len(p.Items) != 1 {
		t.Fatalf("%+v, %v", p.Items, err)
	}
	if o := p.Items[0]; *o.VnicId != "vnic-a" || *o.IpAddress != "10.0.0.1" || *o.IsPrimary || o.IpState != "ASSIGNED" || o.Lifetime != "EPHEMERAL" {
		t.Errorf("the private IP is %+v", o)
	}
	r, err := c.GetPrivateIp(ctx, core.GetPrivateIpRequest{PrivateIpId: common.String("reserved")})
	if err != nil || r.VnicId != nil || r.IpState != "AVAILABLE" || r.Lifetime != "RESERVED" {
		t.Errorf("the reserved private IP is %+v, %v", r.PrivateIp, err)
	}
	v, err := c.ListIpv6s(ctx, core.ListIpv6sRequest{VnicId: common.String("vnic-a")})
	if err != nil || len(v.Items) != 1 || *v.Items[0].IpAddress != six.StringExpanded() || v.Items[0].LifecycleState != "AVAILABLE" {
		t.Errorf("the IPv6s are %+v, %v", v.Items, err)
	}
}

func TestOCIListsComeInPages(t *testing.T) {
	f := twoVNICs(t, nil)
	c := ociSDK(t, f)
	for _, a := range []string{"10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4"} {
		f.Place("vnic-a", netip.MustParseAddr(a))
	}
	var sizes []int
	for in := (core.ListPrivateIpsRequest{VnicId: common.String("vnic-a")}); ; {
		out, err := c.ListPrivateIps(context.Background(), in)
		if err != nil {
			t.Fatal(err)
		}
		sizes = append(sizes, len(out.Items))
		if in.Page = out.OpcNextPage; in.Page == nil {
			break
		}
	}
	if !slices.Equal(sizes, []int{2, 2, 1}) {
		t.Errorf("pages of %v", sizes)
	}
	if _, err := c.ListPrivateIps(context.Background(), core.ListPrivateIpsRequest{IpAddress: common.String("10.0.0.1")}); ociCode(err) != "InvalidParameter" {
		t.Errorf("a list of no subnet ends with %v", err)
	}
}

func TestNobodyIsLetIntoOCIWithoutASignature(t *testing.T) {
	f := twoVNICs(t, nil)
	c := ociSDK(t, f)
	if r, err := http.Get(f.URL() + "/20160918/vnics/vnic-a"); err != nil || r.StatusCode != http.StatusUnauthorized {
		t.Errorf("an unsigned request is answered with %v, %v", r, err)
	}
	// A body that is not the one that was signed.
	inner := c.HTTPClient
	c.HTTPClient = doer(func(r *http.Request) (*http.Response, error) {
		if body, _ := io.ReadAll(r.Body); len(body) > 0 {
			changed := strings.Replace(string(body), "vnic-a", "vnic-b", 1)
			r.Body = io.NopCloser(strings.NewReader(changed))
		}
		return inner.Do(r)
	})
	if _, err := create(c, "vnic-a", one, "t"); ociCode(err) != "NotAuthenticated" || len(f.Holders(one)) != 0 {
		t.Errorf("another body ends with %v", err)
	}
	// A request that is not the one that was signed.
	c.HTTPClient = doer(func(r *http.Request) (*http.Response, error) {
		r.URL.Path = strings.Replace(r.URL.Path, "vnic-a", "vnic-b", 1)
		return inner.Do(r)
	})
	if _, err := c.GetVnic(context.Background(), core.GetVnicRequest{VnicId: common.String("vnic-a")}); ociCode(err) != "NotAuthenticated" {
		t.Errorf("another path ends with %v", err)
	}
	c.HTTPClient = inner
	f.Revoke()
	if _, err := create(c, "vnic-a", one, "t"); ociCode(err) != "NotAuthenticated" {
		t.Errorf("an old security token ends with %v", err)
	}
}

type doer func(*http.Request) (*http.Response, error)

func (d doer) Do(r *http.Request) (*http.Response, error) { return d(r) }

func TestTheOCIMetadataServiceWantsItsHeader(t *testing.T) {
	f := twoVNICs(t, nil)
	r, err := http.Get(f.URL() + "/opc/v2/identity/key.pem")
	if err != nil || r.StatusCode != http.StatusNotFound {
		t.Errorf("it is answered with %v, %v", r, err)
	}
}

func TestAMoveKeepsTheOCIDAndNotTheEtag(t *testing.T) {
	f := twoVNICs(t, nil)
	c, ctx := ociSDK(t, f), context.Background()
	made, err := create(c, "vnic-a", one, "t")
	if err != nil {
		t.Fatal(err)
	}
	move := func(etag *string) (core.UpdatePrivateIpResponse, error) {
		return c.UpdatePrivateIp(ctx, core.UpdatePrivateIpRequest{PrivateIpId: made.Id, IfMatch: etag, UpdatePrivateIpDetails: core.UpdatePrivateIpDetails{VnicId: common.String("vnic-b")}})
	}
	moved, err := move(made.Etag)
	if err != nil || *moved.Id != *made.Id || *moved.Etag == *made.Etag || *moved.VnicId != "vnic-b" {
		t.Fatalf("moved %+v, %v", moved, err)
	}
	if _, err := move(made.Etag); ociCode(err) != "NoEtagMatch" {
		t.Errorf("a move with the old etag ends with %v", err)
	}
	if _, err := c.DeletePrivateIp(ctx, core.DeletePrivateIpRequest{PrivateIpId: made.Id, IfMatch: made.Etag}); ociCode(err) != "NoEtagMatch" {
		t.Errorf("a deletion with the old etag ends with %v", err)
	}
	if _, err := c.DeletePrivateIp(ctx, core.DeletePrivateIpRequest{PrivateIpId: made.Id, IfMatch: moved.Etag}); err != nil || len(f.Holders(one)) != 0 {
		t.Errorf("a deletion with its etag ends with %v, and it is on %v", err, f.Holders(one))
	}
	if _, err := c.GetPrivateIp(ctx, core.GetPrivateIpRequest{PrivateIpId: made.Id}); ociCode(err) != "NotAuthorizedOrNotFound" {
		t.Errorf("it is shown: %v", err)
	}
}

func TestAnUpdateOfAVNICChangesWhatItNames(t *testing.T) {
	f := twoVNICs(t, nil)
	c := ociSDK(t, f)
	for want, details := range map[string]core.UpdateVnicDetails{
		"true a [nsg-1]": {SkipSourceDestCheck: common.Bool(true)},
		"true a []":      {SkipSourceDestCheck: common.Bool(true), NsgIds: []string{}},
	} {
		f.Edit("vnic-a", func(n *VNIC) { n.NSGs = []string{"nsg-1"} })
		if _, err := c.UpdateVnic(context.Background(), core.UpdateVnicRequest{VnicId: common.String("vnic-a"), UpdateVnicDetails: details}); err != nil {
			t.Fatal(err)
		}
		if n := f.VNIC("vnic-a"); fmt.Sprint(n.Forwards, " ", n.DisplayName, " ", n.NSGs) != want {
			t.Errorf("it is %+v, want %s", n, want)
		}
	}
}

func TestARetryTokenStandsForItsRequestForADay(t *testing.T) {
	clock := NewClock()
	f := twoVNICs(t, clock)
	c := ociSDK(t, f)
	made, err := create(c, "vnic-a", one, "t")
	if err != nil {
		t.Fatal(err)
	}
	f.Place("vnic-b", one)
	if again, err := create(c, "vnic-a", one, "t"); err != nil || *again.Id != *made.Id || *again.VnicId != "vnic-b" {
		t.Errorf("the same request is answered with %+v, %v: want what it made, as it is now", again.PrivateIp, err)
	}
	if _, err := create(c, "vnic-a", one, "another"); ociCode(err) != "Conflict" {
		t.Errorf("another request ends with %v, want Conflict", err)
	}
	f.Place("", one)
	if _, err := create(c, "vnic-a", one, "t"); ociCode(err) != "InvalidatedRetryToken" {
		t.Errorf("after a deletion it ends with %v, want InvalidatedRetryToken", err)
	}
	clock.Sleep(context.Background(), 24*time.Hour)
	if _, err := create(c, "vnic-a", one, "t"); err != nil {
		t.Errorf("after a day it ends with %v", err)
	}
	if calls := f.Calls(); !calls[0].Accepted || calls[1].Accepted || !calls[4].Accepted {
		t.Errorf("accepted: %t, %t, %t, want the first and the last", calls[0].Accepted, calls[1].Accepted, calls[4].Accepted)
	}
}

func TestAnOCIChangeTakesEffectLaterAndShowsLaterStill(t *testing.T) {
	clock := NewClock()
	f := twoVNICs(t, clock)
	c := ociSDK(t, f)
	f.Lag(5*time.Second, 10*time.Second)
	if _, err := create(c, "vnic-a", one, "t"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []struct {
		after     time.Duration
		on, shown int
	}{{0, 0, 0}, {4 * time.Second, 0, 0}, {time.Second, 1, 0}, {9 * time.Second, 1, 0}, {time.Second, 1, 1}} {
		clock.Sleep(context.Background(), want.after)
		out, err := c.ListPrivateIps(context.Background(), core.ListPrivateIpsRequest{SubnetId: common.String("subnet-1"), IpAddress: common.String("10.0.0.1")})
		if err != nil || len(f.Holders(one)) != want.on || len(out.Items) != want.shown {
			t.Errorf("after another %s it is on %v and shown as %v (%v)", want.after, f.Holders(one), out.Items, err)
		}
	}
	if c := f.Calls()[0]; !c.Accepted || c.Took.Sub(c.At) != 5*time.Second {
		t.Errorf("the log says %+v, want it accepted, and effective after 5 s", c)
	}
}

func TestOCIRefusesWhatCannotBe(t *testing.T) {
	f := twoVNICs(t, nil)
	f.AddVNIC(VNIC{ID: "vnic-c", Subnet: "subnet-2", Primary: netip.MustParseAddr("10.0.0.10"), Limit: 1})
	c, ctx := ociSDK(t, f), context.Background()
	f.Place("vnic-b", two)
	primary, taken := f.IPs(netip.MustParseAddr("10.0.0.11"))[0], f.IPs(two)[0]
	move := func(o IP, vnic string) error {
		_, err := c.UpdatePrivateIp(ctx, core.UpdatePrivateIpRequest{PrivateIpId: &o.ID, UpdatePrivateIpDetails: core.UpdatePrivateIpDetails{VnicId: &vnic}})
		return err
	}
	made := func(vnic string) error { _, err := create(c, vnic, one, vnic); return err }
	_, deleted := c.DeletePrivateIp(ctx, core.DeletePrivateIpRequest{PrivateIpId: &primary.ID})
	f.Deny("CreateIpv6")
	_, denied := c.CreateIpv6(ctx, core.CreateIpv6Request{CreateIpv6Details: core.CreateIpv6Details{VnicId: common.String("vnic-a"), IpAddress: common.String("2001:db8::1")}})
	for _, r := range []struct {
		what string
		err  error
		want string
	}{
		{"a VNIC that there is not", made("vnic-x"), "RelatedResourceNotAuthorizedOrNotFound"},
		{"a full VNIC", made("vnic-c"), "LimitExceeded"},
		{"a move to another subnet", move(taken, "vnic-c"), "LimitExceeded"},
		{"a move of a primary one", move(primary, "vnic-a"), "InvalidParameter"},
		{"a deletion of a primary one", deleted, "InvalidParameter"},
		{"what was denied", denied, "NotAuthorizedOrNotFound"},
	} {
		if ociCode(r.err) != r.want {
			t.Errorf("%s ends with %v, want %s", r.what, r.err, r.want)
		}
	}
	f.Edit("vnic-c", func(n *VNIC) { n.Limit = 0 })
	if err := move(taken, "vnic-c"); ociCode(err) != "InvalidParameter" {
		t.Errorf("a move to another subnet ends with %v", err)
	}
}

// Whatever is asked and however late it takes effect.
func TestI9AnAddressIsOnAtMostOneVNICOfASubnet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		clock := NewClock()
		f := NewOCI(clock)
		ids := []string{"vnic-a", "vnic-b", "vnic-c"}
		addresses := []netip.Addr{one, two, six}
		for i, id := range ids {
			f.AddVNIC(VNIC{ID: id, Subnet: "subnet-1", Limit: 3, Primary: netip.AddrFrom4([4]byte{10, 0, 0, byte(10 + i)})})
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			a := rapid.SampledFrom(addresses).Draw(t, "address")
			vnic := rapid.SampledFrom(ids).Draw(t, "vnic")
			c := &Call{six: a.Is6(), RetryToken: rapid.SampledFrom([]string{"t", "u", ""}).Draw(t, "token"), Body: fmt.Sprintf(`{"vnicId":%q}`, vnic)}
			f.calls = append(f.calls, *c)
			c.N = len(f.calls) - 1
			for _, o := range f.world.planned.list(a.Is6(), func(o IP) bool { return o.Address == a }) {
				c.OCID = o.ID
			}
			switch rapid.IntRange(0, 4).Draw(t, "step") {
			case 0:
				c.Body = fmt.Sprintf(`{"vnicId":%q,"ipAddress":%q}`, vnic, a)
				f.create(c)
			case 1:
				c.Action = "Update"
				f.changeIP(c)
			case 2:
				c.Action = "Delete"
				f.changeIP(c)
			case 3:
				f.Place(vnic, a)
			case 4:
				f.Lag(time.Duration(rapid.IntRange(0, 9).Draw(t, "lag"))*time.Second, 0)
			}
			clock.Sleep(context.Background(), time.Duration(rapid.IntRange(0, 5).Draw(t, "wait"))*time.Second)
			for _, a := range addresses {
				if on := f.IPs(a); len(on) > 1 {
					t.Fatalf("%s is there as %v", a, on)
				}
			}
		}
	})
}
