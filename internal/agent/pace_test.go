package agent

import (
	"testing"
	"time"

	"github.com/tasuki-io/tasuki/internal/capture"
	"github.com/tasuki-io/tasuki/internal/executor"
)

// bucket is what a provider takes: fifty calls at once, and then so many per second.
type bucket struct {
	rate, tokens float64
	at           time.Time
}

func (b *bucket) takes(now time.Time) bool {
	b.tokens, b.at = min(50, b.tokens+b.rate*now.Sub(b.at).Seconds()), now
	if b.tokens < 1 {
		return false
	}
	b.tokens--
	return true
}

// call is one that is under way.
type call struct {
	begun, ends time.Time
	taken       bool
}

// crowd has calls begin as their pace says, sixteen at once, with 8 ms for a process to start and some
// time for an answer. It returns after how long the last one was taken, and how many were refused.
func crowd(n int, b *bucket, answers time.Duration) (took time.Duration, refused int) {
	p, start := &pace{}, time.Unix(0, 0)
	now, under := start, []call{}
	b.tokens, b.at = 50, start
	for waiting := n; waiting+len(under) > 0; {
		if waiting > 0 && len(under) < abreast && !now.Before(p.next) {
			p.begins(now)
			under = append(under, call{now, now.Add(answers), b.takes(now)})
			waiting, now = waiting-1, now.Add(8*time.Millisecond)
			continue
		}
		now = now.Add(time.Millisecond)
		if p.over(now) {
			p = &pace{}
		}
		for len(under) > 0 && !now.Before(under[0].ends) {
			if under[0].taken {
				p.succeeds()
			} else {
				p.refuses(under[0].begun, now, 0, whole)
				refused, waiting = refused+1, waiting+1
			}
			under = under[1:]
		}
	}
	return now.Sub(start), refused
}

// Calls are as fast as the provider lets them, and few of them are refused, whatever its limit is.
func TestAPaceIsThatOfTheProvider(t *testing.T) {
	for _, rate := range []float64{2, 5, 10, 20, 50, 100, 1000} {
		for _, answers := range []time.Duration{20 * time.Millisecond, 100 * time.Millisecond} {
			took, refused := crowd(400, &bucket{rate: rate}, answers)
			if most := time.Duration(1.1*350/rate*1e9) + 3400*time.Millisecond; took > most || refused > 400/3 {
				t.Errorf("%g per second, answers after %s: it takes %s with %d refusals; want %s, and one refusal for three calls", rate, answers, took, refused, most)
			}
		}
	}
}

// What was under way together is refused together: that says once that it is too fast.
func TestRefusalsTogetherSlowOnce(t *testing.T) {
	p, now := &pace{}, time.Unix(0, 0)
	for range 16 {
		p.begins(now)
	}
	for range 16 {
		p.refuses(now, now.Add(time.Second), 0, whole)
	}
	if p.rate != cautious || p.refusals != 1 || p.next != now.Add(2*time.Second) {
		t.Errorf("%+v, want %d per second from 2s on", p, cautious)
	}
}

// While nothing is taken, the rate is not the trouble: the pauses get longer, and soon after the last
// one all goes on as before.
func TestAnOutageLeavesTheRate(t *testing.T) {
	p, now := &pace{}, time.Unix(0, 0)
	for i := range 10 {
		p.begins(now)
		p.refuses(now, now, 0, whole)
		if want := min(time.Second<<i, time.Minute); p.next.Sub(now) != want || p.rate != cautious {
			t.Errorf("after %d refusals it pauses for %s, then %g per second; want %s, and %d", i+1, p.next.Sub(now), p.rate, want, cautious)
		}
		if p.over(p.next) {
			t.Error("it is over with its pause")
		}
		now = p.next
	}
	if soon := now.Add(2 * time.Second); !p.over(soon) {
		t.Errorf("two seconds after the last pause it is at %g per second", p.rateAt(soon))
	}
}

// The slowest pace lets 100 calls begin within four seconds after its pause when nothing is refused.
func TestAPaceRecovers(t *testing.T) {
	p, now, n := &pace{rate: slowest}, time.Unix(0, 0), 0
	for p.paused = now; !p.over(now) && n < 100; n++ {
		p.begins(now)
		now = p.next
	}
	if took := now.Sub(p.paused); took > 4*time.Second {
		t.Errorf("it takes %s for %d", took, n)
	}
}

func whole(d time.Duration) time.Duration { return d }

// Once a provider has refused what began together, one attempt begins after the other.
func TestOfAThrottledProfileOneBeginsAfterTheOther(t *testing.T) {
	p := newPlay(t, 1, 3)
	var at []time.Duration
	p.cloud.answer = func(executor.Request) *executor.Result {
		if at = append(at, p.clock); len(at) <= 4 {
			return &executor.Result{Outcome: executor.OutcomeThrottled, Code: "RequestLimitExceeded"}
		}
		return nil
	}
	p.settles()
	if len(at) != 8 {
		t.Fatalf("%d calls, want each of the four twice", len(at))
	}
	for i := 5; i < len(at); i++ {
		if at[i]-at[i-1] < 40*time.Millisecond {
			t.Errorf("calls are made at %s, want a twentieth of a second between them after the fourth", at)
		}
	}
}

// So it is with what is released.
func TestOfReleasesThatAreThrottledOneBeginsAfterTheOther(t *testing.T) {
	p := newPlay(t, 1, 3)
	p.settles()
	var at []time.Duration
	p.cloud.answer = func(q executor.Request) *executor.Result {
		if q.Verb != capture.Unassign {
			return nil
		}
		if at = append(at, p.clock); len(at) <= 3 {
			return &executor.Result{Outcome: executor.OutcomeThrottled, Code: "RequestLimitExceeded"}
		}
		return nil
	}
	p.store.drain("a", true)
	p.settles()
	if len(at) != 6 || len(p.cloud.on) > 0 {
		t.Fatalf("%d calls, and %v is left; want each of the three twice, and nothing", len(at), p.cloud.on)
	}
	if at[2] != at[0] || at[3]-at[2] < time.Second {
		t.Errorf("calls are made at %s, want three at once, and a second without any", at)
	}
	for i := 4; i < len(at); i++ {
		if at[i]-at[i-1] < 40*time.Millisecond {
			t.Errorf("calls are made at %s, want a twentieth of a second between them after the third", at)
		}
	}
}

// A provider that says for how long is left alone for so long, though not for ever.
func TestAProviderIsLeftAloneForAsLongAsItSays(t *testing.T) {
	for wish, want := range map[int]time.Duration{0: time.Second, 20: 20 * time.Second, 9999: longestPatience} {
		p := newPlay(t, 1, 1)
		var at []time.Duration
		p.cloud.answer = func(q executor.Request) *executor.Result {
			if at = append(at, p.clock); len(at) == 1 {
				return &executor.Result{Outcome: executor.OutcomeThrottled, RetryAfter: wish}
			}
			return nil
		}
		p.settles()
		if p.isOn("eni-a"); at[len(at)-1]-at[0] < want {
			t.Errorf("it says %d s, and is asked again after %s", wish, at[len(at)-1]-at[0])
		}
	}
}

// One address that is always refused keeps no other waiting for long, and does not wait for longer
// than the others when that is over.
func TestWhoIsAlwaysRefusedIsInNobodysWay(t *testing.T) {
	p := newPlay(t, 1, 3)
	healed := time.Duration(-1)
	p.cloud.answer = func(q executor.Request) *executor.Result {
		if q.Address != simAddr(1) || healed >= 0 {
			return nil
		}
		if p.cloud.on[simAddr(2)] != "" && p.cloud.on[simAddr(3)] != "" && p.clock > 10*time.Minute {
			healed = p.clock
		}
		return &executor.Result{Outcome: executor.OutcomeThrottled, Code: "RequestLimitExceeded"}
	}
	p.settles()
	if p.isOn("eni-a"); p.told("action failed") || healed < 0 {
		t.Errorf("what is throttled has failed, or is done: %s", healed)
	}
	for _, row := range p.node("a").disk.rows {
		if row.Key.Address.IsValid() && row.Key.Address != simAddr(1) && row.Attempts > 1 {
			t.Errorf("%s takes %d attempts", row.ID(), row.Attempts)
		}
	}
	if !p.told("the provider throttles: its calls begin one after the other") {
		t.Error("nobody is told")
	}
}

// What is changed and what is read, and each profile, has a pace of its own.
func TestLanesAreApart(t *testing.T) {
	p := newPlay(t, 1, 1)
	p.settles()
	a := p.node("a").loop
	nic, now := a.targets()[0], a.now()
	a.heard(lane{profile: "other"}, executor.OutcomeThrottled, 0, now, now)
	a.heard(readsOf(nic), executor.OutcomeThrottled, 0, now, now)
	if slow := a.slowed(a.now()); len(slow) != 1 || slow["other"].Next.Sub(now) < time.Second {
		t.Errorf("paces of changes: %v, want one of the other profile", slow)
	}
	clear(a.looks)
	jobs, next := a.lookAround(capture.Decision{})
	if len(jobs) > 0 || next.Sub(now) < time.Second {
		t.Errorf("%d looks begin, and the next in %s", len(jobs), next.Sub(now))
	}
	p.clock += time.Hour
	if a.hurry(a.now()); len(a.slowed(a.now())) > 0 || !p.told("the provider throttles no more") {
		t.Errorf("it is slow an hour later: %v", a.slowed(a.now()))
	}
	if jobs, _ = a.lookAround(capture.Decision{}); len(jobs) != 1 {
		t.Errorf("%d looks begin, want one", len(jobs))
	}
}
