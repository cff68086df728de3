package capture

import (
	"net/netip"
	"time"
)

// scene is what node a decides from: the configuration, what it knows, and what it is shown.
type scene struct {
	now     time.Time
	pools   []Pool
	policy  Policy
	drained map[string]bool
	dead    map[string]bool
	unheard map[string]bool
	masters map[string]time.Time
	homes   map[Home]string
	view    *View
	nics    map[Target]NIC
}

const (
	providerRef = "cloud-a"

	assign   = ":assign-secondary-ip:10.0.0.1:epoch:"
	unassign = ":unassign-secondary-ip:10.0.0.1:epoch:"
)

var providers = map[string]string{providerRef: "aws"}

// open is a policy that permits everything.
func open() Policy {
	return Policy{
		Enabled: true, Providers: []string{"aws"}, ProviderRefs: []string{providerRef}, Verbs: Verbs(), AllowUndo: true,
		CIDRs: []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")}, MaxPerRun: 100,
	}
}

// newScene begins with nothing.
func newScene() *scene {
	return &scene{
		now: time.Date(2026, 3, 4, 2, 0, 0, 0, time.UTC), policy: open(), drained: map[string]bool{}, homes: map[Home]string{},
		view: NewView(), nics: map[Target]NIC{},
	}
}

// pool adds a pool of one group, whose members are equals.
func (s *scene) pool(name string, addresses int, members ...string) *Pool {
	p := Pool{Name: name, Prefix: netip.MustParsePrefix("10.0.0.0/16"), Hold: 10 * time.Second}
	for n := range addresses {
		p.Addresses = append(p.Addresses, Address{Addr: addr(byte(n + 1)), Owner: Location{Site: "home"}})
	}
	for _, m := range members {
		p.Members = append(p.Members, Member{
			Node: m, Site: "cloud", Role: RoleCloud, Group: "g",
			Capture: Capture{Method: SecondaryIP, ProviderRef: providerRef, NIC: "eni-" + m},
		})
	}
	s.pools = append(s.pools, p)
	return &s.pools[len(s.pools)-1]
}

func addr(n byte) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, 0, n}) }

func (s *scene) snapshot() *Snapshot {
	return &Snapshot{
		Node: "a", Pools: s.pools, Providers: providers, Policy: s.policy,
		Absent: Absent{Drained: s.drained, Dead: s.dead, Unheard: s.unheard}, Masters: s.masters, Homes: s.homes, View: s.view, NICs: s.nics,
	}
}

func (s *scene) decide() Decision { return Decide(s.snapshot(), s.now) }

// known is a scene of one pool with one address, its key, and the NIC of node a.
func known() (*scene, Key, Target) {
	s := newScene()
	p := s.pool("p", 1, "a", "b")
	return s, Key{"p", addr(1), p.Members[0].Domain()}, Target{"aws", providerRef, "eni-a"}
}
