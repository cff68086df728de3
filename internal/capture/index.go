package capture

// index is what a view derives from its lines, so that a decision looks at those alone that
// concern its node. It says nothing that the lines do not, whatever order they came in.
type index struct {
	nics  map[Key]*entry // the lines of NICs, which are few
	begun map[Key]*entry // those with open actions or markers

	// Of addresses:
	unsettled int            // how many are
	held      map[Holder]int // how many each one holds
	placed    map[Target]int // how many acquisitions may have left one on a NIC

	doubtful map[Target]int // how many acquisitions may yet be carried out on a NIC
}

func newIndex() index {
	return index{nics: map[Key]*entry{}, begun: map[Key]*entry{}, held: map[Holder]int{}, placed: map[Target]int{}, doubtful: map[Target]int{}}
}

// unsettled reports a line with something under way, or that may be on a NIC.
func (e *entry) unsettled() bool { return e.begun() || len(e.Placed)+len(e.Doubtful) > 0 }

func (e *entry) begun() bool { return len(e.open)+len(e.markers) > 0 }

// count adds what follows from a line (1), or takes it away before the line changes (-1).
func (x *index) count(k Key, e *entry, n int) {
	if e.begun() {
		if x.begun[k] = e; n < 0 {
			delete(x.begun, k)
		}
	}
	for _, t := range e.Doubtful {
		x.doubtful[t.Target] += n
	}
	if !k.Address.IsValid() {
		x.nics[k] = e
		return
	}
	x.held[e.Claim.Holder] += n
	if e.unsettled() {
		x.unsettled += n
	}
	for _, t := range e.Placed {
		x.placed[t.Target] += n
	}
}

// siblings are the lines of a key's pool in other domains.
func (v *View) siblings(k Key) (others []walk) {
	for s, lines := range v.lines {
		if s.pool == k.Pool && s.domain != k.Domain {
			others = append(others, walk{lines: lines})
		}
	}
	return others
}

// highest is the highest epoch of an action of this node, 0 when there was none.
func (e *entry) highest() Epoch {
	if e == nil {
		return 0
	}
	return e.rows
}
