package lan

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// ids is for how many questions an answer can be told from that to another.
const ids = 200

// pace is how often the observer asks.
const pace = 50 * time.Millisecond

// observer asks who has the captured address.
type observer struct {
	fd    int
	index int
	mac   net.HardwareAddr

	mu        sync.Mutex
	asked     []question
	announced []string // the MAC addresses of the announcements that were heard
}

// question is one request, and who has answered it.
type question struct {
	at      time.Time
	answers map[string]bool // by MAC address
}

// newObserver opens a socket in the namespace of the observer, and asks until the test ends.
func newObserver(w *world) *observer {
	w.t.Helper()
	o := &observer{mac: net.HardwareAddr{2, 0, 0, 0, 0, 0x0f}}
	opened := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends here
		opened <- o.open("/run/netns/" + w.name + "o")
	}()
	if err := <-opened; err != nil {
		w.t.Fatal(err)
	}
	end, done := make(chan struct{}), sync.WaitGroup{}
	done.Go(func() {
		for t := time.NewTicker(pace); ; {
			select {
			case <-end:
				t.Stop()
				return
			case <-t.C:
				o.ask()
			}
		}
	})
	done.Go(func() {
		for {
			select {
			case <-end:
				return
			default:
				o.listen()
			}
		}
	})
	w.t.Cleanup(func() {
		close(end)
		done.Wait()
		unix.Close(o.fd)
	})
	return o
}

func (o *observer) open(namespace string) error {
	ns, err := os.Open(namespace)
	if err != nil {
		return err
	}
	defer ns.Close()
	if err := unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET); err != nil {
		return err
	}
	i, err := net.InterfaceByName(iface)
	if err != nil {
		return err
	}
	arp := binary.NativeEndian.Uint16([]byte{0x08, 0x06})
	if o.fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, int(arp)); err != nil {
		return err
	}
	o.index, o.mac = i.Index, i.HardwareAddr
	if err := unix.SetsockoptTimeval(o.fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Usec: 100_000}); err != nil {
		return err
	}
	return unix.Bind(o.fd, &unix.SockaddrLinklayer{Protocol: arp, Ifindex: i.Index})
}

// ask broadcasts one ARP request. Its sender's address tells the answers apart.
func (o *observer) ask() {
	o.mu.Lock()
	id := byte(len(o.asked) % ids)
	o.asked = append(o.asked, question{at: time.Now(), answers: map[string]bool{}})
	o.mu.Unlock()
	target := netip.MustParseAddr(captured).As4()
	frame := slices.Concat([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, o.mac, []byte{8, 6, 0, 1, 8, 0, 6, 4, 0, 1},
		o.mac, []byte{10, 77, 200, id}, make([]byte, 6), target[:])
	_ = unix.Sendto(o.fd, frame, 0, &unix.SockaddrLinklayer{Ifindex: o.index, Halen: 6}) // one more that nobody answers
}

// listen takes one frame.
func (o *observer) listen() {
	f := make([]byte, 128)
	n, _, err := unix.Recvfrom(o.fd, f, 0)
	target := netip.MustParseAddr(captured).As4()
	if err != nil || n < 42 || !bytes.Equal(f[28:32], target[:]) {
		return
	}
	mac := net.HardwareAddr(f[22:28]).String()
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case f[21] == 1: // an announcement
		o.announced = append(o.announced, mac)
	case bytes.Equal(f[38:41], []byte{10, 77, 200}):
		last := len(o.asked) - 1
		at := last - (last-int(f[41])+ids)%ids // the last question with this id
		if at >= 0 {
			o.asked[at].answers[mac] = true
		}
	}
}

// mark is a moment, in questions and announcements.
type mark struct{ asked, announced int }

func (o *observer) now() mark {
	o.mu.Lock()
	defer o.mu.Unlock()
	return mark{len(o.asked), len(o.announced)}
}

// settled is how many questions in a row have to be answered alike.
const settled = 20

// only waits until one host alone answers what is asked from now on, "" until nobody does.
func (w *world) only(mac string) {
	w.t.Helper()
	want := map[string]bool{}
	if mac != "" {
		want[mac] = true
	}
	var last []question
	from := w.now().asked
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(pace) {
		w.mu.Lock()
		n := len(w.asked) - 4 // answers to the last ones may be on their way
		alike := n-settled >= from
		if alike {
			last = slices.Clone(w.asked[n-settled : n])
		}
		for _, q := range last {
			alike = alike && maps.Equal(q.answers, want)
		}
		w.mu.Unlock()
		if alike {
			return
		}
	}
	w.t.Fatalf("not %q alone answers; the last questions were answered by %v", mac, last)
}

// two is for how long two hosts answered, since a mark.
func (w *world) two(since mark) (questions int, window time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var first, last time.Time
	for _, q := range w.asked[since.asked:] {
		if len(q.answers) > 1 {
			if questions++; first.IsZero() {
				first = q.at
			}
			last = q.at
		}
	}
	return questions, last.Sub(first)
}

// answeredByTwo waits until two hosts have answered one question since a mark.
func (w *world) answeredByTwo(since mark) {
	w.t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(pace) {
		if n, _ := w.two(since); n > 0 {
			return
		}
	}
	w.t.Fatal("never did two hosts answer one question")
}

// neverTwo fails the test if two hosts have answered one question since a mark.
func (w *world) neverTwo(since mark) {
	w.t.Helper()
	if n, window := w.two(since); n > 0 {
		w.t.Errorf("two hosts answered %d questions, within %s", n, window)
	}
}

// announcedBy waits for an announcement of a host since a mark.
func (w *world) announcedBy(since mark, mac string) {
	w.t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(pace) {
		w.mu.Lock()
		heard := slices.Contains(w.announced[since.announced:], mac)
		w.mu.Unlock()
		if heard {
			return
		}
	}
	w.t.Fatalf("%s has not announced the address", mac)
}

// story renders who answered since a mark, with times.
func (w *world) story(since mark) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var b strings.Builder
	was := "?"
	start := w.asked[min(since.asked, len(w.asked)-1)].at
	for _, q := range w.asked[since.asked:] {
		if who := fmt.Sprint(slices.Sorted(maps.Keys(q.answers))); who != was {
			fmt.Fprintf(&b, "\n  %6.2f s %s", q.at.Sub(start).Seconds(), who)
			was = who
		}
	}
	return b.String()
}
