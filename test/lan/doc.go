// Package lan runs two real keepalived on one LAN of network namespaces, each with a driver
// that joins internal/vrrp and internal/executor/linux the way the agent does, and an
// observer that asks by ARP who has the address, twenty times a second, and counts the MAC
// addresses that answer. It needs root, iproute2 and keepalived.
package lan
