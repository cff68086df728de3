package lab

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"
)

// platformYAML is applied to every lab after the Karpenter CRDs.
//
//go:embed platform.yaml
var platformYAML []byte

// Up brings a lab up and returns when all of it is ready. On failure, and when ctx ends first, nothing is left of it but
// the log of the component that died, if one did. If a lab of that name is up already, the error is ErrRunning; the
// remains of one that died are removed.
func Up(ctx context.Context, o Options) (*Lab, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	build, err := Build(ctx, o)
	if err != nil {
		return nil, err
	}
	l, err := claim(ctx, o, build)
	if err != nil {
		return nil, err
	}
	const tries = 3
	for try := 1; ; try++ {
		failure := l.boot(ctx, o.Progress)
		if failure == nil {
			return l, nil
		}
		// This must come to its end even when ctx is what ended.
		if err := l.end(context.WithoutCancel(ctx)); err != nil {
			return nil, errors.Join(failure, err)
		}
		var died *ComponentError
		if errors.As(failure, &died) {
			if died.portTaken() && try < tries {
				continue
			}
			l.keepLog(died)
		}
		if err := os.RemoveAll(l.Dir()); err != nil {
			return nil, errors.Join(failure, fmt.Errorf("removing lab %s: %w", l.Name(), err))
		}
		return nil, fmt.Errorf("starting lab %s: %w", l.Name(), failure)
	}
}

// claim makes the lab's folder, which is what a name stands for: whoever made it owns the name.
func claim(ctx context.Context, o Options, build *Binaries) (*Lab, error) {
	name, err := nameOrDefault(o.Name)
	if err != nil {
		return nil, err
	}
	root, err := cacheRoot(o.CacheDir)
	if err != nil {
		return nil, err
	}
	unlock, err := lockFile(ctx, filepath.Join(labsDir(root), ".lock"), nil)
	if err != nil {
		return nil, fmt.Errorf("claiming the name of lab %s: %w", name, err)
	}
	defer unlock()
	if err := clearRemains(ctx, o.CacheDir, name); err != nil {
		return nil, err
	}
	for _, component := range Components() {
		_ = os.Remove(keptLog(root, name, component))
	}
	l := &Lab{
		dir: layout(filepath.Join(labsDir(root), name)),
		state: state{
			Name: name, Created: time.Now().UTC(), Owner: self(), Build: build.Dir, Settings: o.settings(),
			Running: make(map[string]process),
		},
	}
	if err := os.MkdirAll(l.Dir(), 0o700); err != nil {
		return nil, fmt.Errorf("claiming the name of lab %s: %w", name, err)
	}
	if err := l.state.write(l.dir); err != nil {
		return nil, err
	}
	return l, nil
}

// clearRemains removes what a lab of that name left when its end was not orderly. A lab that is up, or coming up, is an
// error.
func clearRemains(ctx context.Context, cacheDir, name string) error {
	old, err := findIn(cacheDir, name)
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	s := old.snapshot()
	if s.starting() {
		return fmt.Errorf("lab %s is %w: process %d is starting it", name, ErrRunning, s.Owner.PID)
	}
	// A lab whose start was cut short is of no use, even when some of it still runs.
	if s.Ready && s.alive() {
		return fmt.Errorf("lab %s is %w: its files are in %s", name, ErrRunning, old.Dir())
	}
	return old.Down(ctx)
}

// boot writes the lab's files and starts its components, each as soon as what it needs is ready.
func (l *Lab) boot(ctx context.Context, tell func(Progress)) error {
	if err := l.furnish(); err != nil {
		return err
	}
	report := newReporter(tell, "start", len(Components()))
	begin := func(ctx context.Context, name string) error {
		step := 1
		for Components()[step-1] != name {
			step++
		}
		report.say(step, name, false, 0)
		if err := l.launch(ctx, name); err != nil {
			return err
		}
		report.say(step, name, true, 0)
		return nil
	}
	for _, name := range []string{Etcd, APIServer} {
		if err := begin(ctx, name); err != nil {
			return err
		}
	}
	together, ctx := errgroup.WithContext(ctx)
	together.Go(func() error { return begin(ctx, ControllerManager) })
	together.Go(func() error { return begin(ctx, Scheduler) })
	together.Go(func() error {
		if err := l.applyPlatform(ctx); err != nil {
			return err
		}
		together.Go(func() error { return begin(ctx, KWOK) })
		return begin(ctx, Karpenter)
	})
	if err := together.Wait(); err != nil {
		return err
	}
	// A component that was ready early may have died since.
	if err := l.Check(); err != nil {
		return err
	}
	return l.change(func(s *state) { s.Ready = true })
}

// furnish writes all files that the components read, with fresh ports and an empty store.
func (l *Lab) furnish() error {
	chosen, err := pickPorts()
	if err != nil {
		return err
	}
	if err := l.change(func(s *state) { s.Ports = chosen }); err != nil {
		return err
	}
	for _, path := range []string{l.dir.etcd(), l.dir.audit(), filepath.Dir(l.dir.log(Etcd))} {
		if err := os.RemoveAll(path); err != nil {
			return fmt.Errorf("clearing lab %s: %w", l.Name(), err)
		}
	}
	for _, path := range []string{l.dir.home(), l.dir.etcd(), filepath.Dir(l.dir.log(Etcd))} {
		if err := os.MkdirAll(path, 0o700); err != nil {
			return fmt.Errorf("furnishing lab %s: %w", l.Name(), err)
		}
	}
	s := l.snapshot()
	played, err := stages(filepath.Join(s.Build, stageDir), s.Settings.PodReadyDelay, s.Settings.PodDeleteDelay)
	if err != nil {
		return err
	}
	if err := writeIdentities(l.dir, chosen); err != nil {
		return err
	}
	return writeFiles(map[string][]byte{
		l.dir.config(auditPolicy):     []byte(auditPolicyYAML),
		l.dir.config(schedulerConfig): []byte(schedulerYAML(l.dir)),
		l.dir.config(kwokStages):      played,
		l.dir.config(instanceTypes):   instanceTypesJSON,
	})
}

// launch starts a component and waits until it is ready.
func (l *Lab) launch(ctx context.Context, name string) error {
	c, err := l.component(name)
	if err != nil {
		return err
	}
	p, err := l.run(c)
	if err != nil {
		return err
	}
	if err := l.change(func(s *state) { s.Running[name] = p }); err != nil {
		// Nobody could find a process that is not written down.
		return errors.Join(err, p.end(context.WithoutCancel(ctx), 0))
	}
	return l.awaitReady(ctx, c, p)
}

// applyPlatform brings the Karpenter CRDs and the lab's own few objects.
func (l *Lab) applyPlatform(ctx context.Context) error {
	build := l.snapshot().Build
	files, err := filepath.Glob(filepath.Join(build, crdDir, "*.yaml"))
	if err != nil {
		return fmt.Errorf("finding the Karpenter CRDs: %w", err)
	}
	if len(files) == 0 {
		return fmt.Errorf("no CRDs in %s: remove that build and start again", build)
	}
	var manifests [][]byte
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("reading a Karpenter CRD: %w", err)
		}
		manifests = append(manifests, content)
	}
	return l.Apply(ctx, append(manifests, platformYAML)...)
}

// keepLog moves the log of a component that died during the start to where it outlives the lab's folder, until the next
// start of a lab of that name.
func (l *Lab) keepLog(died *ComponentError) {
	kept := keptLog(filepath.Dir(filepath.Dir(l.Dir())), l.Name(), died.Component)
	if err := os.MkdirAll(filepath.Dir(kept), 0o700); err != nil {
		return
	}
	if err := os.Rename(died.Log, kept); err == nil {
		died.Log = kept
	}
}

func keptLog(root, name, component string) string {
	return filepath.Join(root, "failed", name+"-"+component+".log")
}
