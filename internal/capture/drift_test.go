package capture

import (
	"net/netip"
	"slices"
	"testing"
	"time"
)

// Spec C11: what a NIC of this node should have, and where the subnet shows it.
func TestC11ADriftIsCalledByWhereTheAddressIs(t *testing.T) {
	for _, tt := range []struct {
		name    string
		has     bool
		places  []string
		located time.Duration // after the success; 0 is never
		kind    DriftKind
		on      []string
	}{
		{"where it is to be", true, []string{"eni-a"}, visible, "", nil},
		{"nobody asked where", false, nil, 0, DriftNotShown, nil},
		{"it was asked before it has to show", false, []string{"eni-x"}, visible - 1, DriftNotShown, nil},
		{"nowhere", false, []string{}, visible, DriftNoNIC, nil},
		{"on a foreign NIC", false, []string{"eni-x"}, visible, DriftForeign, []string{"eni-x"}},
		{"on the NIC of a member", false, []string{"eni-b"}, visible, DriftMember, []string{"eni-b"}},
		{"on that and a foreign one", false, []string{"eni-b", "eni-x"}, visible, DriftForeign, []string{"eni-b", "eni-x"}},
		{"on two", true, []string{"eni-a", "eni-b"}, visible, DriftTwo, []string{"eni-b"}},
		{"on two while it may still be moving", true, []string{"eni-a", "eni-b"}, visible - 1, "", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n, k, nic := holding()
			done := n.view.Line(k).Acquired.At
			shown := NIC{Forwards: true, At: done.Add(visible)}
			if tt.has {
				shown.Addresses = NewAddresses(k.Address)
			}
			if tt.located > 0 {
				shown.Located, shown.Places = done.Add(tt.located), map[netip.Addr][]string{k.Address: tt.places}
			}
			n.nics[nic] = shown
			d := n.decide()
			var kind DriftKind
			var on []string
			if len(d.Drifts) > 0 {
				kind, on = d.Drifts[0].Kind, d.Drifts[0].On
			}
			if kind != tt.kind || !slices.Equal(on, tt.on) || (len(d.Plan.Imports) > 0) != (tt.kind != "") {
				t.Errorf("%q on %v, imports %v; want %q on %v and a repair for a drift", kind, on, d.Plan.Imports, tt.kind, tt.on)
			}
		})
	}
}

// A call of a former holder may have been sent before the epoch moved on, or be sent by a host that
// comes back. As long as it can land and show, its NIC is one to watch; nothing lands from nobody.
func TestC05ALateCallIsWatchedForAsLongAsItCanLand(t *testing.T) {
	const long = ExecutorTime + visible
	for _, tt := range []struct {
		name            string
		scene           func() (*scene, Key, Target)
		epoch           Epoch
		since, returned time.Duration // ago; 0 is never
		late            time.Duration // from now on; 0 is not
	}{
		{"nobody held it before", known, 1, time.Second, 0, 0},
		{"it was taken just now", known, 2, time.Second, 0, long - time.Second},
		{"it was taken long ago", known, 2, long, 0, 0},
		{"and then a dead host came back", known, 2, time.Hour, time.Second, long - time.Second},
		{"before that a dead host came back", known, 2, time.Second, time.Minute, long - time.Second},
		{"a dead host came back long ago", known, 2, time.Hour, long, 0},
		{"a LAN is this host's own", lan, 2, time.Second, 0, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n, k, nic := tt.scene()
			if n.masters != nil {
				n.masters["VI_1"] = n.now.Add(-time.Hour)
			}
			n.view.Learn(k, Claim{tt.epoch, "a"}, n.now.Add(-tt.since))
			s := n.snapshot()
			if tt.returned > 0 {
				s.Returned = n.now.Add(-tt.returned)
			}
			want := time.Time{}
			if tt.late > 0 {
				want = n.now.Add(tt.late)
			}
			if got := Decide(s, n.now).Late[nic]; !got.Equal(want) {
				t.Errorf("watched until %s, want %s", got, want)
			}
		})
	}
}

// Somebody else moves the address whenever it is repaired. Neither side wins, so the repairs are
// ever rarer, up to a bound; once one has held for long, the next one is not delayed.
func TestC11TwoContraryPartiesDoNotFightInALoop(t *testing.T) {
	n, k, nic := holding()
	began := n.view.Line(k).Acquired.At
	var waits []time.Duration
	last := began
	look := func() bool {
		n.nics[nic] = NIC{Forwards: true, At: n.now}
		for _, a := range n.decide().Plan.Imports {
			waits, last = append(waits, n.now.Sub(last)), n.now
			a.State, a.Attempts, a.Updated = Succeeded, 1, n.now
			n.view.Record(a)
			return true
		}
		return false
	}
	for n.now = began; n.now.Before(began.Add(2 * time.Hour)); n.now = n.now.Add(30 * time.Second) {
		look()
	}
	m := time.Minute
	if want := []time.Duration{m / 2, m, 2 * m, 4 * m, 8 * m, 15 * m, 15 * m, 15 * m, 15 * m, 15 * m, 15 * m}; !slices.Equal(waits, want) {
		t.Errorf("repairs after %v, want after %v", waits, want)
	}
	n.now = last.Add(visible)
	if look() {
		t.Error("repaired at once, want it to wait")
	}
	if d := n.decide(); len(d.Drifts) != 1 || !d.Drifts[0].Due.Equal(last.Add(longestRepair)) || !d.Wake.Equal(d.Drifts[0].Due) {
		t.Errorf("drifts %+v, wake %s; want one that is due %s after the last repair", d.Drifts, d.Wake, longestRepair)
	}
	for n.now = last.Add(calm); !look(); n.now = n.now.Add(visible) {
	}
	if n.now = last.Add(firstRepair); !look() {
		t.Error("not repaired a minute after one that had held for long")
	}
}
