package rotation

import (
	"time"

	"github.com/tasuki-io/tasuki/internal/window"
)

// Outlook is what is to be expected of one NodeClaim.
type Outlook struct {
	NodeClaim string    `json:"nodeClaim"`
	Node      string    `json:"node,omitempty"`
	Created   time.Time `json:"created"`
	Due       time.Time `json:"due,omitzero"`      // past which it may be rotated
	Deadline  time.Time `json:"deadline,omitzero"` // when Karpenter expires it
	Latest    time.Time `json:"latest,omitzero"`   // t_rot before that: a rotation that starts no later is in time

	// Chances are the windows that are left to start in, between what time alone has to take out
	// of the way and Latest. What somebody has to take away counts as gone.
	Chances int      `json:"chances"`
	Windows []Window `json:"windows"` // the first of them

	Start time.Time `json:"start,omitzero"` // of its rotation, as Forecast has it
	Mode  string    `json:"mode,omitempty"`
	Lost  string    `json:"lost,omitempty"` // what the forecast says keeps it until it expires
}

// Window is an occurrence of the maintenance windows. An edge that is not known is zero.
type Window struct {
	Start time.Time `json:"start,omitzero"`
	End   time.Time `json:"end,omitzero"`
}

// mostWindows is how many windows an outlook shows.
const mostWindows = 3

func (s *Snapshot) outlook(p *Policy, c *NodeClaim, inTheWay []Blocker, now time.Time) *Outlook {
	o := &Outlook{NodeClaim: c.Name, Node: c.NodeName, Created: c.Created, Windows: []Window{}}
	t := p.terms(c)
	if !t.Expires {
		return o
	}
	o.Due, o.Deadline = c.Created.Add(t.Threshold), c.Created.Add(*c.ExpireAfter)
	o.Latest = o.Deadline.Add(-t.TRot)
	from := later(now, o.Due)
	for _, b := range inTheWay {
		if b.Reason != string(ReasonOutOfWindow) {
			from = later(from, b.Opens.Truncate(time.Second)) // past a threshold is a moment after it
		}
	}
	if c.Deleting.IsZero() && p.Invalid == "" {
		for _, w := range p.Windows.Between(from, o.Latest) {
			if o.Chances++; o.Chances <= mostWindows {
				o.Windows = append(o.Windows, Window(w))
			}
		}
		if p.Measure.Continuous { // one window without an end counts as many as the controller looks
			o.Chances = max(0, floorDiv(o.Latest.Sub(from), window.Tick))
		}
	}
	for _, turn := range Forecast(*s, now, later(now, o.Deadline).Add(time.Second)) {
		if turn.NodeClaim == c.Name {
			o.Start, o.Mode, o.Lost = turn.Start, turn.Mode, turn.Lost
			break
		}
	}
	if o.Lost != "" {
		o.Start, o.Mode = time.Time{}, ""
	}
	return o
}
