package agent

import (
	"go.yaml.in/yaml/v4"

	"github.com/tasuki-io/tasuki/internal/capture"
	"github.com/tasuki-io/tasuki/internal/window"
)

// closedPolicy is what an absent policy and an empty one say: nothing is executed.
var closedPolicy = capture.Policy{DryRunOnly: true, RequireApproval: true}

// mostActions bounds maxActionsPerRun.
const mostActions = 1_000_000

// policy reads a ProviderActionPolicy.
func (o *configObject) policy() capture.Policy {
	p := closedPolicy
	var enabled, dryRun, approval, providers, refs, actions, cidrs, most, undo, windows *yaml.Node
	if !o.fields(o.spec, "spec",
		configField{"enabled", &enabled}, configField{"dryRunOnly", &dryRun}, configField{"requireApproval", &approval},
		configField{"allowedProviders", &providers}, configField{"allowedProviderRefs", &refs},
		configField{"allowedActions", &actions}, configField{"allowedCIDRs", &cidrs},
		configField{"maxActionsPerRun", &most}, configField{"allowUndo", &undo}, configField{"executionWindow", &windows}) {
		return p
	}
	o.mark("enabled", enabled)
	o.mark("requireApproval", approval)
	o.mark("allowedProviders", providers)
	o.mark("allowedProviderRefs", refs)
	o.mark("allowedActions", actions)
	o.mark("allowedCIDRs", cidrs)
	o.mark("maxActionsPerRun", most)
	p.Enabled = o.boolean(enabled, "enabled", p.Enabled)
	p.DryRunOnly = o.boolean(dryRun, "dryRunOnly", p.DryRunOnly)
	p.RequireApproval = o.boolean(approval, "requireApproval", p.RequireApproval)
	p.AllowUndo = o.boolean(undo, "allowUndo", p.AllowUndo)
	p.MaxPerRun = o.number(most, "maxActionsPerRun", mostActions)

	p.Providers = listedNodes(o, providers, "allowedProviders", func(n *yaml.Node, field string) string {
		return oneOfWords(o, n, field, "aws", "azure", "oci", capture.Linux)
	})
	p.ProviderRefs = listedNodes(o, refs, "allowedProviderRefs", func(n *yaml.Node, field string) string {
		ref := o.word(n, field)
		if ref != "" {
			o.profileExists(n, field, ref)
		}
		return ref
	})
	p.Verbs = listedNodes(o, actions, "allowedActions", func(n *yaml.Node, field string) capture.Verb {
		return oneOfWords(o, n, field, capture.Verbs()...)
	})
	p.CIDRs = listedNodes(o, cidrs, "allowedCIDRs", o.prefix)
	p.Window = o.window(windows)
	return p
}

// listedNodes reads the entries of a list. One that is empty says nothing, and is refused.
func listedNodes[T any](o *configObject, n *yaml.Node, field string, read func(*yaml.Node, string) T) (out []T) {
	for _, entry := range o.list(n, field) {
		if o.need(entry, "an entry of "+field, entry) {
			out = append(out, read(entry, "an entry of "+field))
		}
	}
	return out
}

// window reads the hours of the policy; nil is every hour. A field without a window in it is
// refused: somebody meant to bound the hours.
func (o *configObject) window(n *yaml.Node) *window.Schedule {
	if n == nil {
		return nil
	}
	entries := o.list(n, "executionWindow")
	if absentNode(n) || n.Kind == yaml.SequenceNode && len(entries) == 0 {
		o.report(n, "executionWindow is empty: write a window, or leave the field out for every hour")
	}
	var rules []window.Rule
	for _, entry := range entries {
		var zone, days, start, end *yaml.Node
		if !o.need(entry, "an entry of executionWindow", entry) || !o.fields(entry, "a window",
			configField{"timezone", &zone}, configField{"days", &days}, configField{"start", &start}, configField{"end", &end}) {
			continue
		}
		before := len(o.load.problems)
		names := listedNodes(o, days, "days", o.text)
		texts := [3]string{o.text(zone, "timezone"), o.text(start, "start"), o.text(end, "end")}
		if len(o.load.problems) > before {
			continue
		}
		rule, err := window.ParseRule(texts[0], names, texts[1], texts[2])
		if err != nil {
			o.report(entry, "%v", err)
			continue
		}
		rules = append(rules, rule)
	}
	schedule := window.NewSchedule(rules...)
	return &schedule
}
