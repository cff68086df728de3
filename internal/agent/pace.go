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
// many. From then on they begin one after the other, at a rate that falls with a refusal and rises
// with each success, so that it stays near what the provider takes.
type pace struct {
	rate     float64   // per second; 0 is as they come
	speed    float64   // how many have begun within a second, or so
	begun    time.Time // when the last one has
	next     time.Time // when the next one may begin
	paused   time.Time // until when none was to begin after the last refusal
	refusals int       // since the last success
}

const (
	slower  = 0.7 // times the rate, with a refusal
	faster  = 0.1 // more per second, with a success; or a twentieth, when that is less
	slowest = 0.2 // per second

	longestPatience = 5 * time.Minute // whatever a provider asks for
	forgetting      = time.Minute     // after the last refusal
)

// gap is from one begin to the next.
func (p *pace) gap() time.Duration {
	if p.rate == 0 {
		return 0
	}
	return time.Duration(float64(time.Second) / p.rate)
}

// begins takes note of a call that begins.
func (p *pace) begins(now time.Time) {
	p.speed = 1 + p.speed*math.Exp(-now.Sub(p.begun).Seconds())
	p.begun, p.next = now, now.Add(p.gap())
}

// succeeds takes note of one that the provider has carried out.
func (p *pace) succeeds() {
	p.refusals = 0
	p.rate += min(faster, p.rate/20)
}

// refuses takes note of one that the provider has refused with the wish to be left alone for a time.
// The rate falls once for all that were under way together. As long as none succeeds the rate is not
// the trouble, and what grows is the pause.
func (p *pace) refuses(begun, now time.Time, wish time.Duration, jitter func(time.Duration) time.Duration) {
	p.waits(now.Add(min(wish, longestPatience)))
	if begun.Before(p.paused) {
		return
	}
	if p.rate == 0 {
		p.rate = p.speed
	}
	if p.refusals == 0 {
		p.rate = max(slowest, slower*p.rate)
	}
	p.waits(now.Add(max(p.gap(), jitter(min(time.Second<<min(p.refusals, 10), time.Minute)))))
	p.paused = p.next
	p.refusals++
}

func (p *pace) waits(until time.Time) {
	if until.After(p.next) {
		p.next = until
	}
}

// over reports a pace of which the provider has refused nothing for long.
func (p *pace) over(now time.Time) bool {
	return p.rate > 0 && now.Sub(p.paused) >= max(forgetting, 32*p.gap())
}

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
func (a *Agent) slowed() map[string]capture.Pace {
	var slowed map[string]capture.Pace
	for l, p := range a.paces {
		if p.rate > 0 && !l.reads {
			if slowed == nil {
				slowed = map[string]capture.Pace{}
			}
			slowed[l.profile] = capture.Pace{Next: p.next, Gap: p.gap()}
		}
	}
	return slowed
}
