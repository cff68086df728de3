package lab

import (
	"net"
	"reflect"
	"testing"
)

func TestPortsAreFreeDistinctAndOutOfTheWayOfConnections(t *testing.T) {
	p, err := choosePorts()
	if err != nil {
		t.Fatal(err)
	}
	seen := make(map[int]string)
	v := reflect.ValueOf(p)
	for i := range v.NumField() {
		name, port := v.Type().Field(i).Name, int(v.Field(i).Int())
		if port < lowestPort || port >= highestPort {
			t.Errorf("%s has port %d: want one in [%d, %d)", name, port, lowestPort, highestPort)
		}
		if other, taken := seen[port]; taken {
			t.Errorf("%s and %s share port %d", name, other, port)
		}
		seen[port] = name
		l, err := net.Listen("tcp", loopback(port))
		if err != nil {
			t.Errorf("the port of %s is not free: %v", name, err)
			continue
		}
		defer l.Close()
	}
}

func TestATakenPortIsToldFromOtherDeaths(t *testing.T) {
	taken := &ComponentError{Lines: []string{"starting", "listen tcp 127.0.0.1:20001: bind: address already in use"}}
	if !taken.portTaken() {
		t.Error("a taken port was not recognized: Up would not try other ports")
	}
	if (&ComponentError{Lines: []string{"open /x: permission denied"}}).portTaken() {
		t.Error("another death was taken for a taken port: Up would try in vain")
	}
}
