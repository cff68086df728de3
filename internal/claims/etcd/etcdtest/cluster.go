// Package etcdtest starts a real etcd cluster for tests, and has its members die, stop and be
// cut off from each other and from their clients. Everything ends with the test.
package etcdtest

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Patience is how long a test waits for what has to come, before it gives up.
const Patience = time.Minute

// Eventually asks until it is so. What has to come is not timed.
func Eventually(t testing.TB, what string, so func() bool) {
	t.Helper()
	for end := time.Now().Add(Patience); !so(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("it never came to %s", what)
		}
	}
}

var server = sync.OnceValues(func() (string, error) { return Tool("server") })

// Tool is the path of a program of etcd ("server", "etcdutl") as its own module builds it: the
// first time takes a minute or two.
func Tool(name string) (string, error) {
	_, here, _, _ := runtime.Caller(0)
	cmd := exec.Command("go", "tool", "-modfile=tools/etcd/go.mod", "-n", name)
	cmd.Dir = filepath.Join(filepath.Dir(here), "../../../..")
	var told strings.Builder
	cmd.Stderr = &told
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("building the %s of tools/etcd: %w\n%s", name, err, told.String())
	}
	return strings.TrimSpace(string(out)), nil
}

// Cluster is a real one: a process per member, on loopback.
type Cluster struct {
	Members []*Member
	Initial string           // --initial-cluster
	Admin   *clientv3.Client // past all proxies
}

// Member is one process of a cluster, and the ways to it.
type Member struct {
	Name, Dir string
	Client    string // URL past the proxy
	Peer      string // URL through it
	way       *Proxy // of clients to it
	peers     *Proxy // of other members to it
	args      []string
	cmd       *exec.Cmd
	ID        uint64 // once it has led, or been asked who leads
}

// Timing has the members notice a dead leader after half a second, and so grant a second as
// the shortest TTL.
var Timing = []string{"--heartbeat-interval=50", "--election-timeout=500"}

// Unsynced members keep what a killed process had written, which is all that tests kill.
var Unsynced = append([]string{"--unsafe-no-fsync"}, Timing...)

// New starts a cluster of n members with some more flags. It does not wait until it serves:
// see Started.
func New(t testing.TB, n int, flags ...string) *Cluster {
	if testing.Short() {
		t.Skip("a cluster takes its time, and its members: make test runs these tests alone")
	}
	t.Helper()
	bin, err := server()
	must(t, err)
	c := &Cluster{}
	var initial, direct []string
	ports, scheme := freePorts(t, 2*n), "http://"
	if slices.ContainsFunc(flags, func(f string) bool { return strings.HasPrefix(f, "--cert-file=") }) {
		scheme = "https://"
	}
	for i := range n {
		m := &Member{Name: fmt.Sprintf("m%d", i), Dir: filepath.Join(t.TempDir(), "etcd"), Client: scheme + ports[2*i]}
		m.peers = NewProxy(t, ports[2*i+1])
		m.way = NewProxy(t, ports[2*i])
		m.Peer = "http://" + m.peers.Addr()
		m.args = append([]string{
			"--name=" + m.Name, "--data-dir=" + m.Dir, "--log-level=warn",
			"--listen-client-urls=" + m.Client, "--advertise-client-urls=" + m.Client,
			"--listen-peer-urls=http://" + ports[2*i+1], "--initial-advertise-peer-urls=" + m.Peer,
		}, flags...)
		initial = append(initial, m.Name+"="+m.Peer)
		direct = append(direct, m.Client)
		c.Members = append(c.Members, m)
	}
	c.Initial = strings.Join(initial, ",")
	for _, m := range c.Members {
		m.args = append(m.args, "--initial-cluster="+c.Initial)
		m.cmd = exec.Command(bin)
		t.Cleanup(func() { m.Kill() })
		m.Start(t)
	}
	c.Admin, err = clientv3.New(clientv3.Config{Endpoints: direct, Logger: zap.NewNop()})
	must(t, err)
	t.Cleanup(func() { _ = c.Admin.Close() })
	return c
}

// Started waits until the cluster serves.
func Started(t testing.TB, c *Cluster) *Cluster {
	t.Helper()
	for _, m := range c.Members {
		Eventually(t, m.Name+" serving", func() bool { return c.leads(t, m) != 0 })
	}
	return c
}

// leads is the leader that a member knows, 0 for none.
func (c *Cluster) leads(t testing.TB, m *Member) uint64 {
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	s, err := c.Admin.Status(ctx, m.Client)
	if err != nil {
		return 0
	}
	m.ID = s.Header.MemberId
	return s.Leader
}

// Leader is the member that most of the others follow, and the others.
func (c *Cluster) Leader(t testing.TB) (leader *Member, others []*Member) {
	t.Helper()
	Eventually(t, "one leader", func() bool {
		votes := map[uint64]int{}
		for _, m := range c.Members {
			votes[c.leads(t, m)]++
		}
		leader, others = nil, nil
		for _, m := range c.Members {
			if 2*votes[m.ID] > len(c.Members) {
				leader = m
			} else {
				others = append(others, m)
			}
		}
		return leader != nil
	})
	return leader, others
}

// Endpoints are the ways to some members.
func Endpoints(members ...*Member) (urls []string) {
	for _, m := range members {
		scheme, _, _ := strings.Cut(m.Client, "://")
		urls = append(urls, scheme+"://"+m.way.Addr())
	}
	return urls
}

// Start starts a member that was killed.
func (m *Member) Start(t testing.TB) {
	t.Helper()
	log, err := os.OpenFile(m.Dir+".log", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	must(t, err)
	defer log.Close()
	cmd := exec.Command(m.cmd.Path, m.args...)
	cmd.Env, cmd.Dir, cmd.SysProcAttr = []string{"PATH=" + os.Getenv("PATH")}, filepath.Dir(m.Dir), orphanless()
	cmd.Stdout, cmd.Stderr = log, log
	must(t, cmd.Start())
	m.cmd = cmd
	t.Cleanup(func() {
		if b, err := os.ReadFile(log.Name()); err == nil && t.Failed() {
			t.Logf("the last of %s: %s", m.Name, b[max(0, len(b)-2000):])
		}
	})
}

// Kill ends a member with SIGKILL, if it runs.
func (m *Member) Kill() {
	if m.cmd.Process != nil && m.cmd.ProcessState == nil {
		_ = m.cmd.Process.Kill()
		_ = m.cmd.Wait()
	}
}

// Pause stops a member with SIGSTOP, until Resume.
func (m *Member) Pause(t testing.TB) { must(t, m.cmd.Process.Signal(syscall.SIGSTOP)) }

// Resume has a member go on that was paused.
func (m *Member) Resume(t testing.TB) { must(t, m.cmd.Process.Signal(syscall.SIGCONT)) }

// Isolate cuts a member off from the other members, clients are not concerned.
func (c *Cluster) Isolate(cut *Member) {
	for _, m := range c.Members {
		m.peers.Set(false, func(from string) bool { return m == cut || from == fmt.Sprintf("%x", cut.ID) })
	}
}

// Join takes back what Isolate has cut.
func (c *Cluster) Join() {
	for _, m := range c.Members {
		m.peers.Set(false, func(string) bool { return false })
	}
}

// Snapshot saves what the cluster has in a file. It is one member who answers, so all of them have to
// know what any of them has acknowledged.
func (c *Cluster) Snapshot(t testing.TB, path string) {
	t.Helper()
	now, err := c.Admin.Get(t.Context(), "/")
	must(t, err)
	for _, m := range c.Members {
		Eventually(t, m.Name+" being up to date", func() bool {
			s, err := c.Admin.Status(t.Context(), m.Client)
			return err == nil && s.Header.Revision >= now.Header.Revision
		})
	}
	from, err := c.Admin.Snapshot(t.Context())
	must(t, err)
	defer from.Close()
	to, err := os.Create(path)
	must(t, err)
	defer to.Close()
	_, err = io.Copy(to, from)
	must(t, err)
}

// Restore gives every member, all of which are killed, the data of a snapshot, as etcdutl does it.
func (c *Cluster) Restore(t testing.TB, path string) {
	t.Helper()
	etcdutl, err := Tool("etcdutl")
	must(t, err)
	for _, m := range c.Members {
		must(t, os.RemoveAll(m.Dir))
		out, err := exec.Command(etcdutl, "snapshot", "restore", path, "--data-dir="+m.Dir,
			"--name="+m.Name, "--initial-cluster="+c.Initial, "--initial-advertise-peer-urls="+m.Peer).CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
}

// taken are the ports that this process has given to a member.
var taken sync.Map

// freePorts are ports below those that the kernel gives to outgoing connections, so that a
// member that is started again finds its own free; and no two members of this process get one.
func freePorts(t testing.TB, n int) (addrs []string) {
	t.Helper()
	for len(addrs) < n {
		port := 20000 + rand.IntN(12000)
		l, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(port))
		if err != nil {
			continue
		}
		_ = l.Close()
		if _, given := taken.LoadOrStore(port, true); !given {
			addrs = append(addrs, l.Addr().String())
		}
	}
	return addrs
}

// CutOff has clients not reach members, or wait for answers that do not come.
func CutOff(stalled, cut bool, members ...*Member) {
	for _, m := range members {
		m.way.Set(stalled, func(string) bool { return cut })
	}
}
