package rotator

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/tasuki-io/tasuki/api/v1alpha1"
	"github.com/tasuki-io/tasuki/internal/rotation"
)

// simLaws watch every write and say which promise it breaks. They know the annotations by
// name and nothing else of the core.
type simLaws struct {
	sim      *sim
	broken   string
	fate     fate // of the call that is being made
	counts   []*metrics
	expected map[outcomeOf]float64
	recount  bool
	pools    map[string]*poolLaw
	cordon   map[string]string // who cordoned a node
	protect  map[string]string // who put do-not-disrupt on a node
	ready    map[string]bool   // claims whose surge truly was ready in their attempt
	removing map[string]string // claims that we delete, and their pool
	late     map[string]bool   // placeholders and drains that came from one that leads no more
}

type outcomeOf struct{ pool, outcome string }

// poolLaw is what happened to a pool since its last anchor.
type poolLaw struct {
	anchored         *simPass // the pass that wrote it
	since            time.Time
	rv               int // of the anchor
	writes, launches int
	disturbed        bool
}

func newLaws(s *sim) *simLaws {
	l := &simLaws{
		sim: s, expected: map[outcomeOf]float64{}, pools: map[string]*poolLaw{},
		cordon: map[string]string{}, protect: map[string]string{}, ready: map[string]bool{},
		removing: map[string]string{}, late: map[string]bool{},
	}
	for _, name := range simPoolNames {
		l.pools[name] = &poolLaw{disturbed: true}
	}
	return l
}

// breaks notes the first law that is broken. What comes before the colon names it.
func (l *simLaws) breaks(law, format string, args ...any) {
	if l.broken == "" {
		l.broken = law + ": " + fmt.Sprintf(format, args...)
	}
}

// disturb takes a pool, or all of them, out of the laws about undisturbed rotations.
func (l *simLaws) disturb(pool string) {
	for name, p := range l.pools {
		if pool == "" || name == pool {
			p.disturbed = true
		}
	}
}

func poolOf(o client.Object) string {
	switch o := o.(type) {
	case *karpv1.NodePool:
		return o.Name
	case *corev1.Pod:
		return o.Spec.NodeSelector[karpv1.NodePoolLabelKey]
	}
	return o.GetLabels()[karpv1.NodePoolLabelKey]
}

func annotation(o client.Object, key string) string {
	if o == nil {
		return ""
	}
	return o.GetAnnotations()[key]
}

// observe is told of every write.
func (l *simLaws) observe(w simWrite) {
	pool := poolOf(w.Of())
	if w.By == "controller" {
		l.pools[pool].writes++
		l.ours(w, pool)
	} else if n, ok := w.After.(*corev1.Node); ok {
		before, _ := w.Before.(*corev1.Node)
		l.owners(n, before, "person")
	}
	if n, ok := w.After.(*corev1.Node); ok && n.Spec.Unschedulable && (w.Before == nil || !w.Before.(*corev1.Node).Spec.Unschedulable) {
		l.sim.cordoned[n.Name] = l.sim.api.now
	}
	if w.Kind == simClaims {
		if w.Before == nil {
			l.pools[pool].launches++
		}
		if w.After == nil {
			delete(l.removing, w.Before.GetName())
		}
		if s := l.sim; w.By == "karpenter" && w.After != nil && w.After.GetDeletionTimestamp() != nil && !s.weather && w.After.GetCreationTimestamp().After(s.fair) {
			l.breaks("no node is left to expire", "NodeClaim %s, and nothing was in the way", w.After.GetName())
		}
	}
	if w.Kind != simPolicies {
		l.surgeReady(pool)
	}
}

// owners remembers whose a cordon and a protection are.
func (l *simLaws) owners(n, before *corev1.Node, by string) {
	was, protected := before != nil && before.Spec.Unschedulable, annotation(n, rotation.AnnotationDoNotDisrupt)
	if n.Spec.Unschedulable && !was {
		l.cordon[n.Name] = by
	}
	if protected == "true" && (before == nil || annotation(before, rotation.AnnotationDoNotDisrupt) != "true") {
		l.protect[n.Name] = by
	}
}

// surgeReady looks whether the capacity for the drain of the anchored claim is there now.
func (l *simLaws) surgeReady(pool string) {
	s := l.sim
	p := s.api.get(simPools, pool)
	active := annotation(p, rotation.AnnotationActive)
	if active == "" {
		return
	}
	for _, o := range s.api.objects[simPods] {
		pod := o.(*corev1.Pod)
		if !isPlaceholder(pod) || annotation(pod, rotation.AnnotationSurgeFor) != active || pod.DeletionTimestamp != nil || pod.Status.Phase != corev1.PodRunning {
			continue
		}
		n := s.node(pod.Spec.NodeName)
		if n == nil || n.Name == simNodeName(active) || n.DeletionTimestamp != nil || !nodeReady(n) || n.Spec.Unschedulable || disrupted(n) || poolOf(n) != pool {
			continue
		}
		if c := s.api.get(simClaims, n.OwnerReferences[0].Name); c != nil && c.GetDeletionTimestamp() == nil {
			l.ready[active] = true
		}
	}
}

// act names what a write of ours does, by what it changes.
func act(w simWrite) string {
	gains := func(k string) bool { return annotation(w.Before, k) == "" && annotation(w.After, k) != "" }
	loses := func(k string) bool { return annotation(w.Before, k) != "" && annotation(w.After, k) == "" }
	before, after := annotation(w.Before, rotation.AnnotationState), annotation(w.After, rotation.AnnotationState)
	switch {
	case w.Kind == simPods && w.Before == nil:
		return "createPlaceholder"
	case w.Kind == simPods:
		return "deletePlaceholder"
	case w.Kind == simClaims && w.After.GetDeletionTimestamp() != nil && w.Before.GetDeletionTimestamp() == nil:
		if before == rotation.StateDraining {
			return "deleteNodeClaim"
		}
		return "reapSurgeClaim"
	case w.Kind == simNodes && gains(rotation.AnnotationSurgeFor):
		return "freezeNode"
	case w.Kind == simNodes && len(w.After.GetAnnotations()) < len(w.Before.GetAnnotations()):
		return "releaseNode"
	case w.Kind == simNodes:
		return "freezeNode"
	case w.Kind == simPools && gains(rotation.AnnotationActive):
		return "claimAnchor"
	case w.Kind == simPools && loses(rotation.AnnotationActive):
		return "releaseAnchor"
	case w.Kind == simPools && gains(rotation.AnnotationActiveState):
		return "recordDraining"
	case w.Kind == simPools && loses(rotation.AnnotationWindowOpened):
		return "judgeWindow"
	case w.Kind == simPools && annotation(w.After, rotation.AnnotationWindowOpened) != annotation(w.Before, rotation.AnnotationWindowOpened):
		return "stampWindow"
	case w.Kind == simPools:
		return "clearOrphan"
	case before == after && gains(rotation.AnnotationRollbackAt):
		return "giveUp"
	case before == after && annotation(w.After, rotation.AnnotationSurgeClaim) != annotation(w.Before, rotation.AnnotationSurgeClaim):
		return "recordSurgeClaim"
	case after == "":
		return "forgetAttempt"
	case after == rotation.StateFailed && annotation(w.Before, rotation.AnnotationRetryCount) == annotation(w.After, rotation.AnnotationRetryCount):
		return "failOrphan"
	}
	return "mark " + after
}

// ours judges a write of the controller.
func (l *simLaws) ours(w simWrite, pool string) {
	s, p := l.sim, l.sim.running
	did := act(w)
	l.made(did)
	p.writes++
	l.recount = true
	l.foreign(w)
	law := l.pools[pool]
	if of := annotation(w.Before, rotation.AnnotationSurgeFor); p.pool == "" && of != "" && of == annotation(s.api.get(simPools, pool), rotation.AnnotationActive) && law.rv <= p.began {
		l.breaks("a sweep takes nothing from a rotation", "%s %s of %s", did, w.Before.GetName(), of)
	}
	switch did {
	case "claimAnchor":
		*law = poolLaw{anchored: p, since: s.api.now, rv: w.RV, writes: 1, disturbed: s.unavailable(pool) > 0}
		l.start(w.Before.(*karpv1.NodePool), annotation(w.After, rotation.AnnotationActive), annotation(w.After, rotation.AnnotationMode) != "", p, p.call.at)
	case "mark " + rotation.StatePending:
		delete(l.ready, w.After.GetName())
		if was := annotation(w.Before, rotation.AnnotationStartedAt); was != "" && annotation(w.Before, rotation.AnnotationState) == rotation.StatePending {
			l.breaks("started-at is stamped once", "NodeClaim %s had %s, and now %s", w.After.GetName(), was, annotation(w.After, rotation.AnnotationStartedAt))
		}
		if o := seenOf(p, simPools, pool); law.anchored != p && o != nil && annotation(w.Before, rotation.AnnotationState) == rotation.StateFailed {
			s.saw("retry under the old anchor")
			l.start(o.(*karpv1.NodePool), w.After.GetName(), false, p, p.decided)
		}
	case "mark " + rotation.StateDraining:
		l.late[w.After.GetName()] = p.of.lost
	case "deleteNodeClaim":
		l.drain(w.Before.(*karpv1.NodeClaim), pool, p)
	case "reapSurgeClaim":
		l.reap(w.Before.(*karpv1.NodeClaim), pool, p)
	case "mark " + rotation.StateFailed, "failOrphan":
		l.ended(pool, "failure")
	case "mark " + rotation.StateExpired:
		if w.Before.GetDeletionTimestamp() == nil {
			l.breaks("expired is Karpenter's word", "nobody deletes NodeClaim %s", w.Before.GetName())
		}
	case "createPlaceholder":
		l.late[w.After.GetName()] = p.of.lost
	case "releaseAnchor":
		l.release(w, pool, p)
	}
	if was := annotation(w.Before, rotation.AnnotationState); w.Kind == simClaims && was == rotation.StateExpired && annotation(w.After, rotation.AnnotationState) != was {
		l.breaks("expired is terminal", "NodeClaim %s is now %q", w.Before.GetName(), annotation(w.After, rotation.AnnotationState))
	}
}

// made counts an act, and that it was the last thing that its pass heard of.
func (l *simLaws) made(did string) {
	l.sim.saw(did)
	if l.fate != answered {
		l.sim.saw("interrupted " + did)
	}
}

// foreign finds a write of ours that touches what is somebody else's.
func (l *simLaws) foreign(w simWrite) {
	if w.Before == nil || w.After == nil {
		return
	}
	keys := map[string]bool{}
	for k := range w.Before.GetAnnotations() {
		keys[k] = true
	}
	for k := range w.After.GetAnnotations() {
		keys[k] = true
	}
	for k := range keys {
		if k == rotation.AnnotationFreeze || !strings.HasPrefix(k, "noderotation.io/") && k != rotation.AnnotationDoNotDisrupt {
			if annotation(w.Before, k) != annotation(w.After, k) {
				l.breaks("what is an operator's stays", "%s of %s changes from %q to %q", k, w.After.GetName(), annotation(w.Before, k), annotation(w.After, k))
			}
		}
	}
	n, ok := w.After.(*corev1.Node)
	if !ok {
		return
	}
	before := w.Before.(*corev1.Node)
	if before.Spec.Unschedulable && !n.Spec.Unschedulable && l.cordon[n.Name] != "controller" {
		l.breaks("what is an operator's stays", "node %s is uncordoned", n.Name)
	}
	if k := rotation.AnnotationDoNotDisrupt; annotation(before, k) == "true" && annotation(n, k) != "true" && l.protect[n.Name] != "controller" {
		l.breaks("what is an operator's stays", "node %s loses its protection", n.Name)
	}
	l.owners(n, before, "controller")
}

// changedNothing is told of a patch that left its object as it was: only the step that holds
// a claim in its state may be one.
func (l *simLaws) changedNothing(k simKind, body []byte) {
	var p struct {
		Metadata struct{ Annotations map[string]any }
	}
	_ = json.Unmarshal(body, &p)
	if k == simClaims && len(p.Metadata.Annotations) == 1 && p.Metadata.Annotations[rotation.AnnotationState] != nil {
		l.made("holdClaim")
		return
	}
	l.breaks("no write without a change", "%s", body)
}

// start judges the beginning of an attempt at this instant by what the pass was told by the
// API server, and by nothing that the pass made of it. An anchor is judged by the clock of the
// world when it was sent, not by what the pass took for the time.
func (l *simLaws) start(pool *karpv1.NodePool, name string, surgeless bool, p *simPass, at time.Time) {
	const law = "no start without every gate"
	for _, k := range []simKind{simPools, simClaims, simNodes, simPolicies} {
		if !p.looked[k] {
			l.breaks("no start from a cache", "NodePool %s is anchored on %s, and the %ss were not asked for", pool.Name, name, k)
			return
		}
	}
	view := viewOf(p, pool)
	c := view.claim(name)
	if why := view.closed(c, at); why != "" {
		l.breaks(law, "NodePool %s, NodeClaim %s at %s: %s", pool.Name, name, at.Format(time.RFC3339Nano), why)
		return
	}
	switch {
	case c == nil:
		l.breaks(law, "there was no NodeClaim %s", name)
	case !view.eligible(c, at):
		l.breaks(law, "NodeClaim %s is not eligible at %s: annotations %v", name, at.Format(time.RFC3339), c.Annotations)
	case surgeless && (!view.spec.fallback || c.CreationTimestamp.Add(view.spec.expire).Sub(at) >= view.spec.bound()):
		l.breaks(law, "NodeClaim %s is drained without a surge, and there is time for one", name)
	case !surgeless && view.spec.fallback && view.policy.Spec.Surge.ForcefulFallback.Enabled && annotation(pool, rotation.AnnotationActive) == "" && c.CreationTimestamp.Add(view.spec.expire).Sub(at) < view.spec.bound():
		l.breaks(law, "NodeClaim %s has no time for a surge, and gets one", name)
	case !surgeless && !view.headroom():
		l.breaks(law, "NodePool %s has no room for a surge", pool.Name)
	}
	if annotation(pool, rotation.AnnotationActive) != "" {
		return
	}
	for _, o := range view.claims {
		if c != nil && o.CreationTimestamp.Before(&c.CreationTimestamp) && view.closed(o, at) == "" && view.eligible(o, at) {
			l.breaks("the earliest deadline goes first", "NodeClaim %s before %s", name, o.Name)
		}
	}
	if surgeless {
		l.sim.saw("fallback")
	}
	if asked := annotation(c, rotation.AnnotationRequested); asked != "" {
		l.sim.saw("requested " + asked)
	}
}

// drain judges the deletion of the claim that is being rotated.
func (l *simLaws) drain(c *karpv1.NodeClaim, pool string, p *simPass) {
	for other, of := range l.removing {
		if of == pool && other != c.Name && !l.late[c.Name] {
			l.breaks("one at a time", "NodeClaim %s is deleted while %s still goes", c.Name, other)
		}
	}
	l.removing[c.Name] = pool
	o := l.sim.api.get(simPools, pool)
	fallback := annotation(o, rotation.AnnotationMode) != ""
	if !l.ready[c.Name] && !fallback {
		l.breaks("no drain without its surge", "NodeClaim %s is deleted, and no surge of it was ever ready", c.Name)
	}
	if annotation(seenOf(p, simPools, pool), rotation.AnnotationActive) != c.Name && l.pools[pool].anchored != p {
		l.breaks("only the anchored claim is drained", "NodeClaim %s", c.Name)
	}
	for _, o := range l.sim.api.objects[simPods] {
		if isPlaceholder(o.(*corev1.Pod)) && annotation(o, rotation.AnnotationSurgeFor) == c.Name && !l.late[o.GetName()] {
			l.breaks("release, then drain", "NodeClaim %s is deleted while its placeholder %s is there", c.Name, o.GetName())
		}
	}
}

// reap judges the deletion of another claim.
func (l *simLaws) reap(c *karpv1.NodeClaim, pool string, p *simPass) {
	const law = "only a surge is reaped"
	l.removing[c.Name] = pool
	active := annotation(seenOf(p, simPools, pool), rotation.AnnotationActive)
	candidate := seenOf(p, simClaims, active)
	started, err := time.Parse(time.RFC3339, annotation(candidate, rotation.AnnotationStartedAt))
	switch {
	case c.Name == active:
		l.breaks(law, "NodeClaim %s is the candidate", c.Name)
	case err != nil || c.CreationTimestamp.Time.Before(started):
		l.breaks(law, "NodeClaim %s is older than the attempt on %s", c.Name, active)
	case annotation(l.sim.api.get(simClaims, active), rotation.AnnotationState) == rotation.StateDraining:
		l.breaks(law, "NodeClaim %s holds the pods of %s, which is draining", c.Name, active)
	}
	node := simNodeName(c.Name)
	pods, looked := p.pods[node]
	if seenOf(p, simNodes, node) != nil && !looked {
		l.breaks(law, "nobody looked what runs on NodeClaim %s", c.Name)
	}
	for _, o := range pods {
		if pod := o.(*corev1.Pod); pod.Spec.NodeName == node && !isPlaceholder(pod) {
			l.breaks(law, "NodeClaim %s runs %s", c.Name, pod.Name)
		}
	}
}

// release judges the end of a rotation, and says how it has to be counted.
func (l *simLaws) release(w simWrite, pool string, p *simPass) {
	claim := annotation(w.Before, rotation.AnnotationActive)
	law := l.pools[pool]
	c := seenOf(p, simClaims, claim)
	governed := viewOf(p, w.Before.(*karpv1.NodePool)).policy != nil
	l.sim.saw("rotations")
	switch {
	case !governed:
		l.sim.saw("governance lost")
	case c != nil && c.GetDeletionTimestamp() != nil && slices.Contains([]string{"", rotation.StatePending, rotation.StateFailed, rotation.StateExpired}, annotation(c, rotation.AnnotationState)),
		c == nil && annotation(w.Before, rotation.AnnotationActiveState) != rotation.StateDraining:
		l.ended(pool, "expired")
	case c == nil:
		l.ended(pool, "success")
		path := annotation(w.Before, rotation.AnnotationSurgePath)
		l.sim.saw("success " + path)
		if law.disturbed {
			break
		}
		l.sim.saw("undisturbed success")
		if law.writes > 13 {
			l.breaks("few writes", "the rotation of %s took %d", claim, law.writes)
		}
		if most, surge := map[string]int{rotation.PathProvisioned: 1, rotation.PathAbsorbed: 0}[path]; surge && law.launches > most {
			l.breaks("one extra NodeClaim", "the rotation of %s (%s) launched %d", claim, path, law.launches)
		}
	}
	for _, key := range []string{rotation.AnnotationActiveState, rotation.AnnotationDrainingAt, rotation.AnnotationMode, rotation.AnnotationSurgeWait, rotation.AnnotationSurgePath} {
		if annotation(w.After, key) != "" {
			l.breaks("no mark outlives its rotation", "NodePool %s keeps %s", pool, key)
		}
	}
}

// ended is how a rotation has to be counted, if the controller lives to hear of it.
func (l *simLaws) ended(pool, outcome string) {
	l.sim.saw("outcome " + outcome)
	if l.fate == answered {
		l.expected[outcomeOf{pool, outcome}]++
	}
}

// count compares what was announced with what became durable.
func (l *simLaws) count() {
	if !l.recount {
		return
	}
	l.recount = false
	for _, pool := range simPoolNames {
		for _, outcome := range []string{"success", "failure", "expired"} {
			sum := 0.0
			for _, m := range l.counts {
				sum += testutil.ToFloat64(m.completed.WithLabelValues(pool, outcome))
			}
			if want := l.expected[outcomeOf{pool, outcome}]; sum != want {
				l.breaks("each end counts once", "completed_total{nodepool=%s,outcome=%s} is %v, want %v", pool, outcome, sum, want)
			}
		}
	}
}

// passEnded judges a pass that had nothing to do while it knew everything.
func (l *simLaws) passEnded(p *simPass) {
	s := l.sim
	if t, ok := p.of.r.announce.told[p.pool]; ok {
		reason, _, _ := strings.Cut(t.answer, " ")
		s.saw("reason " + reason)
		if t.stuck != (rotation.Stuck{}) {
			s.saw("drain stuck")
		}
	}
	if p.err != nil || p.trouble || p.writes > 0 || !p.current || s.api.rv != p.began || p.result.RequeueAfter <= again {
		return
	}
	l.strays(p.pool)
	l.startable(p.pool, s.api.now)
}

// strays finds marks of a rotation that is no more.
func (l *simLaws) strays(pool string) {
	const law = "no mark outlives its rotation"
	s := l.sim
	p := s.api.get(simPools, pool)
	active := annotation(p, rotation.AnnotationActive)
	for _, o := range s.api.objects[simPods] {
		if pod := o.(*corev1.Pod); isPlaceholder(pod) && poolOf(pod) == pool && pod.DeletionTimestamp == nil && annotation(pod, rotation.AnnotationSurgeFor) != active {
			l.breaks(law, "placeholder %s, and the anchor is %q", pod.Name, active)
		}
	}
	for _, o := range s.api.objects[simNodes] {
		if poolOf(o) != pool || o.GetOwnerReferences()[0].Name == active {
			continue
		}
		for _, k := range []string{rotation.AnnotationSurgeFor, rotation.AnnotationCordoned, rotation.AnnotationDoNotDisruptOwned} {
			if annotation(o, k) != "" && (active == "" || annotation(o, rotation.AnnotationSurgeFor) != active) {
				l.breaks(law, "node %s has %s, and the anchor is %q", o.GetName(), k, active)
			}
		}
	}
	for _, c := range s.claims(pool) {
		state := annotation(c, rotation.AnnotationState)
		if c.Name != active && c.DeletionTimestamp == nil && (state == rotation.StatePending || state == rotation.StateDraining) {
			l.breaks(law, "NodeClaim %s is %s, and the anchor is %q", c.Name, state, active)
		}
	}
	if active == "" && annotation(p, rotation.AnnotationActiveState)+annotation(p, rotation.AnnotationDrainingAt)+annotation(p, rotation.AnnotationMode) != "" {
		l.breaks(law, "NodePool %s keeps %v", pool, p.GetAnnotations())
	}
}

// startable finds a pool that could start a rotation at this instant and does not know it.
func (l *simLaws) startable(pool string, at time.Time) {
	o, ok := l.sim.api.get(simPools, pool).(*karpv1.NodePool)
	if !ok || annotation(o, rotation.AnnotationActive) != "" {
		return
	}
	v := simView{pool: o, claims: l.sim.claims(pool), node: l.sim.node}
	v.rule(l.sim.api.objects[simPolicies])
	if !v.headroom() {
		return
	}
	for _, c := range v.claims {
		if v.closed(c, at) == "" && v.eligible(c, at) {
			l.breaks("no lost wake-up", "NodePool %s could rotate %s at %s, and is asleep", pool, c.Name, at.Format(time.RFC3339Nano))
		}
	}
}

// asleep is asked before time goes on: what falls due in between has to have somebody who
// wakes for it.
func (l *simLaws) asleep(until time.Time) {
	i := l.sim.leader
	if i == nil || i.dead || !i.swept || l.sim.outage || !i.current() {
		return
	}
	for _, pool := range simPoolNames {
		due, ok := i.queue[pool]
		if i.passes[pool] != nil || i.fails[pool] > 0 {
			continue
		}
		if !ok {
			l.breaks("no lost wake-up", "NodePool %s has no pass ahead of it", pool)
		}
		if !due.After(l.sim.api.now.Add(time.Millisecond)) {
			continue
		}
		if due.Before(until) {
			until = due
		}
		l.startable(pool, until.Add(-time.Millisecond))
	}
}

// simView is a pool as somebody saw it, and what an operator would reckon from it.
type simView struct {
	pool   *karpv1.NodePool
	claims []*karpv1.NodeClaim
	node   func(string) *corev1.Node
	spec   simSpec
	policy *v1alpha1.RotationPolicy // nil when none governs
}

// viewOf is what a pass was told by the API server.
func viewOf(p *simPass, pool *karpv1.NodePool) simView {
	v := simView{pool: pool, node: func(name string) *corev1.Node {
		n, _ := seenOf(p, simNodes, name).(*corev1.Node)
		return n
	}}
	for _, o := range p.saw[simClaims] {
		if poolOf(o) == pool.Name {
			v.claims = append(v.claims, o.(*karpv1.NodeClaim))
		}
	}
	v.rule(p.saw[simPolicies])
	return v
}

func seenOf(p *simPass, k simKind, name string) client.Object {
	for _, o := range p.saw[k] {
		if o.GetName() == name {
			return o
		}
	}
	return nil
}

func (v *simView) rule(policies []client.Object) {
	v.spec = simSpecs[slices.Index(simPoolNames, v.pool.Name)]
	for _, o := range policies {
		p := o.(*v1alpha1.RotationPolicy)
		if string(p.Spec.NodePoolSelector.MatchLabels["pool"]) != v.pool.Name {
			continue
		}
		if v.policy != nil { // two tie
			v.policy = nil
			return
		}
		v.policy = p
	}
}

func (v *simView) claim(name string) *karpv1.NodeClaim {
	for _, c := range v.claims {
		if c.Name == name {
			return c
		}
	}
	return nil
}

// occurrence is the window around an instant. One that never closes has no end.
func (x simSpec) occurrence(at time.Time) (start, end time.Time, open bool) {
	if x.every == 0 {
		return time.Time{}, time.Time{}, true
	}
	start = at.Truncate(x.every) // the zero time is a midnight
	end = start.Add(x.lasts)
	return start, end, at.Before(end)
}

// bound is how long a rotation may take.
func (x simSpec) bound() time.Duration { return x.ready + x.grace + 2*time.Minute }

func (x simSpec) threshold() time.Duration {
	if x.age > 0 {
		return x.age
	}
	return x.expire - 2*x.every - x.bound()
}

// closed says why no rotation may start, "" if one may.
func (v *simView) closed(c *karpv1.NodeClaim, at time.Time) string {
	if v.policy == nil {
		return "no policy governs"
	}
	if v.pool.Spec.Replicas != nil {
		return "static"
	}
	if spoiled(v.policy) {
		return "the policy cannot be used"
	}
	if _, _, open := v.spec.occurrence(at); !open && (c == nil || annotation(c, rotation.AnnotationRequested) != "now") {
		return "outside of the window"
	}
	surge := v.policy.Spec.Surge
	pause := max(10*time.Minute, surge.CooldownAfter.Duration)
	if surge.FailurePause != nil {
		pause = surge.FailurePause.Duration
	}
	for _, g := range []struct {
		key   string
		shuts time.Duration
	}{
		{rotation.AnnotationFreeze, 0}, {rotation.AnnotationLastRotation, surge.CooldownAfter.Duration}, {rotation.AnnotationLastFailure, pause},
	} {
		text := annotation(v.pool, g.key)
		if text == "" {
			continue
		}
		t, err := time.Parse(time.RFC3339, text)
		if err != nil || at.Before(t.Add(g.shuts)) {
			return g.key + " is " + text
		}
	}
	for _, c := range v.claims {
		if c.DeletionTimestamp != nil || disrupted(v.node(simNodeName(c.Name))) {
			return "NodeClaim " + c.Name + " is being disrupted"
		}
	}
	return ""
}

// eligible judges one claim.
func (v *simView) eligible(c *karpv1.NodeClaim, at time.Time) bool {
	n := v.node(c.Status.NodeName)
	if n == nil || !readyClaim(c) || c.DeletionTimestamp != nil {
		return false
	}
	asked := annotation(c, rotation.AnnotationRequested)
	if !at.After(c.CreationTimestamp.Add(v.spec.threshold())) && asked != "true" && asked != "now" {
		return false
	}
	if annotation(n, rotation.AnnotationDoNotDisrupt) == "true" && annotation(n, rotation.AnnotationDoNotDisruptOwned) != "true" {
		return false
	}
	switch annotation(c, rotation.AnnotationState) {
	case "":
		return true
	case rotation.StateFailed:
		text := annotation(c, rotation.AnnotationFailedAt)
		failed, err := time.Parse(time.RFC3339, text)
		return text == "" || err == nil && !at.Before(failed.Add(v.wait(c, failed, at)))
	}
	return false
}

// wait is how long a claim waits after its latest failure: doubled with each, to eight times,
// and less if only that falls into the window in which it failed.
func (v *simView) wait(c *karpv1.NodeClaim, failed, at time.Time) time.Duration {
	times := 1
	if text := annotation(c, rotation.AnnotationRetryCount); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			n = 4
		}
		times = 1 << (min(max(n, 1), 4) - 1)
	}
	full := time.Duration(times) * v.spec.backoff
	start, end, open := v.spec.occurrence(at)
	if end.IsZero() || !open || failed.Before(start) || !failed.Before(end) {
		return full
	}
	for ; times >= 1; times /= 2 {
		if wait := time.Duration(times) * v.spec.backoff; failed.Add(wait).Before(end) {
			return wait
		}
	}
	return full
}

// headroom says whether Karpenter may launch one more node.
func (v *simView) headroom() bool {
	limit, ok := v.pool.Spec.Limits["nodes"]
	used := v.pool.Status.Resources["nodes"]
	return !ok || used.Value() < limit.Value()
}
