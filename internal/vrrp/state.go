package vrrp

import "time"

// State is what is known of an instance.
type State struct {
	Instance string
	Word     Word // the last one, Unknown when none counts
	// Proven says that the local keepalived is MASTER, as far as can be told.
	Proven bool
	Reason string // why it is not proven
	// Priority is the effective one, as last said with a word that counts.
	Priority int
	Since    time.Time // when the Word was read
	// Sequence rises with every word and whenever proof is lost or found. A proven state with
	// a higher Sequence has to be asserted again: a rival may have been MASTER in between.
	Sequence uint64
}

// entry is the last word of an instance.
type entry struct {
	word     Word
	priority int
	reason   string // why there is no word
	since    time.Time
	changed  time.Duration // when the word became another one, since boot
	news     uint64        // counts words and losses
	told     uint64        // the news that a State was made of
}

// say takes a line into account.
func (e *entry) say(l line, now time.Time, boot time.Duration) {
	word := l.word
	switch l.word {
	case masterPriority, rxLower:
		if e.word != Master { // a word is missing
			e.lose("keepalived says "+string(l.word)+" of an instance that was not known to be MASTER", now)
			return
		}
		word = Master
	case backupPriority:
		word = Backup // what it says of every state but MASTER
	}
	if e.word != word {
		e.word, e.since, e.changed = word, now, boot
	}
	e.priority, e.reason = l.priority, ""
	e.news++
}

// lose takes the last word back.
func (e *entry) lose(reason string, now time.Time) {
	if e.word == Unknown && e.reason == reason {
		return
	}
	*e = entry{reason: reason, since: now, news: e.news + 1, told: e.told}
}
