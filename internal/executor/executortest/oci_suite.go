package executortest

import (
	"net/netip"
	"testing"
	"time"

	"github.com/tasuki-io/tasuki/internal/executor"
)

// ociWorld is a World of OCI: two hosts in one subnet.
type ociWorld struct {
	*OCI
	trouble
}

const ociVNIC = "ocid1.vnic.oc1.eu-frankfurt-1."

// OCIWorld starts a fake for the suite.
func OCIWorld(t *testing.T) World {
	f := StartOCI(t, nil)
	f.AddVNIC(VNIC{ID: ociVNIC + "here", Subnet: "ocid1.subnet.oc1.eu-frankfurt-1.one", Primary: netip.MustParseAddr("10.0.0.10")})
	f.AddVNIC(VNIC{ID: ociVNIC + "there", Subnet: "ocid1.subnet.oc1.eu-frankfurt-1.one", Primary: netip.MustParseAddr("10.0.0.11")})
	return ociWorld{f, trouble{&f.fake, OCIThrottled}}
}

func (w ociWorld) Profile() executor.Profile {
	return executor.Profile{Name: "fake", Provider: "oci", Endpoint: w.URL()}
}
func (w ociWorld) NICs() (here, there, nowhere string) {
	return ociVNIC + "here", ociVNIC + "there", ociVNIC + "nowhere"
}
func (w ociWorld) Address() netip.Addr      { return netip.MustParseAddr("10.0.0.100") }
func (w ociWorld) Address6() netip.Addr     { return netip.MustParseAddr("2001:db8::100") }
func (w ociWorld) Forwards(nic string) bool { return w.VNIC(nic).Forwards }
func (w ociWorld) Lag(reads time.Duration)  { w.OCI.Lag(0, reads) }
func (w ociWorld) Fill(id string)           { w.Edit(id, func(n *VNIC) { n.Limit = 1 }) } // its primary one
