package e2e

import (
	"bytes"
	"context"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tasuki-io/tasuki/lab/trial"
)

// The controller refuses to start, and is never ready, where something is missing without
// which it cannot work: it says what, and exits with 1.
func TestPreflightSaysWhatIsMissing(t *testing.T) {
	needLab(t)
	reads := map[string]string{"nodepools": "karpenter.sh", "nodeclaims": "karpenter.sh", "nodes": "", "pods": "", "rotationpolicies": "noderotation.io"}
	for missing := range reads {
		t.Run("the right to list "+missing, func(t *testing.T) {
			t.Parallel()
			var rules []rbacv1.PolicyRule
			for resource, group := range reads {
				if resource != missing {
					rules = append(rules, rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: []string{"list", "watch"}})
				}
			}
			refuses(t, accountWith(t, "without-"+missing, rules), "not allowed to list "+missing)
		})
	}
	t.Run("the PriorityClass", func(t *testing.T) {
		t.Parallel()
		kubeconfig, err := world.lab.KubeconfigFor(world.ctx, trial.Namespace, trial.ServiceAccount)
		if err != nil {
			t.Fatal(err)
		}
		refuses(t, kubeconfig, "PriorityClass there-is-none", "--placeholder-priority-class", "there-is-none")
	})
}

// accountWith is a kubeconfig for a ServiceAccount that has these rights and no other.
func accountWith(t *testing.T, name string, rules []rbacv1.PolicyRule) string {
	t.Helper()
	p := (&pool{name: name}).in(t)
	at := metav1.ObjectMeta{Name: name}
	p.create(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: trial.Namespace, Name: name}})
	p.create(&rbacv1.ClusterRole{ObjectMeta: at, Rules: rules})
	p.create(&rbacv1.ClusterRoleBinding{
		ObjectMeta: at,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: trial.Namespace, Name: name}},
	})
	kubeconfig, err := world.lab.KubeconfigFor(world.ctx, trial.Namespace, name)
	if err != nil {
		t.Fatal(err)
	}
	return kubeconfig
}

// refuses starts a controller that ends by itself with 1, says why, and was never ready.
func refuses(t *testing.T, kubeconfig, why string, args ...string) {
	t.Helper()
	c := probed(t, kubeconfig, args...)
	for running := true; running; {
		select {
		case err := <-c.end:
			running = false
			if c.cmd.ProcessState.ExitCode() != 1 {
				t.Errorf("it ended with %v, want exit status 1", err)
			}
		case <-time.After(50 * time.Millisecond):
			if code := c.answers("readyz"); code == http.StatusOK {
				t.Errorf("it is ready")
			}
		}
	}
	if out := c.out.String(); !strings.Contains(out, why) {
		t.Errorf("it does not say %q:\n%s", why, out)
	}
}

// While its caches are being filled the controller is alive and not ready, whether it leads
// or not. Once it is ready it stays so.
func TestReadyOnceItsCachesAreFilled(t *testing.T) {
	needLab(t)
	const fill = 6 * time.Second
	for _, role := range []string{"leader", "standby"} {
		t.Run(role, func(t *testing.T) {
			alone(t)
			if role == "standby" {
				p := (&pool{name: "standby"}).in(t)
				was := p.holder()
				t.Cleanup(startController(t, "").Stop)
				p.awaitHolder(was)
			}
			way := newProxy(t)
			way.next = lagging{way.next, fill}
			c := probed(t, way.kubeconfig(t))
			var alive, ready time.Time
			begun := time.Now()
			for ; ready.IsZero() || time.Since(ready) < fill; time.Sleep(100 * time.Millisecond) {
				live, able := c.answers("healthz"), c.answers("readyz")
				switch {
				case len(c.end) > 0 || time.Since(begun) > patience:
					t.Fatalf("it is not ready:\n%s", c.out)
				case live == http.StatusOK && alive.IsZero():
					alive = time.Now()
				case live != http.StatusOK && !alive.IsZero():
					t.Fatalf("it was alive, and now /healthz answers %d", live)
				}
				switch {
				case able == http.StatusOK && ready.IsZero():
					ready = time.Now()
					if took := ready.Sub(begun); took < fill {
						t.Errorf("it was ready %s after its start; its caches cannot be filled before %s", took, fill)
					}
				case able != http.StatusOK && !ready.IsZero():
					t.Fatalf("it was ready, and %s later /readyz answers %d", time.Since(ready), able)
				}
			}
		})
	}
}

// process is a controller whose probes the test asks itself.
type process struct {
	cmd   *exec.Cmd
	probe string
	out   *bytes.Buffer // read it after the end
	end   chan error
}

func probed(t *testing.T, kubeconfig string, args ...string) *process {
	t.Helper()
	c := &process{probe: freeAddress(t), out: &bytes.Buffer{}, end: make(chan error, 1)}
	ctx, kill := context.WithCancel(world.ctx)
	c.cmd = exec.CommandContext(ctx, filepath.Join(world.dir, "tasuki-controller"), append(trial.ControllerArgs(kubeconfig, c.probe), args...)...)
	c.cmd.Stdout, c.cmd.Stderr = c.out, c.out
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		c.end <- c.cmd.Wait()
		close(ended)
	}()
	t.Cleanup(func() { kill(); <-ended })
	return c
}

// answers is the status of a probe, 0 when nobody listens.
func (c *process) answers(probe string) int {
	resp, err := http.Get("http://" + c.probe + "/" + probe)
	if err != nil {
		return 0
	}
	resp.Body.Close()
	return resp.StatusCode
}
