package scale

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/tasuki-io/tasuki/api/v1alpha1"
	"github.com/tasuki-io/tasuki/lab"
	"github.com/tasuki-io/tasuki/lab/trial"
)

// footprint is how much memory the controller may hold in a cluster of a size, in MB.
var footprint = []struct {
	size
	most float64
}{
	{size{pools: 5, nodes: 200, pods: 20_000}, 60},
	{size{pools: 10, nodes: 500, pods: 50_000}, 110},
}

// settle is long enough for a garbage collection that nothing forces, which the runtime
// makes every two minutes.
const settle = 150 * time.Second

// BenchmarkFootprint measures what the controller holds at rest, at its highest, and with a
// rotation under way in every pool, and fails when that is too much or when an idle pool
// was written to.
func BenchmarkFootprint(b *testing.B) {
	ctrl.SetLogger(zap.New(zap.WriteTo(os.Stderr)))
	for _, f := range footprint {
		b.Run(f.String(), func(b *testing.B) {
			for range b.N {
				measure(b, f.size, f.most)
			}
		})
	}
}

func measure(b *testing.B, s size, most float64) {
	ctx := b.Context()
	l, err := lab.Up(ctx, lab.Options{Name: fmt.Sprintf("scale-%d", os.Getpid())})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := l.Down(context.WithoutCancel(ctx)); err != nil {
			b.Error(err)
		}
	})
	if err := trial.Install(ctx, l); err != nil {
		b.Fatal(err)
	}
	for _, moving := range []string{lab.Karpenter, lab.KWOK, lab.Scheduler, lab.ControllerManager} {
		if err := l.Stop(moving); err != nil {
			b.Fatal(err)
		}
	}
	config, err := l.RESTConfig()
	if err != nil {
		b.Fatal(err)
	}
	scheme := clientgoscheme.Scheme // Karpenter registers its kinds there
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		b.Fatal(err)
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		b.Fatal(err)
	}
	if err := fill(ctx, c, s); err != nil {
		b.Fatal(err)
	}
	b.Logf("%s: one pod is %d bytes", s, podSize(b, c))

	dir := b.TempDir()
	binary, err := trial.Build(ctx, filepath.Join("..", ".."), dir)
	if err != nil {
		b.Fatal(err)
	}
	begun := time.Now()
	controller, err := trial.StartController(ctx, l, binary, dir, "")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(controller.Stop)
	b.ReportMetric(time.Since(begun).Seconds(), "s-to-ready")

	rp := policy()
	closed(rp)
	if err := c.Create(ctx, rp); err != nil {
		b.Fatal(err)
	}
	time.Sleep(settle)
	rest := look(b, controller)
	b.ReportMetric(rest.resident, "MB-at-rest")
	for _, w := range writes(b, l) {
		b.Errorf("written at rest: %s", w)
	}

	patch := client.MergeFrom(rp.DeepCopy())
	open(rp)
	if err := c.Patch(ctx, rp, patch); err != nil {
		b.Fatal(err)
	}
	time.Sleep(settle)
	busy := look(b, controller)
	b.ReportMetric(busy.resident, "MB-rotating")
	b.ReportMetric(busy.peak, "MB-peak")
	b.ReportMetric(busy.cpu.Seconds(), "cpu-s")
	if n := len(writes(b, l)); n < 4*s.pools {
		b.Errorf("%d writes: a rotation was to begin in each of %d pools, with four writes", n, s.pools)
	}
	if busy.resident > most || rest.resident > most {
		b.Errorf("resident: %.0f MB at rest, %.0f MB rotating, want at most %.0f MB", rest.resident, busy.resident, most)
	}
}

func look(b *testing.B, c *trial.Controller) usage {
	b.Helper()
	if end := c.End(); end != "" {
		b.Fatalf("the controller ended (%s): %s", end, c.Tail())
	}
	u, err := usageOf(c.PID())
	if err != nil {
		b.Fatal(err)
	}
	return u
}

func writes(b *testing.B, l *lab.Lab) []lab.AuditEvent {
	b.Helper()
	all, err := lab.AuditWrites(l.Audit(), trial.User)
	if err != nil {
		b.Fatal(err)
	}
	return trial.OfRotation(all)
}

// podSize is what one pod takes as JSON.
func podSize(b *testing.B, c client.Client) int {
	b.Helper()
	var pods corev1.PodList
	if err := c.List(b.Context(), &pods, client.InNamespace(metav1.NamespaceDefault), client.Limit(1)); err != nil {
		b.Fatal(err)
	}
	text, err := json.Marshal(&pods.Items[0])
	if err != nil {
		b.Fatal(err)
	}
	return len(text)
}

// policy governs every pool; all their nodes are due.
func policy() *v1alpha1.RotationPolicy {
	return &v1alpha1.RotationPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "scale"},
		Spec: v1alpha1.RotationPolicySpec{
			NodePoolSelector:   v1alpha1.NodePoolSelector{MatchLabels: map[string]v1alpha1.LabelValue{"team": "scale"}},
			AgeThreshold:       "1s",
			MinRotationChances: 1,
			Surge: v1alpha1.Surge{
				ReadyTimeout: metav1.Duration{Duration: time.Hour}, CooldownAfter: metav1.Duration{Duration: time.Hour},
				RetryBackoff: metav1.Duration{Duration: time.Hour},
			},
		},
	}
}

var everyDay = []v1alpha1.Weekday{"Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"}

func open(rp *v1alpha1.RotationPolicy) {
	rp.Spec.MaintenanceWindows = []v1alpha1.MaintenanceWindow{{Timezone: "UTC", Days: everyDay, Start: "00:00", End: "24:00"}}
}

// closed is open in twelve hours.
func closed(rp *v1alpha1.RotationPolicy) {
	in := time.Now().UTC().Add(12 * time.Hour)
	rp.Spec.MaintenanceWindows = []v1alpha1.MaintenanceWindow{{
		Timezone: "UTC", Days: everyDay, Start: in.Format("15:04"), End: in.Add(time.Hour).Format("15:04"),
	}}
}
