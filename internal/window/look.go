package window

// look answers questions about a schedule, and remembers what it has seen: a stretch in which
// the schedule is open, and one in which it is closed. The next question mostly falls into one
// of them, or a little beyond.
type look struct {
	walk
	open          span // nowhere closed; empty if nothing has been seen
	opens, closes bool // at open.start, at open.end; else open goes on there
	shut          span // nowhere open, and the schedule opens at shut.end
}

// at returns the merged occurrence that contains u.
func (l *look) at(u int64) (span, bool) {
	if l.shut.contains(u) {
		return span{}, false
	}
	if !l.open.contains(u) {
		l.open, l.opens, l.closes = span{u, u}, false, false
	}
	first, last := u-horizonSeconds, u+horizonSeconds
	if !l.closes {
		l.open.end = l.until(l.open.end, last)
		l.closes = l.open.end <= last
	}
	if l.open.end == u {
		return span{}, false
	}
	if !l.opens {
		l.open.start = l.since(l.open.start, first)
		l.opens = l.open.start >= first
	}
	o := l.open
	if o.start < first {
		o.start = always
	}
	if o.end > last {
		o.end = never
	}
	return o, true
}

// after returns the first merged occurrence that starts after u, an instant at
// which the schedule is closed (never, if it does not close).
func (l *look) after(u int64) (span, bool) {
	if u == never {
		return span{}, false
	}
	if !l.shut.contains(u) {
		l.shut = span{u, l.start(u)}
	}
	if l.shut.end == never {
		return span{}, false
	}
	return l.at(l.shut.end)
}
