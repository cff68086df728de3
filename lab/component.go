package lab

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"time"
)

// The components of a lab.
const (
	Etcd              = "etcd"
	APIServer         = "kube-apiserver"
	ControllerManager = "kube-controller-manager"
	Scheduler         = "kube-scheduler"
	KWOK              = "kwok"
	Karpenter         = "karpenter"
)

// Components returns the names of all components, in the order in which they start.
func Components() []string {
	return []string{Etcd, APIServer, ControllerManager, Scheduler, KWOK, Karpenter}
}

// component is how one program of a lab runs. It follows from the lab's state alone, so that a component can be started
// again, by another process too.
type component struct {
	name   string
	args   []string
	env    []string // the whole environment: nothing of the user's reaches a component
	addr   string   // where it serves
	health []string // URLs that all answer 200 when the component is ready
}

// components describes all components of a lab, by name.
func (l *Lab) components() map[string]component {
	s := l.snapshot()
	d, p := l.dir, s.Ports
	all := make(map[string]component)
	for _, c := range []component{
		etcd(d, p), apiServer(d, p), controllerManager(d, p), scheduler(d, p), kwok(d, p), karpenter(d, p, s.Settings.KarpenterEnv),
	} {
		c.env = append([]string{"HOME=" + d.home(), "PATH=/usr/bin:/bin", "TMPDIR=" + d.home()}, c.env...)
		all[c.name] = c
	}
	return all
}

func (l *Lab) component(name string) (component, error) {
	c, ok := l.components()[name]
	if !ok {
		return component{}, fmt.Errorf("component %q: a lab has %s", name, strings.Join(Components(), ", "))
	}
	return c, nil
}

// run starts the component's program; its output is added to its log.
func (l *Lab) run(c component) (process, error) {
	log, err := os.OpenFile(l.dir.log(c.name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return process{}, fmt.Errorf("opening the log of %s: %w", c.name, err)
	}
	defer log.Close()
	s := l.snapshot()
	cmd := exec.Command((&Binaries{Dir: s.Build}).Path(c.name), c.args...)
	cmd.Dir = string(l.dir)
	cmd.Env = c.env
	cmd.Stdout, cmd.Stderr = log, log
	p, err := spawn(cmd, s.Settings.Detached)
	if err != nil {
		return process{}, fmt.Errorf("starting %s: %w", c.name, err)
	}
	return p, nil
}

// readyWithin is far more than any component needs, even on a busy machine.
const readyWithin = 5 * time.Minute

// awaitReady returns when the component is healthy, and at once when its process has died.
func (l *Lab) awaitReady(ctx context.Context, c component, p process) error {
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	client, err := l.probeClient()
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for {
		// The process is looked at after the probe: what answered may have been somebody else on the same port.
		unready := probeAll(ctx, client, c.health)
		if !p.alive() {
			return l.componentError(c.name, "died")
		}
		if unready == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return l.componentError(c.name, fmt.Sprintf("is not ready (%v)", unready))
			}
			return context.Cause(ctx)
		case <-ticker.C:
		}
	}
}

func (l *Lab) probeClient() (*http.Client, error) {
	ca, err := os.ReadFile(l.dir.pki(caCert))
	if err != nil {
		return nil, fmt.Errorf("reading the CA of lab %s: %w", l.Name(), err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	return &http.Client{
		Timeout:   2 * time.Second,
		Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}},
	}, nil
}

func probeAll(ctx context.Context, client *http.Client, urls []string) error {
	for _, url := range urls {
		if err := probe(ctx, client, url); err != nil {
			return err
		}
	}
	return nil
}

// probe asks a health endpoint; the error says in a few words what is wrong.
func probe(ctx context.Context, client *http.Client, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(io.LimitReader(resp.Body, 4<<10))
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s%s", url, resp.Status, failedChecks(string(body)))
	}
	return nil
}

// failedChecks picks the failing lines ("[-]name failed: ...") out of a verbose health answer.
func failedChecks(body string) string {
	var failed []string
	for line := range strings.Lines(body) {
		if name, ok := strings.CutPrefix(line, "[-]"); ok {
			failed = append(failed, strings.Fields(name)[0])
		}
	}
	if len(failed) == 0 {
		return ""
	}
	return ": " + strings.Join(failed, ", ")
}

// ComponentError says that a component is not as it should be, with the last lines of its log.
type ComponentError struct {
	Component string
	Problem   string // "died", "is not ready (...)"
	Log       string // path
	Lines     []string
}

func (l *Lab) componentError(name, problem string) *ComponentError {
	log := l.dir.log(name)
	return &ComponentError{Component: name, Problem: problem, Log: log, Lines: lastLines(log, shownLines)}
}

func (e *ComponentError) Error() string {
	if len(e.Lines) == 0 {
		return fmt.Sprintf("%s %s; its log is empty: %s", e.Component, e.Problem, e.Log)
	}
	return fmt.Sprintf("%s %s; the last lines of %s:\n    %s", e.Component, e.Problem, e.Log, strings.Join(e.Lines, "\n    "))
}

// portTaken tells whether the component died because another process took its port first.
func (e *ComponentError) portTaken() bool {
	return strings.Contains(strings.Join(e.Lines, "\n"), "address already in use")
}
