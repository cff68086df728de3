package capture

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/tasuki-io/tasuki/internal/window"
)

// Policy is a ProviderActionPolicy. Its zero value executes nothing: an empty list allows
// none.
type Policy struct {
	Enabled         bool
	DryRunOnly      bool
	RequireApproval bool

	Providers    []string
	ProviderRefs []string
	Verbs        []Verb
	CIDRs        []netip.Prefix

	MaxPerRun int // actions that one run may begin; 0 is none
	AllowUndo bool
	Window    *window.Schedule // when actions may begin; nil is always
}

// Rule is the rule of a policy that blocks an action.
type Rule string

// The rules, in the order in which they are asked.
const (
	RuleEnabled         Rule = "enabled"
	RuleProviders       Rule = "allowedProviders"
	RuleProviderRefs    Rule = "allowedProviderRefs"
	RuleVerbs           Rule = "allowedActions"
	RuleAllowUndo       Rule = "allowUndo"
	RuleCIDRs           Rule = "allowedCIDRs"
	RuleWindow          Rule = "executionWindow"
	RuleDryRunOnly      Rule = "dryRunOnly"
	RuleRequireApproval Rule = "requireApproval"
	RuleMaxPerRun       Rule = "maxActionsPerRun"
)

// Block is why a policy does not let an action begin; the zero value lets it.
type Block struct {
	Rule   Rule
	Detail string    // for people, with the value that is missing
	Until  time.Time // when it ends by itself; zero when it does not
}

// permits asks every rule but the budget of a run, which is not about one action. Closed is
// the answer of the window, which is the same for all.
func (p *Policy) permits(a *Action, closed Block) Block {
	switch {
	case !p.Enabled:
		return Block{Rule: RuleEnabled, Detail: "the policy is not enabled"}
	case !slices.Contains(p.Providers, a.Provider):
		return Block{Rule: RuleProviders, Detail: fmt.Sprintf("provider %s is not among the allowed %v", a.Provider, p.Providers)}
	case a.Provider != Linux && !slices.Contains(p.ProviderRefs, a.ProviderRef):
		return Block{Rule: RuleProviderRefs, Detail: fmt.Sprintf("profile %s is not among the allowed %v", a.ProviderRef, p.ProviderRefs)}
	case !slices.Contains(p.Verbs, a.Verb):
		return Block{Rule: RuleVerbs, Detail: fmt.Sprintf("%s is not among the allowed %v", a.Verb, p.Verbs)}
	case a.Undoes != "" && !p.AllowUndo:
		return Block{Rule: RuleAllowUndo, Detail: "the policy allows no undo"}
	case a.Key.Address.IsValid() && !p.covers(a.Key.Address):
		return Block{Rule: RuleCIDRs, Detail: fmt.Sprintf("address %s is in none of %v", a.Key.Address, p.CIDRs)}
	case closed != (Block{}):
		return closed
	case p.DryRunOnly:
		return Block{Rule: RuleDryRunOnly, Detail: "the policy allows dry runs only"}
	case p.RequireApproval && (a.State == Pending || a.Approver == ByPolicy):
		return Block{Rule: RuleRequireApproval, Detail: "nobody has approved it"}
	}
	return Block{}
}

// closed asks the window.
func (p *Policy) closed(now time.Time) Block {
	if p.Window == nil {
		return Block{}
	}
	if _, open := p.Window.At(now); open {
		return Block{}
	}
	next, _ := p.Window.Next(now)
	return Block{Rule: RuleWindow, Detail: "the window opens at " + next.Start.Format(time.RFC3339), Until: next.Start}
}

// Permits asks every rule but the budget of a run.
func (p *Policy) Permits(a *Action, now time.Time) Block { return p.permits(a, p.closed(now)) }

// Reads reports whether a NIC may be looked at. Nothing is changed by that, but it is a call.
func (p *Policy) Reads(t Target) bool {
	return p.Enabled && slices.Contains(p.Providers, t.Provider) && (t.Provider == Linux || slices.Contains(p.ProviderRefs, t.ProviderRef))
}

func (p *Policy) covers(a netip.Addr) bool {
	return slices.ContainsFunc(p.CIDRs, func(c netip.Prefix) bool { return c.Contains(a) })
}
