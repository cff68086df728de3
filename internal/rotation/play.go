package rotation

import (
	"cmp"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// play is the world of a forecast: one pool, its nodes, and a Karpenter that is never late.
type play struct {
	pool   Snapshot // its claims and nodes are those of the last view
	policy *Policy
	to     time.Time

	claims map[string]*actor
	nodes  map[string]Node
	loose  []string // nodes of no claim that carry our marks

	watched  map[string]*actor // not calm
	leaving  map[string]*actor
	eligible queue[*actor] // by who goes first
	waiting  queue[timed]  // by when they may be eligible

	deadlines queue[timed]
	events    queue[event]

	started time.Time // when the rotation under way began
	closed  Reason    // the gate that is shut for now, if it is known
	turns   []Turn
}

// actor is a NodeClaim in a play.
type actor struct {
	NodeClaim
	nodes []string // in Snapshot.Nodes
	place place
	heir  *actor // to which its pods go, nil if there is none yet
}

// place is where an actor is kept.
type place int

const (
	idle place = iota // calm, and never to be eligible
	waiting
	eligible
	watched
	leaving // being deleted
	gone
)

type timed struct {
	at time.Time
	*actor
}

// event is something that Karpenter does: a surge comes up, or a claim that leaves is gone.
type event struct {
	timed
	ends bool
}

// settle takes the nodes that come up, or have a bad time, to be well when they are due. One that
// comes up for a placeholder does so with it.
func settle(s Snapshot, p *Policy, now time.Time) Snapshot {
	s.NodeClaims, s.Nodes = slices.Clone(s.NodeClaims), maps.Clone(s.Nodes)
	if s.Nodes == nil {
		s.Nodes = map[string]Node{}
	}
	var surge *NodeClaim
	if c := s.claim(s.NodePool.Annotations[AnnotationActive]); c != nil {
		surge = s.awaited(c, now)
	}
	for i := range s.NodeClaims {
		c := &s.NodeClaims[i]
		if standing, _, _ := s.standing(p, c, now); standing != NotDue || c == surge {
			continue
		}
		if c.Ready = true; c.NodeName == "" {
			c.NodeName = cmp.Or(s.nodeOf(c), c.Name)
		}
		if _, there := s.Nodes[c.NodeName]; !there {
			s.Nodes[c.NodeName] = nodeNamed(c.NodeName, c.Name)
		}
	}
	return s
}

func nodeNamed(name, claim string) Node {
	return Node{Object: Object{Kind: KindNode, Name: name, UID: name}, Claim: claim, Ready: true}
}

func newPlay(s Snapshot, from, to time.Time) *play {
	p := *s.Governance.Policy
	p.Windows = p.Windows.Remembering()
	s.Governance.Policy = &p
	f := &play{
		pool: s, policy: s.Governance.Policy, to: to, started: from,
		claims: make(map[string]*actor, len(s.NodeClaims)), nodes: maps.Clone(s.Nodes),
		watched: map[string]*actor{}, leaving: map[string]*actor{},
	}
	sooner := func(a, b timed) bool {
		if !a.at.Equal(b.at) {
			return a.at.Before(b.at)
		}
		return a.Name < b.Name
	}
	f.eligible = queue[*actor]{before: func(a, b *actor) bool { return before(&a.NodeClaim, &b.NodeClaim) }, counts: func(c *actor) bool { return c.place == eligible }}
	f.waiting = queue[timed]{before: sooner, counts: func(t timed) bool { return t.place == waiting }}
	f.deadlines = queue[timed]{before: func(a, b timed) bool { return before(&a.NodeClaim, &b.NodeClaim) }, counts: func(t timed) bool { return t.place != leaving && t.place != gone }}
	f.events = queue[event]{before: func(a, b event) bool { return sooner(a.timed, b.timed) }, counts: func(e event) bool { return e.place != gone }}
	f.pool.NodePool.Annotations = maps.Clone(s.NodePool.Annotations)
	for name, n := range f.nodes {
		n.Annotations = maps.Clone(n.Annotations)
		f.nodes[name] = n
	}
	f.pool.NodeClaims, f.pool.Nodes, f.pool.Pods = nil, map[string]Node{}, map[string][]*corev1.Pod{}
	for name := range s.Nodes {
		f.pool.Pods[name] = s.Pods[name]
	}

	owned := map[string][]string{}
	for _, name := range slices.Sorted(maps.Keys(f.nodes)) {
		if n := f.nodes[name]; n.Claim != "" {
			owned[n.Claim] = append(owned[n.Claim], name)
		} else if marked(n) {
			f.loose = append(f.loose, name)
		}
	}
	for i := range s.NodeClaims {
		c := &actor{NodeClaim: s.NodeClaims[i], nodes: owned[s.NodeClaims[i].Name]}
		c.Annotations = maps.Clone(c.Annotations)
		if _, there := f.nodes[c.NodeName]; there && !slices.Contains(c.nodes, c.NodeName) {
			c.nodes = append(c.nodes, c.NodeName)
		}
		f.enter(c, from)
	}
	f.resume(&s, from)
	return f
}

func (f *play) active() string { return f.pool.NodePool.Annotations[AnnotationActive] }

// enter takes in a claim that is there, or has just been born.
func (f *play) enter(c *actor, now time.Time) {
	f.claims[c.Name] = c
	disrupted := slices.ContainsFunc(c.nodes, func(name string) bool { n := f.nodes[name]; return n.disrupted() })
	switch {
	case !c.Deleting.IsZero() || disrupted && c.Name != f.active(): // the deletion is about to follow the taint
		f.leave(c, later(c.Deleting, now))
	case c.Name != f.active() && f.calm(c):
		f.sort(c, now)
	default:
		f.watch(c)
	}
	if c.ExpireAfter != nil {
		f.deadlines.push(timed{c.Created.Add(*c.ExpireAfter), c})
	}
}

// resume takes in a rotation that is under way.
func (f *play) resume(s *Snapshot, now time.Time) {
	c := f.claims[f.active()]
	if c == nil {
		return
	}
	f.watch(c)
	if start := c.startedAt(now); !start.IsZero() {
		f.started = start
	}
	if surge := f.claims[c.Annotations[AnnotationSurgeClaim]]; surge != nil { // a rollback reaps it
		c.heir = surge
		f.watch(surge)
	}
	if p := f.pool.Placeholder; p != nil {
		copied := *p
		f.pool.Placeholder = &copied
		var surge *actor
		if known := s.awaited(&c.NodeClaim, now); known != nil {
			surge = f.claims[known.Name]
		}
		f.launch(c, surge, p.Created, now)
	}
	if c.place == leaving && c.state() == StateDraining {
		f.rotated(c)
	}
}

// watch has a claim shown to every decision.
func (f *play) watch(c *actor) {
	f.watched[c.Name] = c
	if c.place != leaving {
		c.place = watched
	}
}

// leave begins to delete a claim. It is gone once its node is drained.
func (f *play) leave(c *actor, now time.Time) {
	if c.Deleting.IsZero() {
		c.Deleting = now
	}
	c.place = leaving
	f.leaving[c.Name] = c
	f.events.push(event{timed{later(now, c.Deleting.Add(f.policy.draining(c.GracePeriod))), c}, true})
}

// rotated notes that a claim is on its way out by a rotation.
func (f *play) rotated(c *actor) {
	if c.ExpireAfter == nil { // nobody but a person starts such a one, and nothing is at stake
		return
	}
	o, _ := f.policy.Windows.At(f.started)
	mode := ModeSurge
	if f.pool.NodePool.Annotations[AnnotationMode] == ModeFallback {
		mode = ModeFallback
	}
	f.turns = append(f.turns, Turn{NodeClaim: c.Name, Deadline: c.Created.Add(*c.ExpireAfter), Start: f.started, Occurrence: o, Mode: mode})
}

// next is when Karpenter does something.
func (f *play) next() time.Time {
	e, _ := f.events.first()
	d, _ := f.deadlines.first()
	return earliest(e.at, d.at)
}

// happen has Karpenter do what it does until now.
func (f *play) happen(now time.Time) {
	for e, ok := f.events.first(); ok && !now.Before(e.at); e, ok = f.events.first() {
		f.events.pop()
		switch {
		case e.ends:
			f.finish(e.actor)
		case e.place != leaving:
			f.register(e.actor)
		}
	}
	for d, ok := f.deadlines.first(); ok && !now.Before(d.at); d, ok = f.deadlines.first() {
		f.expire(d.actor, d.at, now)
	}
}

// expire deletes a claim at its deadline.
func (f *play) expire(c *actor, deadline, now time.Time) {
	if deadline.Before(f.to) {
		f.turns = append(f.turns, Turn{NodeClaim: c.Name, Deadline: deadline, Start: deadline, Lost: f.cause(c, now)})
	}
	f.leave(c, now)
	if e := f.pool.NodePool.ExpireAfter; e != nil && *e <= 0 { // nor would there be an end to heirs that expire as they are born
		return
	}
	if c.Name != f.active() { // which has a surge
		c.heir = f.born(c, now)
		f.register(c.heir)
		f.enter(c.heir, now)
	}
}

// cause is what keeps a claim from being rotated.
func (f *play) cause(c *actor, now time.Time) string {
	if standing, _, _ := f.standing(c, now); standing != Eligible {
		return string(standing)
	}
	if f.closed != "" {
		return string(f.closed)
	}
	s := f.view(now)
	return keeps(s.decide(now))
}

// keeps is what keeps an eligible claim from being rotated. If its rotation would begin, or
// another one end, at the very instant at which it expires, that is nothing but the time.
func keeps(d Decision) string {
	if d.Reason == "" || len(d.Plan) > 0 && d.Plan[0].Act == ActClaimAnchor {
		return string(Eligible)
	}
	return string(d.Reason)
}

// finish takes a drained claim away. Its pods are then where room was made for them.
func (f *play) finish(c *actor) {
	c.place = gone
	for _, name := range c.nodes {
		if heir := c.heir; heir != nil && heir.place != gone && len(heir.nodes) > 0 {
			f.pool.Pods[heir.nodes[0]] = slices.Concat(f.pool.Pods[heir.nodes[0]], f.pool.Pods[name])
		}
		delete(f.nodes, name)
		delete(f.pool.Pods, name)
	}
	delete(f.claims, c.Name)
	delete(f.watched, c.Name)
	delete(f.leaving, c.Name)
}

// launch brings up the capacity that a placeholder asks for, on the claim that is known to make
// room for it or on a new one.
func (f *play) launch(c, surge *actor, asked, now time.Time) {
	if surge == nil || surge == c || surge.place == leaving {
		surge = f.born(c, later(asked, c.startedAt(now)))
		f.enter(surge, now)
	}
	c.heir = surge
	f.watch(surge)
	f.events.push(event{timed{later(now, asked.Add(f.policy.provisioning())), surge}, false})
}

// register gives a claim its node, and the node the placeholder that waits for it.
func (f *play) register(c *actor) {
	if len(c.nodes) == 0 {
		c.NodeName, c.nodes = c.Name, []string{c.Name}
		f.nodes[c.Name] = nodeNamed(c.Name, c.Name)
	}
	c.Ready = true
	n := f.nodes[c.nodes[0]]
	n.Ready = true
	f.nodes[n.Name] = n
	if p := f.pool.Placeholder; p != nil && (p.NodeName == "" || p.NodeName == n.Name) && f.active() != "" && f.watched[c.Name] != nil {
		bound := *p
		bound.NodeName, bound.Phase, bound.Waiting = n.Name, corev1.PodRunning, Waiting{}
		f.pool.Placeholder = &bound
	}
}

// act performs a step of a plan.
func (f *play) act(st Step, now time.Time) {
	switch c := f.claims[st.On.Name]; {
	case st.Act == ActCreatePlaceholder:
		f.pool.Placeholder = &Placeholder{
			Object: Object{Kind: KindPlaceholder, Name: st.On.Name}, SurgeFor: st.Create.SurgeFor,
			NodePool: st.Create.NodePool, Created: now.Truncate(time.Second), Phase: corev1.PodPending,
		}
		c := f.claims[st.Create.SurgeFor]
		f.launch(c, f.claims[c.Annotations[AnnotationSurgeClaim]], now, now)
	case st.Act == ActDeletePlaceholder:
		if p := f.pool.Placeholder; p != nil && p.Name == st.On.Name {
			f.pool.Placeholder = nil
		}
		f.pool.Strays = slices.DeleteFunc(slices.Clone(f.pool.Strays), func(p Placeholder) bool { return p.Name == st.On.Name })
	case st.Act == ActDeleteNodeClaim:
		f.rotated(c)
		f.leave(c, now)
	case st.Act == ActReapSurgeClaim:
		f.leave(c, now)
	case st.On.Kind == KindNodePool:
		amend(&f.pool.NodePool.Annotations, st)
		if st.Act == ActClaimAnchor {
			f.started = now
			f.watch(f.claims[st.Facts.NodeClaim])
		}
	case st.On.Kind == KindNodeClaim:
		amend(&c.Annotations, st)
		f.watch(c)
	case st.On.Kind == KindNode:
		n := f.nodes[st.On.Name]
		amend(&n.Annotations, st)
		if st.Unschedulable != nil {
			n.Unschedulable = *st.Unschedulable
		}
		f.nodes[n.Name] = n
	}
}

// amend performs a step on annotations, which are the play's own.
func amend(annotations *map[string]string, st Step) {
	if *annotations == nil {
		*annotations = make(map[string]string, len(st.Set))
	}
	maps.Copy(*annotations, st.Set)
	for _, key := range st.Clear {
		delete(*annotations, key)
	}
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}
