package vrrp

import (
	"fmt"
	"slices"
	"time"
)

// keeper is the keepalived that writes to the FIFO.
type keeper struct {
	process
	absent  bool          // nobody has the FIFO open for writing
	unfound string        // why there is none
	seekAt  time.Duration // when to look for it, and for others, next

	switches uint64
	beat     time.Duration // when switches last rose
	settled  time.Duration // when one that was frozen has shown for long enough that it runs
}

// doubt is why the words of the keeper may not hold, "" when they do.
func (k *keeper) doubt(w *Watch, now time.Duration) string {
	if k.absent {
		return ""
	}
	if now >= k.seekAt {
		k.seek(w, now)
	}
	if k.pid == 0 {
		return k.unfound
	}
	v, err := w.host.vitals(k.pid)
	if err != nil || v.process != k.process {
		w.lose(fmt.Sprintf("keepalived (process %d) is gone", k.pid))
		*k = keeper{settled: k.settled}
		return ""
	}
	if v.switches != k.switches || !w.leads() { // a backup may sleep for longer
		k.switches, k.beat = v.switches, now
	}
	switch v.state {
	case 'T', 't':
		k.frozen(now + w.advert)
		return fmt.Sprintf("keepalived (process %d) is stopped", k.pid)
	case 'Z', 'X':
		return fmt.Sprintf("keepalived (process %d) is dead", k.pid)
	}
	if now-k.beat > w.patience() {
		k.frozen(now + w.advert)
		return fmt.Sprintf("keepalived (process %d) has not run for 5/2 of its advertisement interval, %s", k.pid, w.advert)
	}
	if now < k.settled {
		return fmt.Sprintf("keepalived (process %d) was held up: it has to run for %s to hear of a rival", k.pid, w.advert)
	}
	return ""
}

// leads reports a MASTER among the instances, which has to wake up to say so.
func (w *Watch) leads() bool {
	return slices.ContainsFunc(w.instances, func(i string) bool { return w.entries[i].word == Master })
}

// frozen withholds belief until a time.
func (k *keeper) frozen(until time.Duration) { k.settled = max(k.settled, until) }

// seek looks for the writer, and for anybody else.
func (k *keeper) seek(w *Watch, now time.Duration) {
	p, err := w.host.writer(w.path, w.fifo.id)
	switch {
	case err != nil:
		k.process, k.unfound, k.seekAt = process{}, err.Error(), now+idle
		w.lose(k.unfound)
	case p != k.process:
		if k.pid != 0 {
			w.lose("another process writes to the notify FIFO now")
		}
		k.process, k.beat, k.seekAt = p, now, now+again
	default:
		k.seekAt = now + again
	}
}
