package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/tasuki-io/tasuki/internal/rotation"
	"github.com/tasuki-io/tasuki/internal/window"
	"github.com/tasuki-io/tasuki/lab"
	"github.com/tasuki-io/tasuki/lab/trial"
)

func TestStory(t *testing.T) {
	var s story
	var got []string
	for _, h := range []trial.Happening{
		{Kind: trial.ClaimLaunched, Claim: "web-a"},
		{Kind: trial.NodeReady, Node: "n-a", Claim: "web-a"},
		{Kind: trial.PodReady, Pod: "web-1", Node: "n-a", Ready: 1},
		{Kind: trial.RotationStarted, Claim: "web-a", Node: "n-a"},
		{Kind: trial.NodeProtected, Node: "n-a", Cordoned: true},
		{Kind: trial.PlaceholderCreated, Requests: corev1.ResourceList{
			"memory": resource.MustParse("1536Mi"), "cpu": resource.MustParse("3600m"),
		}},
		{Kind: trial.ClaimLaunched, Claim: "web-b"},
		{Kind: trial.NodeAppeared, Node: "n-b", Claim: "web-b"},
		{Kind: trial.PlaceholderBound, Node: "n-b"},
		{Kind: trial.CapacityReady, Node: "n-b", Claim: "web-b"},
		{Kind: trial.PlaceholderGone, Node: "n-b"},
		{Kind: trial.ClaimDeleted, Claim: "web-a", Node: "n-a"},
		{Kind: trial.PodLeaving, Pod: "web-1", Node: "n-a"},
		{Kind: trial.PodCreated, Pod: "web-2"},
		{Kind: trial.PodBound, Pod: "web-2", Node: "n-b", Pending: 40 * time.Millisecond},
		{Kind: trial.ClaimGone, Claim: "web-a", Node: "n-a"},
		{Kind: trial.NodeReleased, Node: "n-b"},
		{Kind: trial.RotationEnded, Claim: "web-a", Outcome: trial.Success},
		{Kind: trial.PodReady, Pod: "web-2", Node: "n-b", Ready: 6},
	} {
		if phase, text := s.tell(h, 6); text != "" {
			got = append(got, phase+": "+text)
		}
	}
	want := []string{
		"setup: Karpenter launches NodeClaim web-a",
		"setup: node n-a is Ready (NodeClaim web-a)",
		"surge: anchor claimed: NodeClaim web-a is on the rotation, and so is its node, now the old one",
		"surge: the old node is cordoned and protected: it takes no new pod, and nobody else disrupts it",
		"surge: placeholder created, requesting cpu 3600m, memory 1536Mi: the room that the pods will need",
		"surge: Karpenter launches NodeClaim web-b",
		"surge: node n-b registers (NodeClaim web-b)",
		"surge: placeholder is bound to the new node",
		"surge: placeholder runs on the new node: the capacity is really there",
		"hand-over: placeholder gone: its room on the new node is free",
		"hand-over: NodeClaim web-a deleted: Karpenter drains the old node",
		"drain: pod web-1 evicted from the old node",
		"drain: pod web-2 bound to the new node, 40ms after its creation",
		"drain: NodeClaim web-a is gone",
		"release: the new node is released: an ordinary node from now on",
		"done: rotation of NodeClaim web-a complete",
		"done: pod web-2 Ready on the new node (6 of 6)",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("story (-want +got):\n%s", diff)
	}
}

func TestDueShowsTheArithmetic(t *testing.T) {
	p := &rotation.Policy{Chances: 2, Measure: window.Measure{Period: time.Minute}, ReadyTimeout: 5 * time.Minute}
	d := dueOf(p, 20*time.Minute, 10*time.Minute)
	got := []string{d.String(), d.rotation()}
	want := []string{
		"a node is due past the age of 1m = expireAfter 20m - (K 2 x P 1m + t_rot 17m)",
		"t_rot 17m = readyTimeout 5m + terminationGracePeriod 10m + buffer 2m",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("arithmetic (-want +got):\n%s", diff)
	}
}

func TestBrief(t *testing.T) {
	for d, want := range map[time.Duration]string{
		20 * time.Minute: "20m", time.Hour: "1h", 61 * time.Minute: "1h1m", 90 * time.Second: "1m30s",
		10 * time.Second: "10s", time.Hour + time.Second: "1h0m1s", 0: "0s",
	} {
		if got := brief(d); got != want {
			t.Errorf("brief(%s) = %s, want %s", time.Duration(d), got, want)
		}
	}
}

func TestSummary(t *testing.T) {
	a := trial.Account{
		Replicas: 6, OldNode: "n-a", NewNode: "n-b", Outcome: trial.Success, Started: noon, Ended: noon.Add(99 * time.Second),
		SurgePath: "provisioned", SurgeWait: 2600 * time.Millisecond, Drain: 96 * time.Second, Total: 99 * time.Second,
		ClaimsCreated: []string{"web-b"}, Evicted: 6, MostNotReady: 1, LongestPending: 57 * time.Millisecond,
		Writes: []lab.AuditEvent{{Time: noon, User: trial.User, Verb: "patch", Resource: "nodes", Name: "n-a", Code: 200}},
	}
	const want = `
Node replaced: n-a
           by: n-b
Surge path: provisioned
Time: surge wait 2.6s, drain 1m36s, total 1m39s
NodeClaims created: 1
Pods evicted: 6
Most pods not Ready at once: 1 of 6
Longest Pending, creation to bound: 57ms
API writes by the controller: 1 (at most 13; Events, leases and policy status apart)
`
	const marks = "Marks left behind: 0\n"
	for _, c := range []struct {
		writes bool
		want   string
	}{
		{false, want + marks},
		{true, want + "  2026-03-01T12:00:00Z patch nodes n-a 200\n" + marks},
	} {
		var out bytes.Buffer
		summary(&out, a, c.writes)
		if diff := cmp.Diff(c.want, out.String()); diff != "" {
			t.Errorf("summary with writes %t (-want +got):\n%s", c.writes, diff)
		}
	}
}

func TestSummaryListsWritesThatAreTooMany(t *testing.T) {
	var out bytes.Buffer
	summary(&out, trial.Account{Started: noon, Writes: make([]lab.AuditEvent, trial.MostWrites+1)}, false)
	if got := strings.Count(out.String(), "\n  "); got != trial.MostWrites+1 {
		t.Errorf("%d writes are listed, want all %d:\n%s", got, trial.MostWrites+1, out.String())
	}
}

func TestControllerBinary(t *testing.T) {
	path := filepath.Join(t.TempDir(), "controller")
	var usage usageError
	if _, err := controllerBinary(path); !errors.As(err, &usage) {
		t.Errorf("controllerBinary of a missing file: error %v, want a usage error", err)
	}
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if got, err := controllerBinary(path); got != path || err != nil {
		t.Errorf("controllerBinary(%s) = %s, %v", path, got, err)
	}
	// The test binary stands alone in its folder.
	if _, err := controllerBinary(""); err == nil || !strings.Contains(err.Error(), "run make build") {
		t.Errorf("controllerBinary without a controller: error %v, want one that says what to run", err)
	}
}

func TestFailureCode(t *testing.T) {
	for _, c := range []struct {
		err  error
		want int
	}{
		{errors.New("a promise broken"), 1},
		{interrupted{context.Canceled}, 130},
		{fmt.Errorf("demo: %w", interrupted{nil}), 130},
	} {
		if got := failureCode(c.err); got != c.want {
			t.Errorf("failureCode(%v) = %d, want %d", c.err, got, c.want)
		}
	}
}

// Without a terminal there are lines, and not one escape sequence.
func TestScreenIsPlainWithoutATerminal(t *testing.T) {
	var out bytes.Buffer
	s := newScreen(&out, false)
	s.draw(draining())
	s.say(65*time.Second, phaseDrain, "a very long line is not wrapped, so that every happening can be found by its line alone")
	s.draw(draining())
	s.clear()
	const want = "  1:05  drain      a very long line is not wrapped, so that every happening can be found by its line alone\n"
	if got := out.String(); got != want {
		t.Errorf("output = %q, want %q", got, want)
	}
}
