package main

import (
	"bytes"
	"context"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tasuki-io/tasuki/internal/capture"
	"github.com/tasuki-io/tasuki/internal/executor/executortest"
	"github.com/tasuki-io/tasuki/internal/journal"
)

// tryDemo plays some acts, and returns what was shown.
func tryDemo(t *testing.T, acts []act, meddle func(*captureSite)) (string, error) {
	t.Helper()
	binary, err := agentBinary()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", "/tmp") // the path of a socket is short
	var out bytes.Buffer
	d := &captureDemo{agent: binary, executor: executortest.Binary(t), acts: acts, meddle: meddle, screen: newScreen(&out, true)}
	err = d.run(t.Context())
	if d.site != nil {
		if _, left := os.Stat(d.site.dir); !os.IsNotExist(left) {
			t.Errorf("the demo has left %s behind (%v)", d.site.dir, left)
		}
		for _, a := range d.site.agents {
			select {
			case <-a.gone:
			default:
				t.Errorf("the agent of %s is left running", a.node)
			}
		}
	}
	return out.String(), err
}

// Case c05 on real processes: an agent is stopped with a seize due, another seizes, and the
// first is refused by the gate when it resumes.
func TestDemoCaptureFencesAPausedAgent(t *testing.T) {
	out, err := tryDemo(t, wholePlay[:3], nil)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{
		`router-a +is stopped \(SIGSTOP\)`,
		`router-a +FENCED at the (sweep|execution): assign-secondary-ip of 10.20.0.10 on eni-a at epoch 3: otherEpoch`,
		`Epochs of 10.20.0.10: +1 router-a, 2 router-b, 3 router-a, 4 router-b\n`,
		`Calls AssignPrivateIpAddresses: +\d+, [1-9]\d* of them throttled`,
		`Fenced at the (sweep|execution), otherEpoch \(router-a\): +2\n`,
		`Longest time without a holder: +none`,
		`Every promise was kept.`,
		`Cleaned up: no process is left`,
	} {
		if !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("nothing is shown of %s in\n%s", want, out)
		}
	}
}

// The harder one of c05: the call was at the provider when the other seized (I4, I9).
func TestDemoCaptureRepairsALateSeize(t *testing.T) {
	if testing.Short() {
		t.Skip("what was done need not show for half a minute")
	}
	out, err := tryDemo(t, wholePlay, nil)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{`router-b +DRIFT: the NIC does not show 10.20.0.10`, `Drift repaired: +2\n`, `Longest time without a holder: +none`, `Every promise was kept.`} {
		if !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("nothing is shown of %s in\n%s", want, out)
		}
	}
}

// A promise that is broken is named, and the exit code is not 0.
func TestDemoCaptureFailsWhenAPromiseIsBroken(t *testing.T) {
	out, err := tryDemo(t, wholePlay[:1], func(s *captureSite) { s.ec2.Place(nicOf(nodeB), mobile[0]) })
	const broken = "I4, I9: 10.20.0.10 is on [eni-b], and its holder is router-a (epoch 1)"
	if err == nil || failureCode(err) != exitFailure || !strings.Contains(err.Error(), broken) {
		t.Errorf("error %v, want one of %q", err, broken)
	}
	if !strings.Contains(out, "PROMISE BROKEN: "+broken) || strings.Contains(out, "Every promise was kept") {
		t.Errorf("the screen does not say what is broken:\n%s", out)
	}
}

// An agent that dies under the demo fails it at once, with the end of its log.
func TestDemoCaptureFailsWhenAnAgentDies(t *testing.T) {
	out, err := tryDemo(t, []act{wholePlay[0], {"act 2", "A is shot", func(d *captureDemo, ctx context.Context) error {
		if err := d.site.agent(nodeA).process.Kill(); err != nil {
			return err
		}
		return d.await(ctx, "never", func() bool { return false })
	}}}, nil)
	if err == nil || !strings.Contains(err.Error(), "act 2: the agent of router-a has ended by itself") || !strings.Contains(out, "The end of the log of router-a") {
		t.Errorf("error %v, want one that says who died:\n%s", err, out)
	}
}

// Ctrl-C ends it in the middle, and leaves nothing; tryDemo looks after that.
func TestDemoCaptureIsInterrupted(t *testing.T) {
	out, err := tryDemo(t, []act{wholePlay[0], {"act 2", "Ctrl-C", func(d *captureDemo, ctx context.Context) error {
		ctx, stop := context.WithCancel(ctx)
		stop()
		return d.handOver(ctx)
	}}}, nil)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want the interruption\n%s", err, out)
	}
}

// goodEnd is the evidence of a demo in which A took one address and B took it over.
func goodEnd() *evidence {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	key := capture.Key{Pool: "demo", Address: mobile[0], Domain: "provider:fake:placement:edge"}
	released := capture.Action{
		Token:  capture.Token{Verb: capture.Unassign, Key: key, Epoch: 2, Holder: nodeA},
		Target: capture.Target{Provider: "aws", ProviderRef: "fake", NIC: "eni-a"}, State: capture.Succeeded, Attempts: 1,
	}
	call := func(after int, action, nic, id string) executortest.Call {
		now := at.Add(time.Duration(after) * time.Second)
		return executortest.Call{At: now, Took: now, Action: action, NIC: nic, Addresses: mobile[:1], Accepted: true, ID: executortest.Agent(id)}
	}
	said := func(after int, from, to string, epoch uint64) spoken {
		now := at.Add(time.Duration(after) * time.Second)
		return spoken{to, now, logLine{Time: now, Message: saidHolder, Key: key.String(), From: from, To: to, Epoch: epoch}}
	}
	return &evidence{
		lines: []spoken{said(0, "none", nodeA, 1), said(10, nodeA, nodeB, 2)},
		calls: []executortest.Call{
			call(1, "AssignPrivateIpAddresses", "eni-a", "x"), call(11, "AssignPrivateIpAddresses", "eni-b", "y"),
			call(12, "UnassignPrivateIpAddresses", "eni-a", released.ID()),
		},
		on:     map[netip.Addr][]string{mobile[0]: {"eni-b"}},
		nics:   map[string]executortest.Interface{nodeA: {ID: "eni-a"}, nodeB: {ID: "eni-b", Forwards: true}},
		claims: map[capture.Key]capture.Claim{key: {Epoch: 2, Holder: nodeB}},
		rows:   map[string][]journal.Row{nodeA: {{Action: released}}},
		events: map[string][]journal.Event{nodeA: {{ID: released.ID(), To: capture.Succeeded}}},
		marks:  map[string][]capture.Marker{},
	}
}

// Each promise is looked after: the nearest evidence that breaks it is found out.
func TestDemoCaptureFindsEveryBrokenPromise(t *testing.T) {
	if broken := goodEnd().broken(); len(broken) > 0 {
		t.Fatalf("the good end is found to have broken %q", broken)
	}
	for _, c := range []struct {
		name  string
		spoil func(*evidence)
		want  string
	}{
		{"an epoch is left out", func(e *evidence) { e.lines[1].line.Epoch = 3 }, "I1, I2: epoch 3 of "},
		{"an epoch is given twice", func(e *evidence) { e.lines[1].line.Epoch = 1 }, "I1, I2: epoch 1 of "},
		{"the store falls back", func(e *evidence) {
			for k := range e.claims {
				e.claims[k] = capture.Claim{Epoch: 1, Holder: nodeA}
			}
		}, "I1: the store has router-a (epoch 1)"},
		{"a release from the holder", func(e *evidence) { e.calls[2].NIC = "eni-b" }, "I5: 10.20.0.10 was released from eni-b"},
		{"a release before the handover", func(e *evidence) { e.calls[2].At = e.lines[0].at }, "I5: 10.20.0.10 was released from eni-a"},
		{"a row is left", func(e *evidence) { e.rows[nodeA][0].State = capture.Failed }, "I6: mobility:demo:aws:eni-a:unassign-secondary-ip"},
		{"a marker is left", func(e *evidence) {
			r := e.rows[nodeA][0]
			e.marks[nodeA] = []capture.Marker{{Token: r.Token, Target: r.Target}}
		}, "I6: the marker "},
		{"a key succeeds twice", func(e *evidence) { e.events[nodeA] = append(e.events[nodeA], e.events[nodeA][0]) }, "I7: "},
		{"a skipped release is sent", func(e *evidence) { e.rows[nodeA][0].State, e.rows[nodeA][0].Attempts = capture.Skipped, 0 }, "I8: "},
		{"two NICs at once", func(e *evidence) { e.torn = map[string]string{"10.20.0.10": "eni-a and eni-b"} }, "I9: 10.20.0.10 was on eni-a and eni-b at once"},
		{"no NIC at the end", func(e *evidence) { e.on[mobile[0]] = nil }, "I4, I9: 10.20.0.10 is on []"},
		{"the old one forwards", func(e *evidence) { e.nics[nodeA] = executortest.Interface{ID: "eni-a", Forwards: true} }, "I6: eni-a forwards: true"},
		{"nothing was ever claimed", func(e *evidence) { clear(e.claims) }, "I4: nobody was ever made a holder"},
	} {
		e := goodEnd()
		c.spoil(e)
		if broken := e.broken(); !strings.Contains(strings.Join(broken, "\n"), c.want) {
			t.Errorf("%s: found %q, want %q", c.name, broken, c.want)
		}
	}
}

// A gap is what the provider shows, from the release to the next assignment.
func TestDemoCaptureMeasuresTheGap(t *testing.T) {
	e := goodEnd()
	if gap := e.longestGap(); gap != 0 {
		t.Errorf("a gap of %s, want none", gap)
	}
	e.calls[2].Took = e.calls[1].Took.Add(-5 * time.Second) // released before B has it
	if gap := e.longestGap(); gap != 5*time.Second {
		t.Errorf("a gap of %s, want 5s", gap)
	}
}

func TestDemoCaptureStory(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	of := logLine{Time: at, Level: "INFO", Key: "demo/10.20.0.10@provider:fake:placement:edge", Verb: "assign-secondary-ip", NIC: "eni-a", Epoch: 3}
	line := func(message string, change func(*logLine)) logLine {
		l := of
		l.Message = message
		if change != nil {
			change(&l)
		}
		return l
	}
	var got []string
	for _, l := range []logLine{
		line(saidHolder, func(l *logLine) { l.From, l.To = nodeA, nodeB }),
		line(saidHolder, func(l *logLine) { l.Key = "-/-@provider:fake:nic:eni-a" }),
		line(saidBegins, nil),
		line(saidDone, func(l *logLine) { l.Outcome = "done" }),
		line(saidDone, func(l *logLine) {
			l.Key, l.Verb, l.Outcome = "-/-@provider:fake:nic:eni-a", "ensure-forwarding-enabled", "already"
		}),
		line(saidFenced, func(l *logLine) { l.Where, l.Why = "sweep", "otherEpoch: it is of epoch 3, and the current one is 4" }),
		line(saidThrottled, func(l *logLine) {
			l.Code, l.Attempt, l.Again = "RequestLimitExceeded", 1, at.Add(1500*time.Millisecond)
		}),
		line(saidDrift, nil),
		line(saidLate, nil),
		line(saidFailed, func(l *logLine) { l.Reason = "it is full" }),
		line("the pass failed", func(l *logLine) { l.Level, l.Error = "ERROR", "no store" }),
	} {
		got = append(got, l.sentence())
	}
	want := []string{
		"writes into the claims: 10.20.0.10 goes from router-a to router-b, epoch 3",
		"",
		"",
		"assign-secondary-ip of 10.20.0.10 on eni-a at epoch 3: done",
		"ensure-forwarding-enabled on eni-a at epoch 3: already",
		"FENCED at the sweep: assign-secondary-ip of 10.20.0.10 on eni-a at epoch 3: otherEpoch: it is of epoch 3, and the current one is 4",
		"assign-secondary-ip of 10.20.0.10 on eni-a at epoch 3: EC2 answers RequestLimitExceeded; attempt 2 comes in 1.5s",
		"DRIFT: the NIC does not show 10.20.0.10: repairs it by assign-secondary-ip of 10.20.0.10 on eni-a at epoch 3",
		"TOO LATE: assign-secondary-ip of 10.20.0.10 on eni-a at epoch 3 has succeeded, but the epoch has moved on",
		"assign-secondary-ip of 10.20.0.10 on eni-a at epoch 3 failed: it is full",
		"ERROR the pass failed no store",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("story (-want +got):\n%s", diff)
	}
}

func TestProgram(t *testing.T) {
	dir := t.TempDir()
	var usage usageError
	if _, err := program(filepath.Join(dir, "none"), "--agent", "tasuki-agent", ""); !errors.As(err, &usage) {
		t.Errorf("a given program that is not there: error %v, want a usage error", err)
	}
	if _, err := program("", "--agent", "tasuki-agent", dir); err == nil || !strings.Contains(err.Error(), "run make build, or give its path with --agent") {
		t.Errorf("error %v, want one that says what to do", err)
	}
}
