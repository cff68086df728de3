package page

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/tasuki-io/tasuki/internal/rotation"
	"github.com/tasuki-io/tasuki/internal/rotator"
)

// How much of what repeats is in the page at a time.
const (
	mostPools    = 10
	mostNodes    = 100
	mostMonths   = 3
	mostWindows  = 30
	mostFindings = 5 // of one code
)

// view is what the page shows of plans.
type view struct {
	From, To time.Time
	Zone     *time.Location // of all plans; UTC if they are of several
	Summary  []summary
	Pools    pages
}

// summary is a NodePool in one line.
type summary struct {
	Pool, Policy         string
	ID                   string
	Part                 int // of the pools, in which it is
	Nodes, Rotated, Lost int
	Verdict              verdict
}

// verdict is what a plan comes to.
type verdict struct {
	Level string // fatal, warn or ok, for its colour
	Text  string
}

// pool is a NodePool in full.
type pool struct {
	rotator.Plan
	ID       string
	Verdict  verdict
	Flight   *flight
	Findings []rotator.PlanFinding
	More     []string // findings that are left out

	Chart   chart
	Months  pages
	Windows pages
	Nodes   pages
}

type flight struct {
	rotation.Flight
	Phase string
	Since stamp
}

// occurrence is a window in a list.
type occurrence struct {
	Start, End stamp
	Length     string
	Rotations  int
}

// stamp is an instant for people and for machines.
type stamp struct {
	Text    string
	Machine string
}

func stampOf(t time.Time, zone *time.Location) stamp {
	if t.IsZero() {
		return stamp{}
	}
	return stamp{t.In(zone).Format("Mon 2006-01-02 15:04"), t.UTC().Format(time.RFC3339)}
}

// zoneOf names a time zone.
func zoneOf(zone *time.Location) string {
	if zone.String() == "Local" {
		return "the machine that has planned"
	}
	return zone.String()
}

func viewOf(plans []rotator.Plan, from, to time.Time) (view, error) {
	v := view{From: from, To: to, Zone: time.UTC}
	if len(plans) > 0 && !slices.ContainsFunc(plans, func(p rotator.Plan) bool { return p.Zone.String() != plans[0].Zone.String() }) {
		v.Zone = plans[0].Zone
	}
	var pools []pool
	for i, p := range plans {
		one, err := poolOf(p, fmt.Sprintf("pool-%d", i), from, to)
		if err != nil {
			return view{}, err
		}
		pools = append(pools, one)
		s := summary{Pool: p.NodePool, Policy: "none", ID: one.ID, Part: i / mostPools, Verdict: one.Verdict}
		if p.Policy != nil {
			s.Policy = *p.Policy
		}
		for _, l := range p.Lives {
			if l.Standing != "" {
				s.Nodes++
			}
		}
		s.Rotated, s.Lost = counts(p)
		v.Summary = append(v.Summary, s)
	}
	var err error
	v.Pools, err = paged("pools", "NodePools", "pools.html", pools, mostPools)
	return v, err
}

func counts(p rotator.Plan) (rotated, lost int) {
	for _, t := range p.Turns {
		if t.Lost != "" {
			lost++
		} else {
			rotated++
		}
	}
	return rotated, lost
}

func poolOf(p rotator.Plan, id string, from, to time.Time) (pool, error) {
	out := pool{Plan: p, ID: id, Chart: chart{from, to}, Verdict: verdictOf(p)}
	if f := p.Flight; f != nil {
		out.Flight = &flight{*f, phases[f.Phase], stampOf(f.Since, p.Zone)}
	}
	told := map[string]int{}
	for _, f := range p.Findings {
		if told[f.Code]++; told[f.Code] <= mostFindings {
			out.Findings = append(out.Findings, f)
		}
	}
	for _, f := range p.Findings {
		if n := told[f.Code]; n > mostFindings {
			out.More = append(out.More, fmt.Sprintf("%s: %d more are left out here; tasuki plan -o json has them all.", f.Code, n-mostFindings))
			delete(told, f.Code)
		}
	}
	var err error
	if out.Months, err = paged(id+"-months", "months", "months.html", monthsOf(p, from, to), mostMonths); err != nil {
		return pool{}, err
	}
	if out.Windows, err = paged(id+"-windows", "windows", "windows.html", occurrencesOf(p), mostWindows); err != nil {
		return pool{}, err
	}
	out.Nodes, err = paged(id+"-nodes", "rows", "nodes.html", nodesOf(p, out.Chart), mostNodes)
	return out, err
}

// phases say what goes on in each phase of a rotation.
var phases = map[string]string{
	rotation.StatePending:  "waits for the replacement",
	rotation.StateDraining: "drains the old node",
	rotation.PhaseRollback: "rolls back",
}

func verdictOf(p rotator.Plan) verdict {
	rotated, lost := counts(p)
	switch {
	case p.Fatal():
		return verdict{"fatal", "No node is rotated: see the fatal findings"}
	case p.Policy == nil:
		return verdict{"warn", "No policy governs it"}
	case lost > 0:
		return verdict{"fatal", fmt.Sprintf("%d lost to expiry, %d rotated", lost, rotated)}
	case rotated > 0:
		return verdict{"ok", fmt.Sprintf("All %d rotations are in time", rotated)}
	}
	return verdict{"ok", "No rotation in this time"}
}

func occurrencesOf(p rotator.Plan) []occurrence {
	started := map[int64]int{}
	for _, t := range p.Forecast {
		if t.Occurrence != nil {
			started[t.Occurrence.Unix()]++
		}
	}
	var out []occurrence
	for _, o := range p.Occurrences {
		out = append(out, occurrence{stampOf(o.Start, p.Zone), stampOf(o.End, p.Zone), duration(o.End.Sub(o.Start)), started[o.Start.Unix()]})
	}
	return out
}

// node is one row of the fleet.
type node struct {
	Name                         string
	Age                          string // at the time of the plan; empty for one that is yet to be born
	Threshold                    string
	Born, Due, Rotates, Deadline stamp
	Margin                       string
	How                          string
	Lost                         bool
	Bar                          bar
}

// nodesOf are those that are lost, then the others in the order of their rotations, then those
// that keep what they have in this time.
func nodesOf(p rotator.Plan, c chart) []node {
	var out []node
	for _, l := range p.Lives {
		n := node{Name: l.NodeClaim, Born: stampOf(l.Created, p.Zone), Due: stampOf(l.Due, p.Zone), Deadline: stampOf(l.Deadline, p.Zone), Bar: c.bar(l)}
		if l.Standing != "" {
			n.Age = duration(c.From.Sub(l.Created))
		}
		if !l.Due.IsZero() {
			n.Threshold = duration(l.Due.Sub(l.Created))
		}
		switch t := l.Turn; {
		case t == nil:
			n.How = "not in this time: " + string(cmp.Or(l.Standing, "unborn"))
		case t.Lost != "":
			n.Lost, n.How = true, t.Lost
		default:
			n.How, n.Rotates, n.Margin = t.Mode, stampOf(t.Start, p.Zone), t.Margin().Round(time.Second).String()
		}
		out = append(out, n)
	}
	slices.SortStableFunc(out, func(a, b node) int {
		return cmp.Compare(rank(a), rank(b))
	})
	return out
}

func rank(n node) int {
	switch {
	case n.Lost:
		return 0
	case n.Rotates.Machine != "":
		return 1
	}
	return 2
}

// duration is one to the minute, as policies and NodePools are written and the arithmetic is shown.
func duration(d time.Duration) string { return d.Truncate(time.Minute).String() }
