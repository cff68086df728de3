package agent

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tasuki-io/tasuki/internal/capture"
	"github.com/tasuki-io/tasuki/internal/executor/executortest"
)

// Spec C11, by executors of their own at the fake of EC2: somebody moves the address, and its
// holder alone takes it back, at the epoch that it holds.
func TestC11WhatDriftsIsToldAndTakenBackByItsHolderAlone(t *testing.T) {
	s := newSite(t)
	s.ec2.AddNIC(executortest.Interface{ID: "eni-x", Subnet: "subnet-1", VPC: "vpc-1", Primary: netip.MustParseAddr("10.0.1.99")})
	c, addr := s.pool(automatic), netip.MustParseAddr(address)
	a, b := s.host("a", c), s.host("b", c)
	var shift time.Duration
	for _, h := range []*host{a, b} {
		h.now = func() time.Time { return time.Now().Add(shift) }
		h.lease.renewed(time.Now().Add(24 * time.Hour))
		h.settle()
	}
	s.holds("eni-a")
	shift += time.Minute
	if a.look(); len(a.doctor()) > 0 || len(b.doctor()) > 0 {
		t.Errorf("a says %+v and b %+v, want nothing to be wrong", a.doctor(), b.doctor())
	}
	for i, drift := range []struct {
		kind capture.DriftKind
		by   func()
		on   string
	}{
		{capture.DriftNoNIC, func() { s.ec2.Place("", addr) }, ""},
		{capture.DriftForeign, func() { s.ec2.Place("eni-x", addr) }, "eni-x"},
		{capture.DriftMember, func() { s.ec2.Place("eni-b", addr) }, "eni-b"},
		{capture.DriftTwo, func() { s.ec2.Double("eni-x", addr) }, "eni-x"},
	} {
		shift += time.Hour // the repair before has held
		drift.by()
		before := len(s.changes(""))
		b.look()
		if b.settle(); len(s.changes("")) != before {
			t.Errorf("%s: b, which does not hold it, has changed something", drift.kind)
		}
		asked := len(s.ec2.Calls())
		if a.look(); len(s.ec2.Calls())-asked != 2 {
			t.Errorf("%s: a look took %d calls, want one for the NIC and one for all addresses", drift.kind, len(s.ec2.Calls())-asked)
		}
		begun, _, err := a.pass(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		found := a.doctor()
		if len(found) != 1 || found[0].Kind != AilmentKind(drift.kind) || found[0].About != address || found[0].By != "a" || !strings.Contains(found[0].What, drift.on) {
			t.Errorf("the doctor says %+v, want %s on %s", found, drift.kind, drift.on)
		}
		a.finishAll(begun)
		a.settle()
		s.holds("eni-a")
		if row := a.rows(capture.Succeeded); !slices.ContainsFunc(row, func(id string) bool {
			return strings.HasSuffix(id, ":assign-secondary-ip:"+address+":epoch:1:repair:"+string(rune('1'+i)))
		}) {
			t.Errorf("%s: %v, want repair %d at epoch 1", drift.kind, row, i+1)
		}
		shift += time.Minute
		a.look()
		a.settle()
		if found := a.doctor(); len(found) > 0 {
			t.Errorf("%s: after the repair the doctor says %+v", drift.kind, found)
		}
	}
}

// Of an address that cannot be located, what the own NIC shows is still known.
func TestALookThatLocatesNothingStillShowsTheNIC(t *testing.T) {
	s := newSite(t)
	a := s.host("a", s.pool(automatic))
	a.lease.renewed(time.Now().Add(time.Hour))
	a.settle()
	target := a.targets()[0]
	s.ec2.Inject(executortest.Rule{Match: func(c executortest.Call) bool { return c.Action == "DescribeNetworkInterfaces" && c.NIC == "" },
		Fault: executortest.Fault{Status: 403, Code: "UnauthorizedOperation", Message: "no"}})
	nic, err := a.see(t.Context(), target, a.config.profile(target), a.placed(target, a.now())...)
	if err == nil || !nic.Addresses.Has(netip.MustParseAddr(address)) || !nic.Located.IsZero() {
		t.Errorf("%+v, %v; want the NIC, and why the address was not located", nic, err)
	}
	a.looked(target, nic, err)
	if found := a.doctor(); len(found) != 1 || found[0].Kind != AilmentNIC || !strings.Contains(found[0].What, "ec2:DescribeNetworkInterfaces") {
		t.Errorf("the doctor says %+v, want the NIC with the permission that is missing", found)
	}
}

// What a policy does not let happen is told with what would have to change, and who has to do it.
func TestTheDoctorTellsWhatWaitsForAPerson(t *testing.T) {
	s := newSite(t)
	for policy, want := range map[string]AilmentKind{byHand: AilmentApproval, "enabled: false": AilmentPolicy} {
		a := s.host("a", s.pool(policy))
		a.settle()
		found := a.doctor()
		i := slices.IndexFunc(found, func(x Ailment) bool { return x.About == address })
		if i < 0 || found[i].Kind != want || found[i].By != byPerson || found[i].Will == "" {
			t.Errorf("%s: the doctor says %+v, want %s of %s", policy, found, want, address)
		}
		a.stop()
	}
}

// look makes the looks that are due.
func (h *host) look() {
	h.t.Helper()
	due, _ := h.due(h.now(), capture.Decision{})
	for _, t := range due {
		placed := h.placed(t, h.now())
		h.looking(t, len(placed) > 0)
		nic, err := h.see(h.t.Context(), t, h.config.profile(t), placed...)
		if err != nil {
			h.t.Error(err)
		}
		h.looked(t, nic, err)
	}
}
