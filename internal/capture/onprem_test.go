package capture

import (
	"slices"
	"testing"
	"time"
)

// lan is a scene of two hosts of one site with an address of another. Node a is better.
func lan() (*scene, Key, Target) {
	s := newScene()
	p := s.pool("p", 1, "a", "b")
	p.LeaseTTL = 10 * time.Second
	for i := range p.Members {
		m := &p.Members[i]
		m.Site, m.Role, m.Priority = "tokyo", RoleOnPrem, i
		m.Capture = Capture{Method: ProxyARP, Interface: "lan0", Instance: "VI_1"}
	}
	s.policy.Providers, s.policy.ProviderRefs = []string{Linux}, nil
	s.masters = map[string]time.Time{}
	return s, Key{"p", addr(1), p.Members[0].Domain()}, Target{Provider: Linux, NIC: "lan0"}
}

// answering is a host that is MASTER, holds its address and answers for it.
func answering() (*scene, Key, Target) {
	n, k, nic := lan()
	long := n.now.Add(-time.Hour)
	for _, l := range []Key{k, {Domain: "onprem:node:a:nic:lan0"}} {
		n.view.Learn(l, Claim{1, "a"}, long)
		n.view.Record(Action{Token: Token{acquiring(l), l, 1, "a"}, Target: nic, State: Succeeded, Attempts: 1, Updated: long})
	}
	n.nics[nic] = shows(n.now, k.Address)
	n.masters["VI_1"] = long
	return n, k, nic
}

// Who is to hold an address is keepalived's to say: priorities of the pool say nothing.
func TestTheMasterHoldsAndNobodyElse(t *testing.T) {
	const now, before = time.Second, -time.Second
	for name, tt := range map[string]struct {
		claim  Claim
		master time.Duration // since when, after the claim was seen; 0 is no MASTER
		change func(n *scene, m *Member)
		want   Claim
	}{
		"nobody has ever held it":                                 {Claim{}, now, nil, Claim{1, "a"}},
		"nobody holds it":                                         {Claim{4, None}, before, nil, Claim{5, "a"}},
		"the MASTER before it holds it":                           {Claim{4, "b"}, now, nil, Claim{5, "a"}},
		"it is the worse one and MASTER":                          {Claim{4, "b"}, now, func(_ *scene, m *Member) { m.Priority = 9 }, Claim{5, "a"}},
		"it has held it and is no MASTER":                         {Claim{4, "a"}, 0, nil, Claim{5, None}},
		"it is the better one and no MASTER":                      {Claim{4, "b"}, 0, nil, Claim{4, "b"}},
		"nobody has it and it is no MASTER":                       {Claim{4, None}, 0, nil, Claim{4, None}},
		"it is drained":                                           {Claim{4, "a"}, before, func(n *scene, _ *Member) { n.drained["a"] = true }, Claim{5, None}},
		"the address lives at its own site":                       {Claim{4, "a"}, before, func(_ *scene, m *Member) { m.Site = "home" }, Claim{5, None}},
		"the address lives nowhere":                               {Claim{4, "a"}, before, func(n *scene, _ *Member) { n.homes[Home{"p", addr(1)}] = "" }, Claim{5, None}},
		"MASTER of another instance":                              {Claim{4, "a"}, before, func(_ *scene, m *Member) { m.Capture.Instance = "VI_2" }, Claim{5, None}},
		"alone, and always active":                                {Claim{}, 0, func(_ *scene, m *Member) { m.Group, m.Capture.Instance = "", "" }, Claim{1, "a"}},
		"in a group without an instance":                          {Claim{}, before, func(_ *scene, m *Member) { m.Capture.Instance = "" }, Claim{}},
		"alone, and no MASTER":                                    {Claim{4, "a"}, 0, func(_ *scene, m *Member) { m.Group = "" }, Claim{5, None}},
		"another MASTER has taken it, as in a partition":          {Claim{4, "b"}, before, nil, Claim{4, "b"}},
		"another MASTER has taken it, and has died":               {Claim{4, "b"}, before, func(n *scene, _ *Member) { n.dead = map[string]bool{"b": true} }, Claim{5, "a"}},
		"another MASTER has taken it, and it is a leaseTTL later": {Claim{4, "b"}, before, func(n *scene, _ *Member) { n.now = n.now.Add(20 * time.Second) }, Claim{5, "a"}},
	} {
		t.Run(name, func(t *testing.T) {
			n, _, _ := lan()
			m := &n.pools[0].Members[0]
			if tt.change != nil {
				tt.change(n, m)
			}
			seen := time.Date(2026, 3, 4, 2, 0, 0, 0, time.UTC).Add(-5 * time.Second)
			k := Key{"p", addr(1), m.Domain()}
			if tt.claim != (Claim{}) {
				n.view.Learn(k, tt.claim, seen)
			}
			if tt.master != 0 {
				n.masters["VI_1"] = seen.Add(tt.master)
			}
			got := tt.claim
			for _, b := range n.decide().Plan.Bumps {
				if b.Key == k {
					got = b.To
				}
			}
			if got != tt.want {
				t.Errorf("%s, want %s", got, tt.want)
			}
		})
	}
}

// In a partition that the claims bridge, two MASTERs do not take the address from each other
// without end.
func TestAMasterThatHasLostTheAddressWaitsALeaseTTL(t *testing.T) {
	n, k, _ := answering()
	n.view.Learn(k, Claim{2, "b"}, n.now)
	d := n.decide()
	if bumped := slices.ContainsFunc(d.Plan.Bumps, func(b Bump) bool { return b.Key == k }); bumped || !d.Wake.Equal(n.now.Add(10*time.Second)) {
		t.Errorf("bumps %+v, wake %s", d.Plan.Bumps, d.Wake)
	}
	n.masters["VI_1"] = n.now.Add(time.Second) // MASTER_RX_LOWER_PRI: keepalived says it again
	n.now = n.now.Add(time.Second)
	if bumps := n.decide().Plan.Bumps; !slices.Contains(bumps, Bump{k, Claim{2, "b"}, Claim{3, "a"}, CauseHolder}) {
		t.Errorf("said again: %+v", bumps)
	}
}

func TestAMasterThatAnswersDoesNothing(t *testing.T) {
	n, _, _ := answering()
	if d := n.decide(); !d.Plan.Empty() || len(d.Held) > 0 || !d.Wake.IsZero() {
		t.Errorf("%+v", d)
	}
}

// Whoever is no MASTER any more lets go at once: no hold, no next holder to wait for. It stops
// forwarding when nothing is left.
func TestWhoIsNoMasterAnyMoreWaitsForNothing(t *testing.T) {
	n, k, nic := answering()
	delete(n.masters, "VI_1")
	d := n.decide()
	if len(d.Plan.Runs) != 1 || d.Plan.Runs[0].Verb != Unassign || d.Plan.Runs[0].Key != k || d.Plan.Runs[0].Target != nic || len(d.Plan.Marks) != 2 {
		t.Errorf("runs %+v, marks %+v", d.Plan.Runs, d.Plan.Marks)
	}
	if len(d.Held) != 1 || d.Held[0].Wait != WaitCaptured {
		t.Errorf("held %+v", d.Held)
	}
}

// A host answers for nothing that it does not forward: the kernel would refuse it.
func TestAHostForwardsBeforeItAnswers(t *testing.T) {
	n, k, nic := lan()
	n.masters["VI_1"] = n.now
	d := n.decide()
	if len(d.Plan.Runs) != 1 || d.Plan.Runs[0].Verb != EnableForwarding || len(d.Held) != 1 || d.Held[0].Wait != WaitForwards {
		t.Fatalf("runs %+v, held %+v", d.Plan.Runs, d.Held)
	}
	forwarding := d.Plan.Runs[0].Key
	if forwarding != (Key{Domain: "onprem:node:a:nic:lan0"}) {
		t.Errorf("the key is %s: another host has an interface of the same name", forwarding)
	}
	n.view.Learn(k, Claim{1, "a"}, n.now)
	n.view.Learn(forwarding, Claim{1, "a"}, n.now)
	n.view.Record(Action{Token: Token{EnableForwarding, forwarding, 1, "a"}, Target: nic, State: Succeeded, Attempts: 1, Updated: n.now})
	if d := n.decide(); len(d.Plan.Runs) != 1 || d.Plan.Runs[0].Verb != Assign || d.Plan.Runs[0].Reassign {
		t.Errorf("runs %+v", d.Plan.Runs)
	}
}

// A host shows at once what it has done: what was withdrawn is placed again at the same epoch.
func TestWhatWasWithdrawnIsRepairedAtOnce(t *testing.T) {
	n, _, nic := answering()
	n.nics[nic] = NIC{Forwards: true, At: n.now}
	if d := n.decide(); len(d.Plan.Runs) != 1 || d.Plan.Runs[0].Verb != Assign || d.Plan.Runs[0].Repair != 1 || d.Plan.Runs[0].Epoch != 1 {
		t.Errorf("runs %+v", d.Plan.Runs)
	}
}

// Without a policy nothing is captured on a LAN either. There is no profile to allow.
func TestThePolicyIsAskedOnPremToo(t *testing.T) {
	n, _, nic := lan()
	n.masters["VI_1"] = n.now
	n.policy.Providers = []string{"aws"}
	if d := n.decide(); len(d.Plan.Runs) > 0 || d.Held[0].Block.Rule != RuleProviders || n.policy.Reads(nic) {
		t.Errorf("runs %+v, held %+v", d.Plan.Runs, d.Held)
	}
	n.policy.Providers = []string{Linux}
	if d := n.decide(); len(d.Plan.Runs) != 1 || !n.policy.Reads(nic) {
		t.Errorf("runs %+v", d.Plan.Runs)
	}
}
