package lan

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// patience bounds every wait. Nothing is asserted to be faster.
const patience = 30 * time.Second

// world is a LAN with two hosts and an observer.
type world struct {
	root   *testing.T // whose end is that of all
	t      *testing.T // the one that waits
	dir    string
	name   string // before those of its namespaces
	drives string // what runs beside each keepalived
	a, b   *host
	*observer
}

// host is one with a keepalived and a driver.
type host struct {
	w          *world
	name       string // a or b
	mac        string
	priority   int
	keepalived *exec.Cmd
	driver     *exec.Cmd

	mu    sync.Mutex
	lines []string // that the driver has written
}

func newWorld(t *testing.T, drives string) *world {
	t.Helper()
	switch _, err := exec.LookPath("keepalived"); {
	case testing.Short():
		t.Skip("two keepalived take a minute: run it without -short")
	case os.Geteuid() != 0:
		t.Skip("network namespaces need root: run the tests as root")
	case err != nil:
		t.Skip("keepalived is not installed: apt-get install keepalived")
	}
	dir, err := os.MkdirTemp("/run", "tasuki-lan-") // /tmp is another one for keepalived
	if err != nil {
		t.Fatal(err)
	}
	w := &world{root: t, t: t, dir: dir, drives: drives, name: fmt.Sprintf("tsk%d", os.Getpid())}
	t.Cleanup(func() {
		for _, n := range []string{"a", "b", "o", "s"} {
			_ = exec.Command("ip", "netns", "del", w.name+n).Run()
		}
		os.RemoveAll(dir)
	})
	for _, n := range []string{"s", "a", "b", "o"} {
		w.ip("netns", "add", w.name+n)
		w.in(n, "link set lo up")
	}
	w.in("s", "link add br0 type bridge mcast_snooping 0")
	w.in("s", "link set br0 up")
	for i, n := range []string{"a", "b", "o"} {
		w.in(n, "link add "+iface+" address 02:00:00:00:00:0"+n[:1]+" type veth peer name port-"+n+" netns "+w.name+"s")
		w.in("s", "link set port-"+n+" master br0 up")
		w.in(n, fmt.Sprintf("addr add 10.77.0.%d/16 dev %s", i+1, iface))
		w.in(n, "link set "+iface+" up")
	}
	for _, n := range []string{"a", "b"} { // the overlay, by which the address is reached
		w.in(n, "link add wan0 type veth peer name wan1")
		w.in(n, "link set wan0 up")
		w.in(n, "link set wan1 up")
		w.in(n, "addr add 10.78.0.1/24 dev wan0")
		w.in(n, "route add "+captured+"/32 via 10.78.0.2")
		// The kernel delays answers of a proxy at random, for up to 0.8 s.
		w.run("ip", "netns", "exec", w.name+n, "sh", "-c", "echo 0 > /proc/sys/net/ipv4/neigh/"+iface+"/proxy_delay")
	}
	if err := os.WriteFile(filepath.Join(dir, "pool.yaml"), []byte(pool), 0o600); err != nil {
		t.Fatal(err)
	}
	w.observer = newObserver(w)
	w.a = &host{w: w, name: "a", mac: "02:00:00:00:00:0a", priority: 100}
	w.b = &host{w: w, name: "b", mac: "02:00:00:00:00:0b", priority: 90}
	for _, h := range []*host{w.a, w.b} {
		h.start()
		h.drive()
	}
	return w
}

func (w *world) run(name string, args ...string) {
	w.t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		w.t.Fatalf("%s %s: %v: %s", name, strings.Join(args, " "), err, out)
	}
}

func (w *world) ip(args ...string) { w.t.Helper(); w.run("ip", args...) }

// in runs ip in the namespace of a host.
func (w *world) in(host, command string) {
	w.t.Helper()
	w.ip(append([]string{"-n", w.name + host}, strings.Fields(command)...)...)
}

// part keeps the hosts from hearing each other; the observer hears both.
func (w *world) part(apart bool) {
	w.t.Helper()
	for _, h := range []string{"a", "b"} {
		w.run("bridge", "-n", w.name+"s", "link", "set", "dev", "port-"+h, "isolated", map[bool]string{true: "on", false: "off"}[apart])
	}
}

// lateBackup has keepalived of b be MASTER for a while, and whoever reads its FIFO learn of it only
// when that is over.
func (w *world) lateBackup() {
	w.t.Helper()
	signal := func(s syscall.Signal) {
		w.t.Helper()
		if err := w.b.driver.Process.Signal(s); err != nil {
			w.t.Fatal(err)
		}
	}
	signal(syscall.SIGSTOP)
	rises, falls := w.b.logs("Entering MASTER STATE"), w.b.logs("Entering BACKUP STATE")
	w.part(true)
	w.b.awaitLog(rises, "Entering MASTER STATE")
	w.part(false)
	w.b.awaitLog(falls, "Entering BACKUP STATE")
	signal(syscall.SIGCONT)
}

// deaf keeps a host from hearing the other one, which hears it: its packets come from where
// they must not come from.
func (h *host) deaf(on bool) {
	h.w.t.Helper()
	do, filter := "del", "0"
	if on {
		do, filter = "add", "1"
	}
	h.w.run("ip", "netns", "exec", h.w.name+h.name, "sh", "-c", "echo "+filter+" > /proc/sys/net/ipv4/conf/"+iface+"/rp_filter")
	h.w.in(h.name, "route "+do+" 10.77.0.1/32 via 10.78.0.2")
}

func (h *host) path(name string) string { return filepath.Join(h.w.dir, h.name+"-"+name) }

// start starts keepalived, with a /tmp of its own as systemd's PrivateTmp gives it one.
func (h *host) start() {
	t := h.w.root
	t.Helper()
	conf := fmt.Sprintf(`global_defs {
  router_id %s
  vrrp_notify_fifo %s
}
vrrp_instance %s {
  state BACKUP
  interface %s
  virtual_router_id 77
  priority %d
  advert_int 1
}
`, h.name, h.path("fifo"), instance, iface, h.priority)
	if err := os.WriteFile(h.path("conf"), []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(h.path("tmp"), 0o755); err != nil {
		t.Fatal(err)
	}
	log, err := os.Create(h.path("log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	h.keepalived = exec.Command("ip", "netns", "exec", h.w.name+h.name, "sh", "-c",
		`mount --bind "$0" /tmp && exec keepalived -n -l -D -P -f "$1" -p "$2" -r "$3"`,
		h.path("tmp"), h.path("conf"), h.path("pid"), h.path("vrrp.pid"))
	h.keepalived.Stdout, h.keepalived.Stderr = log, log
	if err := h.keepalived.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		h.kill()
		if t.Failed() {
			data, _ := os.ReadFile(h.path("log"))
			t.Logf("keepalived of %s:\n%s", h.name, data)
		}
	})
}

// kill ends keepalived and its VRRP process at once.
func (h *host) kill() {
	_ = h.keepalived.Process.Kill()
	if pid := h.vrrp(); pid > 0 {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	_ = h.keepalived.Wait()
	os.Remove(h.path("vrrp.pid"))
	os.Remove(h.path("pid"))
}

// vrrp is the process that writes to the FIFO.
func (h *host) vrrp() int {
	data, _ := os.ReadFile(h.path("vrrp.pid"))
	pid, _ := strconv.Atoi(strings.TrimSpace(string(data)))
	return pid
}

// signal sends one to keepalived's VRRP process.
func (h *host) signal(s syscall.Signal) {
	h.w.t.Helper()
	if err := syscall.Kill(h.vrrp(), s); err != nil {
		h.w.t.Fatal(err)
	}
}

// drive starts the driver.
func (h *host) drive() {
	t := h.w.root
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	driver := exec.Command("ip", "netns", "exec", h.w.name+h.name, self, h.w.drives, h.name, h.w.dir)
	h.driver = driver
	out, err := driver.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	driver.Stderr = os.Stderr
	if err := driver.Start(); err != nil {
		t.Fatal(err)
	}
	read := make(chan struct{})
	go func() {
		defer close(read)
		for s := bufio.NewScanner(out); s.Scan(); {
			h.mu.Lock()
			h.lines = append(h.lines, time.Now().Format("15:04:05.000 ")+s.Text())
			h.mu.Unlock()
		}
	}()
	t.Cleanup(func() {
		_ = driver.Process.Kill()
		<-read
		_ = driver.Wait()
		if t.Failed() {
			t.Logf("driver of %s:\n%s", h.name, strings.Join(h.lines, "\n"))
		}
	})
}

// told is how many lines the driver has written.
func (h *host) told() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.lines)
}

// await waits for a line of the driver after the first ones, and returns how many there are
// up to it.
func (h *host) await(after int, part string) int {
	h.w.t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		h.mu.Lock()
		for i := after; i < len(h.lines); i++ {
			if strings.Contains(h.lines[i], part) {
				h.mu.Unlock()
				return i + 1
			}
		}
		h.mu.Unlock()
	}
	h.w.t.Fatalf("the driver of %s has not said %q", h.name, part)
	return 0
}

// saying is how many lines of the driver after the first ones say something.
func (h *host) saying(after int, part string) (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, line := range h.lines[after:] {
		if strings.Contains(line, part) {
			n++
		}
	}
	return n
}

// logs is how often keepalived has logged something.
func (h *host) logs(part string) int {
	data, _ := os.ReadFile(h.path("log"))
	return strings.Count(string(data), part)
}

// awaitLog waits until keepalived has logged something more often than so many times.
func (h *host) awaitLog(times int, part string) {
	h.w.t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if h.logs(part) > times {
			return
		}
	}
	h.w.t.Fatalf("keepalived of %s has not logged %q", h.name, part)
}

// stories tells one story after the other, up to the first that goes wrong.
func (w *world) stories() func(name string, tell func(t *testing.T, since mark)) {
	return func(name string, tell func(t *testing.T, since mark)) {
		if w.root.Failed() {
			return
		}
		w.root.Run(name, func(t *testing.T) {
			w.t = t
			defer func() { w.t = w.root }()
			since := w.now()
			tell(t, since)
			n, window := w.two(since)
			t.Logf("two MAC addresses answered %d questions, within %s; who answered:%s", n, window, w.story(since))
		})
	}
}
