package e2e

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/tasuki-io/tasuki/lab"
	"github.com/tasuki-io/tasuki/lab/trial"
)

// names are all objects that belong, or once belonged, to the pool.
func (p *pool) names() map[string]bool {
	names := map[string]bool{p.name: true}
	for _, n := range slices.Concat(p.claimNames(), p.nodeNames()) {
		names[n] = true
	}
	for _, pod := range p.placeholders() {
		names[pod.Name] = true
	}
	return names
}

// events are the Events about the pool's objects that the controller has emitted for one
// reason, or for any if it is empty, the oldest first.
func (p *pool) events(reason string) []eventsv1.Event {
	p.t.Helper()
	names := p.names()
	var l eventsv1.EventList
	p.list(&l)
	ours := slices.DeleteFunc(l.Items, func(e eventsv1.Event) bool {
		return e.ReportingController != "tasuki-controller" || !names[e.Regarding.Name] || reason != "" && e.Reason != reason
	})
	slices.SortFunc(ours, func(a, b eventsv1.Event) int { return a.EventTime.Compare(b.EventTime.Time) })
	return ours
}

// oneEvent waits for an Event and returns its note. A second one, or one that is counted
// up in a series, fails the test.
func (p *pool) oneEvent(reason string) string {
	p.t.Helper()
	var found []eventsv1.Event
	p.await("Event "+reason, func() string {
		if found = p.events(reason); len(found) == 0 {
			return "none"
		}
		return ""
	})
	if len(found) > 1 || found[0].Series != nil {
		p.t.Errorf("%d Events %s, series %v: want exactly one", len(found), reason, found[0].Series)
	}
	return found[0].Note
}

// writes are the controller's writes to the pool's objects since, from the API server's
// audit log. Events, leases and the status of policies are no part of a rotation.
func (p *pool) writes(since time.Time) []lab.AuditEvent {
	p.t.Helper()
	all, err := lab.AuditWrites(world.lab.Audit(), trial.User)
	if err != nil {
		p.t.Fatal(err)
	}
	names := p.names()
	return slices.DeleteFunc(all, func(e lab.AuditEvent) bool {
		return e.Time.Before(since) || !names[e.Name] || e.Resource == "events" || e.Resource == "leases" || e.Resource == "rotationpolicies"
	})
}

// unmarked reports everything that a rotation has left on the pool's objects.
func (p *pool) unmarked() {
	p.t.Helper()
	for key, value := range ourMarks(p.nodePool().Annotations) {
		if key != lastRotationAt && key != windowOpenedAt {
			p.t.Errorf("NodePool %s still carries %s=%s", p.name, key, value)
		}
	}
	claims := p.claims()
	for i := range claims {
		if m := ourMarks(claims[i].Annotations); len(m) > 0 {
			p.t.Errorf("NodeClaim %s still carries %v", claims[i].Name, m)
		}
	}
	nodes := p.nodes()
	for i := range nodes {
		if m := ourMarks(nodes[i].Annotations); len(m) > 0 || nodes[i].Spec.Unschedulable {
			p.t.Errorf("Node %s still carries %v, unschedulable=%t", nodes[i].Name, m, nodes[i].Spec.Unschedulable)
		}
	}
	p.noPlaceholder()
}

func (p *pool) noPlaceholder() {
	p.t.Helper()
	var l corev1.PodList
	p.list(&l, client.InNamespace(trial.Namespace))
	for i := range l.Items {
		if p.ownsPlaceholder(&l.Items[i]) {
			p.t.Errorf("placeholder %s is still there", l.Items[i].Name)
		}
	}
}

// rotated checks what holds after every success: the candidate is gone, this many
// NodeClaims came into being for it, and nothing of the rotation is left.
func (p *pool) rotated(candidate string, before []string, extra int) {
	p.t.Helper()
	if p.get(candidate, &karpv1.NodeClaim{}) {
		p.t.Errorf("NodeClaim %s is still there", candidate)
	}
	if got := len(p.claimNames()) - len(before); got != extra {
		p.t.Errorf("the rotation cost %d NodeClaims, want %d: had %v, then %v", got, extra, before, p.claimNames())
	}
	p.unmarked()
	p.complete()
}

// complete fails the test if the history has a gap, or a part of the lab has died.
func (p *pool) complete() {
	p.t.Helper()
	if err := world.history.gap(); err != nil {
		p.t.Errorf("the history is not complete: %v", err)
	}
	if err := world.lab.Check(); err != nil {
		p.t.Error(err)
	}
}

// testify prints what is known of the pool, for whoever reads the failure.
func (p *pool) testify() {
	var b bytes.Buffer
	fmt.Fprintf(&b, "evidence for NodePool %s\n", p.name)
	var np karpv1.NodePool
	if p.get(p.name, &np) {
		fmt.Fprintf(&b, "NodePool %s: %v in use %v\n", np.Name, ourMarks(np.Annotations), quantities(np.Status.Resources))
	}
	claims := p.claims()
	for i := range claims {
		c := &claims[i]
		fmt.Fprintf(&b, "NodeClaim %s: created %s deleting %v on %q %v\n", c.Name, clock(c.CreationTimestamp.Time), c.DeletionTimestamp, c.Status.NodeName, ourMarks(c.Annotations))
		for _, cond := range c.Status.Conditions {
			if cond.Status != "True" {
				fmt.Fprintf(&b, "  %s=%s %s %s\n", cond.Type, cond.Status, cond.Reason, cond.Message)
			}
		}
	}
	nodes := p.nodes()
	for i := range nodes {
		n := &nodes[i]
		fmt.Fprintf(&b, "Node %s: unschedulable=%t taints %v deleting %v %v\n", n.Name, n.Spec.Unschedulable, n.Spec.Taints, n.DeletionTimestamp, ourMarks(n.Annotations))
	}
	p.testifyPods(&b)
	fmt.Fprintf(&b, "NodeClaims ever: %v\n", p.claimNames())
	walk(world.history, p.ownsPlaceholder, func(v version, pod *corev1.Pod) {
		fmt.Fprintf(&b, "%s placeholder %s %s on %q gone=%t\n", clock(v.at), pod.UID, pod.Status.Phase, pod.Spec.NodeName, v.gone)
	})
	for _, e := range p.events("") {
		fmt.Fprintf(&b, "Event %s %s %s %s: %s\n", clock(e.EventTime.Time), e.Type, e.Reason, e.Regarding.Name, e.Note)
	}
	for _, w := range p.writes(time.Time{}) {
		fmt.Fprintf(&b, "write %s\n", w)
	}
	logs, _ := filepath.Glob(filepath.Join(world.dir, "tasuki-controller-*.log"))
	for _, path := range logs {
		content, _ := os.ReadFile(path)
		for line := range strings.Lines(string(content)) {
			// A line without a pool may be about any of them.
			if strings.Contains(line, fmt.Sprintf("%q:%q", "nodepool", p.name)) || strings.Contains(line, `"level":"error"`) && !strings.Contains(line, `"nodepool"`) {
				fmt.Fprintf(&b, "log %s", line)
			}
		}
	}
	p.t.Log(b.String())
}

func (p *pool) testifyPods(b *bytes.Buffer) {
	var l corev1.PodList
	p.list(&l)
	for i := range l.Items {
		pod := &l.Items[i]
		if !p.ownsPod(pod) && !p.ownsPlaceholder(pod) {
			continue
		}
		fmt.Fprintf(b, "Pod %s/%s: %s on %q ready=%t deleting %v\n", pod.Namespace, pod.Name, pod.Status.Phase, pod.Spec.NodeName, isReady(pod), pod.DeletionTimestamp)
		for _, c := range pod.Status.Conditions {
			if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
				fmt.Fprintf(b, "  not scheduled: %s\n", c.Message)
			}
		}
	}
}

func clock(t time.Time) string { return t.UTC().Format("15:04:05.000") }

func quantities(l corev1.ResourceList) map[string]string {
	out := map[string]string{}
	for name, q := range l {
		out[string(name)] = q.String()
	}
	return out
}
