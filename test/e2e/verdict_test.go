package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/tasuki-io/tasuki/lab/trial"
)

// seedVariable replays a test that draws at random.
const seedVariable = "TASUKI_E2E_SEED"

// seed returns the seed of a test and how to replay it.
func seed(t *testing.T) uint64 {
	t.Helper()
	n := uint64(time.Now().UnixNano())
	if told := os.Getenv(seedVariable); told != "" {
		var err error
		if n, err = strconv.ParseUint(told, 10, 64); err != nil {
			t.Fatalf("%s: %v", seedVariable, err)
		}
	}
	t.Logf("replay with %s=%d go test ./test/e2e -run '^%s$'", seedVariable, n, t.Name())
	return n
}

// once waits for the one line in a controller's log with this message about the pool. A
// second one ends the test.
func (p *pool) once(c *trial.Controller, message string) (fields map[string]any) {
	p.t.Helper()
	n := 0
	p.await(fmt.Sprintf("%q in the log", message), func() string {
		log, err := os.ReadFile(c.Log())
		if err != nil {
			p.t.Fatal(err)
		}
		n = 0
		for line := range bytes.Lines(log) {
			var f map[string]any
			if json.Unmarshal(line, &f) == nil && f["msg"] == message && f["nodepool"] == p.name {
				fields = f
				n++
			}
		}
		if n == 0 {
			return "it was not said"
		}
		return ""
	})
	if n != 1 {
		p.t.Fatalf("%q was said %d times, want once", message, n)
	}
	return fields
}

// noEventTwice checks that nothing was told twice of the pool's objects.
func (p *pool) noEventTwice() {
	p.t.Helper()
	seen := map[string]bool{}
	for _, e := range p.events("") {
		key := e.Reason + " of " + e.Regarding.Name
		if seen[key] || e.Series != nil {
			p.t.Errorf("Event %s was emitted again: %s", key, e.Note)
		}
		seen[key] = true
	}
}

// oneSuccess checks that what happened to the pool was one rotation that succeeded at the
// first attempt, with no more placeholders and writes than it takes.
func (p *pool) oneSuccess() {
	p.t.Helper()
	if ends := p.onPool(lastRotationAt); len(ends) != 1 {
		p.t.Errorf("it ended at %v: want one instant", ends)
	}
	if failures := p.onPool(lastFailureAt); len(failures) > 0 {
		p.t.Errorf("it failed at %v", failures)
	}
	p.reserved(1)
	done := 0
	for _, w := range p.writes(time.Time{}) {
		if w.Code < 300 {
			done++
		}
	}
	if most := 13 + 2*p.misplaced(); done > most {
		p.t.Errorf("%d writes were done, want at most %d", done, most)
		p.tellWrites()
	}
}

// reserved checks how many placeholders there ever were, apart from misplaced ones.
func (p *pool) reserved(times int) {
	p.t.Helper()
	if n := len(p.placeholders()) - p.misplaced(); n != times {
		p.t.Errorf("%d placeholders were created, want %d", n, times)
	}
}

// misplaced counts the placeholders that the scheduler has put on the very node that they
// stand for, as it had not heard of the cordon yet. Each is replaced, in two writes.
func (p *pool) misplaced() int {
	nodes, found := map[string]string{}, map[types.UID]bool{}
	walk(world.history, p.owns, func(_ version, c *karpv1.NodeClaim) { nodes[c.Name] = c.Status.NodeName })
	walk(world.history, p.ownsPlaceholder, func(_ version, pod *corev1.Pod) {
		if on := pod.Spec.NodeName; on != "" && on == nodes[pod.Annotations[surgeFor]] {
			found[pod.UID] = true
		}
	})
	return len(found)
}

// metric reads one series of a controller that serves its metrics there, -1 if it has none.
func metric(t *testing.T, address, series string) float64 {
	t.Helper()
	resp, err := http.Get("http://" + address + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	all, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(all)) {
		if value, ok := strings.CutPrefix(line, series+" "); ok {
			n, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
			if err != nil {
				t.Fatalf("metric %s: %v", series, err)
			}
			return n
		}
	}
	return -1
}

// alone ends the shared controller, so that the one of this test is the only one.
func alone(t *testing.T) {
	t.Helper()
	if err := stopController(); err != nil {
		t.Fatal(err)
	}
}

// own starts a controller for this test alone, with no lease to wait for.
func own(t *testing.T, kubeconfig string, args ...string) *trial.Controller {
	t.Helper()
	alone(t)
	c := startController(t, kubeconfig, append([]string{"--leader-elect=false"}, args...)...)
	t.Cleanup(c.Kill)
	return c
}
