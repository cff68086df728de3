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
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/tasuki-io/tasuki/api/v1alpha1"
	"github.com/tasuki-io/tasuki/lab"
	"github.com/tasuki-io/tasuki/lab/trial"
)

// sized is a cluster, and how much memory the controller may hold there, in MB; zero is not limited.
type sized struct {
	size
	most float64
}

// sizes are the clusters that are measured.
var sizes = []sized{
	{size{pools: 5, nodes: 200, pods: 20_000}, 60},
	{size{pools: 10, nodes: 500, pods: 50_000}, 110},
	{size{pools: 100, nodes: 200, pods: 2_000}, 0}, // windows that open in the same second
	{size{pools: 1, nodes: 10_000, pods: 10_000}, 0},
}

// small is measured under -short, by which nothing is shown but that all of it works.
var small = sized{size{pools: 2, nodes: 20, pods: 200}, 60}

// settle is long enough for a garbage collection that nothing forces, which the runtime
// makes every two minutes.
const settle = 150 * time.Second

// BenchmarkController measures the controller while it starts, at rest, and with a rotation in
// every pool, and fails when it holds too much, has written to an idle pool, or has not rotated
// every pool.
func BenchmarkController(b *testing.B) {
	ctrl.SetLogger(zap.New(zap.WriteTo(os.Stderr)))
	measured, settle := sizes, settle
	if testing.Short() {
		measured, settle = []sized{small}, 5*time.Second
	}
	for _, s := range measured {
		b.Run(s.String(), func(b *testing.B) {
			for range b.N {
				r := measure(b, s.size, s.most, settle)
				r.report(b)
				results = append(results, r)
			}
		})
	}
}

func measure(b *testing.B, s size, most float64, settle time.Duration) result {
	ctx := b.Context()
	l, config, c := cluster(b, s)
	dir := b.TempDir()
	binary, err := trial.Build(ctx, filepath.Join("..", ".."), dir)
	if err != nil {
		b.Fatal(err)
	}
	r := result{Pools: s.pools, Nodes: s.nodes, Pods: s.pods, PodBytes: podSize(b, c), LimitMB: most}
	metrics, err := freeAddress()
	if err != nil {
		b.Fatal(err)
	}
	begun := time.Now()
	controller, err := trial.StartController(ctx, l, binary, dir, "", "--metrics-bind-address", metrics)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(controller.Stop)
	r.ReadyS = time.Since(begun).Seconds()
	r.StartPeakMB = look(b, controller).peak

	rp := policy()
	window(rp, time.Now().Add(12*time.Hour))
	if err := c.Create(ctx, rp); err != nil {
		b.Fatal(err)
	}
	time.Sleep(settle)
	rest := look(b, controller)
	r.RestMB, r.RestCPUS = rest.resident, rest.cpu.Seconds()
	for _, w := range trial.OfRotation(writes(b, l)) {
		b.Errorf("written at rest: %s", w)
	}
	before := scrape(b, metrics)

	patch := client.MergeFrom(rp.DeepCopy())
	opens := time.Now().Add(time.Minute).Truncate(time.Minute).Add(time.Minute)
	window(rp, opens)
	if err := c.Patch(ctx, rp, patch); err != nil {
		b.Fatal(err)
	}
	time.Sleep(time.Until(opens))
	if err := karpenter(ctx, config, c, s); err != nil {
		b.Fatalf("%v\n%s", err, controller.Tail())
	}
	busy, after := look(b, controller), scrape(b, metrics)
	r.BusyMB, r.PeakMB, r.BusyCPUS = busy.resident, busy.peak, (busy.cpu - rest.cpu).Seconds()
	requests := after.since(before).requests()
	r.Reads, r.Writes, r.Refused = requests.reads, requests.writes, requests.refused
	r.ReconcileP50MS, r.ReconcileP99MS = after.since(before).reconcile(0.5), after.since(before).reconcile(0.99)
	all, err := lab.AuditWrites(l.Audit(), "")
	if err != nil {
		b.Fatal(err)
	}
	r.Opened, r.Running, r.Gone = reactions(trial.OfRotation(all), opens)
	for what, n := range map[string]int{"the window opened": r.Opened.N, "its placeholder ran": r.Running.N, "its NodeClaim was gone": r.Gone.N} {
		if n != s.pools {
			b.Errorf("%d of %d pools were written to after %s", n, s.pools, what)
		}
	}
	if requests.refused > 0 {
		b.Errorf("priority and fairness has refused %d requests", requests.refused)
	}
	if most > 0 && (busy.resident > most || rest.resident > most) {
		b.Errorf("resident: %.0f MB at rest, %.0f MB rotating, want at most %.0f MB", rest.resident, busy.resident, most)
	}
	return r
}

// cluster is a lab that holds a cluster, with nothing in it that moves.
func cluster(b *testing.B, s size) (*lab.Lab, *rest.Config, client.Client) {
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
	return l, config, c
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
	return all
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

// window is one that opens at this minute, for an hour.
func window(rp *v1alpha1.RotationPolicy, opens time.Time) {
	opens = opens.UTC()
	rp.Spec.MaintenanceWindows = []v1alpha1.MaintenanceWindow{{
		Timezone: "UTC", Days: everyDay, Start: opens.Format("15:04"), End: opens.Add(time.Hour).Format("15:04"),
	}}
}
