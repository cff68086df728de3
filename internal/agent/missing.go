package agent

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tasuki-io/tasuki/internal/capture"
)

// Missing is a rule of the policy that does not let an action begin, and the change that
// would.
type Missing struct {
	Rule   capture.Rule `json:"rule"`
	Detail string       `json:"detail"`
	Change string       `json:"change"`
}

// missing lists every rule that blocks an action, as opening one after the other would show
// them: whoever has to open a policy wants to do it once (case c22).
func missing(p capture.Policy, row capture.Action, now time.Time) (list []Missing) {
	for {
		b := p.Permits(&row, now)
		if b.Rule == "" {
			break
		}
		list = append(list, Missing{b.Rule, b.Detail, satisfy(&p, &row, b)})
		if list[len(list)-1].Change == "" {
			return list // nothing is known of this rule
		}
	}
	if p.MaxPerRun == 0 {
		list = append(list, Missing{capture.RuleMaxPerRun, "no run may begin an action", "set maxActionsPerRun above 0"})
	}
	return list
}

// satisfy opens one rule, and says how the files would.
func satisfy(p *capture.Policy, row *capture.Action, b capture.Block) (change string) {
	switch b.Rule {
	case capture.RuleEnabled:
		p.Enabled = true
		return "set enabled: true in the ProviderActionPolicy, or add one"
	case capture.RuleProviders:
		p.Providers = append(slices.Clone(p.Providers), row.Provider)
		return "add " + row.Provider + " to allowedProviders"
	case capture.RuleProviderRefs:
		p.ProviderRefs = append(slices.Clone(p.ProviderRefs), row.ProviderRef)
		return "add " + row.ProviderRef + " to allowedProviderRefs"
	case capture.RuleVerbs:
		p.Verbs = append(slices.Clone(p.Verbs), row.Verb)
		return "add " + string(row.Verb) + " to allowedActions"
	case capture.RuleAllowUndo:
		p.AllowUndo = true
		return "set allowUndo: true"
	case capture.RuleCIDRs:
		one, _ := row.Key.Address.Prefix(row.Key.Address.BitLen())
		p.CIDRs = append(slices.Clone(p.CIDRs), one)
		return fmt.Sprintf("add %s, or a prefix that has it, to allowedCIDRs", one)
	case capture.RuleWindow:
		p.Window = nil
		return "wait for the window, or widen executionWindow"
	case capture.RuleDryRunOnly:
		p.DryRunOnly = false
		return "set dryRunOnly: false"
	case capture.RuleRequireApproval:
		p.RequireApproval = false
		return "tasuki actions approve " + Handle(row.ID()) + ", or set requireApproval: false"
	}
	return ""
}

// attitude says in a line what a policy lets happen.
func attitude(p *capture.Policy) string {
	var none []string
	refs := len(p.ProviderRefs)
	if slices.Contains(p.Providers, capture.Linux) {
		refs = 1 // a host has no profile
	}
	for _, list := range []struct {
		rule capture.Rule
		n    int
	}{
		{capture.RuleProviders, len(p.Providers)}, {capture.RuleProviderRefs, refs},
		{capture.RuleVerbs, len(p.Verbs)}, {capture.RuleCIDRs, len(p.CIDRs)}, {capture.RuleMaxPerRun, p.MaxPerRun},
	} {
		if list.n == 0 {
			none = append(none, string(list.rule))
		}
	}
	switch {
	case !p.Enabled:
		return "executes nothing: enabled is false"
	case len(none) > 0:
		return "executes nothing: " + strings.Join(none, ", ") + " allow none"
	case p.DryRunOnly:
		return "executes nothing: dryRunOnly is true"
	case p.RequireApproval:
		return "executes what somebody approves: requireApproval is true"
	}
	return "executes what is planned"
}
