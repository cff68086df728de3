package reference

import (
	"fmt"
	"testing"
	"time"

	"github.com/tasuki-io/tasuki/deploy"
	"github.com/tasuki-io/tasuki/internal/manifest"
	"github.com/tasuki-io/tasuki/internal/rotator"
)

// node is one of the NodePool of the examples, born at noon of a Sunday.
const node = `apiVersion: karpenter.sh/v1
kind: NodeClaim
metadata: {name: api-x7k2p, creationTimestamp: "2026-11-29T12:00:00Z", labels: {karpenter.sh/nodepool: api}}
spec:
  expireAfter: 336h
  terminationGracePeriod: 1h
  nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}
  requirements: []
`

// The life of a node under examples/policy.yaml, as tasuki plan has it.
func TestPictureOfALife(t *testing.T) {
	reader, err := manifest.NewReader(rotator.Kinds(deploy.CRD())...)
	if err != nil {
		t.Fatal(err)
	}
	files := []manifest.File{{Name: "node.yaml", Text: []byte(node)}}
	for _, name := range []string{"policy.yaml", "nodepool.yaml"} {
		files = append(files, manifest.File{Name: name, Text: []byte(read(t, "../../examples/"+name))})
	}
	objects, err := reader.ReadFiles(files)
	if err != nil {
		t.Fatal(err)
	}
	all, _, err := rotator.ObjectsOf(objects)
	if err != nil {
		t.Fatal(err)
	}
	born := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	plans, err := all.PlansOf(nil, born, born.Add(336*time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	plan := plans[0]
	life := plan.Lives[0]
	tRot, period := duration(t, plan.TRot), duration(t, plan.WindowPeriod)
	latest := life.Deadline.Add(-tRot)

	const left, wide = 30, 860
	x := func(at time.Time) int {
		return left + int(float64(wide)*float64(at.Sub(life.Created))/float64(life.Deadline.Sub(life.Created)))
	}
	p := &picture{width: left + wide + 30, height: 290, title: "The life of one node, and the windows in which it may be replaced"}
	p.text(left, 24, "strong", "expireAfter %s, windows Wed and Sat 02:00 to 06:00 in Tokyo, minRotationChances %d", plan.ExpireAfter, plan.Chances)

	for at := life.Created.Truncate(24 * time.Hour).Add(24 * time.Hour); at.Before(life.Deadline); at = at.Add(24 * time.Hour) {
		p.line(x(at), 52, x(at), 182, "edge")
		p.text(x(at)+4, 196, "small soft", "%s", at.Format("Mon 2"))
	}
	chances := 0
	for _, w := range plan.Occurrences {
		if w.Start.Before(life.Created) || w.Start.After(life.Deadline) {
			continue
		}
		p.rect(x(w.Start), 52, max(3, x(w.End)-x(w.Start)), 130, "open")
		switch {
		case w.Start.Before(life.Due):
			p.text(x(w.Start), 46, "small mid soft", "not due")
		case !w.Start.After(latest):
			chances++
			p.text(x(w.Start), 46, "small mid strong", "chance %d", chances)
		}
	}
	if chances < plan.Chances || life.Turn == nil || life.Turn.Lost != "" {
		t.Fatalf("%d chances, and the plan promises %d; the forecast is %+v", chances, plan.Chances, life.Turn)
	}
	p.rect(x(life.Created), 100, x(life.Due)-x(life.Created), 34, "calm")
	p.rect(x(life.Due), 100, x(latest)-x(life.Due), 34, "due")
	p.rect(x(latest), 100, max(4, x(life.Deadline)-x(latest)), 34, "over")
	p.text((x(life.Created)+x(life.Due))/2, 122, "mid", "younger than ageThreshold %s", plan.AgeThreshold)
	p.add(`<path d="M%d 84l7 12h-14z" class="mark"/>`, x(life.Turn.Start))
	p.text(x(life.Turn.Start)-10, 92, "small strong end", "the rotation starts, %s before the deadline", plan.Forecast[0].Margin)
	p.text(x(life.Due)+4, 150, "small", "due")
	p.text(x(life.Deadline), 150, "small end", "deadline")

	// The arithmetic, right to left.
	from := latest
	p.line(x(from), 212, x(from), 236, "rule")
	for k := plan.Chances; k > 0; k-- {
		to := from.Add(-period)
		p.line(x(to), 212, x(to), 236, "rule")
		p.line(x(to), 224, x(from), 224, "rule")
		p.text((x(to)+x(from))/2, 218, "small mid", "window period P %s", plan.WindowPeriod)
		from = to
	}
	if !from.Equal(life.Due) {
		t.Errorf("counted back from the deadline, the node is due at %s, and the plan says %s", from, life.Due)
	}
	p.text(x(life.Deadline), 250, "small end", "and t_rot %s, the bound of one rotation", plan.TRot)
	p.text(left, 276, "", "ageThreshold = %s - (%d x %s + %s) = %s", plan.ExpireAfter, plan.Chances, plan.WindowPeriod, plan.TRot, plan.AgeThreshold)
	p.about = fmt.Sprintf("An axis of 14 days, from the birth of a node at %s to its deadline. Maintenance windows are bars on it, twice a week. "+
		"For the first %s the node is younger than the ageThreshold, and the windows in that time are not for it. From then until %s before the deadline it is due, "+
		"and %d windows open. The rotation starts in the first of them, %s before the deadline. Below, the ageThreshold is counted back: from the deadline the bound of one rotation, then %d window periods of %s.",
		born.Format("Mon 15:04 MST"), plan.AgeThreshold, plan.TRot, chances, plan.Forecast[0].Margin, plan.Chances, plan.WindowPeriod)
	p.keep(t, "life.svg")
}

func duration(t *testing.T, text string) time.Duration {
	t.Helper()
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}
