package rotation

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// world is a small model of what a rotation writes to: the objects of one pool, and an
// API server that accepts a write only for the version that it was decided on. Its
// Snapshot is what a fresh read shows.
type world struct {
	Snapshot
	now time.Time

	stuck    bool   // the placeholder has a finalizer: deleted, it stays
	receipts []Step // every durable change, in order
	created  int    // placeholders created
	versions int
}

// errRefused is the API server's answer to a write whose precondition no longer holds.
var errRefused = errors.New("refused")

// errNotYet is the answer to a deletion that has not come to its end.
var errNotYet = errors.New("not yet")

// unlawful is a step that no state of the cluster may ever see: a bug, not a race.
type unlawful struct {
	step Step
	why  string
}

func (u unlawful) Error() string { return fmt.Sprintf("UNLAWFUL: %s: %s", u.step, u.why) }

func newWorld(now time.Time) *world {
	w := &world{now: now}
	w.Nodes, w.Pods = map[string]Node{}, map[string][]*corev1.Pod{}
	return w
}

// view is a read of the world that later writes do not change.
func (w *world) view() Snapshot { return cloneSnapshot(w.Snapshot) }

// object registers a new object.
func (w *world) object(kind Kind, name string) Object {
	w.versions++
	return Object{Kind: kind, Name: name, UID: fmt.Sprintf("uid-%d", w.versions), Version: strconv.Itoa(w.versions)}
}

// touch moves an object on to its next version.
func (w *world) touch(o *Object) {
	w.versions++
	o.Version = strconv.Itoa(w.versions)
}

// decide looks at the world as it is now.
func (w *world) decide() Decision { return Decide(w.view(), w.now) }

// act performs the first n steps of a plan, all of them when n is negative, and stops at
// the first that does not succeed. An object that a step of this plan has written is
// accepted at the version which that write returned.
func (w *world) act(plan []Step, n int) (done []Step, err error) {
	left := map[Object]string{}
	for i, st := range plan {
		if i == n {
			break
		}
		expected := st.On.Version
		if v, ok := left[st.On]; ok {
			expected = v
		}
		version, err := w.write(st, expected)
		if err != nil {
			return done, err
		}
		left[st.On] = version
		done = append(done, st)
		if st.Act != ActHoldClaim {
			w.receipts = append(w.receipts, st)
		}
	}
	return done, nil
}

// write performs one step if its object is at the expected version.
func (w *world) write(st Step, expected string) (version string, err error) {
	if st.Act == ActCreatePlaceholder {
		return w.createPlaceholder(st)
	}
	if st.Act == ActDeletePlaceholder {
		return "", w.deletePlaceholder(st)
	}
	o := w.find(st.On)
	switch {
	case o == nil:
		return "", fmt.Errorf("%w: %s %s/%s: it is gone", errRefused, st.Act, st.On.Kind, st.On.Name)
	case o.UID != st.On.UID || o.Version != expected:
		return "", fmt.Errorf("%w: %s %s/%s: it has changed since it was read", errRefused, st.Act, st.On.Kind, st.On.Name)
	}
	if why := w.breaks(st); why != "" {
		return "", unlawful{st, why}
	}
	if st.Act == ActDeleteNodeClaim || st.Act == ActReapSurgeClaim {
		c := w.claim(st.On.Name)
		c.Deleting = w.now
		w.touch(&c.Object)
		return c.Version, nil
	}
	return w.patch(st)
}

func (w *world) find(on Object) *Object {
	switch on.Kind {
	case KindNodePool:
		return &w.NodePool.Object
	case KindNodeClaim:
		if c := w.claim(on.Name); c != nil {
			return &c.Object
		}
	case KindNode:
		if n, ok := w.Nodes[on.Name]; ok {
			return &n.Object
		}
	}
	return nil
}

func (w *world) patch(st Step) (string, error) {
	var o *Object
	var annotations *map[string]string
	changed := false
	switch st.On.Kind {
	case KindNodePool:
		o, annotations = &w.NodePool.Object, &w.NodePool.Annotations
	case KindNodeClaim:
		c := w.claim(st.On.Name)
		o, annotations = &c.Object, &c.Annotations
	case KindNode:
		n := w.Nodes[st.On.Name]
		defer func() { w.Nodes[st.On.Name] = n }()
		o, annotations = &n.Object, &n.Annotations
		if st.Unschedulable != nil {
			changed = n.Unschedulable != *st.Unschedulable
			n.Unschedulable = *st.Unschedulable
		}
	default:
		return "", unlawful{st, "nothing writes an object of this kind"}
	}
	if edit(annotations, st.Set, st.Clear) {
		changed = true
	}
	switch {
	case !changed && st.Act == ActHoldClaim:
		return o.Version, nil
	case !changed:
		return "", unlawful{st, "it changes nothing"}
	case st.Act == ActHoldClaim:
		return "", unlawful{st, "it changes something"}
	}
	w.touch(o)
	return o.Version, nil
}

func edit(annotations *map[string]string, set map[string]string, unset []string) (changed bool) {
	next := maps.Clone(*annotations)
	if next == nil {
		next = map[string]string{}
	}
	maps.Copy(next, set)
	for _, k := range unset {
		delete(next, k)
	}
	changed = !maps.Equal(next, *annotations)
	*annotations = next
	return changed
}

func (w *world) createPlaceholder(st Step) (string, error) {
	if w.Placeholder != nil {
		return "", fmt.Errorf("%w: %s %s/%s: it is there already", errRefused, st.Act, st.On.Kind, st.On.Name)
	}
	if why := w.breaks(st); why != "" {
		return "", unlawful{st, why}
	}
	w.created++
	w.Placeholder = &Placeholder{Object: w.object(KindPlaceholder, st.Create.Name), SurgeFor: st.Create.SurgeFor, Created: w.now.Truncate(time.Second), Phase: corev1.PodPending}
	return w.Placeholder.Version, nil
}

func (w *world) deletePlaceholder(st Step) error {
	switch p := w.Placeholder; {
	case p == nil:
		return nil
	case p.UID != st.On.UID:
		return fmt.Errorf("%w: %s %s/%s: it is another one", errRefused, st.Act, st.On.Kind, st.On.Name)
	case w.stuck:
		p.Deleting = true
		return fmt.Errorf("%w: %s %s/%s: it is still terminating", errNotYet, st.Act, st.On.Kind, st.On.Name)
	}
	if why := w.breaks(st); why != "" {
		return unlawful{st, why}
	}
	w.Placeholder = nil
	return nil
}

// breaks says which law of a rotation the step would break in the world as it is.
func (w *world) breaks(st Step) string {
	pool := w.NodePool.Annotations
	active := pool[AnnotationActive]
	if st.Act == ActClaimAnchor {
		return first(
			law(active == "", "the pool is anchored on %s", active),
			law(st.Set[AnnotationActive] == st.Facts.NodeClaim, "it must write the anchor"),
			law(len(st.Set) == 1 || len(st.Set) == 2 && st.Set[AnnotationWindowOpened] != "" || st.Set[AnnotationMode] == ModeFallback, "with a surge to come, it must write the anchor alone"),
		)
	}
	switch st.Act {
	case ActStampWindow, ActSettleWindow, ActMissWindow:
		return w.breaksOnWindow(st)
	}
	if active == "" || st.Facts.NodeClaim != active {
		switch st.Act { // what no anchor owns is swept
		case ActFailOrphan, ActClearOrphan, ActReleaseNode, ActDeletePlaceholder:
			return ""
		}
		return fmt.Sprintf("it is for %q, but the anchor says %q", st.Facts.NodeClaim, active)
	}
	switch c := w.claim(active); st.Act {
	case ActMarkPending, ActGiveUp, ActRecordSurgeClaim, ActMarkDraining, ActDeleteNodeClaim, ActMarkFailed, ActMarkExpired, ActForgetAttempt:
		if st.On.Name != active {
			return "it writes to another claim"
		}
		return w.breaksOnClaim(st, c)
	case ActCreatePlaceholder:
		// Nothing guards a creation against a claim that has just moved on. The next pass of
		// whatever state that is in takes the placeholder away, before Karpenter's batch ends.
		n, there := w.Nodes[c.NodeName]
		return first(law(!there || n.Unschedulable, "the candidate is not cordoned"))
	case ActRecordDraining:
		_, again := pool[AnnotationDrainingAt]
		_, stamps := st.Set[AnnotationDrainingAt]
		return first(law(!again || !stamps, "draining-at is written once"))
	case ActFreezeNode:
		return breaksFreeze(st, w.Nodes[st.On.Name])
	case ActReleaseNode:
		return breaksRelease(st, w.Nodes[st.On.Name], active)
	case ActReapSurgeClaim:
		return w.breaksReap(st, c)
	case ActReleaseAnchor:
		for _, k := range anchorSet {
			if _, kept := pool[k]; kept && !slices.Contains(st.Clear, k) {
				return k + " outlives the rotation"
			}
		}
		return w.cleanFor(active)
	}
	return ""
}

func (w *world) breaksOnWindow(st Step) string {
	opened, err := readPast(w.NodePool.Annotations, AnnotationWindowOpened, w.now)
	if st.Act == ActStampWindow {
		return first(
			law(err != nil || opened.IsZero(), "it is stamped already"),
			law(len(st.Set) == 1 && len(st.Clear) == 0, "it writes something else"),
		)
	}
	return first(
		law(err != nil || w.NodePool.Annotations[AnnotationActive] == "", "a rotation may still succeed"),
		law(st.Act == ActSettleWindow || err == nil && !opened.IsZero(), "nothing says when it opened"),
		law(len(st.Set) == 0 && slices.Equal(st.Clear, []string{AnnotationWindowOpened}), "it writes something else"),
	)
}

func (w *world) breaksOnClaim(st Step, c *NodeClaim) string {
	state := c.state()
	switch st.Act {
	case ActMarkPending:
		return first(
			law(state == "" || state == StatePending || state == StateFailed, "from %q", state),
			law(state != StatePending || c.Annotations[AnnotationStartedAt] == "", "started-at is written once"),
			law(c.Deleting.IsZero(), "the claim is being deleted"),
		)
	case ActRecordSurgeClaim:
		host := w.claim(st.Set[AnnotationSurgeClaim])
		return first(law(host != nil && host.Name != c.Name, "the surge claim is not another claim of the pool"))
	case ActGiveUp:
		return first(law(state == StatePending, "from %q", state))
	case ActMarkDraining:
		return first(
			law(c.Annotations[AnnotationRollbackAt] == "", "the attempt is given up"),
			law(state == StatePending || state == "" || state == StateFailed, "from %q", state),
			law(w.NodePool.Annotations[AnnotationActiveState] == StateDraining, "the pool has to say draining first"),
		)
	case ActDeleteNodeClaim:
		return first(
			law(w.Placeholder == nil, "the placeholder is still there"),
			law(state == StateDraining, "the claim is %q", state),
			law(w.NodePool.Annotations[AnnotationActiveState] == StateDraining, "the pool does not say draining"),
			law(c.Deleting.IsZero(), "it is being deleted already"),
		)
	case ActMarkFailed:
		return first(law(state == StatePending, "from %q", state), w.cleanFor(c.Name))
	case ActMarkExpired:
		return first(
			law(state == "" || state == StatePending || state == StateFailed, "from %q", state),
			law(!c.Deleting.IsZero(), "nobody deletes the claim"),
		)
	case ActForgetAttempt:
		return first(law(c.Deleting.IsZero(), "the claim is being deleted"), w.cleanFor(c.Name))
	}
	return ""
}

func breaksFreeze(st Step, n Node) string {
	_, protects := st.Set[AnnotationDoNotDisrupt]
	_, owns := st.Set[AnnotationDoNotDisruptOwned]
	_, cordons := st.Set[AnnotationCordoned]
	ours := n.Annotations[AnnotationDoNotDisruptOwned] == "true"
	return first(
		law(!protects || n.Annotations[AnnotationDoNotDisrupt] != "true", "do-not-disrupt is already there"),
		law(!protects || owns || ours, "do-not-disrupt without its owner"),
		law(!owns || protects, "it takes an operator's do-not-disrupt for its own"),
		law(!cordons || !n.Unschedulable, "it takes an operator's cordon for its own"),
		law(st.Unschedulable == nil || cordons || n.Annotations[AnnotationCordoned] == "true", "a cordon without its owner"),
	)
}

func breaksRelease(st Step, n Node, active string) string {
	mine := func(marker string) bool { return n.Annotations[marker] == "true" }
	for _, k := range st.Clear {
		if !strings.HasPrefix(k, prefix) && (k != AnnotationDoNotDisrupt || !mine(AnnotationDoNotDisruptOwned)) {
			return "it removes an operator's " + k
		}
	}
	return first(
		law(n.Annotations[AnnotationSurgeFor] == active, "the node belongs to %q", n.Annotations[AnnotationSurgeFor]),
		law(st.Unschedulable == nil || mine(AnnotationCordoned), "it undoes an operator's cordon"),
		law(len(st.Set) == 0, "it sets something"),
	)
}

func (w *world) breaksReap(st Step, c *NodeClaim) string {
	surge, start := w.claim(st.On.Name), c.startedAt(w.now)
	for _, pod := range w.Pods[surge.NodeName] {
		if !ownedBy(pod, "DaemonSet") && pod.Labels[LabelPlaceholder] == "" && !finished(pod) && !static(pod) {
			return "it takes " + pod.Name + " down"
		}
	}
	return first(
		law(c.Annotations[AnnotationRollbackAt] != "", "the attempt is not given up"),
		law(surge.Name != c.Name, "it is the candidate"),
		law(!start.IsZero() && !surge.Created.Before(start), "it was there before the attempt"),
		law(surge.Deleting.IsZero(), "it is being deleted already"),
	)
}

// cleanFor says what the rotation of a claim still holds at run time.
func (w *world) cleanFor(claim string) string {
	if w.Placeholder != nil {
		return "the placeholder is still there"
	}
	for _, name := range slices.Sorted(maps.Keys(w.Nodes)) {
		if w.Nodes[name].Annotations[AnnotationSurgeFor] == claim {
			return "node " + name + " is still frozen"
		}
	}
	return ""
}

func law(holds bool, format string, args ...any) string {
	if holds {
		return ""
	}
	return fmt.Sprintf(format, args...)
}

func first(broken ...string) string {
	for _, b := range broken {
		if b != "" {
			return b
		}
	}
	return ""
}

// What happens to the world without us.

// join adds a NodeClaim and, if it names one, its Node with the labels that every node has.
func (w *world) join(c NodeClaim) {
	c.Object = w.object(KindNodeClaim, c.Name)
	w.NodeClaims = append(w.NodeClaims, c)
	if c.NodeName != "" {
		w.register(c.Name, c.NodeName, c.Ready)
	}
}

// register gives a NodeClaim its Node.
func (w *world) register(claim, node string, ready bool) {
	c := w.claim(claim)
	c.NodeName, c.Ready = node, ready
	w.touch(&c.Object)
	w.Nodes[node] = Node{
		Object: w.object(KindNode, node), Claim: claim, Ready: ready,
		Labels: map[string]string{labelNodePool: w.NodePool.Name, labelHostname: node},
	}
}

// remove deletes a claim as Karpenter's expiry or a person does: it begins to terminate.
func (w *world) remove(claim string) {
	c := w.claim(claim)
	c.Deleting = w.now
	w.touch(&c.Object)
}

// finalize ends a claim: it is gone, and its Node and pods with it.
func (w *world) finalize(claim string) {
	i := slices.IndexFunc(w.NodeClaims, func(c NodeClaim) bool { return c.Name == claim })
	node := w.NodeClaims[i].NodeName
	w.NodeClaims = slices.Delete(w.NodeClaims, i, i+1)
	delete(w.Nodes, node)
	delete(w.Pods, node)
	if w.Placeholder != nil && node != "" && w.Placeholder.NodeName == node {
		w.Placeholder = nil
	}
}

// change edits a node as anybody may.
func (w *world) change(node string, by func(*Node)) {
	n := w.Nodes[node]
	by(&n)
	w.touch(&n.Object)
	w.Nodes[node] = n
}

// bind puts the placeholder on a node.
func (w *world) bind(node string, phase corev1.PodPhase) {
	w.Placeholder.NodeName, w.Placeholder.Phase, w.Placeholder.Waiting = node, phase, Waiting{}
	w.touch(&w.Placeholder.Object)
}

// marks lists every annotation and cordon in the world, in a fixed order.
func (w *world) marks() []string {
	var lines []string
	line := func(o Object, annotations map[string]string, cordoned bool) {
		var parts []string
		for _, k := range slices.Sorted(maps.Keys(annotations)) {
			parts = append(parts, short(k)+"="+annotations[k])
		}
		if cordoned {
			parts = append(parts, "unschedulable")
		}
		if len(parts) > 0 {
			lines = append(lines, fmt.Sprintf("%s/%s %s", o.Kind, o.Name, strings.Join(parts, " ")))
		}
	}
	line(w.NodePool.Object, w.NodePool.Annotations, false)
	claims := slices.Clone(w.NodeClaims)
	slices.SortFunc(claims, func(a, b NodeClaim) int { return strings.Compare(a.Name, b.Name) })
	for _, c := range claims {
		line(c.Object, c.Annotations, false)
	}
	for _, name := range slices.Sorted(maps.Keys(w.Nodes)) {
		line(w.Nodes[name].Object, w.Nodes[name].Annotations, w.Nodes[name].Unschedulable)
	}
	if w.Placeholder != nil {
		lines = append(lines, fmt.Sprintf("%s/%s %s", KindPlaceholder, w.Placeholder.Name, strings.TrimSpace(string(w.Placeholder.Phase)+" "+w.Placeholder.NodeName)))
	}
	return lines
}

// outcomes lists how rotations and attempts ended, as the receipts tell it.
func (w *world) outcomes() []Outcome {
	var os []Outcome
	for _, st := range w.receipts {
		if st.Facts.Outcome != "" {
			os = append(os, st.Facts.Outcome)
		}
	}
	return os
}

func cloneSnapshot(s Snapshot) Snapshot {
	s.NodePool.Annotations = maps.Clone(s.NodePool.Annotations)
	s.NodePool.Requirements = slices.Clone(s.NodePool.Requirements)
	s.NodePool.Taints = slices.Clone(s.NodePool.Taints)
	s.NodePool.Limits = s.NodePool.Limits.DeepCopy()
	s.NodePool.InUse = s.NodePool.InUse.DeepCopy()
	if p := s.Governance.Policy; p != nil {
		copied := *p
		copied.Required, copied.Preferred = slices.Clone(p.Required), slices.Clone(p.Preferred)
		s.Governance.Policy = &copied
	}
	s.NodeClaims = slices.Clone(s.NodeClaims)
	for i := range s.NodeClaims {
		c := &s.NodeClaims[i]
		c.Annotations = maps.Clone(c.Annotations)
		c.Requirements = slices.Clone(c.Requirements)
		for j := range c.Requirements {
			c.Requirements[j].Values = slices.Clone(c.Requirements[j].Values)
		}
		c.Allocatable = c.Allocatable.DeepCopy()
	}
	s.Nodes = maps.Clone(s.Nodes)
	for name, n := range s.Nodes {
		n.Labels, n.Annotations, n.Taints = maps.Clone(n.Labels), maps.Clone(n.Annotations), slices.Clone(n.Taints)
		s.Nodes[name] = n
	}
	if s.Placeholder != nil {
		copied := *s.Placeholder
		s.Placeholder = &copied
	}
	pods := make(map[string][]*corev1.Pod, len(s.Pods))
	for node, on := range s.Pods {
		for _, pod := range on {
			pods[node] = append(pods[node], pod.DeepCopy())
		}
	}
	s.Pods = pods
	return s
}

func quantities(l corev1.ResourceList) string {
	var parts []string
	for _, name := range names(l) {
		q := l[name]
		parts = append(parts, fmt.Sprintf("%s=%s", name, q.String()))
	}
	return strings.Join(parts, " ")
}

func list(pairs ...string) corev1.ResourceList {
	l := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		l[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return l
}
