package trial

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/tasuki-io/tasuki/deploy"
	"github.com/tasuki-io/tasuki/lab"
)

// Who the controller is in the lab.
const (
	Namespace      = "node-rotation-system"
	ServiceAccount = "tasuki-controller"
	User           = "system:serviceaccount:" + Namespace + ":" + ServiceAccount
)

// Install applies to the lab what the chart renders, but for the Deployment: no pod runs
// there, and the controller is a process beside it.
func Install(ctx context.Context, l *lab.Lab) error {
	return l.Apply(ctx, withoutDeployment(deploy.Manifest)...)
}

func withoutDeployment(manifest []byte) (documents [][]byte) {
	for _, document := range bytes.Split(manifest, []byte("\n---\n")) {
		if !bytes.Contains(document, []byte("\nkind: Deployment\n")) {
			documents = append(documents, document)
		}
	}
	return documents
}

// Controller is a running tasuki-controller process.
type Controller struct {
	cmd  *exec.Cmd
	log  string
	done chan struct{}
}

// StartController starts the binary under the chart's ServiceAccount and waits until it
// is ready. Its output goes to a file in dir. The kubeconfig may be another path to the
// same API server; empty means one made for the ServiceAccount. The process dies with
// this one.
func StartController(ctx context.Context, l *lab.Lab, binary, dir, kubeconfig string, args ...string) (*Controller, error) {
	return launch(ctx, l, binary, dir, kubeconfig, false, args)
}

// LeaveController starts the binary as StartController does, to outlive this process. It
// holds the lease, without which it ends: so it also ends, seconds later, when the lab
// goes.
func LeaveController(ctx context.Context, l *lab.Lab, binary, dir string, args ...string) (*Controller, error) {
	return launch(ctx, l, binary, dir, "", true, append([]string{"--leader-elect=true"}, args...))
}

// ControllerArgs are the arguments with which the controller runs in a lab.
func ControllerArgs(kubeconfig, probe string) []string {
	return []string{
		"--kubeconfig", kubeconfig, "--namespace", Namespace,
		"--metrics-bind-address", "0", "--health-probe-bind-address", probe,
	}
}

func launch(ctx context.Context, l *lab.Lab, binary, dir, kubeconfig string, detached bool, args []string) (*Controller, error) {
	if kubeconfig == "" {
		var err error
		if kubeconfig, err = l.KubeconfigFor(ctx, Namespace, ServiceAccount); err != nil {
			return nil, err
		}
	}
	f, err := os.CreateTemp(dir, "tasuki-controller-*.log")
	if err != nil {
		return nil, fmt.Errorf("open the controller's log: %w", err)
	}
	defer f.Close()
	probe, err := freeAddress()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(binary, append(ControllerArgs(kubeconfig, probe), args...)...)
	c := &Controller{cmd: cmd, log: f.Name(), done: make(chan struct{})}
	c.cmd.Stdout, c.cmd.Stderr = f, f
	if err := lab.StartProcess(c.cmd, detached); err != nil {
		return nil, fmt.Errorf("start %s: %w", binary, err)
	}
	go func() {
		_ = c.cmd.Wait() // how it ended is in the ProcessState
		close(c.done)
	}()
	if err := c.awaitReady(ctx, "http://"+probe+"/readyz"); err != nil {
		c.Kill()
		return nil, fmt.Errorf("the controller did not become ready: %w\n%s", err, c.Tail())
	}
	return c, nil
}

func (c *Controller) awaitReady(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	return wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		select {
		case <-c.done:
			return false, fmt.Errorf("it ended (%s); its log says", c.End())
		default:
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return false, err
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return false, nil // not listening yet
		}
		return resp.StatusCode == http.StatusOK, resp.Body.Close()
	})
}

// Log is the path of the controller's output.
func (c *Controller) Log() string { return c.log }

// Tail is the end of the controller's output, after the path of it.
func (c *Controller) Tail() string { return Tail(c.log) }

// PID is the process id.
func (c *Controller) PID() int { return c.cmd.Process.Pid }

// End is how the process ended ("exit status 1", "signal: killed"), empty while it runs.
func (c *Controller) End() string {
	select {
	case <-c.done:
		return c.cmd.ProcessState.String()
	default:
		return ""
	}
}

// Done is closed when the process has ended.
func (c *Controller) Done() <-chan struct{} { return c.done }

// Kill ends the process with SIGKILL, as a node that loses power would.
func (c *Controller) Kill() { c.end(syscall.SIGKILL) }

// Stop ends the process with SIGTERM, as a rollout would.
func (c *Controller) Stop() { c.end(syscall.SIGTERM) }

func (c *Controller) end(sig syscall.Signal) {
	select {
	case <-c.done:
		return
	default:
	}
	if err := c.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return
	}
	select {
	case <-c.done:
	case <-time.After(20 * time.Second):
		c.cmd.Process.Kill()
		<-c.done
	}
}

// Build builds the controller from the source tree into dir and returns its path.
func Build(ctx context.Context, root, dir string) (string, error) {
	out := filepath.Join(dir, "tasuki-controller")
	cmd := exec.CommandContext(ctx, "go", "build", "-o", out, "./cmd/tasuki-controller")
	cmd.Dir = root
	if b, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the controller: %w\n%s", err, b)
	}
	return out, nil
}
