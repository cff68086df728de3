package rotation

import "slices"

// Party names the objects that a rotation under way is about, the placeholder and the NodePool
// apart: the NodeClaim that it replaces, the one that comes in its place, and their Nodes.
type Party struct{ NodeClaims, Nodes []string }

// Party is that of the rotation under way.
func (s *Snapshot) Party() Party {
	active := s.NodePool.Annotations[AnnotationActive]
	p := Party{NodeClaims: []string{active}}
	if c := s.claim(active); c != nil {
		p.node(c.NodeName)
	}
	if s.Placeholder != nil {
		p.node(s.Placeholder.NodeName)
		if c := s.claimOn(s.Placeholder.NodeName); c != nil && c.Name != active {
			p.NodeClaims = append(p.NodeClaims, c.Name)
		}
	}
	for name, n := range s.Nodes {
		if n.Annotations[AnnotationSurgeFor] == active {
			p.node(name)
		}
	}
	return p
}

func (p *Party) node(name string) {
	if name != "" && !slices.Contains(p.Nodes, name) {
		p.Nodes = append(p.Nodes, name)
	}
}

// Covers reports that q names nothing that p does not.
func (p Party) Covers(q Party) bool {
	missing := func(names []string) func(string) bool {
		return func(name string) bool { return !slices.Contains(names, name) }
	}
	return !slices.ContainsFunc(q.NodeClaims, missing(p.NodeClaims)) && !slices.ContainsFunc(q.Nodes, missing(p.Nodes))
}

// CarriesOn reports a decision that takes a rotation under way a step on, or to its success, and
// is made on the NodePool, its policy, the placeholder and the party alone. All others look at
// the whole pool, or at pods, or have more to tell: what begins, gives up, rolls back, sweeps,
// judges a window, or is stuck.
func (s *Snapshot) CarriesOn(d Decision) bool {
	if len(d.Plan) == 0 || d.Reason == ReasonSweeping || d.Stuck != (Stuck{}) {
		return false
	}
	if p := s.Placeholder; p != nil && p.NodeName != "" && s.claimOn(p.NodeName) == nil {
		return false // its NodeClaim may be there, and not be known yet
	}
	for _, st := range d.Plan {
		switch st.Act {
		case ActRecordSurgeClaim, ActFreezeNode, ActRecordDraining, ActMarkDraining, ActDeletePlaceholder, ActReleaseNode:
		case ActDeleteNodeClaim:
			if s.Placeholder == nil {
				return false // which goes first, in a hand-over and in a rollback: it may have begun to be one
			}
		case ActReleaseAnchor:
			if st.Facts.SurgeNode == "" {
				return false // it may be frozen, and that not be known yet
			}
		default:
			return false
		}
	}
	return true
}
