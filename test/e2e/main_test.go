package e2e

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/tasuki-io/tasuki/api/v1alpha1"
	"github.com/tasuki-io/tasuki/lab"
	"github.com/tasuki-io/tasuki/lab/trial"
)

// slowReady is how long a slow pod takes to become Ready.
const slowReady = 12 * time.Second

// How the keeper tells the tests which lab is theirs and where the controller lies.
const (
	labVariable = "TASUKI_E2E_LAB"
	dirVariable = "TASUKI_E2E_DIR"
)

// TestMain runs the tests in a second process, which the first one outlives: whatever
// ends the tests, a panic or a timeout included, the lab is taken down.
func TestMain(m *testing.M) {
	flag.Parse()
	if testing.Short() || flag.Lookup("test.list").Value.String() != "" {
		os.Exit(m.Run())
	}
	if os.Getenv(labVariable) == "" {
		os.Exit(keep())
	}
	os.Exit(runInLab(m))
}

// keep brings a lab up, runs the tests in it and takes it down.
func keep() (code int) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	failed := func(err error) int {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		return 1
	}
	dir, err := os.MkdirTemp("", "tasuki-e2e-")
	if err != nil {
		return failed(err)
	}
	defer os.RemoveAll(dir)
	begun := time.Now()
	l, err := lab.Up(ctx, lab.Options{
		Name: fmt.Sprintf("e2e-%d", os.Getpid()), PodReadyDelay: slowReady,
		KarpenterEnv: map[string]string{"FEATURE_GATES": "StaticCapacity=true"},
	})
	if err != nil {
		return failed(err)
	}
	defer func() {
		if err := l.Down(context.WithoutCancel(ctx)); err != nil {
			code = failed(err)
		}
	}()
	if err := trial.Install(ctx, l); err != nil {
		return failed(err)
	}
	if _, err := trial.Build(ctx, filepath.Join("..", ".."), dir); err != nil {
		return failed(err)
	}
	fmt.Fprintf(os.Stderr, "e2e: lab %s is up after %s\n", l.Name(), time.Since(begun).Round(time.Second))

	tests := exec.Command(os.Args[0], os.Args[1:]...)
	tests.Env = append(os.Environ(), labVariable+"="+l.Name(), dirVariable+"="+dir)
	tests.Stdout, tests.Stderr = os.Stdout, os.Stderr
	if _, err := tests.StdinPipe(); err != nil { // ends with this process
		return failed(err)
	}
	if err := tests.Start(); err != nil {
		return failed(err)
	}
	ended := context.AfterFunc(ctx, func() { _ = tests.Process.Signal(syscall.SIGTERM) })
	defer ended()
	var exit *exec.ExitError
	if err := tests.Wait(); errors.As(err, &exit) {
		return max(1, exit.ExitCode())
	} else if err != nil {
		return failed(err)
	}
	return 0
}

// world is what the tests share.
var world struct {
	ctx     context.Context
	lab     *lab.Lab
	client  client.WithWatch // as the lab's administrator
	history *history
	dir     string // holds the controller and its logs

	mu         sync.Mutex
	controller *trial.Controller
	metrics    string // where it serves them
}

func runInLab(m *testing.M) int {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		fmt.Fprintln(os.Stderr, "e2e: the keeper of the lab is gone")
		os.Exit(1)
	}()
	if err := enter(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "e2e: enter the lab:", err)
		return 1
	}
	code := m.Run()
	if err := stopController(); err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		return 1
	}
	return code
}

func enter(ctx context.Context) (err error) {
	ctrl.SetLogger(zap.New(zap.WriteTo(os.Stderr)))
	if err := moreAtOnce(); err != nil {
		return err
	}
	world.ctx, world.dir = ctx, os.Getenv(dirVariable)
	if world.lab, err = lab.Find(os.Getenv(labVariable)); err != nil {
		return err
	}
	config, err := world.lab.RESTConfig()
	if err != nil {
		return err
	}
	if world.client, err = client.NewWithWatch(config, client.Options{Scheme: scheme()}); err != nil {
		return err
	}
	world.history, err = follow(ctx, world.client)
	return err
}

// moreAtOnce runs more tests at once than there are cores, unless told how many: most of
// what they do is wait.
func moreAtOnce() error {
	told := false
	flag.Visit(func(f *flag.Flag) { told = told || f.Name == "test.parallel" })
	if told {
		return nil
	}
	return flag.Set("test.parallel", "6")
}

func scheme() *apiruntime.Scheme {
	s := clientgoscheme.Scheme // Karpenter registers its kinds there
	if !s.Recognizes(schema.GroupVersionKind{Group: "karpenter.sh", Version: "v1", Kind: "NodePool"}) {
		panic("Karpenter no longer registers its kinds: add " + fmt.Sprintf("%T", &karpv1.NodePool{}))
	}
	if err := v1alpha1.AddToScheme(s); err != nil {
		panic(err) // two kinds of one name: a mistake in the build
	}
	return s
}

// needLab skips a test that cannot run without the lab.
func needLab(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("needs a lab, which takes a minute to start: run without -short")
	}
}

// startController starts a controller as the chart would. Its kubeconfig may be another
// path to the API server.
func startController(t *testing.T, kubeconfig string, args ...string) *trial.Controller {
	t.Helper()
	c, err := trial.StartController(world.ctx, world.lab, filepath.Join(world.dir, "tasuki-controller"), world.dir, kubeconfig, args...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// needController makes sure that the shared controller runs.
func needController(t *testing.T) {
	t.Helper()
	world.mu.Lock()
	defer world.mu.Unlock()
	if world.controller == nil {
		world.metrics = freeAddress(t)
		world.controller = startController(t, "", "--metrics-bind-address", world.metrics)
	}
}

// stopController stops the shared controller. That it has ended by itself is an error.
func stopController() error {
	world.mu.Lock()
	defer world.mu.Unlock()
	c := world.controller
	if c == nil {
		return nil
	}
	world.controller = nil
	select {
	case <-c.Done():
		log, _ := os.ReadFile(c.Log())
		return fmt.Errorf("the controller ended by itself:\n%s", log)
	default:
	}
	c.Stop()
	return nil
}
