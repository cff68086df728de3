package executortest

import (
	"slices"
	"time"
)

// timeline is what there is in a fake, what there was, and what has been accepted and is yet
// to be. A state is never changed; the next one is a copy.
type timeline[S any] struct {
	copy    func(S) S
	history history[S]
	planned S // as it is once everything that was accepted has taken effect
	pending []due[S]
	effects time.Duration // from acceptance until a change takes effect
	reads   time.Duration // how old what a read shows is
}

// history is what there was at times, in their order; the last of it is what there is.
type history[S any] []moment[S]

func (h history[S]) current() S { return h[len(h)-1].state }

// shown is what there was at a time.
func (h history[S]) shown(at time.Time) S {
	for _, m := range slices.Backward(h[1:]) {
		if !m.at.After(at) {
			return m.state
		}
	}
	return h[0].state
}

type moment[S any] struct {
	at    time.Time
	state S
}

// due is an accepted change, and the call that asked for it.
type due[S any] struct {
	at    time.Time
	call  int
	apply func(S)
}

func newTimeline[S any](first S, copy func(S) S) timeline[S] {
	return timeline[S]{copy: copy, history: history[S]{{state: first}}, planned: copy(first)}
}

// accept plans a change. Changes take effect in the order in which they were accepted.
func (t *timeline[S]) accept(now time.Time, call int, apply func(S)) {
	apply(t.planned)
	at := now.Add(t.effects)
	if n := len(t.pending); n > 0 && t.pending[n-1].at.After(at) {
		at = t.pending[n-1].at
	}
	t.pending = append(t.pending, due[S]{at, call, apply})
}

// settle lets what is due take effect, and notes that of the calls that asked for it.
func (t *timeline[S]) settle(now time.Time, calls []Call) {
	for len(t.pending) > 0 && !t.pending[0].at.After(now) {
		d := t.pending[0]
		t.pending = t.pending[1:]
		next := t.copy(t.current())
		d.apply(next)
		t.history = append(t.history, moment[S]{d.at, next})
		calls[d.call].Took = d.at
	}
	if keep := 4096; len(t.history) > 2*keep {
		t.history = slices.Clone(t.history[len(t.history)-keep:])
	}
}

// current is the world as it is.
func (t *timeline[S]) current() S { return t.history.current() }

// shown is the world as a read shows it.
func (t *timeline[S]) shown(now time.Time) S { return t.history.shown(now.Add(-t.reads)) }

// hurry has what was accepted be due.
func (t *timeline[S]) hurry(now time.Time) {
	for i := range t.pending {
		t.pending[i].at = now
	}
}

// alter changes the world by hand. It shows at once, in every read.
func (t *timeline[S]) alter(change func(S)) {
	for _, m := range t.history {
		change(m.state)
	}
	change(t.planned)
}
