package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/tasuki-io/tasuki/lab"
	"github.com/tasuki-io/tasuki/lab/trial"
	"github.com/tasuki-io/tasuki/lab/trial/scenario"
)

func newDemo() *cobra.Command {
	var d demo
	var plain bool
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Watch a real Karpenter node being replaced, make before break",
		Example: `  tasuki demo
  tasuki demo --keep`,
		Long: `Watch a real Karpenter node being replaced, make before break.

It starts a lab of its own (see 'tasuki lab'), fills a node with pods that are slow to become Ready, lets the node come
of age, and shows what the controller does. At the end it holds what it saw against what is promised, and fails when a
promise was broken. Nothing of it is left afterwards but the lab's built programs.`,
		Args: subcommand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			d.screen = newScreen(cmd.OutOrStdout(), plain)
			// Also when the terminal or the reader of the output goes, nothing may be left.
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGHUP, syscall.SIGPIPE)
			defer stop()
			err := d.run(ctx)
			if ctx.Err() != nil {
				return interrupted{err}
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&d.keep, "keep", false, "leave the lab and the controller running")
	cmd.Flags().BoolVar(&plain, "plain", false, "print lines only, as when the output is not a terminal")
	cmd.Flags().BoolVar(&d.verbose, "verbose", false, "list the controller's API writes")
	cmd.Flags().StringVar(&d.binary, "controller", "", "path of tasuki-controller (default: next to tasuki)")
	cmd.AddCommand(newDemoCapture())
	return cmd
}

// exitInterrupted is what a shell shows for a program that Ctrl-C ended.
const exitInterrupted = 130

// interrupted is a demo that a signal ended early.
type interrupted struct{ cause error }

func (e interrupted) Error() string { return "interrupted" }
func (e interrupted) Unwrap() error { return e.cause }

// failureCode is the exit code of a command that failed.
func failureCode(err error) int {
	if errors.As(err, &interrupted{}) {
		return exitInterrupted
	}
	if errors.As(err, &inputError{}) {
		return exitUsage
	}
	if errors.Is(err, errRefused) {
		return exitRefused
	}
	if errors.Is(err, errAiling) {
		return exitAiling
	}
	return exitFailure
}

// errControllerEnded ends a demo whose controller has died.
var errControllerEnded = errors.New("the controller's process ended by itself")

// demo is one run of the demo.
type demo struct {
	keep, verbose bool
	binary        string
	screen        *screen

	begun      time.Time
	lab        *lab.Lab
	witness    *trial.Witness
	controller *trial.Controller
	story      story
	shown      int // happenings narrated
	due        due
	counted    time.Time // when the countdown was last told in a line
}

var subject = trial.Subject{NodePool: "web", Namespace: "default", Selector: "app=web", Replicas: 6}

// How long the demo waits for what is not the controller's to promise, and for a rotation
// to begin after the node is due.
const (
	readyWithin = 3 * time.Minute
	startWithin = 2 * time.Minute
)

func (d *demo) run(ctx context.Context) (err error) {
	d.begun = time.Now()
	if d.binary, err = controllerBinary(d.binary); err != nil {
		return err
	}
	kept := false
	defer func() {
		if !kept {
			err = errors.Join(err, d.clean(ctx))
		}
	}()
	if err := d.prepare(ctx); err != nil {
		return d.explain(ctx, err)
	}
	d.controller, err = trial.StartController(ctx, d.lab, d.binary, d.logs(), "", "--leader-elect=false")
	if err != nil {
		d.screen.clear()
		return err // with the end of its log
	}
	d.say("wait", "the controller runs with the rights of the chart")
	account, err := d.rotate(ctx)
	if err != nil {
		return d.explain(ctx, err)
	}
	verdict := d.judge(account)
	if d.keep {
		kept = true
		return errors.Join(verdict, d.leave(ctx))
	}
	return verdict
}

// controllerBinary finds the controller's program.
func controllerBinary(given string) (string, error) {
	return program(given, "--controller", "tasuki-controller", "")
}

// prepare brings up a lab in which one full node is all Ready, and has come to the policy.
func (d *demo) prepare(ctx context.Context) error {
	if err := d.up(ctx); err != nil {
		return err
	}
	d.say("lab", "the lab %s is ready: a real API server, scheduler and Karpenter; only the machines are simulated", d.lab.Name())
	if err := trial.Install(ctx, d.lab); err != nil {
		return fmt.Errorf("install the chart: %w", err)
	}
	var err error
	if d.witness, err = trial.Watch(ctx, d.lab, subject); err != nil {
		return err
	}
	if err := d.lab.Apply(ctx, scenario.R01); err != nil {
		return fmt.Errorf("apply the workload: %w", err)
	}
	d.say("setup", "%d pods of 600m deployed; a disruption budget lets one be away; each is Ready 12s after it is bound", subject.Replicas)
	err = d.follow(ctx, time.Now().Add(readyWithin), func(s trial.Scene) bool {
		return s.Ready == subject.Replicas && len(s.Nodes) == 1 && s.Nodes[0].Claim != ""
	})
	if err != nil {
		return fmt.Errorf("waiting for %d Ready pods on one node: %w", subject.Replicas, err)
	}
	node := d.witness.Scene().Nodes[0]
	d.say("setup", "%d of %d pods are Ready on node %s (NodeClaim %s)", subject.Replicas, subject.Replicas, node.Name, node.Claim)
	if err := d.lab.Apply(ctx, scenario.Policy); err != nil {
		return fmt.Errorf("apply the policy: %w", err)
	}
	if d.due, err = readDue(ctx, d.lab, node.Claim); err != nil {
		return err
	}
	d.say("wait", "a RotationPolicy is applied: %s", d.due)
	d.say("wait", "of which %s", d.due.rotation())
	return nil
}

// up starts a lab under the first free name.
func (d *demo) up(ctx context.Context) error {
	o := lab.Options{Detached: d.keep, PodReadyDelay: 12 * time.Second, Progress: func(p lab.Progress) {
		if p.Phase != "start" || p.Done {
			d.say("lab", "%s", p)
		}
	}}
	const names = 20
	for i := 1; ; i++ {
		if o.Name = "demo"; i > 1 {
			o.Name = fmt.Sprintf("demo-%d", i)
		}
		l, err := lab.Up(ctx, o)
		if errors.Is(err, lab.ErrRunning) && i < names {
			continue
		}
		d.lab = l
		return err
	}
}

// rotate follows one rotation to its end, or to where it broke.
func (d *demo) rotate(ctx context.Context) (trial.Account, error) {
	born := d.witness.Scene().Nodes[0].Born
	latest := born.Add(d.due.threshold)
	if now := time.Now(); latest.Before(now) {
		latest = now
	}
	started := func(trial.Scene) bool { return !d.witness.Account().Started.IsZero() }
	ended := func(s trial.Scene) bool {
		return !d.witness.Account().Ended.IsZero() && s.Ready >= subject.Replicas
	}
	err := d.follow(ctx, latest.Add(startWithin), started)
	if err == nil {
		err = d.follow(ctx, d.witness.Account().Started.Add(trial.LongestTotal), ended)
	}
	if err != nil && !errors.Is(err, errTooLate) && !errors.Is(err, errControllerEnded) {
		return trial.Account{}, err
	}
	ending := d.controller.End()
	// The rotation has ended, or there is nothing to wait for any more.
	short, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	account, err := d.witness.AwaitRotation(short)
	account.ControllerEnded = ending
	switch {
	case ctx.Err() != nil:
		return account, ctx.Err()
	case errors.Is(err, context.DeadlineExceeded): // the account tells what is missing
		return account, nil
	}
	return account, err
}

var errTooLate = errors.New("it took too long")

// follow shows what happens until the scene is as wanted.
func (d *demo) follow(ctx context.Context, deadline time.Time, wanted func(trial.Scene) bool) error {
	tick := time.NewTicker(d.screen.period())
	defer tick.Stop()
	var died <-chan struct{}
	if d.controller != nil {
		died = d.controller.Done()
	}
	for {
		changed := d.witness.Changed()
		d.refresh()
		if wanted(d.witness.Scene()) {
			return nil
		}
		if time.Now().After(deadline) {
			return errTooLate
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-died:
			return errControllerEnded
		case <-changed:
		case <-tick.C:
		}
	}
}

// countdown is how often a demo without a live view tells the age of the node.
const countdown = 15 * time.Second

// refresh narrates what is new and redraws the view.
func (d *demo) refresh() {
	now := time.Now()
	for _, h := range d.witness.Timeline(d.shown) {
		d.shown++
		if phase, text := d.story.tell(h, subject.Replicas); text != "" {
			d.screen.say(h.At.Sub(d.begun), phase, text)
		}
	}
	v := view{
		now: now, begun: d.begun, threshold: d.due.threshold,
		scene: d.witness.Scene(), account: d.witness.Account(),
	}
	if age, waiting := v.age(); waiting && !d.screen.live && age < d.due.threshold && now.Sub(d.counted) >= countdown {
		d.counted = now
		d.say("wait", "the node is %s old, and due past %s", clock(age), clock(d.due.threshold))
	}
	d.screen.draw(v)
}

func (d *demo) say(phase, format string, args ...any) {
	d.screen.say(time.Since(d.begun), phase, fmt.Sprintf(format, args...))
}

func (d *demo) logs() string { return filepath.Dir(d.lab.LogPath(lab.Karpenter)) }

// judge prints the account and returns an error when a promise was broken.
func (d *demo) judge(a trial.Account) error {
	d.screen.clear()
	out := d.screen.out
	broken := trial.Broken(a)
	summary(out, a, d.verbose)
	if len(broken) == 0 {
		fmt.Fprintf(out, "\nEvery promise was kept.\n")
		return nil
	}
	fmt.Fprintln(out)
	for _, b := range broken {
		fmt.Fprintf(out, "PROMISE BROKEN: %s\n", b)
	}
	d.evidence(out, d.keep)
	if err := d.lab.Check(); err != nil {
		return fmt.Errorf("the lab itself broke, which may be why: %w", err)
	}
	return fmt.Errorf("%d of the promises broken, the first: %s", len(broken), broken[0])
}

// evidence prints the ends of the logs that tell most, as the files go with the lab unless
// that is kept.
func (d *demo) evidence(out io.Writer, kept bool) {
	if d.controller != nil {
		fmt.Fprintf(out, "\nThe end of the controller's log, %s\n", d.controller.Tail())
	}
	fmt.Fprintf(out, "\nThe end of Karpenter's log, %s\n", trial.Tail(d.lab.LogPath(lab.Karpenter)))
	fmt.Fprintf(out, "\nThe lab's logs are in %s", d.logs())
	if !kept {
		fmt.Fprint(out, " and go with it: run the demo again with --keep to look at them")
	}
	fmt.Fprintln(out, ".")
}

// explain adds to a failure what of the lab has died; an interruption explains itself.
func (d *demo) explain(ctx context.Context, err error) error {
	d.screen.clear()
	if ctx.Err() != nil || d.lab == nil {
		return err
	}
	d.evidence(d.screen.out, false)
	return errors.Join(err, d.lab.Check())
}

// clean ends and removes all that the demo has started, also after an interruption.
func (d *demo) clean(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	d.screen.clear()
	if d.witness != nil {
		d.witness.Close()
	}
	if d.controller != nil {
		d.controller.Kill()
	}
	if d.lab == nil {
		return nil
	}
	if err := d.lab.Down(ctx); err != nil {
		return err
	}
	fmt.Fprintf(d.screen.out, "\nCleaned up: nothing of lab %s is left.\n", d.lab.Name())
	return nil
}
