package executortest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/smithy-go"
	"pgregory.net/rapid"
)

// sdk is the official client, with credentials that the fake knows.
func sdk(f *EC2) *ec2.Client {
	endpoint, secret := f.URL(), f.secret
	return ec2.New(ec2.Options{Region: f.region, BaseEndpoint: &endpoint, Retryer: aws.NopRetryer{},
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: secret.AccessKeyID, SecretAccessKey: secret.SecretAccessKey, SessionToken: secret.Token}, nil
		})})
}

func code(err error) string {
	var api smithy.APIError
	if errors.As(err, &api) {
		return api.ErrorCode()
	}
	return ""
}

var (
	one = netip.MustParseAddr("10.0.0.1")
	two = netip.MustParseAddr("10.0.0.2")
)

func twoNICs(t *testing.T, options ...Option) *EC2 {
	f := StartEC2(t, options...)
	f.AddNIC(Interface{ID: "eni-a", Subnet: "subnet-1", VPC: "vpc-1", Primary: netip.MustParseAddr("10.0.0.10"), Primary6: netip.MustParseAddr("2001:db8::a")})
	f.AddNIC(Interface{ID: "eni-b", Subnet: "subnet-1", VPC: "vpc-1", Primary: netip.MustParseAddr("10.0.0.11")})
	return f
}

func assign(f *EC2, nic string, a netip.Addr, reassign bool) error {
	_, err := sdk(f).AssignPrivateIpAddresses(context.Background(), &ec2.AssignPrivateIpAddressesInput{
		NetworkInterfaceId: &nic, PrivateIpAddresses: []string{a.String()}, AllowReassignment: &reassign})
	return err
}

func TestTheSDKReadsEverythingThatTheFakeShows(t *testing.T) {
	f := twoNICs(t)
	f.Place("eni-a", one)
	f.Associate("subnet-1", one, netip.MustParseAddr("203.0.113.7"))
	out, err := sdk(f).DescribeNetworkInterfaces(context.Background(), &ec2.DescribeNetworkInterfacesInput{
		Filters: []types.Filter{{Name: aws.String("addresses.private-ip-address"), Values: []string{"10.0.0.1", "10.0.0.77"}}}})
	if err != nil {
		t.Fatal(err)
	}
	if len(out.NetworkInterfaces) != 1 {
		t.Fatalf("it shows %d NICs, want 1", len(out.NetworkInterfaces))
	}
	n := out.NetworkInterfaces[0]
	got := fmt.Sprint(*n.NetworkInterfaceId, *n.SubnetId, *n.VpcId, *n.PrivateIpAddress, *n.SourceDestCheck, n.Status)
	for _, p := range n.PrivateIpAddresses {
		got += fmt.Sprint(" ", *p.PrivateIpAddress, *p.Primary)
		if p.Association != nil {
			got += "=" + *p.Association.PublicIp
		}
	}
	for _, p := range n.Ipv6Addresses {
		got += fmt.Sprint(" ", *p.Ipv6Address, *p.IsPrimaryIpv6)
	}
	if want := "eni-asubnet-1vpc-110.0.0.10truein-use 10.0.0.10true 10.0.0.1false=203.0.113.7 2001:db8::atrue"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestNobodyIsLetInWithoutASignature(t *testing.T) {
	f := twoNICs(t)
	form := url.Values{"Action": {"AssignPrivateIpAddresses"}, "Version": {"2016-11-15"}, "NetworkInterfaceId": {"eni-a"}, "PrivateIpAddress.1": {"10.0.0.1"}}
	r, err := http.PostForm(f.URL(), form)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	body, _ := io.ReadAll(r.Body)
	if r.StatusCode != http.StatusUnauthorized || !strings.Contains(string(body), "MissingAuthenticationToken") || len(f.Holders(one)) != 0 {
		t.Errorf("it was answered %d %s", r.StatusCode, body)
	}
	f.secret.Token = "another"
	client := sdk(f)
	f.Identity("tasuki", Credentials{AccessKeyID: f.secret.AccessKeyID, Token: "rotated"})
	if _, err := client.DescribeNetworkInterfaces(context.Background(), &ec2.DescribeNetworkInterfacesInput{}); code(err) != "AuthFailure" {
		t.Errorf("an old session token is answered with %v, want AuthFailure", err)
	}
}

func TestTheMetadataServiceWantsASession(t *testing.T) {
	f := twoNICs(t)
	r, err := http.Get(f.URL() + "/latest/meta-data/iam/security-credentials/")
	if err != nil {
		t.Fatal(err)
	}
	r.Body.Close()
	if r.StatusCode != http.StatusUnauthorized {
		t.Errorf("it was answered %d, want 401", r.StatusCode)
	}
}

func TestAMoveTakesEffectLaterAndShowsLaterStill(t *testing.T) {
	clock := NewClock()
	f := twoNICs(t, WithClock(clock))
	f.Place("eni-b", one)
	f.Lag(5*time.Second, 10*time.Second)
	if err := assign(f, "eni-a", one, true); err != nil {
		t.Fatal(err)
	}
	shows := func() string {
		out, err := sdk(f).DescribeNetworkInterfaces(context.Background(), &ec2.DescribeNetworkInterfacesInput{
			Filters: []types.Filter{{Name: aws.String("addresses.private-ip-address"), Values: []string{"10.0.0.1"}}}})
		if err != nil || len(out.NetworkInterfaces) != 1 {
			t.Fatalf("%d NICs, %v", len(out.NetworkInterfaces), err)
		}
		return *out.NetworkInterfaces[0].NetworkInterfaceId
	}
	for _, want := range []struct{ after, on, shown string }{
		{"0s", "eni-b", "eni-b"}, {"4s", "eni-b", "eni-b"}, {"1s", "eni-a", "eni-b"}, {"9s", "eni-a", "eni-b"}, {"1s", "eni-a", "eni-a"},
	} {
		d, err := time.ParseDuration(want.after)
		if err != nil {
			t.Fatal(err)
		}
		clock.Sleep(context.Background(), d)
		if on := f.Holders(one); !slices.Equal(on, []string{want.on}) || shows() != want.shown {
			t.Errorf("after another %s it is on %v and shown on %s, want %s and %s", d, on, shows(), want.on, want.shown)
		}
	}
	if c := f.Calls()[0]; !c.Accepted || c.Took.Sub(c.At) != 5*time.Second {
		t.Errorf("the log says %+v, want it accepted, and effective after 5 s", c)
	}
}

func TestACallThatIsHeldBackTakesEffectWhenItIsLetGo(t *testing.T) {
	f := twoNICs(t)
	held, let := make(chan struct{}), make(chan struct{})
	f.Before(func(c Call) {
		if c.NIC == "eni-a" {
			close(held)
			<-let
		}
	})
	late := make(chan error)
	go func() { late <- assign(f, "eni-a", one, true) }()
	<-held
	if err := assign(f, "eni-b", one, true); err != nil {
		t.Fatal(err)
	}
	if got := f.Holders(one); !slices.Equal(got, []string{"eni-b"}) {
		t.Errorf("it is on %v, want eni-b", got)
	}
	close(let)
	if err := <-late; err != nil {
		t.Fatal(err)
	}
	if got := f.Holders(one); !slices.Equal(got, []string{"eni-a"}) {
		t.Errorf("it is on %v, want it taken by the late call", got)
	}
}

func TestFaultsComeWhenTheyAreToldTo(t *testing.T) {
	f := twoNICs(t)
	f.Inject(Rule{Match: Action("AssignPrivateIpAddresses"), Skip: 1, Times: 2, Fault: Throttled})
	var got []string
	for range 4 {
		got = append(got, code(assign(f, "eni-a", one, false)))
	}
	if want := []string{"", "RequestLimitExceeded", "RequestLimitExceeded", ""}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	f.Inject(Rule{Match: Changing, Times: 1, Fault: Fault{Carry: true}})
	if err := assign(f, "eni-a", two, false); err == nil || code(err) != "" || !slices.Equal(f.Holders(two), []string{"eni-a"}) {
		t.Errorf("a call that is carried out without an answer ends with %v and %v", err, f.Holders(two))
	}
}

func TestTheSameSeedThrottlesTheSameCalls(t *testing.T) {
	run := func(seed uint64) (codes []string) {
		f := twoNICs(t, WithSeed(seed), WithClock(NewClock()))
		f.Inject(Rule{Share: 0.5, Fault: Throttled})
		for range 32 {
			codes = append(codes, code(assign(f, "eni-a", one, false)))
		}
		return codes
	}
	if a, b := run(7), run(7); !slices.Equal(a, b) {
		t.Errorf("%q and then %q", a, b)
	}
	if a, b := run(7), run(8); slices.Equal(a, b) {
		t.Errorf("two seeds throttle the same calls: %q", a)
	}
}

// Whatever is asked and however late it takes effect.
func TestI9AnAddressIsOnAtMostOneNICOfASubnet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		clock := NewClock()
		f := NewEC2(WithClock(clock))
		ids := []string{"eni-a", "eni-b", "eni-c"}
		addresses := []netip.Addr{one, two, netip.MustParseAddr("2001:db8::1")}
		for i, id := range ids {
			f.AddNIC(Interface{ID: id, Subnet: "subnet-1", Limit: 2, Primary: netip.AddrFrom4([4]byte{10, 0, 0, byte(10 + i)})})
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			a := rapid.SampledFrom(addresses).Draw(t, "address")
			c := &Call{NIC: rapid.SampledFrom(ids).Draw(t, "nic"), Addresses: []netip.Addr{a}, Reassign: rapid.Bool().Draw(t, "reassign")}
			family := map[bool]string{false: "PrivateIp", true: "Ipv6"}[a.Is6()]
			f.calls = append(f.calls, *c)
			c.N = len(f.calls) - 1
			switch rapid.IntRange(0, 4).Draw(t, "step") {
			case 0, 1:
				c.Action = "Assign" + family + "Addresses"
				f.assign(c)
			case 2:
				c.Action = "Unassign" + family + "Addresses"
				f.unassign(c)
			case 3:
				f.Place(c.NIC, a)
			case 4:
				f.Lag(time.Duration(rapid.IntRange(0, 9).Draw(t, "lag"))*time.Second, 0)
			}
			clock.Sleep(context.Background(), time.Duration(rapid.IntRange(0, 5).Draw(t, "wait"))*time.Second)
			for _, a := range addresses {
				if on := f.Holders(a); len(on) > 1 {
					t.Fatalf("%s is on %v", a, on)
				}
			}
		}
	})
}
