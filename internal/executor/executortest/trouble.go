package executortest

import "slices"

// trouble is what the suite has happen to the changes that a fake is asked for.
type trouble struct {
	f         *fake
	throttled Fault
}

func (w trouble) Throttle(changes int) {
	w.f.Inject(Rule{Match: Changing, Times: changes, Fault: w.throttled})
}

func (w trouble) LoseAnswers(changes int) {
	w.f.Inject(Rule{Match: Changing, Times: changes, Fault: Fault{Carry: true}})
}

func (w trouble) Hold() (<-chan struct{}, func()) {
	held, gate := make(chan struct{}, 16), make(chan struct{})
	w.f.Before(func(c Call) {
		if c.Changes() {
			held <- struct{}{}
			<-gate
		}
	})
	return held, func() {
		w.f.Before(nil)
		close(gate)
	}
}

// Changes leaves out what ARM refused because of its etag: it was not asked for anything then.
func (w trouble) Changes() (asked, accepted int) {
	for _, c := range w.f.Calls() {
		if c.Changes() && c.Code != "PreconditionFailed" {
			asked++
		}
		if c.Accepted {
			accepted++
		}
	}
	return asked, accepted
}

func (w trouble) IDs() (ids []string) {
	for _, c := range w.f.Calls() {
		if c.ID != "" && !slices.Contains(ids, c.ID) {
			ids = append(ids, c.ID)
		}
	}
	return ids
}
