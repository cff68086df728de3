// Package vrrp tells whether the local keepalived is MASTER of a VRRP instance, and how that
// is known: the authority of proxy-arp captures (ADR 0008 §5).
//
// It promises: an instance is Proven only while its last word is MASTER, was told by the
// keepalived that holds the notify FIFO open right now, and that process runs. Everything
// else fails closed: no FIFO, no writer, two writers, another reader, a line that cannot be
// read, a FIFO that overflowed, a process that is stopped or has not run for 5/2 of its
// advertisement interval. A new MASTER is proven 200 ms after its word, so that the one before
// it, which hears of it by then, has withdrawn.
//
// Words come from the FIFO in the order in which they were written; the last one wins. A
// keepalived that stays MASTER writes no word after a reload, whatever
// fifo_write_vrrp_states_on_reload says (keepalived 2.2.7), and none for a reader that comes
// late. So when an instance has no word, its keepalived is asked by SIGUSR1 to write its data
// file. The file is believed only if it changed after it was asked, belongs to the user of
// that process, is in its own /tmp, and names the same FIFO; and any word of the FIFO wins
// over it.
//
// What cannot be told: that the whole machine is paused, before it runs again; a process that
// writes lies into the FIFO; and that a FIFO which keepalived did not make, and so does not
// remove, was closed and opened again between two looks, as by a reload. What a reload
// changes is told then, and what it leaves is as it was.
package vrrp
