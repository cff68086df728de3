package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tasuki-io/tasuki/internal/agent"
	"github.com/tasuki-io/tasuki/internal/executor/executortest"
	"github.com/tasuki-io/tasuki/internal/reference"
)

// What befalls the process: the tests run it as such, with executors in processes of their
// own, and the fake of EC2 in this one.

// TestMain is tasuki-agent when the environment says so.
func TestMain(m *testing.M) {
	if os.Getenv(asAgent) != "" {
		main()
		return
	}
	os.Exit(executortest.Main(m))
}

const asAgent = "TASUKI_TEST_RUNS_THE_AGENT"

var mobile = netip.MustParseAddr("10.0.0.1")

// host is one host, a, which may hold one address; b is there in the configuration only.
type host struct {
	t      *testing.T
	ec2    *executortest.EC2
	dir    string
	client *agent.Client
}

func newHost(t *testing.T) *host {
	t.Helper()
	h := &host{t: t, ec2: executortest.StartEC2(t)}
	// The path of a socket is short, and that of t.TempDir may be long.
	var err error
	if h.dir, err = os.MkdirTemp("", "tasuki-"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(h.dir) })
	for i, id := range []string{"eni-a", "eni-b"} {
		h.ec2.AddNIC(executortest.Interface{ID: id, Subnet: "s", VPC: "v", Primary: netip.AddrFrom4([4]byte{10, 0, 1, byte(10 + i)})})
	}
	h.client = agent.NewClient(agent.Socket(h.path("state")))
	h.configure(false)
	return h
}

func (h *host) path(name string) string { return filepath.Join(h.dir, name) }

// configure puts a configuration in place: whether somebody has to approve is what changes.
func (h *host) configure(byHand bool) { h.write(fmt.Sprintf(configuration, h.ec2.URL(), byHand)) }

func (h *host) write(text string) { h.t.Helper(); h.put("tasuki.yaml", text) }

func (h *host) put(name, text string) {
	h.t.Helper()
	if err := os.WriteFile(h.path("new"), []byte(text), 0o600); err != nil {
		h.t.Fatal(err)
	}
	if err := os.Rename(h.path("new"), h.path(name)); err != nil {
		h.t.Fatal(err)
	}
}

const configuration = `apiVersion: mobility.tasuki.io/v1alpha1
kind: MobilityPool
metadata: {name: p}
spec:
  prefix: 10.0.0.0/24
  deprovisionHoldDuration: 0s
  addresses: [{address: 10.0.0.1, owner: {site: home}}]
  members:
  - nodeRef: a
    site: cloud
    role: cloud
    placement: {group: g}
    capture: {type: provider-secondary-ip, providerRef: fake, nicRef: eni-a}
  - nodeRef: b
    site: cloud
    role: cloud
    placement: {group: g, priority: 1}
    capture: {type: provider-secondary-ip, providerRef: fake, nicRef: eni-b}
---
apiVersion: mobility.tasuki.io/v1alpha1
kind: CloudProviderProfile
metadata: {name: fake}
spec: {provider: aws, region: eu-test-1, endpoint: %q}
---
apiVersion: mobility.tasuki.io/v1alpha1
kind: ProviderActionPolicy
metadata: {name: p}
spec:
  enabled: true
  dryRunOnly: false
  requireApproval: %t
  maxActionsPerRun: 10
  allowedProviders: [aws]
  allowedProviderRefs: [fake]
  allowedCIDRs: [10.0.0.0/24]
  allowedActions: [assign-secondary-ip, unassign-secondary-ip, ensure-forwarding-enabled, ensure-forwarding-disabled]
`

// process is a run of the agent.
type process struct {
	*exec.Cmd
	host *host
	log  *output
	gone chan error
}

// run starts the agent of a. It may end at once.
func (h *host) run(args ...string) *process {
	h.t.Helper()
	p := &process{host: h, log: &output{}, gone: make(chan error, 1)}
	all := append([]string{"--node", "a", "--config", h.path("tasuki.yaml"), "--state", h.path("state"), "--executor", executortest.Binary(h.t), "--metrics-bind-address", "0"}, args...)
	p.Cmd = exec.Command(os.Args[0], all...)
	p.Env = append(append(os.Environ(), asAgent+"=1"), h.ec2.Environment()...)
	p.Stderr = p.log
	if err := p.Start(); err != nil {
		h.t.Fatal(err)
	}
	go func() { p.gone <- p.Wait() }()
	h.t.Cleanup(func() {
		_ = p.Process.Kill()
		if h.t.Failed() {
			h.t.Logf("the log of process %d:\n%s", p.Process.Pid, p.log)
		}
	})
	return p
}

// up starts the agent, and returns when it answers.
func (h *host) up(args ...string) *process {
	h.t.Helper()
	p := h.run(args...)
	h.until("the agent answers", func() bool {
		_, err := h.client.Status(h.t.Context())
		return err == nil
	})
	return p
}

// ends waits for the end, and expects an exit code and words in the log.
func (p *process) ends(code int, words ...string) {
	p.host.t.Helper()
	select {
	case <-p.gone:
	case <-time.After(time.Minute):
		p.host.t.Fatal("the process does not end")
	}
	if got := p.ProcessState.ExitCode(); got != code {
		p.host.t.Errorf("exit code %d, want %d", got, code)
	}
	p.says(words...)
}

// says waits a moment for words in the log: what else shows them may be there a little earlier.
func (p *process) says(words ...string) {
	p.host.t.Helper()
	for _, w := range words {
		for end := time.Now().Add(10 * time.Second); !strings.Contains(p.log.String(), w) && time.Now().Before(end); {
			time.Sleep(20 * time.Millisecond)
		}
		if !strings.Contains(p.log.String(), w) {
			p.host.t.Errorf("nothing is said of %q in\n%s", w, p.log)
		}
	}
}

func (p *process) signal(s syscall.Signal) {
	p.host.t.Helper()
	if err := p.Process.Signal(s); err != nil {
		p.host.t.Fatal(err)
	}
}

// kill ends the process at once.
func (p *process) kill() {
	p.host.t.Helper()
	p.signal(syscall.SIGKILL)
	<-p.gone
}

// until waits for a state; the bound is for a machine that is very slow.
func (h *host) until(what string, so func() bool) {
	h.t.Helper()
	for end := time.Now().Add(time.Minute); !so(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			h.t.Fatalf("it took too long until %s", what)
		}
	}
}

// held waits until a holds the address.
func (h *host) held() {
	h.t.Helper()
	h.until("a holds the address", func() bool {
		list, err := h.client.Captures(h.t.Context())
		open, err2 := h.client.Actions(h.t.Context(), nil)
		return err == nil && err2 == nil && len(list) == 1 && list[0].State == agent.PhaseHeld && len(open) == 0
	})
}

// calls counts the calls of a kind.
func (h *host) calls(action string) (n int) {
	for _, c := range h.ec2.Calls() {
		if c.Action == action {
			n++
		}
	}
	return n
}

// get asks the monitoring endpoint, "" when it does not answer.
func (h *host) get(url string) (int, string) {
	r, err := http.Get(url)
	if err != nil {
		return 0, ""
	}
	defer r.Body.Close()
	text, _ := io.ReadAll(r.Body)
	return r.StatusCode, string(text)
}

// output is a buffer that is read while it is written.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

func TestReferenceOfTheFlags(t *testing.T) {
	reference.Keep(t, "reference/tasuki-agent.md", reference.Help(t, "tasuki-agent",
		"It moves the addresses of one host. How it is installed and run is in [capture-hosts.md](../capture-hosts.md).",
		func() { _ = run([]string{"-h"}, io.Discard, os.Stderr) }))
}
