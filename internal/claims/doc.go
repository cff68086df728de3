// Package claims is what all agents that serve a pool agree on: who holds each address and
// at which epoch, who is drained, where addresses live, and which nodes are alive.
//
// A Store promises: a claim changes by comparison alone, and is read back by whoever reads
// after; an epoch never falls while the store is itself; everything that is written is durable
// before it is acknowledged. It does not fence: the gate of package capture does, with the
// epochs that the store hands out (ADR 0008 §1, §4).
package claims
