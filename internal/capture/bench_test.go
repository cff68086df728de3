package capture

import (
	"fmt"
	"net/netip"
	"runtime"
	"testing"
	"time"
)

// large is the view of a node that holds every one of so many addresses, and sees them on its
// NIC. The rows are those of its journal.
func large(addresses, members int) (s *Snapshot, rows []Action) {
	p := Pool{Name: "p", Hold: 10 * time.Second}
	addr := netip.MustParseAddr("10.0.0.1")
	for range addresses {
		p.Addresses = append(p.Addresses, Address{Addr: addr, Owner: Location{Site: "home"}})
		addr = addr.Next()
	}
	for i := range members {
		p.Members = append(p.Members, Member{
			Node: fmt.Sprintf("node-%03d", i), Site: "cloud", Role: RoleCloud, Group: "g", Priority: i,
			Capture: Capture{Method: SecondaryIP, ProviderRef: providerRef, NIC: fmt.Sprintf("eni-%03d", i)},
		})
	}
	s = &Snapshot{
		Node: "node-000", Pools: []Pool{p}, Providers: providers,
		Policy: open(), View: NewView(),
	}
	m := &p.Members[0]
	target := s.target(m)
	now := time.Now()
	nic := NIC{Forwards: true, At: now.Add(visible)}
	keys := []Key{target.forwarding()}
	for _, a := range p.Addresses {
		keys = append(keys, Key{"p", a.Addr, m.Domain()})
		nic.Addresses = append(nic.Addresses, a.Addr)
	}
	for _, k := range keys {
		rows = append(rows, Action{
			Token: Token{acquiring(k), k, 1, Holder(m.Node)}, Target: target, State: Succeeded, Attempts: 1, Updated: now,
		})
	}
	s.NICs = map[Target]NIC{target: nic}
	load(s.View, rows, now)
	return s, rows
}

// load is what an agent does when it starts.
func load(v *View, rows []Action, now time.Time) {
	for _, a := range rows {
		v.Note(a.Key, Claim{a.Epoch, a.Holder})
		v.Restore(a, now)
		v.Learn(a.Key, Claim{a.Epoch, a.Holder}, now)
	}
}

// A pass over everything: nothing has changed; all of it has to move; and all of it is moving,
// with its markers and rows in the journal.
func BenchmarkDecide(b *testing.B) {
	decide := func(name string, moved, moving bool) {
		b.Run("addresses=100000/members=100/"+name, func(b *testing.B) {
			s, _ := large(100_000, 100)
			s.Absent.Drained = map[string]bool{"node-000": moved}
			now := s.NICs[s.target(&s.Pools[0].Members[0])].At
			if moving {
				plan := Decide(s, now).Plan
				for _, bump := range plan.Bumps {
					s.Learn(bump.Key, bump.To, now)
				}
				for _, m := range plan.Marks {
					s.Mark(m.Marker)
					s.Record(m.Action)
				}
			}
			b.ReportAllocs()
			for b.Loop() {
				d := Decide(s, now)
				if (len(d.Plan.Bumps) > 0) != (moved && !moving) || (len(d.Held) >= 100_000) != moved {
					b.Fatal("unexpected plan")
				}
			}
		})
	}
	decide("moved=false", false, false)
	decide("moved=true", true, false)
	decide("moving", true, true)
}

// A start: 100,000 rows are loaded. The bytes are those that the view keeps for an address.
func BenchmarkLoad(b *testing.B) {
	const addresses = 100_000
	s, rows := large(addresses, 1)
	var before, after runtime.MemStats
	s.View = nil
	runtime.GC()
	runtime.ReadMemStats(&before)
	b.ReportAllocs()
	var v *View
	for b.Loop() {
		v = NewView()
		load(v, rows, time.Now())
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	runtime.KeepAlive(v)
	runtime.KeepAlive(rows)
	b.ReportMetric(float64(int64(after.HeapAlloc)-int64(before.HeapAlloc))/addresses, "B/address")
}

func BenchmarkGate(b *testing.B) {
	k := Key{"p", netip.MustParseAddr("10.0.0.1"), "provider:c:placement:g"}
	current, token := Claim{2, "a"}, Token{Assign, k, 2, "a"}
	for b.Loop() {
		if Gate(current, token) != "" {
			b.Fatal("stale")
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "decisions/s")
}
