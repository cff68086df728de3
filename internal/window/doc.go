// Package window turns recurring maintenance windows into instants.
//
// A [Rule] is what an operator writes: a wall-clock start and end on some
// weekdays of one time zone. A [Schedule] is the union of rules. It opens and
// closes at instants, and an [Occurrence] is one stretch [Start, End) during
// which it stays open. Occurrences that overlap or touch are one occurrence,
// whichever rule or zone they come from, so a window that never closes is one
// occurrence without edges (§3.1).
//
// # Which instants
//
// An occurrence belongs to a civil date of its rule's zone: the one on which
// it starts. An end at or before the start lies on the next date.
//
//   - A start or an end inside an hour that the clocks skip is the first
//     instant after the skipped hour. If that leaves nothing, the occurrence
//     keeps its declared length, counted from that instant.
//   - Of a wall-clock time that is shown twice, a start takes the first
//     instant and an end takes the last.
//
// # How far it looks
//
// An edge more than 400 days from the instant asked about is not looked for:
// that side reads as unbounded. Every rule repeats weekly and daylight saving
// repeats yearly, so a schedule that stays open for longer stays open.
//
// The package is pure: it reads no clock, and its only input besides its
// arguments is the time zone database. A command that may run where none is
// installed imports time/tzdata.
package window
