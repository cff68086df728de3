package lab

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// workload asks for a node: two pods, one of them slow, and the pool to make a node in.
const workload = `apiVersion: karpenter.sh/v1
kind: NodePool
metadata:
  name: pool
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}
      requirements:
      - {key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: quick
spec:
  selector: {matchLabels: {app: quick}}
  template:
    metadata: {labels: {app: quick}}
    spec:
      containers: [{name: main, image: none, resources: {requests: {cpu: "1"}}}]
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: slow
spec:
  selector: {matchLabels: {app: slow}}
  template:
    metadata: {labels: {app: slow, lab.tasuki.io/slow: "true"}}
    spec:
      containers: [{name: main, image: none, resources: {requests: {cpu: "1"}}}]
`

const slowness = 4 * time.Second

func testName(suffix string) string { return fmt.Sprintf("test-%d-%s", os.Getpid(), suffix) }

func needLab(t *testing.T) context.Context {
	t.Helper()
	if testing.Short() {
		t.Skip("starts real control planes")
	}
	return t.Context()
}

// down proves that a lab leaves nothing.
func down(t *testing.T, l *Lab) {
	t.Helper()
	ctx := context.Background()
	if err := l.Down(ctx); err != nil {
		t.Errorf("Down: %v", err)
	}
	if left := processesOf(t, l.Dir()); len(left) > 0 {
		t.Errorf("processes left of lab %s:\n%s", l.Name(), strings.Join(left, "\n"))
	}
	if _, err := os.Stat(l.Dir()); !os.IsNotExist(err) {
		t.Errorf("files left of lab %s in %s", l.Name(), l.Dir())
	}
	if err := l.Down(ctx); err != nil {
		t.Errorf("second Down: %v", err)
	}
}

// processesOf lists the command lines of the processes that work in a lab's folder, as all components do, even when the
// folder is gone.
func processesOf(t *testing.T, dir string) []string {
	t.Helper()
	links, err := filepath.Glob("/proc/[0-9]*/cwd")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, link := range links {
		cwd, _ := os.Readlink(link)
		if strings.TrimSuffix(cwd, " (deleted)") == dir {
			line, _ := os.ReadFile(filepath.Join(filepath.Dir(link), "cmdline"))
			found = append(found, strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return found
}

// dirOf is where a lab of that name would be.
func dirOf(t *testing.T, name string) string {
	t.Helper()
	root, err := cacheRoot("")
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(labsDir(root), name)
}

func clientOf(t *testing.T, l *Lab) kubernetes.Interface {
	t.Helper()
	config, err := l.RESTConfig()
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func eventually(t *testing.T, what string, condition func(context.Context) (bool, error)) {
	t.Helper()
	if err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, time.Minute, true, condition); err != nil {
		t.Fatalf("waiting for %s: %v", what, err)
	}
}

// Two labs start at the same time. One gets a workload; the other must see none of it and outlive its end.
func TestTwoLabsSideBySide(t *testing.T) {
	ctx := needLab(t)
	names := []string{testName("a"), testName("b")}
	labs := make([]*Lab, len(names))
	var together errgroup.Group
	for i, name := range names {
		together.Go(func() (err error) {
			labs[i], err = Up(ctx, Options{Name: name, PodReadyDelay: slowness, PodDeleteDelay: slowness})
			return err
		})
	}
	err := together.Wait()
	for _, l := range labs {
		if l != nil {
			t.Cleanup(func() { down(t, l) })
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	busy, idle := labs[0], labs[1]

	if _, err := Up(ctx, Options{Name: busy.Name()}); !errors.Is(err, ErrRunning) {
		t.Errorf("a second Up of %s: got %v, want ErrRunning", busy.Name(), err)
	}
	for _, l := range labs {
		if n := len(processesOf(t, l.Dir())); n != len(Components()) {
			t.Errorf("lab %s has %d processes, want %d: what Down leaves would not be seen", l.Name(), n, len(Components()))
		}
		for _, s := range l.Status(ctx) {
			if s.State != Ready {
				t.Errorf("%s of lab %s is %s: %s", s.Name, l.Name(), s.State, s.Reason)
			}
		}
	}

	t.Run("Karpenter makes a node and KWOK runs the pods", func(t *testing.T) { runWorkload(t, busy) })
	t.Run("the other lab sees nothing", func(t *testing.T) {
		nodes, err := clientOf(t, idle).CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if err != nil || len(nodes.Items) != 0 {
			t.Errorf("lab %s has %d nodes, %v: want none", idle.Name(), len(nodes.Items), err)
		}
	})
	t.Run("the audit log says who wrote", func(t *testing.T) { checkAudit(t, busy) })
	t.Run("a ServiceAccount acts as itself", func(t *testing.T) { checkServiceAccount(t, busy) })
	t.Run("the API server comes back with its data", func(t *testing.T) { restartAPIServer(t, busy) })
	t.Run("a dead component is reported", func(t *testing.T) { killScheduler(t, busy) })

	found, err := Find(busy.Name())
	if err != nil {
		t.Fatal(err)
	}
	down(t, found)
	if err := idle.Check(); err != nil {
		t.Errorf("the end of lab %s reached lab %s: %v", busy.Name(), idle.Name(), err)
	}
}

func runWorkload(t *testing.T, l *Lab) {
	ctx := t.Context()
	if err := l.Apply(ctx, []byte(workload)); err != nil {
		t.Fatal(err)
	}
	client := clientOf(t, l)
	pods := make(map[string]corev1.Pod)
	eventually(t, "both pods to be Ready", func(ctx context.Context) (bool, error) {
		list, err := client.CoreV1().Pods(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		clear(pods)
		for _, pod := range list.Items {
			if pod.Status.Phase == corev1.PodRunning {
				pods[pod.Labels["app"]] = pod
			}
		}
		return len(pods) == 2, l.Check()
	})
	node, err := client.CoreV1().Nodes().Get(ctx, pods["quick"].Spec.NodeName, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if pool := node.Labels["karpenter.sh/nodepool"]; pool != "pool" {
		t.Errorf("node %s belongs to NodePool %q, want pool", node.Name, pool)
	}
	if took := readyAfterBinding(pods["slow"]); took < slowness || took > slowness+2*time.Second {
		t.Errorf("the slow pod was Ready %s after binding, want %s", took, slowness)
	}
	if took := readyAfterBinding(pods["quick"]); took >= slowness {
		t.Errorf("the quick pod was Ready only %s after binding", took)
	}

	slow := pods["slow"].Name
	asked := time.Now()
	if err := client.CoreV1().Pods(metav1.NamespaceDefault).Delete(ctx, slow, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the slow pod to go", func(ctx context.Context) (bool, error) {
		_, err := client.CoreV1().Pods(metav1.NamespaceDefault).Get(ctx, slow, metav1.GetOptions{})
		return apierrors.IsNotFound(err), nil
	})
	if took := time.Since(asked); took < slowness || took > slowness+3*time.Second {
		t.Errorf("the slow pod was gone %s after the request, want %s", took, slowness)
	}
}

func readyAfterBinding(pod corev1.Pod) time.Duration {
	at := make(map[corev1.PodConditionType]time.Time)
	for _, c := range pod.Status.Conditions {
		at[c.Type] = c.LastTransitionTime.Time
	}
	return at[corev1.PodReady].Sub(at[corev1.PodScheduled])
}

func checkAudit(t *testing.T, l *Lab) {
	for user, want := range map[string]string{
		"karpenter":             "create nodeclaims.karpenter.sh",
		"kwok":                  "patch pods/status",
		"system:kube-scheduler": "create pods/binding",
		"lab-admin":             "patch deployments.apps",
		"system:serviceaccount:kube-system:replicaset-controller": "create pods",
	} {
		events, err := AuditWrites(l.Audit(), user)
		if err != nil {
			t.Fatal(err)
		}
		seen := false
		for _, e := range events {
			seen = seen || strings.Contains(e.String(), " "+want+" ")
		}
		if !seen {
			t.Errorf("%d writes of %s, but no %q among them", len(events), user, want)
		}
	}
}

func checkServiceAccount(t *testing.T, l *Lab) {
	ctx := t.Context()
	if err := l.Apply(ctx, []byte("{apiVersion: v1, kind: ServiceAccount, metadata: {name: runner}}")); err != nil {
		t.Fatal(err)
	}
	path, err := l.KubeconfigFor(ctx, "default", "runner")
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	self, err := client.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if user := self.Status.UserInfo.Username; user != "system:serviceaccount:default:runner" {
		t.Errorf("the kubeconfig acts as %s", user)
	}
	if _, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("a ServiceAccount without rights lists nodes: %v", err)
	}
	if _, err := l.KubeconfigFor(ctx, "default", "nobody"); err == nil || !strings.Contains(err.Error(), "default/nobody") {
		t.Errorf("for a ServiceAccount that does not exist: %v", err)
	}
}

func restartAPIServer(t *testing.T, l *Lab) {
	ctx := t.Context()
	if err := l.Stop(APIServer); err != nil {
		t.Fatal(err)
	}
	if err := l.Check(); err != nil {
		t.Errorf("a component that was stopped on purpose counts as dead: %v", err)
	}
	if _, err := clientOf(t, l).CoreV1().Nodes().List(ctx, metav1.ListOptions{}); err == nil {
		t.Error("the stopped API server answers")
	}
	if err := l.Start(ctx, APIServer); err != nil {
		t.Fatal(err)
	}
	nodes, err := clientOf(t, l).CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil || len(nodes.Items) == 0 {
		t.Errorf("after the restart: %d nodes, %v: want the one from before", len(nodes.Items), err)
	}
}

func killScheduler(t *testing.T, l *Lab) {
	ctx := t.Context()
	if err := l.Signal(Scheduler, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for _, s := range l.Status(ctx) {
		dead := s.Name == Scheduler
		if (s.State == Dead) != dead {
			t.Errorf("%s is %s (%s): want only %s dead", s.Name, s.State, s.Reason, Scheduler)
		}
		if dead && len(s.Lines) == 0 {
			t.Errorf("%s is reported dead without the last lines of %s", s.Name, s.Log)
		}
	}
	var died *ComponentError
	if err := l.Check(); !errors.As(err, &died) || died.Component != Scheduler {
		t.Errorf("Check: got %v, want that %s died", err, Scheduler)
	}
	if err := l.Start(ctx, Scheduler); err != nil {
		t.Errorf("the scheduler does not come back: %v", err)
	}
}

// Ctrl-C cancels the context that Up was given.
func TestACancelledStartLeavesNothing(t *testing.T) {
	ctx := needLab(t)
	name := testName("cancelled")
	ctx, cancel := context.WithCancel(ctx)
	_, err := Up(ctx, Options{Name: name, Detached: true, Progress: func(p Progress) {
		if p.Item == ControllerManager {
			cancel()
		}
	}})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("Up: got %v, want %v", err, context.Canceled)
	}
	if _, err := Find(name); !errors.Is(err, ErrNotFound) {
		t.Errorf("after a cancelled start, Find: got %v, want ErrNotFound", err)
	}
	if left := processesOf(t, dirOf(t, name)); len(left) > 0 {
		t.Errorf("processes left:\n%s", strings.Join(left, "\n"))
	}
}

// A component that cannot start must say why, and its log must outlive the lab.
func TestADeathDuringTheStartIsShown(t *testing.T) {
	ctx := needLab(t)
	name := testName("dies")
	_, err := Up(ctx, Options{Name: name, KarpenterEnv: map[string]string{"LOG_LEVEL": "nonsense"}})
	var died *ComponentError
	if !errors.As(err, &died) || died.Component != Karpenter {
		t.Fatalf("Up: got %v, want that %s died", err, Karpenter)
	}
	t.Cleanup(func() { os.Remove(died.Log) })
	if !strings.Contains(err.Error(), "nonsense") {
		t.Errorf("the error does not show the reason:\n%v", err)
	}
	if _, err := os.Stat(died.Log); err != nil {
		t.Errorf("the log is gone: %v", err)
	}
	if left := processesOf(t, dirOf(t, name)); len(left) > 0 {
		t.Errorf("processes left:\n%s", strings.Join(left, "\n"))
	}
}

// Between choosing a port and listening on it another process may take it.
func TestATakenPortIsGivenUp(t *testing.T) {
	ctx := needLab(t)
	for component, port := range map[string]func(*ports) *int{
		Scheduler: func(p *ports) *int { return &p.Scheduler },
		// Karpenter is ready before it dies of this one.
		Karpenter: func(p *ports) *int { return &p.KarpenterMetrics },
	} {
		t.Run(component, func(t *testing.T) {
			other, err := net.Listen("tcp", ":0")
			if err != nil {
				t.Fatal(err)
			}
			defer other.Close()
			t.Cleanup(func() { pickPorts = choosePorts })
			picks := 0
			pickPorts = func() (ports, error) {
				p, err := choosePorts()
				if picks++; picks == 1 {
					*port(&p) = other.Addr().(*net.TCPAddr).Port
				}
				return p, err
			}
			l, err := Up(ctx, Options{Name: testName("port")})
			if err != nil {
				t.Fatal(err)
			}
			down(t, l)
			if picks != 2 {
				t.Errorf("ports were picked %d times, want twice", picks)
			}
		})
	}
}
