package main

import (
	"fmt"
	"io"
	"net"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
)

const broken = `apiVersion: mobility.tasuki.io/v1alpha1
kind: MobilityPool
metadata: {name: p}
spec:
  prefix: 10.0.0.0/24
  addresses: [{address: 10.9.9.9, owner: {site: home}}]
  membres: []
`

// Every problem is told at once, and the exit code says that a restart does not help.
func TestAConfigurationIsRefusedAtTheStart(t *testing.T) {
	h := newHost(t)
	h.write(broken)
	problems := []string{h.path("tasuki.yaml") + ":6:", "10.9.9.9", h.path("tasuki.yaml") + ":7:", "membres"}
	h.run().ends(2, problems...)
	h.run("--check").ends(2, problems...)
	h.run("--config", h.path("nothing.yaml")).ends(2, h.path("nothing.yaml"))
	h.configure(false)
	h.run("--check").ends(0, "warning: "+h.path("tasuki.yaml")+":9:3: MobilityPool p: members share a placement group, and there is no ClaimsStore of type etcd")
	h.run("--check", "--node", "typo").ends(2, "node typo is a member of no pool")
}

// One that is refused later leaves the old one in force, and is seen in the log, the metrics
// and the status, until it is repaired.
func TestAConfigurationIsRefusedWhileTheAgentRuns(t *testing.T) {
	h := newHost(t)
	address := freeAddress(t)
	p := h.up("--metrics-bind-address", address)
	h.held()
	h.write(broken)
	h.metric(address, "tasuki_capture_config_refused", "1")
	p.says("the configuration is refused, the old one stays in force", "membres", "10.9.9.9")
	s, err := h.client.Status(t.Context())
	if err != nil || len(s.Refused) < 2 || !strings.Contains(strings.Join(s.Refused, " "), "membres") {
		t.Errorf("the status lists the problems %q (%v)", s.Refused, err)
	}
	h.held()
	h.configure(true)
	h.metric(address, "tasuki_capture_config_refused", "0")
	if s, err := h.client.Status(t.Context()); err != nil || len(s.Refused) > 0 || !strings.Contains(s.Policy, "requireApproval") {
		t.Errorf("after the repair the status is %+v (%v)", s, err)
	}

	// A SIGHUP reads the files again, whatever the watch has seen.
	before := strings.Count(p.log.String(), "configuration in force")
	p.signal(syscall.SIGHUP)
	h.until("the configuration is read again", func() bool { return strings.Count(p.log.String(), "configuration in force") > before })
	p.signal(syscall.SIGTERM)
	p.ends(0)
}

func TestVersionNeedsNoConfiguration(t *testing.T) {
	var out strings.Builder
	if err := run([]string{"--version"}, &out, io.Discard); err != nil || !strings.HasPrefix(out.String(), "tasuki-agent ") || !strings.Contains(out.String(), "go1.") {
		t.Errorf("output %q (%v), want the version", out.String(), err)
	}
}

func TestMistakesInTheCommandLine(t *testing.T) {
	h := newHost(t)
	h.run("extra").ends(2, `unexpected argument "extra": every setting is a flag`)
	h.run("--node", "").ends(2, "--node is missing: give the name of this host")
	h.run("--config", "").ends(2, "--config is missing: give a file or a directory")
	h.run("--log-format", "xml").ends(2, `--log-format "xml": write json or text`)
	h.run("--nonsense").ends(2, "flag provided but not defined")
	h.run("--state", h.path(strings.Repeat("long/", 30))).ends(1, "shorten --state")
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	h.run("--metrics-bind-address", taken.Addr().String()).ends(1, "serve metrics: --metrics-bind-address "+taken.Addr().String(), "address already in use")
}

// A chain from a first assignment to a repair shows in every metric.
func TestMetricsOfARunningAgent(t *testing.T) {
	h := newHost(t)
	address := freeAddress(t)
	h.up("--metrics-bind-address", address)
	h.held()
	labels := `{address="10.0.0.1",domain="provider:fake:placement:g",pool="p"}`
	h.metric(address, "tasuki_capture_epoch"+labels, "1")
	h.metric(address, "tasuki_capture_holder"+labels, "1")
	h.metric(address, `tasuki_capture_pending_actions{state="pending"}`, "0")
	h.metric(address, `tasuki_capture_action_total{outcome="done",verb="assign-secondary-ip"}`, "1")
	h.metric(address, `tasuki_capture_action_duration_seconds_count{verb="assign-secondary-ip"}`, "1")
	h.metric(address, "tasuki_capture_last_success_timestamp", `[1-9]\S+`)
	h.metric(address, "tasuki_capture_pass_failing", "0")
	h.metric(address, `tasuki_capture_drift_total{kind="onNoNIC"}`, "0")
	if code, text := h.get("http://" + address + "/healthz"); code != 200 || text != "ok\n" {
		t.Errorf("/healthz answers %d %q", code, text)
	}

	// b shall hold: what is pending of a's release shows, and what the gate refuses when a comes back.
	h.configure(true)
	h.until("somebody has to approve", func() bool {
		s, err := h.client.Status(t.Context())
		return err == nil && strings.Contains(s.Policy, "requireApproval")
	})
	for i, drained := range []bool{true, false} {
		if _, err := h.client.Drain(t.Context(), "a", drained); err != nil {
			t.Fatal(err)
		}
		h.metric(address, "tasuki_capture_holder"+labels, fmt.Sprint(i))
		h.metric(address, "tasuki_capture_epoch"+labels, fmt.Sprint(i+2))
		h.metric(address, `tasuki_capture_pending_actions{state="pending"}`, "2")
	}
	h.metric(address, `tasuki_capture_fenced_total{where="sweep",why="otherEpoch"}`, "2")
}

// metric waits until a metric has a value.
func (h *host) metric(address, name, value string) {
	h.t.Helper()
	want, text := regexp.MustCompile("(?m)^"+regexp.QuoteMeta(name)+" "+value+"$"), ""
	h.until(name+" is "+value, func() bool {
		_, text = h.get("http://" + address + "/metrics")
		return want.MatchString(text)
	})
}

// freeAddress is one on loopback that nobody serves at just now.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// Nobody but this host is served unless somebody says so.
func TestMetricsAreOfThisHostByDefault(t *testing.T) {
	o, _, err := options([]string{"--node", "a", "--config", "x", "--executor", "y"}, &output{})
	if err != nil || o.MetricsAddress != "127.0.0.1:9480" {
		t.Errorf("metrics are served at %q (%v)", o.MetricsAddress, err)
	}
}

// A FIFO is watched under the very name that keepalived has; what is done once is told apart.
func TestFlagsForOnPrem(t *testing.T) {
	base := []string{"--node", "a", "--config", "x", "--executor", "y"}
	for _, tt := range []struct {
		args []string
		once string
		want string
	}{
		{[]string{"--vrrp-fifo", "/run/fifo"}, "", ""},
		{[]string{"--vrrp-fifo", "fifo"}, "", "give its whole path"},
		{[]string{"--vrrp-advert-int", "0s"}, "", "give the longest advert_int"},
		{[]string{"--withdraw"}, onceWithdraw, ""},
		{[]string{"--check", "--withdraw"}, onceCheck, ""},
	} {
		_, once, err := options(append(slices.Clone(base), tt.args...), &output{})
		if once != tt.once || (err == nil) != (tt.want == "") || err != nil && (!strings.Contains(err.Error(), tt.want) || code(err) != 2) {
			t.Errorf("%v: %q, %v", tt.args, once, err)
		}
	}
}
