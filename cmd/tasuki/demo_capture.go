package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"
)

func newDemoCapture() *cobra.Command {
	var d captureDemo
	cmd := &cobra.Command{
		Use:     "capture",
		Short:   "Watch two agents hand mobile addresses over, and a stale one be fenced",
		Example: "  tasuki demo capture",
		Long: `Watch two agents hand mobile addresses over, and a stale one be fenced.

It starts a fake of EC2 and two tasuki-agent processes that share a claims file, and takes less than two minutes, most
of which is a wait for the look at a NIC that finds a drift. At the end it holds what the fake and the journals have
seen against what is promised, and fails when a promise was broken. Nothing of it is left afterwards.`,
		Args: operands,
		RunE: func(cmd *cobra.Command, _ []string) error {
			d.screen = newScreen(cmd.OutOrStdout(), true)
			// Also when the terminal or the reader of the output goes, nothing may be left.
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGHUP, syscall.SIGPIPE)
			defer stop()
			d.acts = wholePlay
			err := d.run(ctx)
			if ctx.Err() != nil {
				return interrupted{err}
			}
			return err
		},
	}
	cmd.Flags().StringVar(&d.agent, "agent", "", "path of tasuki-agent (default: next to tasuki)")
	cmd.Flags().StringVar(&d.executor, "executor", "", "path of tasuki-executor (default: next to tasuki-agent)")
	return cmd
}

// captureDemo is one run of the demo.
type captureDemo struct {
	agent, executor string // the programs
	acts            []act
	// meddle is done before the end is judged; a test breaks a promise there.
	meddle func(*captureSite)

	screen *screen
	begun  time.Time
	site   *captureSite
}

// act is a part of the demo.
type act struct {
	name, title string
	play        func(*captureDemo, context.Context) error
}

func (d *captureDemo) run(ctx context.Context) (err error) {
	d.begun = time.Now()
	if d.agent, err = program(d.agent, "--agent", "tasuki-agent", ""); err != nil {
		return err
	}
	if d.executor, err = program(d.executor, "--executor", "tasuki-executor", filepath.Dir(d.agent)); err != nil {
		return err
	}
	d.site, err = newCaptureSite(d)
	defer func() { err = errors.Join(err, d.clean()) }()
	if err != nil {
		return err
	}
	d.say("setup", "a fake of EC2 answers at %s, with the NICs %s and %s in one subnet", d.site.ec2.URL(), nicOf(nodeA), nicOf(nodeB))
	for _, act := range d.acts {
		d.say(act.name, "---- %s", act.title)
		if err := act.play(d, ctx); err != nil {
			return d.blame(ctx, fmt.Errorf("%s: %w", act.name, err))
		}
	}
	if err := d.rest(ctx); err != nil {
		return d.blame(ctx, err)
	}
	return d.judge(ctx)
}

// clean ends and removes all that the demo has started, also after an interruption.
func (d *captureDemo) clean() error {
	if err := d.site.clean(); err != nil {
		return fmt.Errorf("clean up: %w", err)
	}
	fmt.Fprintf(d.screen.out, "\nCleaned up: no process is left, and nothing of %s.\n", d.site.dir)
	return nil
}

// rest has the agents come to rest, and ends them as an operator would.
func (d *captureDemo) rest(ctx context.Context) error {
	d.say("end", "---- both agents come to rest, and are ended")
	if err := d.settled(ctx); err != nil {
		return err
	}
	for _, a := range d.site.agents {
		if err := a.end(); err != nil {
			return err
		}
	}
	return nil
}

// blame adds to a failure what the agents have said last; an interruption explains itself.
func (d *captureDemo) blame(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return err
	}
	for _, a := range d.site.agents {
		fmt.Fprintf(d.screen.out, "\nThe end of the log of %s:\n", a.node)
		for _, line := range a.tail() {
			fmt.Fprintf(d.screen.out, "  %s\n", line)
		}
	}
	return err
}

func (d *captureDemo) say(phase, format string, args ...any) {
	d.screen.say(time.Since(d.begun), phase, fmt.Sprintf(format, args...))
}

// patience is how long the demo waits for one thing. The longest takes a minute on a machine
// that does nothing else.
const patience = 150 * time.Second

// await waits until something is so.
func (d *captureDemo) await(ctx context.Context, what string, so func() bool) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for late := time.After(patience); !so(); {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-late:
			return fmt.Errorf("it took too long until %s", what)
		case <-tick.C:
		}
		if err := d.site.alive(); err != nil {
			return err
		}
	}
	return nil
}

// program finds a program: the given one, or one of a name in a directory, which is by default
// that of this program.
func program(given, flag, name, dir string) (string, error) {
	if given != "" {
		path, err := filepath.Abs(given)
		if err == nil {
			_, err = exec.LookPath(path)
		}
		if err != nil {
			return "", usageError{fmt.Errorf("%s %s: %w", flag, given, err)}
		}
		return path, nil
	}
	if dir == "" {
		self, err := os.Executable()
		if err != nil {
			return "", fmt.Errorf("find %s: %w", name, err)
		}
		dir = filepath.Dir(self)
	}
	path := filepath.Join(dir, name)
	if _, err := exec.LookPath(path); err != nil {
		return "", fmt.Errorf("%s is not at %s: run make build, or give its path with %s", name, path, flag)
	}
	return path, nil
}
