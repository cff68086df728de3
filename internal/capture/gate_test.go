package capture

import (
	"net/netip"
	"testing"
)

// Every combination of what the gate knows: nothing but the right epoch passes, and of that
// only what takes for the holder or gives from somebody else.
func TestGate(t *testing.T) {
	k := Key{"p", netip.MustParseAddr("10.0.0.1"), "provider:c:placement:g"}
	for _, current := range []Claim{{}, {1, "a"}, {2, "a"}, {2, "b"}, {2, None}, {3, "a"}} {
		for _, epoch := range []Epoch{0, 1, 2, 3} {
			for _, holder := range []Holder{"a", "b", None} {
				for _, verb := range Verbs() {
					token := Token{verb, k, epoch, holder}
					takes := verb == Assign || verb == EnableForwarding
					want := current.Epoch > 0 && epoch == current.Epoch && (holder == current.Holder) == takes
					if stale := Gate(current, token); (stale == "") != want {
						t.Errorf("current %s, token %s of %s at %d: %q", current, verb, holder, epoch, stale)
					}
				}
			}
		}
	}
}

// The names that a person and another program see.
func TestNames(t *testing.T) {
	address := Key{"blue", netip.MustParseAddr("2001:db8::1"), "onprem:tokyo:placement:g"}
	nic := Target{"aws", "cloud-a", "eni-1"}
	for got, want := range map[string]string{
		address.String(): "blue/2001:db8::1@onprem:tokyo:placement:g",
		Token{Assign, address, 7, "a"}.IdempotencyKey("aws", "eni-1"):                    "mobility:blue:aws:eni-1:assign-secondary-ip:2001:db8::1:epoch:7",
		Token{EnableForwarding, nic.forwarding(), 2, "a"}.IdempotencyKey("aws", "eni-1"): "mobility:-:aws:eni-1:ensure-forwarding-enabled:-:epoch:2",
		nic.forwarding().String(): "-/-@provider:cloud-a:nic:eni-1",
		Claim{3, None}.String():   "none (epoch 3)",
		string((&Member{Node: "n", Role: RoleCloud, Capture: Capture{ProviderRef: "r"}}).Domain()):                             "provider:r:node:n",
		string((&Member{Node: "n", Role: RoleCloud, Group: "g", Capture: Capture{ProviderRef: "r"}}).Domain()):                 "provider:r:placement:g",
		string((&Member{Node: "n", Site: "osaka", Role: RoleOnPrem, Group: "g", Capture: Capture{ProviderRef: "r"}}).Domain()): "onprem:osaka:placement:g",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
