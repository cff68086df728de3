package e2e

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/tasuki-io/tasuki/api/v1alpha1"
)

// r09: three nodes are born together, more than fit into the windows before their deadline,
// and that is told before any of them moves. A fourth came last and expires first. They are
// rotated in the order of their deadlines, then of their creation, then of their names.
func TestR09BatchIsAnnouncedAndGoesByDeadline(t *testing.T) {
	needLab(t)
	t.Parallel()
	needController(t)
	p := newPool(t, "r09", undisrupted)
	p.deploy("batch", 3, cpu("3"))
	p.awaitSettled(3, 3)
	p.alter(expireAfter("1h"))
	p.deploy("late", 1, cpu("3"))
	p.awaitSettled(4, 4)
	p.alter(expireAfter("2h"))
	claims := p.claims()
	slices.SortFunc(claims, func(a, b karpv1.NodeClaim) int {
		return cmp.Or(
			a.CreationTimestamp.Add(*a.Spec.ExpireAfter.Duration).Compare(b.CreationTimestamp.Add(*b.Spec.ExpireAfter.Duration)),
			a.CreationTimestamp.Compare(b.CreationTimestamp.Time),
			cmp.Compare(a.Name, b.Name))
	})
	var want []string
	for i := range claims {
		want = append(want, claims[i].Name)
	}
	if last := p.claimNames()[3]; want[0] != last {
		t.Fatalf("NodeClaim %s was to expire first, not %s", last, want[0])
	}

	p.govern(restAfter(0))
	if note := p.oneEvent("ThroughputBurstShortfall"); !strings.Contains(note, "3 nodes have their deadlines within one window period") ||
		!strings.Contains(note, "minRotationChances 1 x C 1 = 1 rotations") {
		t.Errorf("ThroughputBurstShortfall does not tell the numbers: %s", note)
	}
	all := p.awaitSpells(4)
	p.abandon()
	var got []string
	for _, s := range all {
		got = append(got, s.claim)
	}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("order of the rotations (-want +got):\n%s", diff)
	}
	if warned := revision(t, &p.events("ThroughputBurstShortfall")[0]); warned > all[0].from {
		t.Errorf("ThroughputBurstShortfall came at revision %d, after the first rotation had begun at %d", warned, all[0].from)
	}
	p.oneEvent("ThroughputBurstShortfall")
	p.complete()
}

// No rest is wanted after a rotation: the next one begins when one is over, and not at some
// later look around.
func TestNextRotationFollowsAtOnceWithoutARest(t *testing.T) {
	needLab(t)
	t.Parallel()
	needController(t)
	p := newPool(t, "restless")
	p.deploy("web", 4, cpu("3"))
	p.awaitSettled(4, 4)

	p.govern(restAfter(0))
	all := p.awaitSpells(4)
	p.abandon()
	var pauses []time.Duration
	for i := range all[1:] {
		pauses = append(pauses, all[i+1].began.Sub(all[i].ended))
	}
	t.Logf("pauses between rotations: %v", pauses)
	// On an idle machine they are well under 2s. A look around would come after 30s at the earliest.
	if longest := slices.Max(pauses); longest >= 15*time.Second {
		t.Errorf("pauses between rotations %v: it waits for some later look", pauses)
	}
	p.complete()
}

// Two pools have a node that is due. Neither waits for the other.
func TestTwoPoolsRotateAtOnce(t *testing.T) {
	needLab(t)
	t.Parallel()
	needController(t)
	var pools []*pool
	for _, name := range []string{"pair-a", "pair-b"} {
		p := newPool(t, name)
		p.budget(p.deploy("web", 2, cpu("1"), slow), 1)
		pools = append(pools, p)
	}
	a, b := pools[0], pools[1]
	a.awaitSettled(1, 2)
	b.awaitSettled(1, 2)
	before := map[*pool][]string{a: a.claimNames(), b: b.claimNames()}

	a.govern()
	b.govern()
	of := map[*pool]spell{a: a.awaitSpells(1)[0], b: b.awaitSpells(1)[0]}
	for _, p := range pools {
		p.awaitSettled(1, 2)
		p.rotated(before[p][0], before[p], 1)
		t.Logf("NodePool %s rotated from %s to %s", p.name, clock(of[p].began), clock(of[p].ended))
	}
	if of[a].to < of[b].from || of[b].to < of[a].from {
		t.Errorf("one waited for the other: %+v and %+v", of[a], of[b])
	}
}

// r28: two attempts fail early in a window. After the second one the node would rest for
// twice retryBackoff, until the window is closed. It is tried a third time inside.
func TestR28ThirdAttemptIsBroughtIntoTheWindow(t *testing.T) {
	needLab(t)
	t.Parallel()
	needController(t)
	p := newPool(t, "r28", ownNodeClass(t, "r28"), expireAfter("720h"))
	p.deploy("web", 1, cpu("1"))
	p.awaitSettled(1, 1)
	stall(t, "r28")
	claim := p.claimNames()[0]

	// The second failure comes after 2 x ready + backoff. From there, one backoff has to fit
	// into the window and two must not: it closes between 180 s and 260 s from now.
	const ready, backoff = 10 * time.Second, 80 * time.Second
	now := time.Now()
	closes := now.Add(195 * time.Second).Truncate(time.Minute)
	if closes.Sub(now) < 195*time.Second {
		closes = closes.Add(time.Minute)
	}
	p.govern(readyWithin(ready), openDaily(now.Add(-2*time.Minute), closes), func(rp *v1alpha1.RotationPolicy) {
		rp.Spec.Surge.RetryBackoff.Duration = backoff
		rp.Spec.Surge.FailurePause = &rp.Spec.Surge.ReadyTimeout
	})
	var starts []string
	p.awaitWithin(5*time.Minute, "the third attempt", func() string {
		if starts = p.onClaim(claim, startedAt); len(starts) < 3 && time.Now().Before(closes.Add(10*time.Second)) {
			return fmt.Sprintf("attempts began at %v", starts)
		}
		return ""
	})
	failures := p.onClaim(claim, failedAt)
	if len(starts) != 3 || len(failures) < 2 {
		t.Fatalf("attempts began at %v and failed at %v: want a third before the window closes at %s", starts, failures, clock(closes))
	}
	second, third := instant(t, failures[1]), instant(t, starts[2])
	if unclamped := second.Add(2 * backoff); unclamped.Before(closes) {
		t.Fatalf("the whole ladder lands at %s, inside the window until %s: nothing was shown", clock(unclamped), clock(closes))
	}
	if next := second.Add(backoff); third.Before(next) || !third.Before(closes) {
		t.Errorf("the third attempt began at %s: want it from %s on and before %s", clock(third), clock(next), clock(closes))
	}
	notes := p.events("RotationFailed")
	if len(notes) < 2 || !strings.Contains(notes[1].Note, second.Add(backoff).UTC().Format(time.RFC3339)) {
		t.Errorf("the second RotationFailed does not name the next attempt, one backoff after %s: %+v", clock(second), notes)
	}
	if got := p.claim(claim).Annotations[retryCount]; got != "2" {
		t.Errorf("%s is %q, want 2", retryCount, got)
	}
	p.complete()
}

func instant(t *testing.T, stamp string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339, stamp)
	if err != nil {
		t.Fatal(err)
	}
	return at
}
