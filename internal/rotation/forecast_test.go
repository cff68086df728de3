package rotation

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"
)

// rehearsal is a forecast without the queues: Decide sees all of the pool every time, and its
// plans are performed by the model, which knows the laws of a rotation.
type rehearsal struct {
	*world
	to      time.Time
	due     []cue
	started time.Time
	turns   []Turn
}

// cue is something that Karpenter is about to do with a claim.
type cue struct {
	at    time.Time
	what  string // ends, registers
	claim string
}

func rehearse(t *rapid.T, s Snapshot, from, to time.Time) []Turn {
	r := &rehearsal{world: newWorld(from), to: to, started: from}
	r.Snapshot = cloneSnapshot(settle(s, s.Governance.Policy, from))
	for i := range r.NodeClaims {
		c := &r.NodeClaims[i]
		disrupted := slices.ContainsFunc(r.nodesOf(c), func(name string) bool { n := r.Nodes[name]; return n.disrupted() })
		if !c.Deleting.IsZero() || disrupted && c.Name != r.NodePool.Annotations[AnnotationActive] {
			r.goes(c)
		}
	}
	if c := r.claim(r.NodePool.Annotations[AnnotationActive]); c != nil {
		if start := c.startedAt(from); !start.IsZero() {
			r.started = start
		}
		if p := r.Placeholder; p != nil {
			r.launch(c, r.awaited(c, from), p.Created)
		}
	}
	for range 20_000 {
		r.karpenter()
		if !r.now.Before(to) && r.NodePool.Annotations[AnnotationActive] == "" {
			slices.SortStableFunc(r.turns, func(a, b Turn) int {
				if !a.Start.Equal(b.Start) {
					return a.Start.Compare(b.Start)
				}
				return strings.Compare(a.NodeClaim, b.NodeClaim)
			})
			return r.turns
		}
		d := r.decide()
		if len(d.Plan) == 0 {
			next := earliest(d.Wake, r.nextCue())
			if next.IsZero() {
				next = to
			}
			if !d.Wake.IsZero() && !d.Wake.After(r.now) {
				t.Fatalf("at %s the next wake-up is %s: %+v", r.now, d.Wake, d)
			}
			r.now = next
			continue
		}
		if d.Plan[0].Act == ActClaimAnchor {
			r.started = r.now
		}
		r.perform(t, d.Plan)
	}
	t.Fatalf("no end at %s", stamp(r.now))
	return nil
}

func (r *rehearsal) perform(t *rapid.T, plan []Step) {
	for _, st := range plan {
		if st.Act == ActDeleteNodeClaim {
			r.rotated(r.claim(st.On.Name))
		}
		if st.Act == ActFreezeNode || st.Act == ActMarkPending || st.Act == ActMarkDraining { // which may repeat what is there
			r.patch(st)
			continue
		}
		st.On.Version = ""
		if o := r.find(st.On); o != nil {
			st.On = *o
		}
		if _, err := r.write(st, st.On.Version); err != nil {
			t.Fatalf("%s at %s: %v", st, stamp(r.now), err)
		}
		switch c := r.claim(st.On.Name); st.Act {
		case ActCreatePlaceholder:
			c := r.claim(st.Create.SurgeFor)
			r.launch(c, r.claim(c.Annotations[AnnotationSurgeClaim]), r.now)
		case ActDeleteNodeClaim, ActReapSurgeClaim:
			r.goes(c)
		}
	}
}

func (r *rehearsal) rotated(c *NodeClaim) {
	if c.ExpireAfter == nil {
		return
	}
	o, _ := r.Governance.Policy.Windows.At(r.started)
	r.turns = append(r.turns, Turn{
		NodeClaim: c.Name, Deadline: c.Created.Add(*c.ExpireAfter), Start: r.started, Occurrence: o, Mode: r.mode(),
	})
}

// goes has a claim begin to go, if it does not yet, and drain.
func (r *rehearsal) goes(c *NodeClaim) {
	if c.Deleting.IsZero() {
		c.Deleting = r.now
	}
	at := c.Deleting.Add(r.Governance.Policy.Throughput(c.GracePeriod).TRotEst - r.Governance.Policy.provisioning())
	if at.Before(r.now) {
		at = r.now
	}
	r.due = append(r.due, cue{at, "ends", c.Name})
}

func (r *rehearsal) launch(c, surge *NodeClaim, asked time.Time) {
	if surge == nil || surge.Name == c.Name || !surge.Deleting.IsZero() {
		born := asked
		if start := c.startedAt(r.now); born.Before(start) {
			born = start
		}
		surge = r.claim(r.born(c.Name, born))
	}
	at := asked.Add(r.Governance.Policy.provisioning())
	if at.Before(r.now) {
		at = r.now
	}
	r.due = append(r.due, cue{at, "registers", surge.Name})
}

func (r *rehearsal) born(after string, at time.Time) string {
	name := heir(after, func(name string) bool { return r.claim(name) != nil })
	r.join(NodeClaim{Object: Object{Name: name}, Created: at.Truncate(time.Second), ExpireAfter: r.NodePool.ExpireAfter, GracePeriod: r.NodePool.GracePeriod})
	return name
}

func (r *rehearsal) registers(name string) {
	c := r.claim(name)
	if r.nodeOf(c) == "" {
		r.register(name, name, true)
	}
	c.Ready = true
	node := r.Nodes[r.nodeOf(c)]
	node.Ready = true
	r.Nodes[node.Name] = node
}

func (r *rehearsal) nextCue() time.Time {
	var next time.Time
	for _, c := range r.due {
		next = earliest(next, c.at)
	}
	for i := range r.NodeClaims {
		if c := &r.NodeClaims[i]; c.ExpireAfter != nil && c.Deleting.IsZero() {
			next = earliest(next, c.Created.Add(*c.ExpireAfter))
		}
	}
	return next
}

// karpenter does what Karpenter does until now.
func (r *rehearsal) karpenter() {
	slices.SortStableFunc(r.due, func(a, b cue) int { return a.at.Compare(b.at) })
	for len(r.due) > 0 && !r.now.Before(r.due[0].at) {
		next := r.due[0]
		r.due = r.due[1:]
		c := r.claim(next.claim)
		switch {
		case c == nil:
		case next.what == "ends":
			r.finalize(next.claim)
		case c.Deleting.IsZero():
			r.registers(next.claim)
			if p := r.Placeholder; p != nil && (p.NodeName == "" || p.NodeName == r.nodeOf(c)) {
				r.bind(r.nodeOf(r.claim(next.claim)), corev1.PodRunning)
			}
		}
	}
	for {
		var first *NodeClaim
		for i := range r.NodeClaims {
			c := &r.NodeClaims[i]
			if c.ExpireAfter == nil || !c.Deleting.IsZero() || r.now.Before(c.Created.Add(*c.ExpireAfter)) {
				continue
			}
			if first == nil || before(c, first) {
				first = c
			}
		}
		if first == nil {
			return
		}
		r.expires(first)
	}
}

func (r *rehearsal) expires(c *NodeClaim) {
	name, deadline := c.Name, c.Created.Add(*c.ExpireAfter)
	if deadline.Before(r.to) {
		lost := Turn{NodeClaim: name, Deadline: deadline, Start: deadline}
		if standing, _, _ := r.standing(r.Governance.Policy, c, r.now); standing != Eligible {
			lost.Lost = string(standing)
		} else {
			lost.Lost = keeps(r.Snapshot.decide(r.now)) // as windows are not judged in it
		}
		r.turns = append(r.turns, lost)
	}
	r.goes(c)
	if e := r.NodePool.ExpireAfter; e != nil && *e <= 0 {
		return
	}
	if name != r.NodePool.Annotations[AnnotationActive] {
		r.registers(r.born(name, r.now))
	}
}

// drawFleet draws a pool at rest, or with a rotation that a controller could have brought about.
func drawFleet(t *rapid.T) (Snapshot, time.Time) {
	w := newWorld(time.Date(2026, 6, 10, 0, 0, 0, 0, time.UTC).
		Add(time.Duration(rapid.IntRange(0, 5*24*60).Draw(t, "minute"))*time.Minute + time.Duration(rapid.SampledFrom([]int{0, 1, 999_999_999}).Draw(t, "ns"))))
	w.Governance = drawGovernance(t)
	if w.Governance.Policy == nil {
		t.Skip("nobody governs it")
	}
	p := w.Governance.Policy
	p.DrainEstimate = rapid.SampledFrom([]*time.Duration{nil, nil, ptr(time.Duration(0)), ptr(3 * time.Hour)}).Draw(t, "drainEstimate")
	p.ProvisioningEstimate = rapid.SampledFrom([]*time.Duration{nil, nil, ptr(time.Hour)}).Draw(t, "provisioningEstimate")
	lives := []*time.Duration{ptr(14 * day), ptr(14 * day), ptr(12 * day), ptr(3 * day), nil}
	graces := []*time.Duration{ptr(time.Hour), ptr(time.Hour), nil, ptr(24 * time.Hour), ptr(time.Duration(0))}
	w.NodePool = NodePool{
		Object: w.object(KindNodePool, "blue"), GracePeriod: rapid.SampledFrom(graces).Draw(t, "grace"), ExpireAfter: rapid.SampledFrom(lives).Draw(t, "life"),
		Static:      rapid.IntRange(0, 19).Draw(t, "static") == 0,
		Annotations: drawStamps(t, w.now, AnnotationFreeze, AnnotationLastRotation, AnnotationLastFailure, AnnotationWindowOpened),
	}
	if rapid.IntRange(0, 9).Draw(t, "limited") == 0 {
		w.NodePool.Limits, w.NodePool.InUse = list("nodes", "4"), list("nodes", "4")
	}
	for i := range rapid.IntRange(0, 7).Draw(t, "claims") {
		name := fmt.Sprintf("blue-%c", 'a'+i)
		c := NodeClaim{
			Object: Object{Name: name}, GracePeriod: rapid.SampledFrom(graces).Draw(t, "grace"), ExpireAfter: rapid.SampledFrom(lives).Draw(t, "life"),
			Ready: rapid.IntRange(0, 4).Draw(t, "ready") > 0, Created: w.now.Add(-time.Duration(rapid.IntRange(0, 15*8).Draw(t, "age")) * 3 * time.Hour).Truncate(time.Second),
		}
		if rapid.IntRange(0, 4).Draw(t, "registered") > 0 {
			c.NodeName = "node-" + name
		}
		if rapid.IntRange(0, 9).Draw(t, "deleting") == 0 {
			c.Deleting = w.now.Add(-time.Duration(rapid.IntRange(0, 30).Draw(t, "since")) * time.Minute)
		}
		if s := rapid.SampledFrom([]string{"", "", "", "", StateFailed, StateExpired, StatePending, "paused"}).Draw(t, "state"); s != "" {
			c.Annotations = drawStamps(t, w.now, AnnotationFailedAt)
			c.Annotations[AnnotationState] = s
			c.Annotations[AnnotationRetryCount] = rapid.SampledFrom([]string{"1", "3", "many"}).Draw(t, "retries")
		}
		w.join(c)
		if c.NodeName != "" {
			w.change(c.NodeName, func(n *Node) {
				switch rapid.IntRange(0, 11).Draw(t, "node") {
				case 0:
					n.Annotations = map[string]string{AnnotationDoNotDisrupt: "true"}
				case 1:
					n.Taints = []corev1.Taint{{Key: taintDisrupt, Effect: corev1.TaintEffectNoSchedule}}
				case 2:
					n.Annotations = map[string]string{AnnotationSurgeFor: "gone", AnnotationCordoned: "true"}
					n.Unschedulable = true
				}
			})
		}
	}
	return w.Snapshot, w.now
}

// The queues change nothing: a forecast is what Decide, shown the whole pool at every instant,
// comes to.
func TestForecastIsWhatDecideComesTo(t *testing.T) {
	lost, rotated, heirs := 0, 0, 0
	rapid.Check(t, func(t *rapid.T) {
		s, now := drawFleet(t)
		to := now.Add(time.Duration(rapid.IntRange(0, 30).Draw(t, "days")) * day)
		// The controller that is to be foretold may be in the middle of something.
		want, got := rehearse(t, s, now, to), Forecast(s, now, to)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("from %s to %s (-decided +foretold):\n%s", now, to, diff)
		}
		for _, turn := range got {
			switch {
			case turn.Lost != "":
				lost++
			default:
				rotated++
			}
			if strings.Contains(turn.NodeClaim, "+") {
				heirs++
			}
		}
	})
	if !testing.Short() && (lost == 0 || rotated == 0 || heirs == 0) {
		t.Errorf("%d claims were lost, %d rotated, %d of all were heirs: the fleets are too tame", lost, rotated, heirs)
	}
}

// Ten thousand nodes of all ages over 90 days: first with windows at night, in which one node
// after the other is rotated or lost, then with a window that never closes and rotations that
// take a minute.
func BenchmarkForecast(b *testing.B) {
	now := time.Date(2026, 6, 10, 0, 0, 0, 0, time.UTC)
	for name, windows := range map[string]string{"nightly": "daily 02:00-06:00 UTC", "always": "daily 00:00-24:00 UTC"} {
		p, err := testPolicy(now, windows)
		if err != nil {
			b.Fatal(err)
		}
		if name == "always" {
			p.CooldownAfter, p.DrainEstimate, p.ProvisioningEstimate = 0, ptr(30*time.Second), ptr(30*time.Second)
		}
		s := Snapshot{Governance: Governance{Policy: p}, Nodes: map[string]Node{}, NodePool: NodePool{
			Object: Object{Kind: KindNodePool, Name: "blue"}, ExpireAfter: ptr(14 * day), GracePeriod: ptr(time.Hour),
		}}
		for i := range 10_000 {
			name := fmt.Sprintf("blue-%04d", i)
			s.Nodes["node-"+name] = nodeNamed("node-"+name, name)
			s.NodeClaims = append(s.NodeClaims, NodeClaim{
				Object: Object{Kind: KindNodeClaim, Name: name}, Created: now.Add(-time.Duration(i) * 14 * day / 10_000).Truncate(time.Second),
				ExpireAfter: ptr(14 * day), GracePeriod: ptr(time.Hour), NodeName: "node-" + name, Ready: true,
			})
		}
		b.Run(name, func(b *testing.B) {
			turns := 0
			for b.Loop() {
				turns = len(Forecast(s, now, now.Add(90*day)))
			}
			b.ReportMetric(float64(turns), "turns")
		})
	}
}

func TestAForecastStartsNoSoonerThanTheController(t *testing.T) {
	for _, tt := range []struct {
		name string
		with func(*world)
		wait time.Duration
	}{
		{"at once", func(*world) {}, 0},
		{"after the drain of another", func(w *world) {
			w.join(NodeClaim{Object: w.object(KindNodeClaim, "blue-b"), Created: w.now, ExpireAfter: ptr(14 * day), GracePeriod: ptr(time.Hour), Deleting: w.now.Add(-time.Minute)})
		}, 9 * time.Minute},
		{"after the backoff", func(w *world) {
			w.claim("blue-a").Annotations = map[string]string{AnnotationState: StateFailed, AnnotationFailedAt: stamp(w.now.Add(-10 * time.Minute)), AnnotationRetryCount: "1"}
		}, 20 * time.Minute},
		{"when it becomes due", func(w *world) {
			c := w.claim("blue-a")
			due, _ := w.Governance.Policy.due(c)
			c.Created = c.Created.Add(w.now.Sub(due) + 2*time.Hour)
		}, 2*time.Hour + 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := oldNode(t)
			tt.with(w)
			turns := Forecast(w.Snapshot, w.now, w.now.Add(day))
			if len(turns) == 0 || turns[0].NodeClaim != "blue-a" || !turns[0].Start.Equal(w.now.Add(tt.wait)) {
				t.Errorf("at %s the forecast is %+v, want blue-a after %s", stamp(w.now), turns, tt.wait)
			}
		})
	}
}

// One node, amid an attempt: what has been launched for it is what takes over, or is reaped, and
// there is never one node more. Then one generation follows the other.
func TestAForecastGoesOnFromTheMiddleOfAnAttempt(t *testing.T) {
	for name, with := range map[string]func(*world){
		"the surge has not registered": func(*world) {},
		"it is given up, and the placeholder gone": func(w *world) {
			edit(&w.claim("blue-00000").Annotations, map[string]string{AnnotationRollbackAt: stamp(w.now), AnnotationSurgeClaim: "blue-00000+1"}, nil)
			w.Placeholder = nil
		},
		"it has expired, and the placeholder is still there": func(w *world) {
			c := w.claim("blue-00000")
			edit(&c.Annotations, map[string]string{AnnotationState: StateExpired}, []string{AnnotationStartedAt})
			c.Deleting = w.now
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := crowd(t, 1, 1, 0)
			w.attempt()
			w.join(NodeClaim{Object: Object{Name: "blue-00000+1"}, Created: w.now, ExpireAfter: ptr(14 * day), GracePeriod: ptr(time.Hour)})
			with(w)
			turns := Forecast(w.Snapshot, w.now, w.now.AddDate(0, 0, 60))
			if len(turns) < 4 {
				t.Fatalf("turns: %+v", turns)
			}
			for i := 1; i < len(turns); i++ {
				if turns[i].Start.Sub(turns[i-1].Start) < 5*day {
					t.Fatalf("of one node there have come to be two: %+v", turns)
				}
			}
		})
	}
}

// The node that takes over holds the pods, and needs as much room when its own time comes.
func TestAForecastMovesThePods(t *testing.T) {
	w := crowd(t, 1, 1, 0)
	w.Governance.Policy = policyOn(t, "daily 00:00-24:00 UTC")
	w.NodePool.Limits, w.NodePool.InUse = list("cpu", "6"), list("cpu", "4")
	w.Pods = map[string][]*corev1.Pod{"node-00000": {runningPod("web", "cpu", "3")}}
	turns := Forecast(w.Snapshot, w.now, w.now.AddDate(0, 0, 60))
	if len(turns) < 4 {
		t.Fatalf("turns: %+v", turns)
	}
	for _, turn := range turns {
		if turn.Lost != string(ReasonInsufficientHeadroom) {
			t.Errorf("%s is %q, and wants 3 cpus of 2", turn.NodeClaim, turn.Lost)
		}
	}
}

// What expires at the very instant at which its rotation would begin, or another one end, is
// lost, too.
func TestAForecastCallsNothingRotatedThatIsLost(t *testing.T) {
	for name, annotations := range map[string]map[string]string{
		"begins": nil, "ends": {AnnotationActive: "gone", AnnotationActiveState: StateDraining},
	} {
		t.Run(name, func(t *testing.T) {
			w := crowd(t, 1, 1, 0)
			w.Governance.Policy = policyOn(t, "daily 00:00-24:00 UTC")
			w.NodePool.Annotations = annotations
			w.claim("blue-00000").Created = w.now.Add(-14 * day)
			turns := Forecast(w.Snapshot, w.now, w.now.AddDate(0, 0, 7))
			if len(turns) != 1 || turns[0].Lost != string(Eligible) {
				t.Errorf("turns: %+v", turns)
			}
		})
	}
}

// Nodes that expire as they are born are lost without end, and the forecast ends.
func TestAForecastOfNodesWithoutALife(t *testing.T) {
	w := crowd(t, 1, 1, 0)
	w.NodePool.ExpireAfter = ptr(time.Duration(0))
	w.claim("blue-00000").ExpireAfter = ptr(time.Duration(0))
	if turns := Forecast(w.Snapshot, w.now, w.now.AddDate(0, 0, 60)); len(turns) != 1 || turns[0].Lost == "" {
		t.Errorf("turns: %+v", turns)
	}
}

// Both reach their deadline at once, and there is no room to replace either. The first to go is
// what keeps the other, and that is the older one, whatever its name.
func TestOfTwoWithOneDeadlineTheOlderGoesFirst(t *testing.T) {
	w := newWorld(date(t, "2026-06-10T02:00:00Z"))
	w.Governance.Policy = policyOn(t, "daily 00:00-24:00 UTC")
	w.NodePool = NodePool{
		Object: w.object(KindNodePool, "blue"), ExpireAfter: ptr(day), GracePeriod: ptr(time.Hour),
		Limits: corev1.ResourceList{"nodes": resource.MustParse("2")}, InUse: corev1.ResourceList{"nodes": resource.MustParse("2")},
	}
	for name, age := range map[string]time.Duration{"blue-a": 0, "blue-b": 13 * day} {
		w.join(NodeClaim{
			Object: w.object(KindNodeClaim, name), NodeName: "node-" + name, Ready: true,
			Created: w.now.Add(-age), ExpireAfter: ptr(day + age), GracePeriod: ptr(time.Hour),
		})
	}
	lost := map[string]string{}
	for _, turn := range Forecast(w.Snapshot, w.now, w.now.Add(day+1)) {
		lost[turn.NodeClaim] = turn.Lost
	}
	if lost["blue-b"] != string(ReasonInsufficientHeadroom) || lost["blue-a"] != string(ReasonDisruption) {
		t.Errorf("lost: %v", lost)
	}
}

// Two are due in a window that has time for one of them.
func TestAForecastTakesTheEarliestDeadlineFirst(t *testing.T) {
	w := newWorld(date(t, "2026-06-10T02:00:00Z"))
	w.Governance.Policy = policyOn(t, "daily 02:00-06:00 UTC")
	w.NodePool = NodePool{Object: w.object(KindNodePool, "blue"), ExpireAfter: ptr(14 * day), GracePeriod: ptr(time.Hour)}
	for name, age := range map[string]time.Duration{"blue-a": 12 * day, "blue-b": 12*day + time.Hour} {
		w.join(NodeClaim{
			Object: w.object(KindNodeClaim, name), NodeName: "node-" + name, Ready: true,
			Created: w.now.Add(-age), ExpireAfter: ptr(14 * day), GracePeriod: ptr(time.Hour),
		})
	}
	turns := Forecast(w.Snapshot, w.now, w.now.Add(day))
	if len(turns) == 0 || turns[0].NodeClaim != "blue-b" || !turns[0].Start.Equal(w.now) {
		t.Errorf("turns: %+v, want blue-b at once", turns)
	}
}
