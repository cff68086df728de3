package lab

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// ports of one lab, all below the range from which the kernel picks the local port of outgoing connections: a connection
// cannot take the port of a component that is stopped for a while.
type ports struct {
	Etcd              int `json:"etcd"`
	EtcdPeer          int `json:"etcdPeer"`
	EtcdHealth        int `json:"etcdHealth"`
	APIServer         int `json:"apiServer"`
	ControllerManager int `json:"controllerManager"`
	Scheduler         int `json:"scheduler"`
	KWOK              int `json:"kwok"`
	KarpenterHealth   int `json:"karpenterHealth"`
	KarpenterMetrics  int `json:"karpenterMetrics"`
}

const (
	lowestPort  = 20000
	highestPort = 32000
)

// pickPorts is choosePorts, but for a test of what happens when a port is taken.
var pickPorts = choosePorts

// choosePorts finds free ports. Another process may take one before its component listens; Up then starts over with
// other ports.
func choosePorts() (ports, error) {
	var p ports
	wanted := []*int{
		&p.Etcd, &p.EtcdPeer, &p.EtcdHealth, &p.APIServer, &p.ControllerManager, &p.Scheduler, &p.KWOK,
		&p.KarpenterHealth, &p.KarpenterMetrics,
	}
	// Held until all are found, so that none is found twice.
	var held []net.Listener
	defer func() {
		for _, l := range held {
			l.Close()
		}
	}()
	for tries := 0; len(held) < len(wanted); tries++ {
		if tries == 1000 {
			return ports{}, fmt.Errorf("no %d free ports between %d and %d: stop what listens there", len(wanted), lowestPort, highestPort)
		}
		port := lowestPort + rand.IntN(highestPort-lowestPort)
		// Every interface, because Karpenter listens on every interface.
		l, err := net.Listen("tcp", ":"+strconv.Itoa(port))
		if err != nil {
			continue
		}
		*wanted[len(held)] = port
		held = append(held, l)
	}
	return p, nil
}

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
