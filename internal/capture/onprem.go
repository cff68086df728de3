package capture

import "time"

// Linux is the provider of what a host captures by ProxyARP: the host itself. It has no
// profile, and a NIC of it is the name of an interface. It shows at once what it has done, and
// nobody waits for a release: whoever has to stop answering has to do so now.
const Linux = "linux"

// visible is how long a provider may take to show what it has done.
func (t Target) visible() time.Duration {
	if t.Provider == Linux {
		return 0
	}
	return visible
}

// local is the holder that an address captured by ProxyARP is to have, as far as this node has
// a say. Its authority is the local VRRP MASTER, whatever the priorities are: it is the holder
// while it is that, and nobody is when it was and is no longer. What others hold is theirs.
func (d *deciding) local(l *line, home string) Holder {
	others := l.Claim.Holder
	if others == d.self {
		others = None
	}
	if home == l.member.Site || l.member.drained(d.s.Absent) || !d.active(l) {
		return others
	}
	return d.self
}

// active reports whether this node may answer for the address of a line. Of two that are MASTER
// at once, as in a partition, the one that has become so last takes the address; the other takes
// it back no sooner than a leaseTTL later, so that they do not take it from each other without
// end.
func (d *deciding) active(l *line) bool {
	c := &l.member.Capture
	if c.Instance == "" {
		return l.member.Group == ""
	}
	since, master := d.s.Masters[c.Instance]
	if !master {
		return false
	}
	holder := l.Claim.Holder
	if holder == d.self || holder == None || d.s.Absent.Dead[string(holder)] || since.After(l.Since) {
		return true
	}
	back := l.Since.Add(l.pool.LeaseTTL)
	if d.now.Before(back) {
		d.until(back)
		return false
	}
	return true
}

// forwards reports whether this node has turned forwarding on for a NIC, as far as it knows.
func (d *deciding) forwards(t Target) bool {
	var l line
	d.read(&l, d.s.nics[d.forwardingOn(t)])
	at := d.place(t)
	got := &l.Acquired
	return l.claim.Holder == d.self && got.Epoch == l.claim.Epoch && got.Epoch > 0 && got.Target == t &&
		!at.lacks(true, d.forwardingOn(t), *got)
}

// forwardingOn is the key of what a NIC forwards. An interface has the same name on every
// host, and is each host's own.
func (d *deciding) forwardingOn(t Target) Key {
	if t.Provider == Linux {
		return Key{Domain: Domain("onprem:node:" + string(d.self) + ":nic:" + t.NIC)}
	}
	return t.forwarding()
}
