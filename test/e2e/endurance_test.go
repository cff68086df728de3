package e2e

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tasuki-io/tasuki/api/v1alpha1"
)

const freezeMark = "noderotation.io/freeze"

// A pool is rotated twenty times in a row, while the controller is killed at random moments.
// Every rotation costs one NodeClaim and is on record once.
func TestTwentyRotationsUnderRandomKills(t *testing.T) {
	needLab(t)
	const rotations = 20
	rng := rand.New(rand.NewPCG(seed(t), 0))
	p := newPool(t, "endurance")
	web := p.deploy("web", 2, cpu("1"))
	p.budget(web, 1)
	p.awaitSettled(1, 2)
	before := p.claimNames()
	m := newMortal(t)
	kills, next := 0, time.Now()
	killSometimes := func() {
		if time.Now().After(next) {
			m.now.Kill()
			m.start(t)
			kills++
			next = time.Now().Add(time.Second + time.Duration(rng.Int64N(int64(8*time.Second))))
		}
	}

	began := p.govern(func(rp *v1alpha1.RotationPolicy) {
		rp.Spec.Surge.CooldownAfter = metav1.Duration{}
	})
	p.awaitWithin(10*time.Minute, "nearly all rotations", func() string {
		killSometimes()
		if n := len(p.onPool(lastRotationAt)); n < rotations-1 {
			return fmt.Sprintf("there were %d", n)
		}
		return ""
	})
	// The next drain is held, so that the rotation after it can be forbidden in time.
	p.allow(web.Name, 0)
	p.await("a drain that is held", func() string {
		killSometimes()
		for _, c := range p.claims() {
			if c.DeletionTimestamp != nil && len(p.podsOn(c.Status.NodeName)) > 0 {
				return ""
			}
		}
		return "none"
	})
	p.annotate(p.nodePool(), freezeMark, time.Now().Add(time.Hour).UTC().Format(time.RFC3339))
	p.allow(web.Name, 1)
	p.await("the last rotation", func() string {
		killSometimes()
		if a := p.nodePool().Annotations; a[activeRotation] != "" {
			return fmt.Sprintf("annotations %v", ourMarks(a))
		}
		return ""
	})
	p.awaitSettled(1, 2)
	t.Logf("%d kills in %s", kills, time.Since(began).Round(time.Second))

	p.withdraw()
	p.patch(p.nodePool(), fmt.Sprintf(`{"metadata": {"annotations": {%q: null}}}`, freezeMark))
	ends := p.onPool(lastRotationAt)
	if len(ends) < rotations {
		t.Errorf("%d rotations are on record, want at least %d", len(ends), rotations)
	}
	p.rotated(before[0], before, len(ends))
	if anchors := p.onPool(activeRotation); len(anchors) != len(ends) {
		t.Errorf("%d NodeClaims were rotated in %d rotations", len(anchors), len(ends))
	}
	for _, claim := range p.claimNames()[:len(ends)] {
		if starts := p.onClaim(claim, startedAt); len(starts) != 1 {
			t.Errorf("NodeClaim %s was rotated at %v, want once", claim, starts)
		}
	}
	// The cluster may evict one or the other from a node that is just coming up.
	if n := len(p.placeholders()) - p.misplaced(); n < len(ends) || n > len(ends)+2 {
		t.Errorf("%d placeholders were created in %d rotations", n, len(ends))
	}
	if failures := p.onPool(lastFailureAt); len(failures) > 0 {
		t.Errorf("it failed at %v", failures)
	}
	if fewest := p.fewestReady(began); fewest < 1 {
		t.Errorf("at one time neither pod was Ready")
	}
	p.tellAtMostOnce()
}

// A share of all requests of the controller fails, some of them after they were done, for
// the whole length of a rotation, and for 20 s all of them. It takes longer, and that is all.
func TestAPIServerThatOftenFails(t *testing.T) {
	needLab(t)
	way := newProxy(t)
	server := newFaulty(way.next, seed(t))
	way.next = server
	p := newPool(t, "faulty")
	web := p.deploy("web", 2, cpu("1"))
	p.budget(web, 1)
	p.awaitSettled(1, 2)
	before := p.claimNames()
	c := own(t, way.kubeconfig(t))

	const share = 0.15
	server.fail(share)
	began := p.govern()
	p.await("a placeholder", func() string {
		if len(p.placeholders()) == 0 {
			return "none"
		}
		return ""
	})
	server.fail(1)
	way.server.CloseClientConnections() // the watches
	time.Sleep(20 * time.Second)
	server.fail(share)
	p.awaitRotated()
	made := server.fail(0)
	p.awaitSettled(1, 2)
	t.Logf("rotated in %s in spite of %v", time.Since(began).Round(time.Second), made)

	if end := c.End(); end != "" {
		t.Errorf("the controller ended (%s):\n%s", end, c.Tail())
	}
	p.rotated(before[0], before, 1)
	p.oneAttempt(before[0], "")
	p.oneSuccess()
	if fewest := p.fewestReady(began); fewest < 1 {
		t.Errorf("at one time neither pod was Ready")
	}
	p.tellAtMostOnce()
}

// allow changes how many pods a deployment's budget lets go at a time.
func (p *pool) allow(deployment string, unavailable int) {
	p.t.Helper()
	p.patch(&policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: workloads, Name: deployment}},
		fmt.Sprintf(`{"spec": {"maxUnavailable": %d}}`, unavailable))
}

// withdraw removes the pool's policy.
func (p *pool) withdraw() {
	p.t.Helper()
	if err := world.client.Delete(world.ctx, &v1alpha1.RotationPolicy{ObjectMeta: metav1.ObjectMeta{Name: p.name}}); err != nil {
		p.t.Fatal(err)
	}
}

// tellAtMostOnce checks that no rotation was told of twice. An Event may be lost with the
// controller that was about to write it, or with the request.
func (p *pool) tellAtMostOnce() {
	p.t.Helper()
	for _, reason := range []string{"RotationStarted", "RotationCompleted"} {
		told := map[string]bool{}
		for _, e := range p.events(reason) {
			claim := strings.Fields(e.Note)[2] // Rotated NodeClaim x ...
			if told[claim] {
				p.t.Errorf("%s was told twice of NodeClaim %s", reason, claim)
			}
			told[claim] = true
		}
		p.t.Logf("%d Events %s", len(told), reason)
	}
}
