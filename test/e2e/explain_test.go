package e2e

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/tasuki-io/tasuki/api/v1alpha1"
	"github.com/tasuki-io/tasuki/internal/rotation"
	"github.com/tasuki-io/tasuki/internal/rotator"
	"github.com/tasuki-io/tasuki/lab/trial"
)

// Whatever keeps a node from rotating, an explanation names it, asked by somebody who may read
// and nothing else.
func TestExplain(t *testing.T) {
	needLab(t)
	needController(t)
	of := reader(t)
	// As the test of r07 itself, it must not find pods of other pools pending.
	t.Run("r07 another node is on its way out", func(t *testing.T) { testExplainDrift(t, of) })
	for name, test := range map[string]func(*testing.T, *rotator.Inquiry){
		"out of window":                testExplainOutOfWindow,
		"r06 a freeze that is no time": testExplainFreeze,
		"r11 no room for cpu": func(t *testing.T, of *rotator.Inquiry) {
			testExplainHeadroom(t, of, newPool(t, "x11", limit("cpu", "5")), "3 of cpu", "(5) leaves 2")
		},
		"r12 no room for a node": func(t *testing.T, of *rotator.Inquiry) {
			testExplainHeadroom(t, of, newPool(t, "x12", limit("nodes", "1")), "1 of nodes", "(1) leaves 0")
		},
		"r22 a fixed number of nodes": testExplainStatic,
		"r24 a drain that is forced at the grace period": func(t *testing.T, of *rotator.Inquiry) {
			testExplainDrain(t, of, newPool(t, "x24", terminating(&metav1.Duration{Duration: 2 * time.Minute})), true)
		},
		"r25 a drain that nothing ends": func(t *testing.T, of *rotator.Inquiry) {
			testExplainDrain(t, of, newPool(t, "x25", terminating(nil)), false)
		},
	} {
		t.Run(name, func(t *testing.T) { t.Parallel(); test(t, of) })
	}
}

// reader asks with the role of examples/roles.yaml, as a user that has nothing else.
func reader(t *testing.T) *rotator.Inquiry {
	t.Helper()
	const user = "e2e-reader"
	roles, err := os.ReadFile("../../examples/roles.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := world.lab.Apply(world.ctx, roles); err != nil {
		t.Fatal(err)
	}
	p := (&pool{name: user}).in(t)
	p.create(&rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "tasuki-reader"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	})
	config, err := world.lab.RESTConfig()
	if err != nil {
		t.Fatal(err)
	}
	config = rest.CopyConfig(config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user}
	c, err := client.New(config, client.Options{Scheme: rotator.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	return &rotator.Inquiry{From: c, Live: c, Namespace: trial.Namespace, Now: time.Now}
}

// explained waits until an explanation of the pool, or of a NodeClaim, gives this reason with
// these words in its detail.
func (p *pool) explained(of *rotator.Inquiry, claim, reason string, words ...string) (x rotation.Explanation) {
	p.t.Helper()
	p.await("the explanation "+reason, func() string {
		var err error
		if x, err = of.Explain(world.ctx, p.name, claim); err != nil {
			p.t.Fatal(err)
		}
		if x.Reason != reason {
			return fmt.Sprintf("it says %s: %s", x.Reason, x.Detail)
		}
		for _, word := range words {
			if !strings.Contains(x.Detail, word) {
				return fmt.Sprintf("it does not say %q: %s", word, x.Detail)
			}
		}
		return ""
	})
	return x
}

func testExplainOutOfWindow(t *testing.T, of *rotator.Inquiry) {
	p := newPool(t, "xw", expireAfter("720h"))
	p.deploy("web", 1, cpu("1"))
	p.awaitSettled(1, 1)
	opens := time.Now().UTC().AddDate(0, 0, 3).Truncate(24 * time.Hour).Add(2 * time.Hour)
	p.govern(func(rp *v1alpha1.RotationPolicy) {
		rp.Spec.MaintenanceWindows = []v1alpha1.MaintenanceWindow{{
			Timezone: "UTC", Days: []v1alpha1.Weekday{v1alpha1.Weekday(opens.Format("Mon"))}, Start: "02:00", End: "06:00",
		}}
	})
	x := p.explained(of, p.claimNames()[0], "outOfWindow", opens.Format(time.RFC3339))
	if !x.Opens.Equal(opens) {
		t.Errorf("it opens at %s, want %s", x.Opens, opens)
	}
	// The node lives for 30 days, and so through four or five of the weekly windows.
	if o := x.Outlook; o == nil || o.Chances < 4 || o.Chances > 5 || !o.Start.Equal(opens) {
		t.Errorf("the outlook is %+v", o)
	}
}

func testExplainFreeze(t *testing.T, of *rotator.Inquiry) {
	p := newPool(t, "x06")
	p.deploy("web", 1, cpu("1"))
	p.awaitSettled(1, 1)
	p.annotate(p.nodePool(), freezeUntil, "tomorrow")
	p.govern()
	if x := p.explained(of, p.claimNames()[0], "frozen", `"tomorrow"`); !x.Opens.IsZero() {
		t.Errorf("a freeze that cannot be read ends at %s", x.Opens)
	}
}

func testExplainDrift(t *testing.T, of *rotator.Inquiry) {
	p := newPool(t, "x07", require(corev1.LabelTopologyZone, zoneB))
	astray := p.deploy("astray", 1, cpu("3"))
	p.budget(astray, 0)
	p.awaitSettled(1, 1)
	drifting, node := p.claimNames()[0], p.nodes()[0].Name
	p.alter(require(corev1.LabelTopologyZone, zoneA, zoneB))
	p.deploy("web", 1, cpu("3"), func(pod *corev1.PodTemplateSpec) { pod.Spec.NodeSelector[corev1.LabelTopologyZone] = zoneA })
	p.awaitSettled(2, 2)
	due := p.claimNames()[1]
	p.alter(require(corev1.LabelTopologyZone, zoneA))
	p.await("Karpenter's disruption of Node "+node, func() string {
		if !isDisrupted(p.node(node)) {
			return fmt.Sprintf("its taints are %v", p.node(node).Spec.Taints)
		}
		return ""
	})
	p.govern()
	p.explained(of, due, "disruptionInProgress", drifting)
	p.awaitDrain(drifting)
	p.explained(of, due, "disruptionInProgress", drifting)
	p.relax(astray)
}

func testExplainHeadroom(t *testing.T, of *rotator.Inquiry, p *pool, words ...string) {
	p.deploy("web", 3, cpu("1"))
	p.awaitSettled(1, 3)
	p.govern()
	p.explained(of, p.claimNames()[0], "insufficientHeadroom", words...)
	p.explained(of, "", "insufficientHeadroom", words...)
	if note := p.oneEvent("InsufficientHeadroom"); !strings.Contains(note, words[0]) {
		t.Errorf("the controller says something else: %s", note)
	}
}

func testExplainStatic(t *testing.T, of *rotator.Inquiry) {
	p := newPool(t, "x22", func(np *karpv1.NodePool) { np.Spec.Replicas = new(int64(1)) })
	p.awaitSettled(1, 0)
	p.govern()
	p.explained(of, p.claimNames()[0], "static", "spec.replicas")
}

// testExplainDrain has a budget that never allows to evict the only pod of a node that drains.
func testExplainDrain(t *testing.T, of *rotator.Inquiry, p *pool, bounded bool) {
	web := p.deploy("held", 1, cpu("1"))
	p.keep(web)
	p.awaitSettled(1, 1)
	claim, left := p.claimNames()[0], p.podsOn(p.nodes()[0].Name)[0]
	p.govern()
	x := p.explained(of, claim, "awaitingDrain", fmt.Sprintf("PodDisruptionBudget %s/%s", workloads, web.Name), workloads+"/"+left)
	f := x.Rotation
	if f == nil || f.Phase != rotation.PhaseDrain || len(f.Pods) != 1 || f.Until.IsZero() == bounded {
		t.Errorf("the rotation is %+v", f)
	}
	p.lift(web.Name)
	p.awaitRotated()
	p.explained(of, "", "cooldownAfterSuccess")
}
