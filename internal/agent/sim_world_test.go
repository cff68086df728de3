package agent

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"time"
	"unsafe"

	"github.com/tasuki-io/tasuki/internal/capture"
	"github.com/tasuki-io/tasuki/internal/executor"
	"github.com/tasuki-io/tasuki/internal/window"
)

// sim is a world for real agents: one schedule owns every clock, disk, store and provider in
// it, and decides who goes on next. Of an agent everything is real but what Run does with
// goroutines and timers, which is done here by coroutines (sim_node_test.go).
type sim struct {
	seed  uint64
	pcg   rand.PCG
	rng   *rand.Rand
	clock time.Duration // since the world began
	calm  bool          // nothing goes wrong, and nobody is late

	stage   *simStage
	nodes   []*simNode
	current *simProc // the coroutine that runs, nil while the schedule does
	config  simConfig
	inForce *Config // what the files say
	store   simStore
	cloud   simCloud
	laws    simLaws

	read     bool // somebody reads the notes
	notes    []string
	step     int
	events   int // writes and changing calls
	rechecks bool
	closely  bool   // it is looked at for longer than others
	broken   string // the first law that did not hold
	seen     map[string]int
}

// simConfig is what the configuration of all nodes is made of.
type simConfig struct {
	priority  map[string]int
	drain     map[string]bool
	addresses []netip.Addr
	provider  string // azure moves an address in two steps
	group     string // on the LAN; "" is none
	iface     string // of the LAN
	policy    simPolicy
	pools     int // 0: the files list none
}

func (c *simConfig) String() string {
	return fmt.Sprintf("addresses %v in %d pools, priorities %v, drained %v, interface %s, policy %+v", c.addresses, c.pools, c.priority, c.drain, c.iface, c.policy)
}

// simPolicy is a policy by what it forbids.
type simPolicy struct {
	closed   string // "", or the name of a rule that lets nothing through
	approval bool
	budget   int
}

const (
	simRef    = "cloud-a"
	simHold   = 10 * time.Second
	simTTL    = 30 * time.Second
	simSecret = "s3cr3t" // it may be in no journal and in no log
)

var (
	simDomain = capture.Domain("provider:" + simRef + ":placement:g")
	simNames  = []string{"a", "b", "c", "d"}
	simStart  = time.Date(2026, 3, 4, 2, 0, 0, 0, time.UTC) // a Wednesday night, the window is open
	simNights = func() window.Schedule {
		rule, err := window.ParseRule("UTC", []string{"Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"}, "02:00", "03:00")
		if err != nil {
			panic(err)
		}
		return window.NewSchedule(rule)
	}()
)

func simAddr(n int) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, 0, byte(n)}) }

func simKey(a netip.Addr) capture.Key { return capture.Key{Pool: "p", Address: a, Domain: simDomain} }

// newSim is a world of so many equal nodes and addresses, with a policy that is open.
func newSim(nodes, addresses int) *sim {
	s := &sim{seen: map[string]int{}, config: simConfig{
		priority: map[string]int{}, drain: map[string]bool{}, provider: "aws", group: "g", iface: simIfaces[0], policy: simPolicy{budget: 100}, pools: 1,
	}}
	s.rng = rand.New(&s.pcg)
	s.store = simStore{sim: s, name: "1", beats: map[string]time.Duration{}}
	s.store.clear()
	s.cloud = simCloud{sim: s, on: map[netip.Addr]string{}, also: map[netip.Addr][]string{}, forwards: map[string]bool{}}
	s.laws = simLaws{holders: map[simEpoch]capture.Holder{}}
	for n := range addresses {
		s.config.addresses = append(s.config.addresses, simAddr(n+1))
	}
	for _, name := range simNames[:nodes] {
		n := &simNode{sim: s, name: name, nic: "eni-" + name}
		n.disk = simDisk{node: n, rows: map[string]capture.Action{}, markers: map[string]capture.Marker{}, known: map[capture.Key]capture.Claim{}}
		s.nodes = append(s.nodes, n)
	}
	s.write()
	return s
}

// write is a person who writes the files of the configuration; a node takes them into use when
// it is told to.
func (s *sim) write() {
	c := &Config{
		Profiles: map[string]executor.Profile{simRef: {Name: simRef, Provider: s.config.provider, Endpoint: "https://" + simSecret}},
		Policy:   s.config.policy.policy(s.config.provider),
	}
	p := capture.Pool{Name: "p", Prefix: netip.MustParsePrefix("10.0.0.0/24"), Hold: simHold, LeaseTTL: simTTL}
	for _, a := range s.config.addresses {
		p.Addresses = append(p.Addresses, capture.Address{Addr: a, Owner: capture.Location{Site: "home"}})
	}
	for _, n := range s.nodes {
		m := capture.Member{
			Node: n.name, Site: "cloud", Role: capture.RoleCloud, Group: "g", Priority: s.config.priority[n.name], Drain: s.config.drain[n.name],
			Capture: capture.Capture{Method: capture.SecondaryIP, ProviderRef: simRef, NIC: n.nic},
		}
		if n.host != nil {
			m.Site, m.Role, m.Group = simSite, capture.RoleOnPrem, s.config.group
			m.Capture = capture.Capture{Method: capture.ProxyARP, Interface: s.config.iface, GratuitousARP: true, Instance: simInstance}
			n.nic = s.config.iface
		}
		p.Members = append(p.Members, m)
	}
	if s.config.pools > 0 {
		c.Pools = []capture.Pool{p}
	}
	s.inForce = c
}

func (p simPolicy) policy(provider string) capture.Policy {
	out := capture.Policy{
		Enabled: true, Providers: []string{provider, capture.Linux}, ProviderRefs: []string{simRef}, Verbs: capture.Verbs(), AllowUndo: true,
		CIDRs: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/24")}, MaxPerRun: p.budget, RequireApproval: p.approval,
	}
	switch p.closed {
	case "enabled":
		out.Enabled = false
	case "providers":
		out.Providers = nil
	case "profiles":
		out.ProviderRefs = nil
	case "verbs":
		out.Verbs = []capture.Verb{capture.EnableForwarding, capture.Assign}
	case "cidrs":
		out.CIDRs = []netip.Prefix{netip.MustParsePrefix("10.0.0.2/32")}
	case "undo":
		out.AllowUndo = false
	case "window":
		nights := simNights
		out.Window = &nights
	case "dry":
		out.DryRunOnly = true
	}
	return out
}

var simClosed = []string{"", "", "", "", "", "", "enabled", "providers", "profiles", "verbs", "cidrs", "undo", "window", "dry"}

// forbids says so by itself what a policy has to, at a wall clock that was read some time in
// the pass.
func (p simPolicy) forbids(a *capture.Action, read []time.Time) bool {
	switch p.closed {
	case "enabled", "providers", "dry":
		return true
	case "profiles":
		return a.Provider != capture.Linux
	case "verbs":
		return a.Verb != capture.EnableForwarding && a.Verb != capture.Assign
	case "cidrs":
		return a.Key.Address.IsValid() && a.Key.Address != simAddr(2)
	case "undo":
		return a.Undoes != ""
	case "window":
		return !slices.ContainsFunc(read, func(t time.Time) bool { return t.UTC().Hour() == 2 })
	}
	return false
}

func (s *sim) note(format string, args ...any) {
	if s.read {
		s.notes = append(s.notes, fmt.Sprintf("%4d %7s  ", s.step, s.clock)+fmt.Sprintf(format, args...))
	}
}

func (s *sim) happens(what string) { s.seen[what]++ }

// one returns true once in so many times; while it is calm, never.
func (s *sim) one(in int) bool { return !s.calm && s.rng.IntN(in) == 0 }

func (s *sim) node(name string) *simNode {
	if n := s.find(name); n != nil {
		return n
	}
	panic("no node " + name)
}

// find is the node of a name, nil when there is none.
func (s *sim) find(name string) *simNode {
	for _, n := range s.nodes {
		if n.name == name {
			return n
		}
	}
	return nil
}

func (s *sim) anyAddress() netip.Addr { return simAddr(1 + s.rng.IntN(2)) }

// simNow was read when the process began; it has a monotonic part, which only a time that the
// runtime has made can have.
var simNow = time.Now()

// instant is what time.Now returns while the wall clock shows one thing and the monotonic clock
// another, as they do when somebody has set the wall clock.
func instant(wall time.Time, monotonic time.Duration) time.Time {
	t := simNow.Add(wall.Sub(simNow.Round(0)))
	inside := (*struct { // as time.Time has it
		wall uint64
		ext  int64 // the monotonic clock in nanoseconds
		loc  *time.Location
	})(unsafe.Pointer(&t))
	inside.ext, inside.loc = int64(monotonic), nil
	return t
}
