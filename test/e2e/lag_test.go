package e2e

import (
	"testing"
	"time"

	"github.com/tasuki-io/tasuki/lab/trial"
)

// lag is how far behind the controller's caches are.
const lag = 30 * time.Second

// r19: the watch caches of the controller show every object as it was 30 seconds ago.
// What it does on such a view is late, and nothing else.
func TestR19CachesLag(t *testing.T) {
	needLab(t)
	way := newProxy(t)
	way.next = lagging{way.next, lag}
	c := own(t, way.kubeconfig(t))
	// The parallel ones end before the controller does.
	t.Run("the surge is in time", func(t *testing.T) { t.Parallel(); testLaggingSuccess(t, c, "r19", 75*time.Second) })
	t.Run("news of the surge come too late", func(t *testing.T) { t.Parallel(); testLaggingSuccess(t, c, "r19-short", lag-2*time.Second) })
	t.Run("there is no surge", func(t *testing.T) { t.Parallel(); testLaggingFailure(t, c, "r19-stalled") })
}

// testLaggingSuccess: the surge is ready within readyTimeout, and the rotation goes on
// whenever the controller hears of it.
func testLaggingSuccess(t *testing.T, c *trial.Controller, name string, readyTimeout time.Duration) {
	p := newPool(t, name)
	p.deploy("web", 1, cpu("1"))
	p.awaitSettled(1, 1)
	before := p.claimNames()
	p.govern(readyWithin(readyTimeout))
	p.awaitRotated()
	p.awaitSettled(1, 1)
	time.Sleep(lag + 5*time.Second) // all that happened, happens once more in its caches

	p.rotated(before[0], before, 1)
	p.oneAttempt(before[0], "")
	p.oneSuccess()
	for _, message := range []string{"rotation candidate selected", "surge node ready", "drain started", "rotation complete"} {
		p.once(c, message)
	}
	p.oneEvent("RotationStarted")
	p.oneEvent("RotationCompleted")
	p.noEventTwice()
}

// testLaggingFailure: no surge comes up. The attempt ends when its time is up, which is
// before the controller's caches know that it has begun, and it ends once.
func testLaggingFailure(t *testing.T, c *trial.Controller, name string) {
	p, claim, _ := stalled(t, name)
	began := p.govern(readyWithin(surgeTimeout))
	p.awaitFailed(claim)
	time.Sleep(lag + 5*time.Second)

	p.rolledBack(claim, began)
	p.oneAttempt(claim, "")
	for _, message := range []string{"rotation candidate selected", "rotation attempt failed"} {
		p.once(c, message)
	}
	p.oneEvent("RotationStarted")
	p.oneEvent("RotationFailed")
	p.noEventTwice()
	start, err := time.Parse(time.RFC3339, p.onClaim(claim, startedAt)[0])
	if err != nil {
		t.Fatal(err)
	}
	end, err := time.Parse(time.RFC3339, p.claim(claim).Annotations[failedAt])
	if err != nil {
		t.Fatal(err)
	}
	if took := end.Sub(start); took > surgeTimeout+lag/2 {
		t.Errorf("the attempt ended after %s: want %s, however late the caches are", took, surgeTimeout)
	}
}
