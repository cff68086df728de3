// Package linux captures addresses on a LAN by proxy ARP and proxy NDP: it places proxy
// neighbour entries on an interface of this host, so that the host answers for an address
// that lives elsewhere, and announces them (ADR 0008 §5).
//
// It promises: an entry is placed only for an address to which this host has a way that does
// not lead back out of the same interface; what it places carries Protocol, and nothing else
// is ever removed; Withdraw tries everything, whatever of it fails.
//
// It places no routes and invents no next hop: the way to the address is that of the overlay
// or of the underlay, whose routes are not ours. proxy_arp is not needed beside entries and
// is never turned on; Withdraw turns it off, as a host with proxy_arp answers for everything.
// proxy_ndp is needed, is turned on with the first IPv6 entry, and off with the last.
//
// The caller has to hold the authority: that of the local VRRP MASTER. Nothing here asks who
// else answers, and no kernel and no LAN checks an epoch.
//
// It works in the network namespace of the calling thread, and needs CAP_NET_ADMIN, and
// CAP_NET_RAW to announce.
package linux
