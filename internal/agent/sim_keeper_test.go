package agent

import (
	"context"
	"slices"
	"time"

	"github.com/tasuki-io/tasuki/internal/vrrp"
)

// simKeeper is the keepalived of a host. It outlives the agent, which hears of it what it has
// written into its FIFO.
type simKeeper struct {
	host     *simHost
	life     int // counts the processes and the FIFOs that they have made
	runs     bool
	fifo     bool // the one that it writes to is there
	frozen   bool // SIGSTOP
	word     vrrp.Word
	priority int
	written  []simWord // and not read
}

// simWord is a line in a FIFO. It can be read from some time on.
type simWord struct {
	word vrrp.Word
	at   time.Duration
}

const (
	simAdvert   = time.Second // advert_int
	simPatience = simAdvert * 5 / 2
	simYield    = 200 * time.Millisecond // as in the package vrrp
	simLower    = vrrp.Word("MASTER_RX_LOWER_PRI")
)

// says writes a word.
func (k *simKeeper) says(word vrrp.Word, late time.Duration) {
	if word != simLower {
		k.word = word
	}
	k.host.node.happens("says " + string(word))
	if k.host.node.read {
		k.host.node.note("keepalived of %s: %s", k.host.node.name, word)
	}
	if k.fifo {
		k.written = append(k.written, simWord{word, k.host.node.clock + late})
	}
}

// starts is a keepalived that is started, or reloaded.
func (k *simKeeper) starts() {
	k.life++
	k.runs, k.fifo, k.frozen, k.written = true, true, false, nil
	k.says(vrrp.Backup, 0)
}

// leads reports a MASTER whose advertisements another host hears.
func (k *simKeeper) leads(to *simHost) bool {
	return k.runs && !k.frozen && k.word == vrrp.Master && k.host.sees(to)
}

// better reports who wins of two that hear each other.
func (k *simKeeper) better(o *simKeeper) bool {
	return k.priority > o.priority || k.priority == o.priority && k.host.node.name > o.host.node.name
}

// thinks has a keepalived draw its conclusions from what it hears. So long later they can be read.
func (k *simKeeper) thinks(late time.Duration) {
	if !k.runs || k.frozen {
		return
	}
	better, worse := false, false
	for _, n := range k.host.node.nodes {
		if n.host != nil && n.host != k.host && n.host.keeper.leads(k.host) {
			ahead := n.host.keeper.better(k)
			better, worse = better || ahead, worse || !ahead
		}
	}
	switch {
	case !k.host.up && k.word != vrrp.Fault:
		k.says(vrrp.Fault, late)
	case !k.host.up:
	case k.word == vrrp.Fault, better && k.word == vrrp.Master:
		k.says(vrrp.Backup, late)
	case worse && k.word == vrrp.Master:
		k.says(simLower, late)
	case k.word == vrrp.Backup && !better:
		k.says(vrrp.Master, late)
	}
}

// elect has everybody agree, as they do when nothing goes wrong any more: the others have heard
// of a MASTER before a new one is.
func (s *sim) elect() {
	var all []*simKeeper
	for _, n := range s.nodes {
		if n.host == nil {
			continue
		}
		k := &n.host.keeper
		if n.host.side = 0; !n.host.up {
			n.host.link(true)
		}
		if k.frozen = false; !k.runs || !k.fifo {
			k.starts()
		}
		all = append(all, k)
	}
	slices.SortFunc(all, func(a, b *simKeeper) int {
		if a.better(b) {
			return -1
		}
		return 1
	})
	for i, k := range all {
		if i > 0 && k.word != vrrp.Backup {
			k.says(vrrp.Backup, simAdvert)
		}
	}
	if len(all) > 0 {
		switch k := all[0]; {
		case k.word == vrrp.Fault:
			k.says(vrrp.Backup, simAdvert)
			k.says(vrrp.Master, 4*simAdvert)
		case k.word != vrrp.Master:
			k.says(vrrp.Master, 4*simAdvert)
		default:
			k.says(simLower, simAdvert)
		}
	}
}

// master is who all others hear of, when nothing goes wrong.
func (s *sim) master() (best *simNode) {
	for _, n := range s.nodes {
		if n.host != nil && (best == nil || n.host.keeper.better(&best.host.keeper)) {
			best = n
		}
	}
	return best
}

// simWatch is what the agent of a host makes of the FIFO, as the package vrrp promises it.
type simWatch struct {
	host     *simHost
	life     int // of the keepalived that it listens to, 0 for none
	word     vrrp.Word
	changed  time.Duration // when the word became another one
	askAt    time.Duration // when keepalived may be asked for the word that is missing
	looked   time.Duration
	doubtful time.Duration // until then, after it was held up
	state    vrrp.State
}

var _ watch = (*simWatch)(nil)

func (w *simWatch) Run(context.Context) { panic("the schedule watches") }

// State is not proven when this process was held up since the last look.
func (w *simWatch) State(instance string) vrrp.State {
	s := w.state
	s.Instance = instance
	if s.Proven && w.host.held && w.host.node.clock-w.looked > simPatience {
		s.Proven, s.Reason = false, "this process was held up"
	}
	return s
}

// look reads what there is. It reports a rival that keepalived has heard.
func (w *simWatch) look() (rival bool) {
	k, now := &w.host.keeper, w.host.node.clock
	if w.host.held && now-w.looked > simPatience {
		w.doubtful = now + simAdvert
		w.host.node.happens("held up")
	}
	w.looked, w.host.held = now, false
	news := false
	lose := func() {
		news = news || w.word != vrrp.Unknown
		w.word, w.askAt = vrrp.Unknown, now+simYield
	}
	if w.life != k.life {
		lose()
		w.life = k.life
	}
	for len(k.written) > 0 && k.written[0].at <= now {
		word := k.written[0].word
		k.written = k.written[1:]
		news = true
		switch {
		case word == simLower && w.word != vrrp.Master: // a word is missing
			lose()
		case word == simLower:
			rival = true
		case word != w.word:
			w.word, w.changed = word, now
		}
	}
	if !k.runs || !k.fifo {
		lose()
		w.life = 0
	} else if w.word == vrrp.Unknown && !k.frozen && now >= w.askAt && len(k.written) == 0 {
		w.word, w.changed, news = k.word, now, true
		w.host.node.happens("keepalived is asked")
	}
	s := vrrp.State{Instance: simInstance, Word: w.word, Sequence: w.state.Sequence}
	switch {
	case w.word != vrrp.Master:
		s.Reason = "keepalived says " + string(w.word)
	case k.frozen:
		w.doubtful = now + simAdvert
		s.Reason = "keepalived is stopped"
		w.host.node.happens("keepalived is stopped")
	case now < w.doubtful:
		s.Reason = "it was held up"
	case now-w.changed < simYield:
		s.Reason = "it has just become MASTER"
	default:
		s.Proven = true
	}
	if news || s != w.state {
		s.Sequence++
	}
	w.state = s
	return rival
}

// next is when time alone shows the watch something new, or 0.
func (w *simWatch) next() (next time.Duration) {
	k, now := &w.host.keeper, w.host.node.clock
	soon := func(at time.Duration) {
		if at > now && (next == 0 || at < next) {
			next = at
		}
	}
	if len(k.written) > 0 {
		soon(k.written[0].at)
	}
	if w.word == vrrp.Unknown && k.runs {
		soon(w.askAt)
	}
	if w.word == vrrp.Master && !w.state.Proven {
		soon(w.changed + simYield)
		soon(w.doubtful)
	}
	return next
}
