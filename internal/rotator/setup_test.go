package rotator

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
)

// A kubelet reports every few seconds. A pool wakes for what a snapshot shows of it.
func TestOnlyWhatIsReadWakesAPool(t *testing.T) {
	p := changed(func(n *corev1.Node) any { v := nodeFrom(n); v.Version = ""; return v })
	before, beat, notReady := node("a", nil), node("a", nil), node("a", nil)
	beat.ResourceVersion, beat.Status.Images = "2", []corev1.ContainerImage{{SizeBytes: 1}}
	notReady.Status.Conditions[0].Status = corev1.ConditionFalse
	if p.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: beat}) {
		t.Error("a heartbeat wakes the pool")
	}
	if !p.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: notReady}) {
		t.Error("a node that is not Ready any more does not")
	}
	before.Labels = nil
	if got := poolOfLabel(t.Context(), before); len(got) > 0 {
		t.Errorf("a node of no pool wakes %v", got)
	}
}

func TestAPolicyWakesEveryPool(t *testing.T) {
	other := pool(nil)
	other.Name = "api"
	live := apiServer(interceptor.Funcs{}, pool(nil), other)
	var woken []string
	for _, r := range newRotator(live, live, &spoken{}).everyPool(t.Context(), web()) {
		woken = append(woken, r.Name)
	}
	slices.Sort(woken)
	if diff := cmp.Diff([]string{"api", "web"}, woken); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// On 200 nodes the names of their images alone would be megabytes.
func TestTheCacheKeepsOfANodeWhatASnapshotReads(t *testing.T) {
	n := node("a", surgeFor(nil))
	n.Spec.Unschedulable, n.Spec.Taints = true, []corev1.Taint{{Key: "karpenter.sh/disrupted"}}
	n.Status.Images = []corev1.ContainerImage{{SizeBytes: 1}}
	slim, err := slimNode(n)
	if err != nil {
		t.Fatal(err)
	}
	kept := slim.(*corev1.Node)
	if diff := cmp.Diff(nodeFrom(n), nodeFrom(kept)); diff != "" {
		t.Errorf("read from the cache (-whole +kept):\n%s", diff)
	}
	if len(kept.Status.Images) > 0 {
		t.Error("it keeps the images")
	}
}

func TestTwoReplicasOnOneHostAreTwo(t *testing.T) {
	var seen []string
	for range 2 {
		lock, err := leaderLock(&rest.Config{Host: "https://127.0.0.1:1"}, "node-rotation-system")
		if err != nil {
			t.Fatal(err)
		}
		seen = append(seen, lock.Identity())
	}
	if seen[0] == seen[1] {
		t.Errorf("both hold the lease as %s", seen[0])
	}
}
