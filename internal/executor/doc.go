// Package executor is the protocol between the agent and the processes that talk to a
// provider: one process per action, one JSON Request on its standard input, one JSON Result on
// its standard output, within 30 s, in a clean environment.
//
// An executor promises: it asks the provider for no more than its request says; what it
// reports as done it has seen done; and it makes at most one change per process. A move that
// takes two changes ends the first with OutcomeAgain, so that the agent asks the gate between
// them.
package executor
