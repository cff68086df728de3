package rotator

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/tasuki-io/tasuki/api/v1alpha1"
	"github.com/tasuki-io/tasuki/internal/rotation"
)

// Plan is what the controller makes of one NodePool. Durations are Go durations. Those that
// follow from the policy are 0s, and its counts 0, for a pool without one and for one whose
// nodes never expire.
type Plan struct {
	NodePool string  `json:"nodePool"`
	Policy   *string `json:"policy"` // null if none governs the pool

	// E: how long a node lives, as the NodePool's template says, or Never.
	ExpireAfter string `json:"expireAfter"`
	// tGP: how long its drain may take, as the template says; null if it is not set, and then counted as 1h0m0s.
	TerminationGracePeriod *string `json:"terminationGracePeriod"`
	// P: the longest time from the start of a window to that of the next. Windows that touch or overlap are one.
	WindowPeriod string `json:"windowPeriod"`
	// t_rot: how long a rotation takes at most: readyTimeout + tGP + 2m.
	TRot string `json:"tRot"`
	// t_rot_est: how long a rotation is expected to take: provisioningEstimate + drainEstimate.
	TRotEstimate string `json:"tRotEstimate"`
	// How long before its deadline a node becomes due: E - A.
	LeadTime string `json:"leadTime"`
	// A: the age from which a node is due: E - (minRotationChances x P + t_rot), unless the policy sets it.
	AgeThreshold string `json:"ageThreshold"`
	// G: how many whole window periods lie between that age and the last start in time: floor((E - t_rot - A) / P).
	Chances int `json:"chances"`
	// C: how many rotations are expected to start in the shortest window: ceil(shortest window / (t_rot_est + cooldownAfter)).
	Capacity int `json:"capacity"`

	Findings    []PlanFinding    `json:"findings"`
	Occurrences []PlanOccurrence `json:"occurrences"` // within the time that is planned
	Forecast    []PlanTurn       `json:"forecast"`

	// For tables.
	Selected   []Selected      `json:"-"`
	Notes      []string        `json:"-"` // what is no finding, and may surprise
	Arithmetic []rotation.Sum  `json:"-"`
	Turns      []rotation.Turn `json:"-"`

	// For pages.
	Zone   *time.Location   `json:"-"` // of the windows; UTC if they are of several
	Lives  []rotation.Life  `json:"-"`
	Flight *rotation.Flight `json:"-"` // nil if no rotation is under way
	Now    rotation.Reason  `json:"-"` // what the controller waits for
	Why    string           `json:"-"` // Now for people
}

// PlanFinding is a rotation.Finding.
type PlanFinding struct {
	Code     string            `json:"code"`
	Severity rotation.Severity `json:"severity"`
	Message  string            `json:"message"`
	Remedy   string            `json:"remedy"`
}

// PlanOccurrence is one stretch of time in which rotations may start. One that does not open or
// close within 400 days has the edges of the time that is planned.
type PlanOccurrence struct {
	Start time.Time `json:"start"`
	End   time.Time `json:"end"`
}

// PlanTurn says when a NodeClaim is rotated.
type PlanTurn struct {
	NodeClaim  string     `json:"nodeClaim"`  // of one that is yet to be born: the first before it, "+", and a count
	Occurrence *time.Time `json:"occurrence"` // the start of the one in which it is rotated; null if it is lost
	Margin     string     `json:"margin"`     // from the start of its rotation to its deadline
}

// Selected is a policy that selects a pool, with so many constraints.
type Selected struct {
	Policy      string
	Constraints int
}

// Fatal reports a finding that keeps every rotation from starting.
func (p Plan) Fatal() bool {
	return slices.ContainsFunc(p.Findings, func(f PlanFinding) bool { return f.Severity == rotation.Fatal })
}

// Loses reports a NodeClaim that is left to expire.
func (p Plan) Loses() bool {
	return slices.ContainsFunc(p.Forecast, func(t PlanTurn) bool { return t.Occurrence == nil })
}

// Chosen says which policy governs, and why.
func (p Plan) Chosen() string {
	var all []string
	for _, s := range p.Selected {
		all = append(all, fmt.Sprintf("%s (%d)", s.Policy, s.Constraints))
	}
	switch {
	case len(all) == 0:
		return "none selects this NodePool: it is never touched"
	case p.Policy == nil:
		return "none, as those with the most constraints tie: " + strings.Join(all, ", ")
	case len(all) == 1:
		return *p.Policy + ", the only one that selects this NodePool"
	}
	return fmt.Sprintf("%s, with the most constraints of those that select this NodePool: %s", *p.Policy, strings.Join(all, ", "))
}

// Verdict says what is wrong with plans, nothing if all is well; fatal if no node of a NodePool
// is rotated at all.
func Verdict(plans []Plan) (text string, fatal bool) {
	var stopped, loses []string
	for _, p := range plans {
		if p.Fatal() {
			stopped = append(stopped, p.NodePool)
		}
		if p.Loses() {
			loses = append(loses, p.NodePool)
		}
	}
	switch {
	case len(stopped) > 0:
		return fmt.Sprintf("no node is rotated in NodePool %s: see the fatal findings", strings.Join(stopped, ", ")), true
	case len(loses) > 0:
		return fmt.Sprintf("the forecast loses nodes of NodePool %s to their expiry", strings.Join(loses, ", ")), false
	}
	return "", false
}

// Plans is what the controller makes of every NodePool, in the order of their names, from now
// until to.
func (o Objects) Plans(now, to time.Time) []Plan {
	claims := byPool(o.NodeClaims, func(c *karpv1.NodeClaim) string { return c.Labels[karpv1.NodePoolLabelKey] })
	nodes := byPool(o.Nodes, func(n *corev1.Node) string { return n.Labels[karpv1.NodePoolLabelKey] })
	placeholders := slices.DeleteFunc(slices.Clone(o.Pods), func(p corev1.Pod) bool { return p.Labels[rotation.LabelPlaceholder] != "true" })
	pods := map[string][]*corev1.Pod{}
	for i := range o.Pods {
		pods[o.Pods[i].Spec.NodeName] = append(pods[o.Pods[i].Spec.NodeName], &o.Pods[i])
	}
	out := make([]Plan, len(o.NodePools))
	var all sync.WaitGroup
	for i := range o.NodePools {
		all.Go(func() {
			pool := &o.NodePools[i]
			s := snapshotOf(pool, views(claims[pool.Name], nodeClaimFrom), views(nodes[pool.Name], nodeFrom), placeholders)
			s.Governance = (&policies{}).govern(pool.Labels, o.Policies, now) // not shared: those of files have no UID to be known by
			s.Pods = pods
			out[i] = planOf(*s, now, to)
			out[i].Selected = o.selected(pool.Labels)
		})
	}
	all.Wait()
	slices.SortFunc(out, func(a, b Plan) int { return cmp.Compare(a.NodePool, b.NodePool) })
	return out
}

// PlansOf is Plans of the NodePools with these names, of all if there are none.
func (o Objects) PlansOf(pools []string, now, to time.Time) ([]Plan, error) {
	plans := o.Plans(now, to)
	for _, name := range pools {
		if !slices.ContainsFunc(plans, func(p Plan) bool { return p.NodePool == name }) {
			return nil, fmt.Errorf("there is no NodePool %s", name)
		}
	}
	if len(pools) > 0 {
		plans = slices.DeleteFunc(plans, func(p Plan) bool { return !slices.Contains(pools, p.NodePool) })
	}
	if len(plans) == 0 {
		return nil, errors.New("there is no NodePool to plan for")
	}
	return plans, nil
}

func byPool[T any](all []T, pool func(*T) string) map[string][]T {
	out := map[string][]T{}
	for i := range all {
		name := pool(&all[i])
		out[name] = append(out[name], all[i])
	}
	return out
}

func selects(p *v1alpha1.RotationPolicy, pool map[string]string) bool {
	selector, err := p.Spec.NodePoolSelector.AsSelector()
	return err == nil && selector.Matches(labels.Set(pool))
}

// selected are the policies that select a pool, those with the most constraints first.
func (o Objects) selected(pool map[string]string) []Selected {
	var out []Selected
	for i := range o.Policies {
		p := &o.Policies[i]
		if selects(p, pool) {
			out = append(out, Selected{p.Name, p.Spec.NodePoolSelector.Specificity()})
		}
	}
	slices.SortFunc(out, func(a, b Selected) int {
		return cmp.Or(cmp.Compare(b.Constraints, a.Constraints), cmp.Compare(a.Policy, b.Policy))
	})
	return out
}

func planOf(s rotation.Snapshot, now, to time.Time) Plan {
	out := Plan{
		NodePool: s.NodePool.Name, ExpireAfter: "Never", Occurrences: []PlanOccurrence{}, Findings: []PlanFinding{}, Forecast: []PlanTurn{},
		Turns: rotation.Forecast(s, now, to), Zone: time.UTC, Flight: s.Flight(now),
	}
	out.Lives = rotation.Lives(s, out.Turns, now)
	if d := rotation.Decide(s, now); out.Flight != nil || len(d.Plan) == 0 {
		out.Now, out.Why = d.Reason, d.Detail
	}
	if e := s.NodePool.ExpireAfter; e != nil {
		out.ExpireAfter = e.String()
	}
	if g := s.NodePool.GracePeriod; g != nil {
		out.TerminationGracePeriod = new(g.String())
	}
	for _, f := range rotation.Examine(s, now) {
		out.Findings = append(out.Findings, PlanFinding(f))
	}
	var period time.Duration
	var terms rotation.Terms
	var through rotation.Throughput
	if p := s.Governance.Policy; p != nil {
		out.Policy, out.Arithmetic, out.Zone = &p.Name, p.Arithmetic(s.NodePool), p.Windows.Zone()
		period, terms = p.Measure.Period, p.Terms(s.NodePool.ExpireAfter, s.NodePool.GracePeriod)
		if terms.Expires {
			through = p.Throughput(s.NodePool.GracePeriod)
		}
		out.Notes = notesOn(s, through, now)
		for _, w := range p.Windows.Between(now, to) {
			out.Occurrences = append(out.Occurrences, PlanOccurrence{edge(w.Start, now), edge(w.End, to)})
		}
	}
	out.WindowPeriod, out.TRot, out.TRotEstimate = period.String(), terms.TRot.String(), through.TRotEst.String()
	out.LeadTime, out.AgeThreshold = terms.LeadTime.String(), terms.Threshold.String()
	out.Chances, out.Capacity = terms.Chances, through.Capacity
	for _, t := range out.Turns {
		turn := PlanTurn{NodeClaim: t.NodeClaim, Margin: t.Margin().Round(time.Second).String()}
		if t.Lost == "" {
			turn.Occurrence = new(edge(t.Occurrence.Start, now))
		}
		out.Forecast = append(out.Forecast, turn)
	}
	return out
}

// notesOn tell of what the controller takes as it is: claims that are yet to be created, as clocks
// may differ, and windows that are shorter than a rotation, which may end outside of them.
func notesOn(s rotation.Snapshot, through rotation.Throughput, now time.Time) (notes []string) {
	var unborn []string
	for i := range s.NodeClaims {
		if c := &s.NodeClaims[i]; c.Created.After(now) {
			unborn = append(unborn, fmt.Sprintf("%s (%s)", c.Name, c.Created.UTC().Format(time.RFC3339)))
		}
	}
	if n := len(unborn); n > 0 {
		more := ""
		if n > mostUnborn {
			more = fmt.Sprintf(" and %d more", n-mostUnborn)
		}
		slices.Sort(unborn)
		notes = append(notes, fmt.Sprintf("metadata.creationTimestamp is after %s, the instant that is planned from, of NodeClaim %s%s: their age counts from it",
			now.UTC().Format(time.RFC3339), strings.Join(unborn[:min(n, mostUnborn)], ", "), more))
	}
	if m := s.Governance.Policy.Measure; !m.Continuous && 0 < m.ShortestOccurrence && m.ShortestOccurrence < through.TRotEst {
		notes = append(notes, fmt.Sprintf("the shortest window is open for %s, and a rotation takes %s (t_rot_est): only one starts in it, and it goes on after the window has closed",
			m.ShortestOccurrence, through.TRotEst))
	}
	return notes
}

// mostUnborn is how many NodeClaims a note names.
const mostUnborn = 5

// edge is one of an occurrence, which may have none.
func edge(t, otherwise time.Time) time.Time {
	if t.IsZero() {
		t = otherwise
	}
	return t.UTC()
}
