// Package etcd is the claims store of a pool that has more than one host: an etcd cluster.
//
// It promises what a claims.Store does for as long as a majority of the cluster is up; without
// one, every call fails within its time and nothing is bumped. A claim is read by quorum, and
// bumped by a transaction that compares the value and the mod_revision that were read. Epochs
// are our own counter, in the value: the revisions of a cluster begin again when a snapshot is
// restored. Nothing here deletes a claim.
//
// What a Changes says rests on reads alone, so compaction does not concern it; the watch only
// wakes whoever waits. A cluster can only be put back while its members are stopped, and that
// ends the connections to them: after any connection has ended or was left, and whenever
// revisions fall, the cluster is another, or a claim was deleted, Changes tells everything anew
// with a Reset. A store talks to one member, and to the next when that one fails.
//
// Liveness is a key per node on an etcd lease, in whole seconds. A cluster grants no TTL below
// one and a half times its election timeout (2 s by default), however little is asked for.
//
// The keys, under the prefix, are for people, too (etcdctl get --prefix /tasuki/):
//
//	claims/POOL/ADDRESS/DOMAIN  {"epoch":3,"holder":"node-a"}, a NIC's forwarding without POOL and ADDRESS
//	homes/POOL/ADDRESS          {"node":"node-a","site":"tokyo","epoch":1}
//	drains/NODE                 drained
//	alive/NODE                  {"ttl":"10s","term":7,"agent":"host-1/3FQ"}, until its lease ends
package etcd
