package agent

import (
	"cmp"
	"regexp"

	"go.yaml.in/yaml/v4"

	"github.com/tasuki-io/tasuki/internal/capture"
)

// configMember is a member and the nodes that it was read from.
type configMember struct {
	capture.Member
	o *configObject
	n *yaml.Node

	nodeRef, site, role, placement, maintenance, capture *yaml.Node // of the member
	group, priority                                      *yaml.Node // of its placement
	drain                                                *yaml.Node // of its maintenance
	method, providerRef, nic                             *yaml.Node // of its capture
	iface, gratuitousARP, activeWhen                     *yaml.Node
}

// configNIC names a NIC. It belongs to one node, in whatever pools that is.
type configNIC struct{ providerRef, nic string }

func (o *configObject) members(nodes []*yaml.Node) (out []capture.Member) {
	named, grouped := map[string]*configMember{}, map[string]*configMember{}
	for _, n := range nodes {
		m := o.member(n)
		if m == nil {
			continue
		}
		switch first := named[m.Node]; {
		case m.Node == "":
		case first != nil:
			m.o.report(m.nodeRef, "it is there twice, at %s as well: keep one", o.place(first.nodeRef))
			continue
		default:
			named[m.Node] = m
		}
		if m.Group != "" {
			if first := grouped[m.Group]; first != nil {
				m.agrees(first)
			} else {
				grouped[m.Group] = m
			}
		}
		m.takesNIC()
		out = append(out, m.Member)
	}
	return out
}

func (o *configObject) member(n *yaml.Node) *configMember {
	m := &configMember{n: n, o: o}
	if absentNode(n) {
		o.report(n, "a member is empty: take it out")
		return nil
	}
	if name := peekNode(n, "nodeRef").Value; configWord.fits(name) {
		part := *o
		part.part = "member " + name
		m.o = &part
	}
	if !m.o.fields(n, "a member", configField{"nodeRef", &m.nodeRef}, configField{"site", &m.site}, configField{"role", &m.role},
		configField{"placement", &m.placement}, configField{"maintenance", &m.maintenance}, configField{"capture", &m.capture}) {
		return nil
	}
	if m.o.need(n, "nodeRef", m.nodeRef) {
		m.Node = m.o.word(m.nodeRef, "nodeRef")
	}
	if m.o.need(n, "site", m.site) {
		m.Site = m.o.word(m.site, "site")
	}
	if m.o.need(n, "role", m.role) {
		m.Role = oneOfWords(m.o, m.role, "role", capture.RoleOnPrem, capture.RoleCloud)
	}
	m.readPlacement()
	if m.o.need(n, "capture", m.capture) {
		m.readCapture()
	}
	return m
}

// mostPriority is the largest priority, which is the last to be chosen.
const mostPriority = 1_000_000

func (m *configMember) readPlacement() {
	m.o.fields(m.placement, "placement", configField{"group", &m.group}, configField{"priority", &m.priority})
	m.o.fields(m.maintenance, "maintenance", configField{"drain", &m.drain})
	m.Group = m.o.word(m.group, "placement.group")
	m.Priority = m.o.number(m.priority, "placement.priority", mostPriority)
	m.Drain = m.o.boolean(m.drain, "maintenance.drain", false)
	m.o.mark("placement.group", m.group)
	m.o.mark("maintenance.drain", m.drain)
	if !absentNode(m.group) && (m.group.Kind != yaml.ScalarNode || m.group.Value != "") {
		return
	}
	const alone = "%s needs a placement.group, as a member without one is always active: write the group, or take %[1]s out"
	if !absentNode(m.priority) {
		m.o.report(m.priority, alone, "placement.priority")
	}
	if !absentNode(m.drain) {
		m.o.report(m.drain, alone, "maintenance.drain")
	}
}

func (m *configMember) readCapture() {
	if !m.o.fields(m.capture, "capture", configField{"type", &m.method}, configField{"providerRef", &m.providerRef}, configField{"nicRef", &m.nic},
		configField{"interface", &m.iface}, configField{"gratuitousARP", &m.gratuitousARP}, configField{"activeWhen", &m.activeWhen}) {
		return
	}
	if !m.o.need(m.capture, "capture.type", m.method) {
		return
	}
	c := &m.Capture
	switch c.Method = oneOfWords(m.o, m.method, "capture.type", capture.SecondaryIP, capture.ProxyARP); c.Method {
	case capture.SecondaryIP:
		m.matches(capture.RoleCloud)
		m.readSecondaryIP(c)
		m.refuse("interface", m.iface)
		m.refuse("gratuitousARP", m.gratuitousARP)
		m.refuse("activeWhen", m.activeWhen)
	case capture.ProxyARP:
		m.matches(capture.RoleOnPrem)
		m.readProxyARP(c)
		m.refuse("providerRef", m.providerRef)
		m.refuse("nicRef", m.nic)
	}
}

func (m *configMember) matches(role capture.Role) {
	if m.Role != "" && m.Role != role {
		m.o.report(m.method, "capture.type %s is for role %s, and the role is %s: correct one of the two", m.Capture.Method, role, m.Role)
	}
}

func (m *configMember) refuse(field string, n *yaml.Node) {
	if !absentNode(n) {
		m.o.report(n, "capture.type %s has no %s: take it out", m.Capture.Method, field)
	}
}

// configNICRef is what NICs are called: a name, or the path of a resource.
var configNICRef = form{regexp.MustCompile(`^[A-Za-z0-9/][A-Za-z0-9._/()-]*$`), 512}

func (m *configMember) readSecondaryIP(c *capture.Capture) {
	if m.o.need(m.capture, "capture.providerRef", m.providerRef) {
		c.ProviderRef = m.o.word(m.providerRef, "capture.providerRef")
		if c.ProviderRef != "" {
			m.o.profileExists(m.providerRef, "capture.providerRef", c.ProviderRef)
		}
	}
	if m.o.need(m.capture, "capture.nicRef", m.nic) {
		c.NIC = m.o.text(m.nic, "capture.nicRef")
		if c.NIC != "" && !configNICRef.fits(c.NIC) {
			m.o.report(m.nic, "capture.nicRef %s is not what a NIC is called: write its ID or name at the provider", quoteValue(c.NIC))
			c.NIC = ""
		}
	}
}

// What Linux lets an interface be called, and what can stand in quotes in keepalived's FIFO.
var (
	configInterface = form{regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]*$`), 15}
	configInstance  = form{regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]*$`), 253}
)

func (m *configMember) readProxyARP(c *capture.Capture) {
	if m.o.need(m.capture, "capture.interface", m.iface) {
		c.Interface = m.o.text(m.iface, "capture.interface")
		if c.Interface != "" && !configInterface.fits(c.Interface) {
			m.o.report(m.iface, "capture.interface %s is not what an interface is called: write at most 15 letters, digits, -, . and _", quoteValue(c.Interface))
		}
	}
	c.GratuitousARP = m.o.boolean(m.gratuitousARP, "capture.gratuitousARP", false)
	if absentNode(m.activeWhen) {
		if m.Group != "" {
			m.o.report(m.capture, "capture.activeWhen is missing: the members of placement group %s would all answer at once: write which VRRP instance has to be MASTER, or take placement out", m.Group)
		}
		return
	}
	var kind, instance *yaml.Node
	if !m.o.fields(m.activeWhen, "activeWhen", configField{"type", &kind}, configField{"instance", &instance}) {
		return
	}
	if m.o.need(m.activeWhen, "activeWhen.type", kind) {
		oneOfWords(m.o, kind, "activeWhen.type", "vrrp-master")
	}
	if m.o.need(m.activeWhen, "activeWhen.instance", instance) {
		c.Instance = m.o.text(instance, "activeWhen.instance")
		if c.Instance != "" && !configInstance.fits(c.Instance) {
			m.o.report(instance, "activeWhen.instance %s is not what a VRRP instance is called: write letters, digits, -, . and _", quoteValue(c.Instance))
		}
	}
}

// agrees reports how a member differs from the first one of its placement group. All members
// of one have to be in one captureDomain, or an address could have two holders.
func (m *configMember) agrees(first *configMember) {
	const mixed = "%s %s is not that of member %s (%s), which is in the same placement group %s: correct one, or give it a group of its own"
	differ := func(n *yaml.Node, field, mine, theirs string) {
		if mine != "" && theirs != "" && mine != theirs {
			m.o.report(n, mixed, field, mine, cmp.Or(first.Node, "before it"), theirs, m.Group)
		}
	}
	differ(m.role, "role", string(m.Role), string(first.Role))
	differ(m.method, "capture.type", string(m.Capture.Method), string(first.Capture.Method))
	differ(m.providerRef, "capture.providerRef", m.Capture.ProviderRef, first.Capture.ProviderRef)
}

// takesNIC reports a NIC that another node has: each would undo what the other does to it.
func (m *configMember) takesNIC() {
	nic := configNIC{m.Capture.ProviderRef, m.Capture.NIC}
	if nic.nic == "" || m.Node == "" {
		return
	}
	first, taken := m.o.load.nics[nic]
	if !taken {
		m.o.load.nics[nic] = configSpot{m.o, m.nic}
	} else if first.o.part != m.o.part {
		m.o.report(m.nic, "capture.nicRef %s belongs to %s, at %s: a NIC is of one node", nic.nic, first.o.part, first)
	}
}
