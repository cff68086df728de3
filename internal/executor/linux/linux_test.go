package linux

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/tasuki-io/tasuki/internal/capture"
	"github.com/tasuki-io/tasuki/internal/executor"
)

var (
	four  = netip.MustParseAddr("192.0.2.100")
	other = netip.MustParseAddr("192.0.2.101")
	six   = netip.MustParseAddr("2001:db8::100")
)

// alone runs a test in a network namespace of its own, with an interface lan0, whose other
// end is peer0, and an overlay wan0 by which the addresses are reached.
func alone(t *testing.T) {
	t.Helper()
	if testing.Short() || os.Geteuid() != 0 {
		t.Skip("it needs root, for a network namespace, and no -short")
	}
	runtime.LockOSThread() // and never unlocked: the thread ends with the test, and its namespace with it
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		t.Skipf("this machine gives no network namespace: %v", err)
	}
	for _, c := range []string{
		"link set lo up",
		"link add lan0 type veth peer name peer0", "link set lan0 up", "link set peer0 up",
		"link add wan0 type veth peer name wan1", "link set wan0 up", "link set wan1 up",
		"addr add 192.0.2.1/24 dev lan0", "addr add 10.0.0.1/24 dev wan0",
		"-6 addr add 2001:db8::1/64 dev lan0 nodad", "-6 addr add 2001:db8:1::1/64 dev wan0 nodad",
		"-6 addr add fe80::1/64 dev lan0 nodad",
		"route add 192.0.2.100/32 via 10.0.0.2", "route add 192.0.2.101/32 via 10.0.0.2",
		"-6 route add 2001:db8::100/128 via 2001:db8:1::2",
	} {
		ip(t, strings.Fields(c)...)
	}
	write(t, "/proc/sys/net/ipv4/conf/all/forwarding", "0") // of the namespace that this one was made from
	write(t, "/proc/sys/net/ipv6/conf/all/forwarding", "0")
}

func ip(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.Command("ip", args...).CombinedOutput()
	if err != nil {
		t.Fatalf("ip %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

func write(t *testing.T, path, value string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(value), 0); err != nil {
		t.Fatal(err)
	}
}

func want(t *testing.T, r executor.Result, o executor.Outcome, code string) {
	t.Helper()
	if r.Outcome != o || r.Code != code || r.Calls == 0 && code != "NoInterface" {
		t.Fatalf("it ended with %+v, want it %s, with the code %q", r, o, code)
	}
}

func do(v capture.Verb, a netip.Addr) executor.Result {
	return Execute(context.Background(), executor.Request{Version: executor.Version, ID: "x", Verb: v, NIC: "lan0", Address: a})
}

func TestAnAddressIsCapturedAndReleased(t *testing.T) {
	alone(t)
	want(t, do(capture.EnableForwarding, netip.Addr{}), executor.OutcomeDone, "")
	want(t, do(capture.EnableForwarding, netip.Addr{}), executor.OutcomeAlready, "")
	want(t, do(capture.Assign, four), executor.OutcomeDone, "")
	want(t, do(capture.Assign, four), executor.OutcomeAlready, "")

	r := do(executor.Describe, netip.Addr{})
	want(t, r, executor.OutcomeDone, "")
	wanted := &executor.NIC{Primary: netip.MustParseAddr("192.0.2.1"), Addresses: []netip.Addr{four}, Forwards: true}
	if diff := cmp.Diff(wanted, r.NIC, cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" {
		t.Error(diff)
	}
	want(t, do(capture.DisableForwarding, netip.Addr{}), executor.OutcomeRetry, "StillCaptured")
	want(t, do(capture.Unassign, four), executor.OutcomeDone, "")
	want(t, do(capture.Unassign, four), executor.OutcomeAlready, "")
	want(t, do(capture.DisableForwarding, netip.Addr{}), executor.OutcomeDone, "")
	want(t, do(capture.DisableForwarding, netip.Addr{}), executor.OutcomeAlready, "")
	if left := ip(t, "neigh", "show", "proxy"); left != "" {
		t.Errorf("there is %s left", left)
	}
}

func TestASilentAssignAnnouncesNothing(t *testing.T) {
	alone(t)
	want(t, do(capture.EnableForwarding, netip.Addr{}), executor.OutcomeDone, "")
	want(t, do(capture.Assign, four), executor.OutcomeDone, "")
	q := executor.Request{Version: executor.Version, ID: "x", Verb: capture.Assign, NIC: "lan0", Address: four}
	loud := Execute(t.Context(), q)
	q.Silent = true
	silent := Execute(t.Context(), q)
	want(t, silent, executor.OutcomeAlready, "")
	if got := loud.Calls - silent.Calls; got != announcements {
		t.Errorf("it has sent %d announcements fewer, want %d", got, announcements)
	}
}

func TestAnIPv6AddressIsCapturedWithProxyNDP(t *testing.T) {
	alone(t)
	write(t, "/proc/sys/net/ipv6/conf/lan0/accept_ra", "1")
	want(t, do(capture.EnableForwarding, netip.Addr{}), executor.OutcomeDone, "")
	r := do(capture.Assign, six)
	want(t, r, executor.OutcomeRetry, "ForwardingOff")
	if !strings.Contains(r.Message, "accept_ra") {
		t.Errorf("the message does not say why: %s", r.Message)
	}
	write(t, "/proc/sys/net/ipv6/conf/lan0/accept_ra", "2")
	want(t, do(capture.EnableForwarding, netip.Addr{}), executor.OutcomeDone, "")
	want(t, do(capture.Assign, six), executor.OutcomeRetry, "ForwardingOff")
	write(t, "/proc/sys/net/ipv6/conf/all/forwarding", "1")
	want(t, do(capture.Assign, six), executor.OutcomeDone, "")
	p, err := open("lan0")
	if err != nil {
		t.Fatal(err)
	}
	if on, err := p.sysctl("ipv6", "proxy_ndp"); err != nil || !on {
		t.Errorf("proxy_ndp is %v, %v", on, err)
	}
	want(t, do(capture.Unassign, six), executor.OutcomeDone, "")
	if on, err := p.sysctl("ipv6", "proxy_ndp"); err != nil || on {
		t.Errorf("proxy_ndp is %v, %v, after the last IPv6 entry", on, err)
	}
}

func TestAnAddressThatWouldNotWorkIsRefusedByName(t *testing.T) {
	alone(t)
	want(t, do(capture.Assign, four), executor.OutcomeRetry, "ForwardingOff")
	want(t, do(capture.EnableForwarding, netip.Addr{}), executor.OutcomeDone, "")
	for a, code := range map[string]string{
		"192.0.2.1":   "AddressIsLocal",
		"192.0.2.200": "NoRoute", // but through lan0 itself
		"203.0.113.1": "NoRoute", // none at all
	} {
		r := do(capture.Assign, netip.MustParseAddr(a))
		if r.Code != code || !strings.Contains(r.Message, a) || !strings.Contains(r.Message, "lan0") {
			t.Errorf("%s ended with %+v, want %s, with names", a, r, code)
		}
	}
	ip(t, "route", "add", "blackhole", "198.51.100.1/32")
	want(t, do(capture.Assign, netip.MustParseAddr("198.51.100.1")), executor.OutcomeRetry, "NoRoute")
	ip(t, "link", "set", "lan0", "down")
	ip(t, "route", "replace", "192.0.2.100/32", "via", "10.0.0.2")
	want(t, do(capture.Assign, four), executor.OutcomeRetry, "LinkDown")
	ip(t, "link", "del", "lan0")
	want(t, do(capture.Assign, four), executor.OutcomeRetry, "NoInterface")
}

func TestADryRunChangesNothing(t *testing.T) {
	alone(t)
	dry := func(v capture.Verb, a netip.Addr) executor.Result {
		return Execute(context.Background(), executor.Request{Verb: v, NIC: "lan0", Address: a, DryRun: true})
	}
	want(t, dry(capture.Assign, four), executor.OutcomeRetry, "ForwardingOff")
	want(t, dry(capture.EnableForwarding, netip.Addr{}), executor.OutcomeDone, "")
	want(t, dry(capture.Assign, four), executor.OutcomeRetry, "ForwardingOff")
	want(t, do(capture.EnableForwarding, netip.Addr{}), executor.OutcomeDone, "")
	want(t, dry(capture.Assign, four), executor.OutcomeDone, "")
	if left := ip(t, "neigh", "show", "proxy"); left != "" {
		t.Errorf("it has placed %s", left)
	}
}

func TestAnAssignThatIsCalledOffPlacesNothing(t *testing.T) {
	alone(t)
	want(t, do(capture.EnableForwarding, netip.Addr{}), executor.OutcomeDone, "")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if changed, err := Assign(ctx, "lan0", four); err == nil || changed {
		t.Errorf("it changed something: %v, %v", changed, err)
	}
	if left := ip(t, "neigh", "show", "proxy"); left != "" {
		t.Errorf("it has placed %s", left)
	}
}

func TestAStrangersEntryStays(t *testing.T) {
	alone(t)
	want(t, do(capture.EnableForwarding, netip.Addr{}), executor.OutcomeDone, "")
	ip(t, "neigh", "add", "proxy", four.String(), "dev", "lan0")
	want(t, do(capture.Assign, four), executor.OutcomePermanent, "ForeignEntry")
	want(t, do(capture.Unassign, four), executor.OutcomeAlready, "")
	want(t, do(capture.Assign, other), executor.OutcomeDone, "")
	write(t, "/proc/sys/net/ipv4/conf/lan0/proxy_arp", "1")
	for range 2 {
		if err := Withdraw("lan0", four, other, six); err != nil {
			t.Fatal(err)
		}
	}
	if left := ip(t, "neigh", "show", "proxy"); !strings.Contains(left, four.String()) || strings.Contains(left, other.String()) {
		t.Errorf("there is %q left, want %s alone", left, four)
	}
	p, err := open("lan0")
	if err != nil {
		t.Fatal(err)
	}
	if on, err := p.sysctl("ipv4", "proxy_arp"); err != nil || on {
		t.Errorf("proxy_arp is %v, %v", on, err)
	}
	if err := Withdraw("none0", four); err != nil {
		t.Errorf("an interface that is not there: %v", err)
	}
}

func TestWithdrawTakesOnlyWhatItIsAskedFor(t *testing.T) {
	alone(t)
	want(t, do(capture.EnableForwarding, netip.Addr{}), executor.OutcomeDone, "")
	want(t, do(capture.Assign, four), executor.OutcomeDone, "")
	want(t, do(capture.Assign, other), executor.OutcomeDone, "")
	if err := Withdraw("lan0", four); err != nil {
		t.Fatal(err)
	}
	if r := do(executor.Describe, netip.Addr{}); !slices.Equal(r.NIC.Addresses, []netip.Addr{other}) {
		t.Errorf("it answers for %v", r.NIC.Addresses)
	}
}

func TestAnAnnouncementIsHeardAtTheOtherEnd(t *testing.T) {
	alone(t)
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW, 0x0300) // ETH_P_ALL
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	peer, err := net.InterfaceByName("peer0")
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: 0x0300, Ifindex: peer.Index}); err != nil {
		t.Fatal(err)
	}
	lan, err := net.InterfaceByName("lan0")
	if err != nil {
		t.Fatal(err)
	}
	if err := Announce("lan0", four, six); err != nil {
		t.Fatal(err)
	}
	arp, na := false, false
	frame := make([]byte, 2048)
	for !arp || !na {
		n, _, err := unix.Recvfrom(fd, frame, 0)
		if err != nil {
			t.Fatal(err)
		}
		f := frame[:n]
		arp = arp || bytes.Equal(f, announcement(lan.HardwareAddr, four))
		// An advertisement to all nodes, which overrides, of our MAC.
		na = na || n == 86 && f[54] == 136 && f[58] == 0xa0 && bytes.Equal(f[62:78], six.AsSlice()) && bytes.Equal(f[80:86], lan.HardwareAddr)
	}
}

func TestTheAnnouncementIsThatOfRFC5227(t *testing.T) {
	got := announcement(net.HardwareAddr{2, 0, 0, 0, 0, 1}, four)
	wanted := []byte{
		0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 1, 8, 6,
		0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, 1, 192, 0, 2, 100, 0, 0, 0, 0, 0, 0, 192, 0, 2, 100,
	}
	if diff := cmp.Diff(wanted, got); diff != "" {
		t.Error(diff)
	}
}

func TestALinkThatComesUpIsTold(t *testing.T) {
	alone(t)
	ip(t, "link", "set", "peer0", "down")
	ns, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	defer ns.Close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ups, ended := make(chan struct{}, 10), make(chan error, 1)
	ready := make(chan struct{})
	go func() {
		runtime.LockOSThread()
		if err := unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET); err != nil {
			ended <- err
			return
		}
		close(ready)
		ended <- Ups(ctx, "lan0", func() { ups <- struct{}{} })
	}()
	<-ready
	for heard := 0; heard < 2; {
		ip(t, "link", "set", "peer0", "up")
		select {
		case <-ups:
			heard++
		case err := <-ended:
			t.Fatal(err)
		case <-time.After(100 * time.Millisecond): // it did not listen yet
		}
		ip(t, "link", "set", "peer0", "down")
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestWhatIsNotPermittedSaysWhatItTakes(t *testing.T) {
	for _, err := range []error{unix.EPERM, unix.EACCES, unix.EROFS} {
		var f *Fault
		if got := kernel(err, "x"); !errors.As(got, &f) || f.Outcome != executor.OutcomePermanent || !strings.Contains(got.Error(), "CAP_NET_ADMIN") {
			t.Errorf("%v becomes %v", err, got)
		}
	}
	if got := kernel(netlink.ErrDumpInterrupted, "x"); result(false, got).Outcome != executor.OutcomeRetry {
		t.Errorf("it is %v", got)
	}
}

// TestTheKernelAnswersForWhatIsPlaced has a neighbour resolve the addresses, with proxy_arp 0.
func TestTheKernelAnswersForWhatIsPlaced(t *testing.T) {
	alone(t)
	lan, err := net.InterfaceByName("lan0")
	if err != nil {
		t.Fatal(err)
	}
	name := "tsk-linux-" + strconv.Itoa(os.Getpid())
	ip(t, "netns", "add", name)
	defer func() { _ = exec.Command("ip", "netns", "del", name).Run() }()
	ip(t, "link", "set", "peer0", "netns", name)
	for _, c := range []string{"link set peer0 up", "addr add 192.0.2.9/24 dev peer0", "-6 addr add 2001:db8::9/64 dev peer0 nodad"} {
		ip(t, append([]string{"-n", name}, strings.Fields(c)...)...)
	}
	write(t, "/proc/sys/net/ipv6/conf/lan0/accept_ra", "2")
	write(t, "/proc/sys/net/ipv6/conf/all/forwarding", "1")
	want(t, do(capture.EnableForwarding, netip.Addr{}), executor.OutcomeDone, "")
	for _, a := range []netip.Addr{four, six} {
		want(t, do(capture.Assign, a), executor.OutcomeDone, "")
		// Once asked, the neighbour goes from INCOMPLETE to the MAC, or to FAILED.
		resolves := func() bool {
			ip(t, "-n", name, "neigh", "flush", "all")
			_ = exec.Command("ip", "netns", "exec", name, "bash", "-c", "echo > /dev/udp/"+a.String()+"/9").Run()
			for {
				switch shown := ip(t, "-n", name, "neigh", "show", a.String()); {
				case strings.Contains(shown, lan.HardwareAddr.String()):
					return true
				case strings.Contains(shown, "FAILED"):
					return false
				}
				time.Sleep(20 * time.Millisecond)
			}
		}
		if !resolves() {
			t.Errorf("nobody answers for %s", a)
		}
		want(t, do(capture.Unassign, a), executor.OutcomeDone, "")
		if resolves() {
			t.Errorf("%s answers for %s still", lan.HardwareAddr, a)
		}
	}
}
