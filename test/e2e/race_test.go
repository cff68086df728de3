package e2e

import (
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tasuki-io/tasuki/lab"
	"github.com/tasuki-io/tasuki/lab/trial"
)

// The placeholder follows the cordon by milliseconds. A scheduler that hears of the cordon
// too late puts it on the candidate itself, where it reserves nothing. The rotation must
// not sit there until readyTimeout.
//
// The test pauses the scheduler and binds the placeholder in its stead, so it runs alone.
func TestPlaceholderOnTheCandidateIsReplaced(t *testing.T) {
	needLab(t)
	needController(t)
	p := newPool(t, "late-cordon")
	p.deploy("web", 1, cpu("1"))
	p.awaitSettled(1, 1)
	before, node := p.claimNames(), p.nodes()[0].Name

	resume := pauseScheduler(t)
	p.govern()
	p.await("a placeholder", func() string {
		if len(p.placeholders()) == 0 {
			return "none"
		}
		return ""
	})
	p.bind(p.placeholders()[0], node)
	resume()

	p.awaitWithin(90*time.Second, "another placeholder", func() string {
		if len(p.placeholders()) == 1 {
			return "the one on the candidate's own node is the only one"
		}
		return ""
	})
	p.awaitRotated()
	p.awaitSettled(1, 1)
	p.rotated(before[0], before, 1)
}

// pauseScheduler stops the scheduler until resume is called or the test ends.
func pauseScheduler(t *testing.T) (resume func()) {
	t.Helper()
	signal := func(sig syscall.Signal) {
		if err := world.lab.Signal(lab.Scheduler, sig); err != nil {
			t.Error(err)
		}
	}
	signal(syscall.SIGSTOP)
	resume = func() { signal(syscall.SIGCONT) }
	t.Cleanup(resume)
	return resume
}

// bind puts a pod on a node, as the scheduler does.
func (p *pool) bind(pod *corev1.Pod, node string) {
	p.t.Helper()
	err := world.client.SubResource("binding").Create(world.ctx, pod, &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Namespace: trial.Namespace, Name: pod.Name},
		Target:     corev1.ObjectReference{Kind: "Node", Name: node},
	})
	if err != nil {
		p.t.Fatalf("bind pod %s: %v", pod.Name, err)
	}
}
