// Package executortest is what executors are tested with: fakes of the providers' APIs, down
// to the wire, so that the official SDKs talk to them; and Run, the one suite that every
// executor passes, in its process and as one.
//
// A fake promises: its answers have the names and the shapes of the real ones; an address is
// on at most one NIC of a subnet, unless a test has put it on two; whatever goes wrong does so because a test said
// it is to; and given a clock and a seed it does the same thing again.
package executortest
