package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// r01: six pods fill a node. A budget lets one of them be away at a time, and each takes
// 12 s to become Ready. The rotation costs one NodeClaim, and the budget is never used up.
func TestR01FullNodeCostsExactlyOneNodeClaim(t *testing.T) {
	needLab(t)
	t.Parallel()
	needController(t)
	p := newPool(t, "r01")
	web := p.deploy("web", 6, and(cpu("600m"), corev1.ResourceMemory, "256Mi"), slow)
	p.budget(web, 1)
	p.awaitSettled(1, 6)
	before := p.claimNames()

	began := p.govern()
	p.awaitRotated()
	p.awaitSettled(1, 6)

	p.rotated(before[0], before, 1)
	if fewest := p.fewestReady(began); fewest < 5 {
		t.Errorf("at one time only %d of 6 pods were Ready: at most one may be away", fewest)
	}
	p.reserved(1)
	if got := p.onPool(surgePath); len(got) != 1 || got[0] != "provisioned" {
		t.Errorf("surgePath %v, want provisioned", got)
	}
	if note := p.oneEvent("RotationStarted"); !strings.Contains(note, before[0]) {
		t.Errorf("RotationStarted does not name NodeClaim %s: %s", before[0], note)
	}
	if note := p.oneEvent("RotationCompleted"); !strings.Contains(note, "mode surge") || !strings.Contains(note, "surgePath provisioned") {
		t.Errorf("RotationCompleted does not tell mode and surgePath: %s", note)
	}
	const most = 13
	writes := p.writes(began)
	if len(writes) > most {
		t.Errorf("%d API writes, want at most %d", len(writes), most)
	}
	t.Logf("%d API writes", len(writes))
	for _, w := range writes {
		if w.Code >= 400 {
			t.Logf("refused: %s", w)
		}
	}
}

// Another node of the pool has room for everything on the candidate: the rotation uses it
// and launches nothing.
func TestSpareCapacityAbsorbsTheSurge(t *testing.T) {
	needLab(t)
	t.Parallel()
	needController(t)
	p := newPool(t, "absorb")
	p.deploy("stays", 2, cpu("1"))
	p.awaitSettled(1, 2)
	candidate := p.claimNames()[0]
	leaves := p.deploy("leaves", 1, cpu("3"))
	p.awaitSettled(2, 3)
	p.patch(leaves, `{"spec": {"replicas": 0}}`)
	p.awaitSettled(2, 2)
	before := p.claimNames()

	began := p.govern()
	p.awaitRotated()
	p.awaitSettled(1, 2)

	p.rotated(candidate, before, 0)
	if got := p.onPool(surgePath); len(got) != 1 || got[0] != "absorbed" {
		t.Errorf("surgePath %v, want absorbed", got)
	}
	if note := p.oneEvent("RotationCompleted"); !strings.Contains(note, "surgePath absorbed") {
		t.Errorf("RotationCompleted does not tell the surgePath: %s", note)
	}
	if n := len(p.writes(began)); n > 13 {
		t.Errorf("%d API writes, want at most 13", n)
	}
}

// r02: a GPU pod. The API server takes an extended resource only with limits equal to
// requests, and only a GPU node will do.
func TestR02GPUNodeRotates(t *testing.T) {
	needLab(t)
	t.Parallel()
	needController(t)
	const gpu corev1.ResourceName = "nvidia.com/gpu"
	p := newPool(t, "r02", require(corev1.LabelInstanceTypeStable, fourCPU, fourCPUOneGP))
	p.deploy("train", 1, and(cpu("1"), gpu, "1"), limited)
	p.awaitSettled(1, 1)
	before := p.claimNames()

	p.govern()
	p.awaitRotated()
	p.awaitSettled(1, 1)

	p.rotated(before[0], before, 1)
	for _, placeholder := range p.placeholders() {
		r := placeholder.Spec.Containers[0].Resources
		want, asked := r.Requests[gpu]
		if most := r.Limits[gpu]; !asked || want.Value() != 1 || most.Cmp(want) != 0 {
			t.Errorf("placeholder requests %v with limits %v: want one %s in both", r.Requests, r.Limits, gpu)
		}
	}
	if got := p.nodes()[0].Labels[corev1.LabelInstanceTypeStable]; got != fourCPUOneGP {
		t.Errorf("the surge node is a %s, want a %s", got, fourCPUOneGP)
	}
}

// r10: much is on the candidate that needs no new home. The placeholder is as large as the
// plain workload and no larger.
func TestR10OnlyPodsThatMoveCount(t *testing.T) {
	needLab(t)
	t.Parallel()
	needController(t)
	p := newPool(t, "r10")
	p.deploy("plain", 2, and(cpu("500m"), corev1.ResourceMemory, "64Mi"))
	p.awaitSettled(1, 2)
	before := p.claimNames()
	node := p.nodes()[0]
	p.placeOthers(&node)

	p.govern()
	p.awaitRotated()

	p.rotated(before[0], before, 1)
	p.reserved(1)
	want := map[string]string{"cpu": "1", "memory": "128Mi"}
	if diff := cmp.Diff(want, quantities(p.placeholders()[0].Spec.Containers[0].Resources.Requests)); diff != "" {
		t.Errorf("the placeholder's requests are not the workload's (-want +got):\n%s", diff)
	}
}

// placeOthers puts on the node what does not count, and waits until it runs or is done.
func (p *pool) placeOthers(node *corev1.Node) {
	p.t.Helper()
	everything := func(pod *corev1.PodTemplateSpec) {
		pod.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	}
	agent := p.template(cpu("300m"), notWorkload, everything)
	agent.Labels["app"] = p.name + "-agent"
	p.create(&appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: workloads, Name: p.name + "-agent"},
		Spec:       appsv1.DaemonSetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": p.name + "-agent"}}, Template: agent},
	})
	batch := p.template(cpu("100m"), notWorkload, func(pod *corev1.PodTemplateSpec) { pod.Spec.RestartPolicy = corev1.RestartPolicyNever })
	p.create(&batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: workloads, Name: p.name + "-job"},
		Spec:       batchv1.JobSpec{Template: batch},
	})

	bare := func(name, quantity string, change func(*corev1.Pod)) {
		t := p.template(cpu(quantity), notWorkload)
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: workloads, Name: p.name + "-" + name, Labels: t.Labels}, Spec: t.Spec}
		change(pod)
		p.create(pod)
	}
	bare("mirror", "200m", func(pod *corev1.Pod) {
		pod.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "0123456789abcdef"}
		pod.Spec.NodeName = node.Name
	})
	bare("static", "250m", func(pod *corev1.Pod) {
		pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID}}
		pod.Spec.NodeName = node.Name
	})
	bare("pinned", "400m", func(pod *corev1.Pod) {
		pod.Spec.NodeSelector[corev1.LabelHostname] = node.Labels[corev1.LabelHostname]
	})

	p.await("the pods that do not count", func() string {
		for _, name := range []string{"mirror", "static", "pinned"} {
			pod := &corev1.Pod{}
			if !p.get(p.name+"-"+name, pod) || !isReady(pod) || pod.Spec.NodeName != node.Name {
				return fmt.Sprintf("%s is %s on %q", name, pod.Status.Phase, pod.Spec.NodeName)
			}
		}
		ds, job := &appsv1.DaemonSet{}, &batchv1.Job{}
		if !p.get(p.name+"-agent", ds) || ds.Status.NumberReady != 1 {
			return "the DaemonSet is not ready"
		}
		if !p.get(p.name+"-job", job) || job.Status.Succeeded != 1 {
			return "the Job is not done"
		}
		return ""
	})
}

// r13: the volumes of two pods are in zone a. The pool may launch in zone b as well, but
// there the pods could never start again.
func TestR13SurgeFollowsTheVolumes(t *testing.T) {
	needLab(t)
	t.Parallel()
	needController(t)
	p := newPool(t, "r13", require(corev1.LabelTopologyZone, zoneA, zoneB))
	p.deployWithVolumes(2, zoneA)
	p.awaitSettled(1, 2)
	before := p.claimNames()

	p.govern()
	p.awaitRotated()
	p.awaitSettled(1, 2)

	p.rotated(before[0], before, 1)
	if got := p.nodes()[0].Labels[corev1.LabelTopologyZone]; got != zoneA {
		t.Errorf("the surge node is in %s, want %s where the volumes are", got, zoneA)
	}
}

// deployWithVolumes runs a StatefulSet whose volumes exist already, in one zone.
func (p *pool) deployWithVolumes(replicas int, zone string) {
	p.t.Helper()
	none, size := "", and(nil, corev1.ResourceStorage, "1Gi")
	app := p.name + "-db"
	for i := range replicas {
		p.create(&corev1.PersistentVolume{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", app, i)},
			Spec: corev1.PersistentVolumeSpec{
				Capacity:                      size,
				AccessModes:                   []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
				PersistentVolumeSource:        corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: "/data"}},
				ClaimRef:                      &corev1.ObjectReference{Namespace: workloads, Name: fmt.Sprintf("data-%s-%d", app, i)},
				NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
					MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn, Values: []string{zone}}},
				}}}},
			},
		})
	}
	pod := p.template(cpu("1"), func(pod *corev1.PodTemplateSpec) {
		pod.Labels["app"] = app
		pod.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}
	})
	n := int32(replicas)
	p.create(&appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: workloads, Name: app},
		Spec: appsv1.StatefulSetSpec{
			Replicas: &n, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}, Template: pod,
			PersistentVolumeClaimRetentionPolicy: &appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{WhenDeleted: appsv1.DeletePersistentVolumeClaimRetentionPolicyType},
			VolumeClaimTemplates: []corev1.PersistentVolumeClaim{{
				ObjectMeta: metav1.ObjectMeta{Name: "data"},
				Spec: corev1.PersistentVolumeClaimSpec{
					StorageClassName: &none, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
					Resources: corev1.VolumeResourceRequirements{Requests: size},
				},
			}},
		},
	})
}

// r15: an operator has cordoned the candidate. That is no reason to let it expire.
func TestR15CordonedNodeIsRotated(t *testing.T) {
	needLab(t)
	t.Parallel()
	needController(t)
	p := newPool(t, "r15")
	p.deploy("web", 1, cpu("1"))
	p.awaitSettled(1, 1)
	before := p.claimNames()
	p.cordon(p.nodes()[0].Name)

	p.govern()
	p.awaitRotated()
	p.awaitSettled(1, 1)

	p.rotated(before[0], before, 1)
}

// r16: an operator protects the node that is due first. The rotation takes the other one
// and leaves the protected one alone.
func TestR16ProtectedNodeIsLeftAlone(t *testing.T) {
	needLab(t)
	t.Parallel()
	needController(t)
	p := newPool(t, "r16")
	p.deploy("first", 1, cpu("3"))
	p.awaitSettled(1, 1)
	protected := p.nodes()[0].Name
	protectedClaim := p.claimNames()[0]
	p.deploy("second", 1, cpu("3"))
	p.awaitSettled(2, 2)
	before := p.claimNames()
	p.annotate(p.node(protected), doNotDisrupt, "true")

	p.govern()
	p.awaitRotated()
	p.awaitSettled(2, 2)

	if p.get(before[1], &karpv1.NodeClaim{}) {
		t.Errorf("NodeClaim %s was not rotated", before[1])
	}
	if got := len(p.claimNames()); got != 3 {
		t.Errorf("%d NodeClaims ever, want 3: %v", got, p.claimNames())
	}
	if states := p.onClaim(protectedClaim, claimState); len(states) > 0 {
		t.Errorf("the protected NodeClaim %s was %v", protectedClaim, states)
	}
	n := p.node(protected)
	if diff := cmp.Diff(map[string]string{doNotDisrupt: "true"}, ourMarks(n.Annotations)); diff != "" || n.Spec.Unschedulable {
		t.Errorf("the protected Node is unschedulable=%t, annotations (-want +got):\n%s", n.Spec.Unschedulable, diff)
	}
	for _, key := range []string{surgeFor, cordonedByUs, doNotDisruptOurs} {
		if values := p.onNode(protected, key); len(values) > 0 {
			t.Errorf("the protected Node once carried %s=%v", key, values)
		}
	}
	p.noPlaceholder()
	p.complete()
}

// r17: somebody left do-not-disrupt="false" on the node, which protects nothing. The
// rotation overwrites it for as long as it lasts.
func TestR17WorthlessProtectionIsOverwritten(t *testing.T) {
	needLab(t)
	t.Parallel()
	needController(t)
	p := newPool(t, "r17")
	p.deploy("web", 1, cpu("1"))
	p.awaitSettled(1, 1)
	before := p.claimNames()
	node := p.nodes()[0].Name
	p.annotate(p.node(node), doNotDisrupt, "false")

	p.govern()
	p.awaitRotated()
	p.awaitSettled(1, 1)

	p.rotated(before[0], before, 1)
	if diff := cmp.Diff([]string{"false", "true"}, p.onNode(node, doNotDisrupt)); diff != "" {
		t.Errorf("%s over time (-want +got):\n%s", doNotDisrupt, diff)
	}
	if owned := p.onNode(node, doNotDisruptOurs); len(owned) != 1 {
		t.Errorf("the overwritten protection was never marked as ours: %v", owned)
	}
}

// r11: limits.cpu leaves less than the candidate's pods need. It is said once, with the
// numbers, and nothing is touched. (KWOK counts a node as large as what it was launched
// for, here 3 cpu.)
func TestR11NoHeadroomInCPU(t *testing.T) {
	testNoHeadroom(t, "r11", limit("cpu", "5"), "3 of cpu", "(5) leaves 2")
}

// r12: limits.nodes is reached. As r11.
func TestR12NoHeadroomInNodes(t *testing.T) {
	testNoHeadroom(t, "r12", limit("nodes", "1"), "1 of nodes", "(1) leaves 0")
}

func testNoHeadroom(t *testing.T, name string, limited func(*karpv1.NodePool), words ...string) {
	needLab(t)
	t.Parallel()
	needController(t)
	p := newPool(t, name, limited)
	p.deploy("web", 3, cpu("1"))
	p.awaitSettled(1, 3)
	before := p.claimNames()

	began := p.govern()
	p.oneEvent("InsufficientHeadroom")
	time.Sleep(20 * time.Second)

	note := p.oneEvent("InsufficientHeadroom")
	for _, word := range words {
		if !strings.Contains(note, word) {
			t.Errorf("InsufficientHeadroom does not say %q: %s", word, note)
		}
	}
	p.untouchedSince(began)
	if diff := cmp.Diff(before, p.claimNames()); diff != "" {
		t.Errorf("NodeClaims (-before +after):\n%s", diff)
	}
	p.unmarked()
	p.complete()
}

// untouchedSince fails the test if the controller has written to the pool's objects. The
// note of when the window opened is no part of a rotation.
func (p *pool) untouchedSince(began time.Time) {
	p.t.Helper()
	allowed := len(p.onPool(windowOpenedAt))
	for _, w := range p.writes(began) {
		if w.Resource == "nodepools" && w.Verb == "patch" && allowed > 0 {
			allowed--
			continue
		}
		p.t.Errorf("write %s", w)
	}
}
