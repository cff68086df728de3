package vrrp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// The pace of a Watch.
const (
	tick  = 100 * time.Millisecond // how often everything is looked at
	grace = 200 * time.Millisecond // how long a new FIFO may tell by itself before keepalived is asked
	again = 5 * time.Second        // how often keepalived is asked, and other readers are looked for
	idle  = 500 * time.Millisecond // how often a writer is looked for that is not found
	yield = 200 * time.Millisecond // how long a new MASTER leaves to the one before it to withdraw
)

// Watch reads one notify FIFO.
type Watch struct {
	path      string
	instances []string
	advert    time.Duration
	changed   func(State)
	host      host

	// What Run alone uses.
	fifo    *fifo
	entries map[string]*entry
	keeper  keeper
	answer  func() map[string]line // of a keepalived that was asked, nil if none was
	askAt   time.Duration          // when it may be asked next
	trouble string                 // why it could not be

	mu     sync.Mutex
	states map[string]State
	looked time.Duration // when the last look began
}

// New makes a Watch of the FIFO that keepalived's vrrp_notify_fifo names, spelled the same. A
// FIFO has one Watch, of all of its instances: two would take words from each other.
// advert is the longest advert_int of the instances; zero is 1 s, keepalived's default.
// changed, if any, is called by Run with each State whose Sequence has risen; nothing is
// read meanwhile.
func New(fifo string, advert time.Duration, changed func(State), instances ...string) (*Watch, error) {
	switch {
	case !filepath.IsAbs(fifo):
		return nil, fmt.Errorf("notify FIFO %q: give its whole path", fifo)
	case len(instances) == 0 || slices.Contains(instances, ""):
		return nil, fmt.Errorf("notify FIFO %s: name the VRRP instances to watch (%q)", fifo, instances)
	case advert < 0:
		return nil, fmt.Errorf("notify FIFO %s: the advertisement interval %s is negative", fifo, advert)
	}
	w := &Watch{path: fifo, instances: slices.Clone(instances), advert: cmp.Or(advert, time.Second), changed: changed, host: machine{},
		entries: map[string]*entry{}, states: map[string]State{}}
	for _, i := range instances {
		w.entries[i] = &entry{reason: "the notify FIFO has not been read yet"}
		w.states[i] = w.state(i, "")
	}
	return w, nil
}

// Run watches until ctx ends, and then takes all proof back.
func (w *Watch) Run(ctx context.Context) {
	for ctx.Err() == nil {
		w.look()
		if w.fifo == nil || w.keeper.absent {
			select {
			case <-ctx.Done():
			case <-time.After(tick):
			}
			continue
		}
		w.fifo.wait(tick)
	}
	w.drop("the notify FIFO is not watched any more")
	w.publish("")
}

// State is what is known now. It is not proven when Run has not looked for a while, as in a
// process that was frozen.
func (w *Watch) State(instance string) State {
	w.mu.Lock()
	defer w.mu.Unlock()
	s, ok := w.states[instance]
	switch {
	case !ok:
		return State{Instance: instance, Reason: "nobody watches this instance"}
	case s.Proven && w.host.now()-w.looked > w.patience():
		s.Proven, s.Reason = false, "the notify FIFO has not been read for too long: this process was held up"
	}
	return s
}

// patience is how long a MASTER may be silent. Its backups wait for three intervals and a
// little more.
func (w *Watch) patience() time.Duration { return w.advert * 5 / 2 }

// look reads all that there is and draws the conclusions.
func (w *Watch) look() {
	now := w.host.now()
	w.mu.Lock()
	last := w.looked
	w.looked = now
	w.mu.Unlock()
	if last > 0 && now-last > w.patience() {
		w.keeper.frozen(now + w.advert) // so was this process, and maybe the machine
	}

	w.read(now)
	doubt := ""
	if w.fifo != nil {
		doubt = w.keeper.doubt(w, now)
	}
	if w.keeper.pid != 0 {
		w.ask(now)
	}
	w.publish(doubt)
}

// read takes the lines of the FIFO, and drops a FIFO that is not the one any more.
func (w *Watch) read(now time.Duration) {
	if w.fifo == nil {
		f, err := openFIFO(w.path)
		if err != nil {
			w.lose(err.Error())
			return
		}
		w.fifo, w.keeper, w.askAt = f, keeper{settled: w.keeper.settled}, now+grace
	}
	// What an answer says was so before the lines that are read after it.
	var answer map[string]line
	if w.answer != nil {
		answer = w.answer()
	}
	lines, err := w.fifo.read()
	for _, text := range lines {
		w.line(text)
	}
	switch here, gone := identify(w.path); {
	case errors.Is(err, errClosed) && w.keeper.pid == 0 && gone == nil && here == w.fifo.id:
		w.keeper.absent = true // it may come yet
		w.lose(err.Error())
		return
	case errors.Is(err, errOverflow):
		w.lose(err.Error())
	case err != nil:
		w.drop(err.Error())
		return
	case gone != nil || here != w.fifo.id:
		w.drop(fmt.Sprintf("%s is not the FIFO any more that keepalived has opened: reload keepalived", w.path))
		return
	}
	w.keeper.absent = false
	if answer != nil && w.answer != nil {
		w.answer = nil
		w.believe(answer)
	}
}

// line takes one line into account. One that cannot be read might have been about any
// instance.
func (w *Watch) line(text string) {
	l, err := parse(text)
	if err != nil {
		w.lose("the notify FIFO holds what keepalived does not write: " + err.Error())
		return
	}
	if e := w.entries[l.name]; e != nil && !l.group {
		e.say(l, time.Now(), w.host.now())
	}
}

// believe takes the answer of a keepalived for the instances that have no word since it was
// asked.
func (w *Watch) believe(answer map[string]line) {
	for _, i := range w.instances {
		e := w.entries[i]
		if e.word != Unknown {
			continue
		}
		if l, ok := answer[i]; ok {
			e.say(l, time.Now(), w.host.now())
		} else {
			e.lose(fmt.Sprintf("keepalived has no vrrp_instance %s", i), time.Now())
		}
	}
}

// ask asks a keepalived for the words that are missing.
func (w *Watch) ask(now time.Duration) {
	unknown := slices.ContainsFunc(w.instances, func(i string) bool { return w.entries[i].word == Unknown })
	if !unknown || now < w.askAt {
		return
	}
	w.askAt = now + again
	w.trouble = ""
	answer, err := w.host.ask(w.keeper.process, w.path)
	if err != nil {
		w.trouble = "; " + err.Error()
		return
	}
	w.answer = answer
}

// drop closes the FIFO and takes every word back.
func (w *Watch) drop(reason string) {
	if w.fifo != nil {
		w.fifo.close()
		w.fifo = nil
	}
	w.keeper = keeper{settled: w.keeper.settled}
	w.lose(reason)
}

// lose takes every word back, and what a keepalived that was asked before would answer.
func (w *Watch) lose(reason string) {
	w.answer, w.trouble = nil, ""
	for _, i := range w.instances {
		w.entries[i].lose(reason, time.Now())
	}
}

// publish makes the states that State returns.
func (w *Watch) publish(doubt string) {
	var news []State
	w.mu.Lock()
	for _, i := range w.instances {
		s, was := w.state(i, doubt), w.states[i]
		s.Sequence = was.Sequence
		if e := w.entries[i]; e.told == e.news && s == was {
			continue
		}
		w.entries[i].told = w.entries[i].news
		s.Sequence++
		w.states[i] = s
		news = append(news, s)
	}
	w.mu.Unlock()
	if w.changed != nil {
		for _, s := range news {
			w.changed(s)
		}
	}
}

// state is that of an instance whose keepalived is in doubt, or, with "", in none.
func (w *Watch) state(instance, doubt string) State {
	e := w.entries[instance]
	s := State{Instance: instance, Word: e.word, Priority: e.priority, Since: e.since}
	switch {
	case e.word == Unknown:
		s.Reason = e.reason + w.trouble
	case e.word != Master:
		s.Reason = "keepalived says " + string(e.word)
	case doubt != "":
		s.Reason = doubt
	case w.looked-e.changed < yield:
		s.Reason = "it has just become MASTER: the one before it may not have withdrawn yet"
	default:
		s.Proven = true
	}
	return s
}
