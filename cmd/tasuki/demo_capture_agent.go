package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"

	"github.com/tasuki-io/tasuki/internal/agent"
)

// captureAgent is a process of tasuki-agent.
type captureAgent struct {
	node, state string
	demo        *captureDemo
	client      *agent.Client

	mu      sync.Mutex
	process *os.Process
	gone    chan struct{} // closed when the process has ended and its last line is heard
	wanted  bool          // that it ends
	ending  error
	last    []string
}

// start starts the process, and returns when it answers.
func (a *captureAgent) start(ctx context.Context) error {
	d := a.demo
	cmd := exec.Command(d.agent, "--node", a.node, "--config", d.site.config(), "--state", a.state, "--claims", d.site.claims(),
		"--executor", d.executor, "--metrics-bind-address", "0")
	cmd.Env = append(os.Environ(), d.site.ec2.Environment()...)
	// A Ctrl-C of the terminal is for the demo, which ends the agents; and whatever ends the
	// demo, they do not outlive it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	log, err := cmd.StderrPipe()
	if err != nil {
		return err
	}
	started := make(chan error, 1)
	gone := make(chan struct{})
	go func() {
		runtime.LockOSThread() // the process dies with the thread that has started it
		defer close(gone)
		err := cmd.Start()
		if err == nil {
			a.mu.Lock()
			a.process, a.gone, a.wanted, a.ending = cmd.Process, gone, false, nil
			a.mu.Unlock()
		}
		started <- err
		if err != nil {
			return
		}
		a.listen(log)
		err = cmd.Wait()
		a.mu.Lock()
		a.ending = err
		a.mu.Unlock()
	}()
	if err := <-started; err != nil {
		return fmt.Errorf("start the agent of %s: %w", a.node, err)
	}
	a.client = agent.NewClient(agent.Socket(a.state))
	return d.await(ctx, "the agent of "+a.node+" answers", func() bool {
		s, err := a.client.Status(ctx)
		return err == nil && s.Failure == ""
	})
}

// listen hears what the process logs, until it ends.
func (a *captureAgent) listen(log io.Reader) {
	lines := bufio.NewScanner(log)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		a.mu.Lock()
		if a.last = append(a.last, lines.Text()); len(a.last) > 15 {
			a.last = a.last[1:]
		}
		a.mu.Unlock()
		var l logLine
		if json.Unmarshal(lines.Bytes(), &l) != nil {
			continue // the tail shows it
		}
		a.demo.site.heard(a.node, l)
		if text := l.sentence(); text != "" {
			a.demo.say(a.node, "%s", text)
		}
	}
	_, _ = io.Copy(io.Discard, log) // a line that is too long must not stop the process
}

func (a *captureAgent) tail() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]string(nil), a.last...)
}

func (a *captureAgent) signal(s syscall.Signal) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if s == syscall.SIGTERM || s == syscall.SIGKILL {
		a.wanted = true
	}
	if err := a.process.Signal(s); err != nil {
		return fmt.Errorf("signal %s to the agent of %s: %w", s, a.node, err)
	}
	return nil
}

// died is an error when the process has ended although nobody wanted it to.
func (a *captureAgent) died() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.process == nil || a.wanted {
		return nil
	}
	select {
	case <-a.gone:
		return fmt.Errorf("the agent of %s has ended by itself: %v", a.node, a.ending)
	default:
		return nil
	}
}

// end has the process end by itself: it has to, with exit code 0, within the time that an
// executor may take.
func (a *captureAgent) end() error {
	if err := a.signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case <-a.gone:
	case <-time.After(45 * time.Second):
		return fmt.Errorf("the agent of %s does not end on SIGTERM", a.node)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ending != nil {
		return fmt.Errorf("the agent of %s has not ended well: %w", a.node, a.ending)
	}
	return nil
}

// kill ends the process whatever it does, also while it is stopped. The executors that it has
// started go with it.
func (a *captureAgent) kill() {
	a.mu.Lock()
	process := a.process
	a.mu.Unlock()
	if process == nil {
		return
	}
	if err := a.signal(syscall.SIGKILL); err == nil || errors.Is(err, os.ErrProcessDone) {
		<-a.gone
	}
}
