package executortest

import (
	"net/netip"
	"testing"
	"time"

	"github.com/tasuki-io/tasuki/internal/executor"
)

// ec2World is a World of EC2: two hosts in one subnet.
type ec2World struct {
	*EC2
	trouble
}

// EC2World starts a fake for the suite.
func EC2World(t *testing.T) World {
	f := StartEC2(t)
	f.AddNIC(Interface{ID: "eni-here", Subnet: "subnet-1", VPC: "vpc-1", Primary: netip.MustParseAddr("10.0.0.10")})
	f.AddNIC(Interface{ID: "eni-there", Subnet: "subnet-1", VPC: "vpc-1", Primary: netip.MustParseAddr("10.0.0.11")})
	return ec2World{f, trouble{&f.fake, Throttled}}
}

func (w ec2World) Profile() executor.Profile {
	return executor.Profile{Name: "fake", Provider: "aws", Endpoint: w.URL()}
}
func (w ec2World) NICs() (here, there, nowhere string) { return "eni-here", "eni-there", "eni-nowhere" }
func (w ec2World) Address() netip.Addr                 { return netip.MustParseAddr("10.0.0.100") }
func (w ec2World) Address6() netip.Addr                { return netip.MustParseAddr("2001:db8::100") }
func (w ec2World) Forwards(nic string) bool            { return w.NIC(nic).Forwards }
func (w ec2World) Lag(reads time.Duration)             { w.EC2.Lag(0, reads) }

func (w ec2World) Fill(id string) {
	n := w.NIC(id)
	n.Limit = n.count(false)
	w.AddNIC(n)
}
