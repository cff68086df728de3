package capture

import (
	"net/netip"
	"testing"
	"time"

	"github.com/tasuki-io/tasuki/internal/window"
)

// Each rule alone closes a policy that is otherwise open, and says which it is.
func TestEveryRuleOfAPolicyBlocks(t *testing.T) {
	rule, err := window.ParseRule("UTC", []string{"Wed"}, "02:00", "03:00")
	if err != nil {
		t.Fatal(err)
	}
	nights := window.NewSchedule(rule)
	inside := time.Date(2026, 3, 4, 2, 30, 0, 0, time.UTC)
	for _, tt := range []struct {
		want   Rule
		change func(*Policy, *Action)
	}{
		{"", func(*Policy, *Action) {}},
		{RuleEnabled, func(p *Policy, _ *Action) { p.Enabled = false }},
		{RuleProviders, func(p *Policy, _ *Action) { p.Providers = nil }},
		{RuleProviderRefs, func(p *Policy, _ *Action) { p.ProviderRefs = []string{"other"} }},
		{RuleVerbs, func(p *Policy, _ *Action) { p.Verbs = []Verb{Unassign} }},
		{RuleAllowUndo, func(_ *Policy, a *Action) { a.Undoes = "another" }},
		{RuleCIDRs, func(p *Policy, _ *Action) { p.CIDRs = []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16")} }},
		{RuleWindow, func(p *Policy, _ *Action) { w := window.NewSchedule(); p.Window = &w }},
		{RuleRequireApproval, func(p *Policy, a *Action) { p.RequireApproval, a.State, a.Approver = true, Failed, ByPolicy }},
		{"", func(p *Policy, a *Action) { p.RequireApproval, a.State, a.Approver = true, Failed, "ann" }},
		{RuleDryRunOnly, func(p *Policy, _ *Action) { p.DryRunOnly = true }},
		{RuleRequireApproval, func(p *Policy, _ *Action) { p.RequireApproval = true }},
		{"", func(p *Policy, a *Action) { p.RequireApproval, a.State = true, Approved }},
		{"", func(p *Policy, a *Action) { // a NIC is in no CIDR
			p.CIDRs, p.Verbs = nil, []Verb{EnableForwarding}
			a.Token = Token{Verb: EnableForwarding}
		}},
	} {
		p := Policy{
			Enabled: true, Providers: []string{"aws"}, ProviderRefs: []string{"cloud-a"}, Verbs: []Verb{Assign},
			CIDRs: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/16")}, Window: &nights,
		}
		a := Action{
			Token:  Token{Verb: Assign, Key: Key{Address: netip.MustParseAddr("10.0.0.1")}},
			Target: Target{"aws", "cloud-a", "eni-1"}, State: Pending,
		}
		tt.change(&p, &a)
		if got := p.permits(&a, p.closed(inside)); got.Rule != tt.want || (got.Rule != "") != (got.Detail != "") {
			t.Errorf("got %+v, want %q", got, tt.want)
		}
	}
	p := Policy{Enabled: true, Providers: []string{""}, ProviderRefs: []string{""}, Verbs: Verbs(), Window: &nights}
	if got, want := p.permits(&Action{Token: Token{Verb: EnableForwarding}}, p.closed(inside.Add(time.Hour))).Until, inside.Add(7*24*time.Hour-30*time.Minute); !got.Equal(want) {
		t.Errorf("it opens at %s, want %s", got, want)
	}
}
