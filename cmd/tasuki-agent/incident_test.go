package main

import (
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/tasuki-io/tasuki/internal/agent"
	"github.com/tasuki-io/tasuki/internal/capture"
	"github.com/tasuki-io/tasuki/internal/executor/executortest"
)

// The host is rebooted while EC2 is being asked: what was begun is awaited and recorded.
func TestSIGTERMFinishesTheCallUnderWay(t *testing.T) {
	h := newHost(t)
	arrived, gate := make(chan struct{}, 10), make(chan struct{})
	h.ec2.Before(func(c executortest.Call) {
		if c.Action == "AssignPrivateIpAddresses" {
			arrived <- struct{}{}
			<-gate
		}
	})
	open := sync.OnceFunc(func() { close(gate) })
	t.Cleanup(open)
	p := h.up()
	<-arrived
	p.signal(syscall.SIGTERM)
	h.until("the agent answers no more", func() bool {
		_, err := h.client.Status(t.Context())
		return err != nil
	})
	select {
	case <-p.gone:
		t.Fatal("the agent has ended although a call is under way")
	default:
	}
	open()
	p.ends(0, "action succeeded")

	h.up()
	h.held()
	if n := h.calls("AssignPrivateIpAddresses"); n != 1 {
		t.Errorf("%d assignments were sent, want the one that was recorded before the end", n)
	}
}

// Case c04: the marker of a release is durable, and the agent is killed before the release has
// run. It happens after the restart, once.
func TestAReleaseSurvivesAKill(t *testing.T) {
	h := newHost(t)
	p := h.up()
	h.held()
	h.configure(true)
	h.until("somebody has to approve", func() bool {
		s, err := h.client.Status(t.Context())
		return err == nil && strings.Contains(s.Policy, "requireApproval")
	})
	if _, err := h.client.Drain(t.Context(), "a", true); err != nil {
		t.Fatal(err)
	}
	h.until("the release is in the outbox, and waits for an approval", func() bool {
		list, err := h.client.Explain(t.Context(), mobile.String())
		return err == nil && len(list[0].Outbox) == 1 && len(list[0].Pending) == 1 && list[0].Pending[0].Rule == capture.RuleRequireApproval
	})
	p.kill()
	if n := h.calls("UnassignPrivateIpAddresses"); n != 0 {
		t.Fatalf("%d releases were sent before anybody approved", n)
	}

	h.configure(false)
	p = h.up()
	h.until("nothing is left to do", func() bool {
		open, err := h.client.Actions(t.Context(), nil)
		list, err2 := h.client.Explain(t.Context(), mobile.String())
		return err == nil && err2 == nil && len(open) == 0 && len(list[0].Outbox) == 0 && list[0].State == agent.PhaseElsewhere
	})
	if n := h.calls("UnassignPrivateIpAddresses"); n != 1 {
		t.Errorf("%d releases were sent, want one", n)
	}
	if on := h.ec2.Holders(mobile); len(on) > 0 {
		t.Errorf("the address is still on %v", on)
	}
	all, err := h.client.Actions(t.Context(), url.Values{"state": {"succeeded"}})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(slices.DeleteFunc(all, func(a agent.Action) bool { return a.Verb != capture.Unassign })); n != 1 {
		t.Errorf("%d releases have succeeded in the journal, want one", n)
	}
	p.signal(syscall.SIGTERM)
	p.ends(0)
}

// A kill while EC2 is being asked: the executor dies with the agent, nobody knows what came of
// the call, and the next attempt reads before it asks.
func TestAKilledCallIsRepeatedAfterItsDeadline(t *testing.T) {
	if testing.Short() {
		t.Skip("the deadline of an executor is half a minute")
	}
	h := newHost(t)
	h.ec2.Inject(executortest.Rule{Match: executortest.Action("AssignPrivateIpAddresses"), Times: 1, Fault: executortest.Fault{Carry: true, Hang: true}})
	p := h.up()
	h.until("the assignment is at EC2", func() bool { return h.calls("AssignPrivateIpAddresses") == 1 })
	p.kill()
	h.up()
	h.until("the attempt that nobody knows of is running, and waited for", func() bool {
		list, err := h.client.Actions(t.Context(), url.Values{"state": {"running"}, "address": {mobile.String()}})
		return err == nil && len(list) == 1 && list[0].Wait == capture.WaitRunning
	})
	h.held()
	if on := h.ec2.Holders(mobile); !slices.Equal(on, []string{"eni-a"}) {
		t.Errorf("the address is on %v", on)
	}
	if n := h.calls("AssignPrivateIpAddresses"); n != 1 {
		t.Errorf("EC2 was asked %d times to assign it, want once and a read", n)
	}
}

// A kill leaves the socket behind: the commands say so, and the next agent takes it over.
func TestASocketThatADeadAgentHasLeft(t *testing.T) {
	h := newHost(t)
	h.up().kill()
	if _, err := os.Stat(agent.Socket(h.path("state"))); err != nil {
		t.Fatalf("the kill was to leave a socket behind: %v", err)
	}
	if _, err := h.client.Status(t.Context()); err == nil || !strings.Contains(err.Error(), "no agent answers at "+agent.Socket(h.path("state"))) {
		t.Errorf("error %v, want one that says that no agent answers", err)
	}
	p := h.up()
	p.signal(syscall.SIGTERM)
	p.ends(0)
	if _, err := os.Stat(agent.Socket(h.path("state"))); !os.IsNotExist(err) {
		t.Errorf("an agent that has ended well has left its socket behind: %v", err)
	}
}

// Two agents on one state directory would be two writers of one journal.
func TestASecondAgentOnOneStateDirectoryIsRefused(t *testing.T) {
	h := newHost(t)
	first := h.up()
	h.run().ends(1, h.path("state/journal.db")+" is in use")
	if _, err := h.client.Status(t.Context()); err != nil {
		t.Errorf("the first agent has lost its socket to the second: %v", err)
	}
	first.signal(syscall.SIGTERM)
	first.ends(0)
}

// Two agents of one node on one claims file would each give up what the other holds.
func TestASecondAgentOfOneNodeOnOneClaimsFileIsRefused(t *testing.T) {
	h := newHost(t)
	first := h.up()
	h.run("--state", h.path("other"), "--claims", h.path("state/claims.db")).ends(1, "another agent of node a is at the claims file")
	first.signal(syscall.SIGTERM)
	first.ends(0)
}

// Case c23: an agent guesses no epoch. It names the file and the way out, and leaves it as it is.
func TestADamagedFileIsRefused(t *testing.T) {
	for _, name := range []string{"journal.db", "claims.db"} {
		for damage, do := range map[string]func([]byte) []byte{
			"truncated": func(b []byte) []byte { return b[:len(b)/2] },
			"corrupt": func(b []byte) []byte {
				for i := 4096; i < len(b); i++ {
					b[i] ^= 0x55
				}
				return b
			},
			"empty":        func([]byte) []byte { return nil },
			"another file": func([]byte) []byte { return []byte(strings.Repeat("not a database\n", 1000)) },
		} {
			t.Run(name+" "+damage, func(t *testing.T) {
				h := newHost(t)
				p := h.up()
				h.held()
				p.signal(syscall.SIGTERM)
				p.ends(0)
				path := filepath.Join(h.dir, "state", name)
				data, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				damaged := do(data)
				if err := os.WriteFile(path, damaged, 0o600); err != nil {
					t.Fatal(err)
				}
				calls := len(h.ec2.Calls())
				p = h.run()
				p.ends(1, path)
				if said := p.log.String(); !strings.Contains(said, "stop ") && !strings.Contains(said, "another path") && !strings.Contains(said, "move ") {
					t.Errorf("no way out is named: %s", said)
				}
				if after, err := os.ReadFile(path); err != nil || string(after) != string(damaged) {
					t.Errorf("the file was changed (%v)", err)
				}
				if n := len(h.ec2.Calls()); n != calls {
					t.Errorf("%d calls were made by an agent that knows no epoch", n-calls)
				}
			})
		}
	}
}

// The claims file is replaced under a running agent: it says so wherever one may look, and
// begins nothing. What is wrong is seen by the next pass, here that of a person's command.
func TestAReplacedClaimsFileIsTold(t *testing.T) {
	h := newHost(t)
	address := freeAddress(t)
	h.up("--metrics-bind-address", address)
	h.held()
	claims := filepath.Join(h.dir, "state", "claims.db")
	if err := os.Rename(claims, claims+".away"); err != nil {
		t.Fatal(err)
	}
	if _, err := h.client.Drain(t.Context(), "a", true); err == nil {
		t.Error("a drain is done although the claims file is not there")
	}
	all, err := h.client.Actions(t.Context(), url.Values{"all": {""}})
	if err == nil {
		_, err = h.client.Execute(t.Context(), all[0].ID) // is over, but brings a pass about
	}
	if err != nil {
		t.Fatal(err)
	}
	h.metric(address, "tasuki_capture_pass_failing", "1")
	code, text := h.get("http://" + address + "/healthz")
	s, err := h.client.Status(t.Context())
	if code != 503 || !strings.Contains(text, claims) || err != nil || !strings.Contains(s.Failure, claims) {
		t.Errorf("/healthz answers %d %q, and the status is %q (%v): want both to name the file", code, text, s.Failure, err)
	}
}
