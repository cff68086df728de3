package agent

import (
	"math"
	"time"

	"github.com/tasuki-io/tasuki/internal/capture"
	"github.com/tasuki-io/tasuki/internal/executor"
)

// lane is what a provider limits as one: what is changed with a profile, or what is read.
type lane struct {
	profile string
	reads   bool
}

// what is the word for it.
func (l lane) what() string { return map[bool]string{false: "changes", true: "reads"}[l.reads] }

// pace is how fast the calls of a lane begin: as they come, until the provider refuses one as too
// many. From then on they begin one after the other, at a rate below what it has taken, which rises
// until it refuses again or takes whatever comes.
type pace struct {
	rate     float64   // per second, at the end of the last pause; 0 is as they come
	paused   time.Time // until when none was to begin after the last refusal
	next     time.Time // when the next one may begin
	refused  time.Time // when the last refusal was
	taken    int       // calls that the provider has carried out since
	refusals int       // since it has
}

const (
	cautious = 20  // per second, after the first refusal
	slower   = 0.7 // times what was taken between two refusals
	slowest  = 2   // per second
	heedless = 100 // per second: what is faster begins as it comes

	recovery        = 700 * time.Millisecond // in which the rate rises to e times what it was
	longestPatience = 5 * time.Minute        // whatever a provider asks for
)

// rateAt is how many calls per second may begin.
func (p *pace) rateAt(now time.Time) float64 {
	return p.rate * math.Exp(max(0, now.Sub(p.paused).Seconds()/recovery.Seconds()))
}

// gap is from one begin to the next.
func (p *pace) gap(now time.Time) time.Duration {
	if p.rate == 0 {
		return 0
	}
	return time.Duration(float64(time.Second) / p.rateAt(now))
}

// begins takes note of a call that begins.
func (p *pace) begins(now time.Time) { p.next = now.Add(p.gap(now)) }

// succeeds takes note of one that the provider has carried out.
func (p *pace) succeeds() { p.taken, p.refusals = p.taken+1, 0 }

// refuses takes note of one that the provider has refused with the wish to be left alone for a time.
// What was under way together counts once. As long as none succeeds the rate is not the trouble, and
// what grows is the pause.
func (p *pace) refuses(begun, now time.Time, wish time.Duration, jitter func(time.Duration) time.Duration) {
	p.waits(now.Add(min(wish, longestPatience)))
	if begun.Before(p.paused) {
		return
	}
	switch {
	case p.rate == 0:
		p.rate = cautious
	case p.taken > 0:
		p.rate = min(heedless/2, max(slowest, slower*float64(p.taken)/now.Sub(p.refused).Seconds()))
	}
	p.waits(now.Add(jitter(min(time.Second<<min(p.refusals, 10), time.Minute))))
	p.paused, p.refused, p.taken = p.next, now, 0
	p.refusals++
}

func (p *pace) waits(until time.Time) {
	if until.After(p.next) {
		p.next = until
	}
}

// over reports a pace that keeps nothing back any more.
func (p *pace) over(now time.Time) bool { return p.rateAt(now) >= heedless }

func (a *Agent) pace(l lane) *pace {
	p := a.paces[l]
	if p == nil {
		p = &pace{}
		a.paces[l] = p
	}
	return p
}

// heard takes note of the answer to a call of a lane.
func (a *Agent) heard(l lane, outcome executor.Outcome, wish time.Duration, begun, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	p := a.pace(l)
	switch outcome {
	case executor.OutcomeDone, executor.OutcomeAlready:
		p.succeeds()
	case executor.OutcomeThrottled:
		first := p.rate == 0
		if p.refuses(begun, now, wish, a.jitter); first {
			a.tell.paced(l, p.rate)
		}
	}
}

// hurry ends the paces that are over.
func (a *Agent) hurry(now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for l, p := range a.paces {
		if p.over(now) {
			delete(a.paces, l)
			a.tell.paced(l, 0)
		}
	}
}

// slowed are the paces of what is changed, for a decision.
func (a *Agent) slowed(now time.Time) map[string]capture.Pace {
	var slowed map[string]capture.Pace
	for l, p := range a.paces {
		if p.rate > 0 && !l.reads {
			if slowed == nil {
				slowed = map[string]capture.Pace{}
			}
			slowed[l.profile] = capture.Pace{Next: p.next, Gap: p.gap(now)}
		}
	}
	return slowed
}
