package executortest

import (
	"net/http"
	"net/netip"
	"testing"
	"time"
)

// ARMThrottled is how ARM asks for patience.
var ARMThrottled = Fault{Status: http.StatusTooManyRequests, Code: "TooManyRequests", Message: "The request is being throttled as the limit has been reached for operation type - Write_ObservationWindow_00:05:00."}

// armWorld is a World of ARM: two hosts in one subnet.
type armWorld struct {
	*ARM
	trouble
}

// ARMWorld starts a fake for the suite.
func ARMWorld(t *testing.T) World {
	f := StartARM(t, nil)
	f.AddNIC("nic-here", netip.MustParseAddr("10.0.0.10"))
	f.AddNIC("nic-there", netip.MustParseAddr("10.0.0.11"))
	return armWorld{f, trouble{&f.fake, ARMThrottled}}
}

func (w armWorld) NICs() (here, there, nowhere string) { return "nic-here", "nic-there", "nic-nowhere" }
func (w armWorld) Address() netip.Addr                 { return netip.MustParseAddr("10.0.0.100") }
func (w armWorld) Address6() netip.Addr                { return netip.MustParseAddr("2001:db8::100") }
func (w armWorld) Forwards(nic string) bool            { return w.Properties(nic)["enableIPForwarding"] == true }
func (w armWorld) Fill(nic string)                     { w.Limit(nic, 0) }
func (w armWorld) Lag(reads time.Duration)             { w.ARM.Lag(0, reads) }
