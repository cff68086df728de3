package chaos

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tasuki-io/tasuki/internal/claims/etcd/etcdtest"
	"github.com/tasuki-io/tasuki/internal/executor/executortest"
)

// agent is a host: its state outlives the process.
type agent struct {
	w    *site
	name string
	ways []*etcdtest.Proxy // to the members of the cluster, of this host alone
	wall *wallClock
	cmd  *exec.Cmd
	read chan struct{} // closed when all of the log of cmd is read

	mu  sync.Mutex
	log []line
}

// line is one of an agent's log, as far as it is judged.
type line struct {
	Time    time.Time `json:"time"`
	Msg     string    `json:"msg"`
	Action  string    `json:"action"`
	Key     string    `json:"key"`
	Epoch   uint64    `json:"epoch"`
	Verb    string    `json:"verb"`
	Outcome string    `json:"outcome"`
	Again   time.Time `json:"again"`

	agent string
}

func (w *site) newAgent(name string) *agent {
	a := &agent{w: w, name: name}
	must(w.t, os.Mkdir(w.path(name), 0o700))
	var endpoints []string
	for _, m := range w.cluster.Members {
		p := etcdtest.NewProxy(w.t, strings.TrimPrefix(m.Client, "http://"))
		a.ways = append(a.ways, p)
		endpoints = append(endpoints, "\"http://"+p.Addr()+"\"")
	}
	w.configure(w.path(name, "tasuki.yaml"), endpoints)
	a.wall = newWallClock(w.t, w.path(name, "clock"))
	w.t.Cleanup(a.kill)
	return a
}

// start starts the process, with clocks that count from the boot of the machine shifted by so
// much against those of the process before.
func (a *agent) start(shift time.Duration) {
	t := a.w.t
	args := []string{a.w.binary, "--node", a.name, "--config", a.w.path(a.name, "tasuki.yaml"), "--state", a.w.path(a.name, "state"),
		"--executor", executortest.Binary(t), "--metrics-bind-address", "0"}
	if shift != 0 {
		seconds := fmt.Sprint(int(shift.Seconds()))
		args = append([]string{"unshare", "--time", "--monotonic=" + seconds, "--boottime=" + seconds}, args...)
	}
	a.cmd = exec.Command(args[0], args[1:]...)
	a.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	a.cmd.Env = append(append([]string{"PATH=" + os.Getenv("PATH")}, a.wall.environment()), a.w.ec2.Environment()...)
	from, to, err := os.Pipe()
	must(t, err)
	a.cmd.Stderr = to
	must(t, a.cmd.Start())
	must(t, to.Close())
	a.read = make(chan struct{})
	go a.listen(from, a.read)
}

// listen takes in the log, and keeps it on disk.
func (a *agent) listen(from io.ReadCloser, read chan struct{}) {
	defer close(read)
	defer from.Close()
	file, err := os.OpenFile(a.w.path(a.name, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	defer file.Close()
	for lines := bufio.NewReader(io.TeeReader(from, file)); ; {
		text, err := lines.ReadString('\n')
		if err != nil {
			return // half a line is one that a kill has cut off
		}
		l := line{agent: a.name}
		if json.Unmarshal([]byte(text), &l) != nil {
			l.Msg = text
		}
		l.Time, l.Again = trueTime(l.Time), trueTime(l.Again)
		a.mu.Lock()
		a.log = append(a.log, l)
		a.mu.Unlock()
	}
}

// heard are the lines of the log from the nth on.
func (a *agent) heard(n int) []line {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.log[n:len(a.log):len(a.log)]
}

// runs reports whether the process is there: one may end by itself, which is a violation.
func (a *agent) runs() bool {
	select {
	case <-a.read:
		return false
	default:
		return true
	}
}

func (a *agent) kill() {
	if a.cmd == nil || a.cmd.ProcessState != nil {
		return
	}
	_ = a.cmd.Process.Kill()
	_ = a.cmd.Wait()
	<-a.read
}

func (a *agent) signal(s syscall.Signal) { _ = a.cmd.Process.Signal(s) }

// signalHost is a signal for the agent and then for its executors, as when a whole machine
// stops.
func (a *agent) signalHost(s syscall.Signal) {
	a.signal(s)
	for _, pid := range a.children() {
		_ = syscall.Kill(pid, s)
	}
}

// children are the executors that run.
func (a *agent) children() (pids []int) {
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", a.cmd.Process.Pid))
	for _, list := range lists {
		text, _ := os.ReadFile(list)
		for _, word := range strings.Fields(string(text)) {
			var pid int
			if _, err := fmt.Sscan(word, &pid); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// reach cuts the host off from the cluster, has it wait for answers that do not come, or
// neither.
func (a *agent) reach(stalled, cut bool) {
	for _, p := range a.ways {
		p.Set(stalled, func(string) bool { return cut })
	}
}

// cpu is what the agent has used of the processors, and its executors that have ended.
func (a *agent) cpu() (own, executors time.Duration) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", a.cmd.Process.Pid))
	must(a.w.t, err)
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+2:]))
	ticks := func(i int) time.Duration {
		var n int
		fmt.Sscan(fields[i], &n)
		return time.Duration(n) * time.Second / 100
	}
	return ticks(11) + ticks(12), ticks(13) + ticks(14)
}

// root is the directory of the module.
func root() string {
	_, here, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(here), "../..")
}

// buildAgent builds the agent as it is shipped, with some more flags.
func buildAgent(t testing.TB, flags ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tasuki-agent")
	build := exec.Command("go", append(append([]string{"build", "-tags", "grpcnotrace", "-o", path}, flags...), "./cmd/tasuki-agent")...)
	build.Dir, build.Env = root(), append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build tasuki-agent: %v\n%s", err, out)
	}
	return path
}
