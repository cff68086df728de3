package agent

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/tasuki-io/tasuki/internal/capture"
)

// CheckConfig reads a configuration as LoadConfig does. Beside it there are warnings, each as
// "file:line:column: object: what is surprising: what to do": what is allowed, and does nothing
// or not what one may think.
func CheckConfig(path string) (*Config, []string, error) {
	files, err := readConfigFiles(path)
	if err != nil {
		return nil, nil, fmt.Errorf("configuration: %w", err)
	}
	l, err := loadConfig(path, files)
	if err != nil {
		return nil, nil, err
	}
	c := checking{load: l, path: path}
	for i := range l.config.Pools {
		c.pool(&l.config.Pools[i])
	}
	c.profiles()
	c.policy()
	if len(c.warnings) == 0 {
		return &l.config, nil, nil
	}
	return &l.config, problems(joinConfigProblems(c.warnings)), nil
}

// mark remembers where a field stands, so that it can be warned about when everything is read.
// A field that was left out is not marked.
func (o *configObject) mark(field string, n *yaml.Node) {
	if !absentNode(n) {
		o.load.marks[o.spot(field)] = configSpot{o, n}
	}
}

func (o *configObject) spot(field string) string {
	return o.kind + "/" + o.name + "/" + o.part + "/" + field
}

// checking looks for what is surprising in a configuration that is valid.
type checking struct {
	load     *configLoad
	path     string
	warnings []configProblem
}

// marked is where a field of an object stands.
func (c *checking) marked(kind, name, part, field string) (configSpot, bool) {
	spot, ok := c.load.marks[(&configObject{kind: kind, name: name, part: part}).spot(field)]
	return spot, ok
}

// warn notes a warning about a field, or about its object when it was left out.
func (c *checking) warn(kind, name, part, field, format string, args ...any) {
	spot, ok := c.marked(kind, name, part, field)
	if !ok {
		o := c.load.names[kind+" "+name]
		spot = configSpot{o, o.at}
	}
	c.warnings = append(c.warnings, spot.o.problem(spot.n, format, args...))
}

func (c *checking) pool(p *capture.Pool) {
	warn := func(part, field, format string, args ...any) { c.warn(kindPool, p.Name, part, field, format, args...) }
	switch {
	case len(p.Members) == 0:
		warn("", "members", "it has no members: nobody captures its addresses: add one")
		return
	case len(p.Addresses) == 0:
		warn("", "addresses", "it has no addresses: whatever its members hold of it is given up")
	}
	c.homes(p)
	placed := map[capture.Domain][]*capture.Member{}
	var groups configWords
	for i := range p.Members {
		if m := &p.Members[i]; m.Group != "" {
			placed[m.Domain()] = append(placed[m.Domain()], m)
			groups = append(groups, m.Group)
		}
	}
	shared := 0
	for _, members := range placed {
		m := members[0]
		if shared = max(shared, len(members)); len(members) == 1 {
			warn("member "+m.Node, "placement.group", "placement.group %s has this one member%s, so that nobody takes over from it: %s", m.Group, at(m),
				similar(m.Group, groups))
		}
		if !slices.ContainsFunc(members, func(m *capture.Member) bool { return !m.Drain }) {
			warn("member "+m.Node, "maintenance.drain", "every member of placement group %s%s is drained, so that nobody holds its addresses: let one back", m.Group, at(m))
		}
	}
	if c.load.config.Store.Etcd != nil {
		return
	}
	if _, written := c.marked(kindPool, p.Name, "", "leaseTTL"); written {
		warn("", "leaseTTL", "leaseTTL is about agents that share their claims, and there is no ClaimsStore of type etcd: it does nothing between hosts: add one")
	} else if shared > 1 && slices.ContainsFunc(p.Members, func(m capture.Member) bool { return m.Role == capture.RoleCloud && m.Group != "" }) {
		warn("", "members", "members share a placement group, and there is no ClaimsStore of type etcd: agents of different hosts know nothing of each other, and hand nothing over: add one")
	}
}

// at says of which site a group is meant: on-prem, each site has its own.
func at(m *capture.Member) string {
	if m.Role == capture.RoleOnPrem {
		return " at site " + m.Site
	}
	return ""
}

// similar is what to do about a group of one.
func similar(group string, groups configWords) string {
	for _, other := range groups {
		if other != group && (nearWord(group, other) || nearWord(other, group)) {
			return fmt.Sprintf("did you mean %s?", other)
		}
	}
	return "add another, or leave placement out"
}

// homes warns of addresses that every member is at home with.
func (c *checking) homes(p *capture.Pool) {
	for _, a := range p.Addresses {
		if !slices.ContainsFunc(p.Members, func(m capture.Member) bool { return m.Site != a.Owner.Site }) {
			spot := c.load.addresses[a.Addr]
			c.warnings = append(c.warnings, spot.o.problem(spot.n, "nobody captures address %s: every member is at site %s, where it lives", a.Addr, a.Owner.Site))
		}
	}
}

func (c *checking) profiles() {
	used, _ := c.needs()
	for _, name := range slices.Sorted(maps.Keys(c.load.config.Profiles)) {
		if !slices.Contains(used, name) {
			c.warn(kindProfile, name, "", "", "no member has it for its providerRef: it does nothing")
		}
	}
}

// needs are the profiles and the providers of all members, each once.
func (c *checking) needs() (refs, providers []string) {
	for _, p := range c.load.config.Pools {
		for i := range p.Members {
			t := c.load.config.target(&p.Members[i])
			if t.ProviderRef != "" {
				refs = append(refs, t.ProviderRef)
			}
			providers = append(providers, t.Provider)
		}
	}
	slices.Sort(refs)
	slices.Sort(providers)
	return slices.Compact(refs), slices.Compact(providers)
}

func (c *checking) policy() {
	name := c.load.policy
	if name == "" {
		c.warnings = append(c.warnings, configProblem{file: c.path, text: fmt.Sprintf("there is no %s: everything is planned, and nothing is executed", kindPolicy)})
		return
	}
	warn := func(field, format string, args ...any) { c.warn(kindPolicy, name, "", field, format, args...) }
	p := &c.load.config.Policy
	if !p.Enabled {
		warn("enabled", "enabled is false: nothing is executed, and no NIC is looked at")
	}
	if p.DryRunOnly && !p.RequireApproval {
		warn("requireApproval", "requireApproval is false, and dryRunOnly is true: nothing is executed all the same: set dryRunOnly: false when you mean it")
	}
	if p.MaxPerRun == 0 {
		warn("maxActionsPerRun", "maxActionsPerRun is 0: nothing is executed: write how many actions may begin at once, such as 10")
	}
	refs, providers := c.needs()
	lacks(warn, "allowedProviders", providers, p.Providers)
	lacks(warn, "allowedProviderRefs", refs, p.ProviderRefs)
	lacks(warn, "allowedActions", capture.Verbs(), p.Verbs)
	c.cidrs(warn, p.CIDRs)
}

// lacks warns of what the pools need and a list does not allow.
func lacks[T ~string](warn func(string, string, ...any), field string, needed, allowed []T) {
	needed = slices.DeleteFunc(slices.Clone(needed), func(s T) bool { return slices.Contains(allowed, s) })
	if len(needed) > 0 {
		warn(field, "%s lacks %s, which the pools need: such actions are never executed: add what is meant", field, join(needed))
	}
}

// cidrs warns of addresses that no prefix covers, and of prefixes that cover none.
func (c *checking) cidrs(warn func(string, string, ...any), allowed []netip.Prefix) {
	covers := make([]bool, len(allowed))
	for _, p := range c.load.config.Pools {
		var outside []string
		for _, a := range p.Addresses {
			covered := false
			for i, prefix := range allowed {
				if prefix.Contains(a.Addr) {
					covered, covers[i] = true, true
				}
			}
			if !covered {
				outside = append(outside, a.Addr.String())
			}
		}
		if len(outside) > 0 {
			warn("allowedCIDRs", "allowedCIDRs cover %d of the %d addresses of MobilityPool %s: nothing is executed for %s: add a prefix that has them, such as %s",
				len(p.Addresses)-len(outside), len(p.Addresses), p.Name, few(outside), p.Prefix)
		}
	}
	for i, prefix := range allowed {
		if !covers[i] {
			warn("allowedCIDRs", "the prefix %s of allowedCIDRs covers no address of any pool: it does nothing", prefix)
		}
	}
}

// few names the first of some things.
func few(names []string) string {
	const most = 3
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}
