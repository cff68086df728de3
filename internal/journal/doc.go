// Package journal is what one agent remembers: the actions that it planned and how they
// ended, the outbox of releases that are still due, and the last epoch that it knew of each
// key (ADR 0008 §3). It is one SQLite file, written ahead and synchronously.
//
// It promises: a marker and the row of its release are durable together; an attempt begins
// and the gate is asked in one transaction; what succeeded or was skipped never runs again;
// one agent at a time uses a file; and one that is not whole is refused rather than guessed
// from. Every change of a row leaves an event.
//
// The times of a row that a call returns are those that this process has set, with its
// monotonic clock; those that are read back, by Load, Rows and Row, are of the wall clock.
package journal
