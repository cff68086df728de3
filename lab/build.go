package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// Binaries is a finished build: the programs, the Karpenter CRDs and the KWOK stages.
type Binaries struct {
	// Dir is the build's folder in the cache.
	Dir string
}

// Path is where the program of a component lies.
func (b *Binaries) Path(component string) string { return filepath.Join(b.Dir, component) }

// firstBuild is how long building everything takes per core, with nothing in the go command's cache.
const firstBuild = 40 * time.Minute

// Build makes sure the lab's programs are in the cache and returns where. The first build takes minutes and needs the go
// command; later calls return at once. Concurrent calls, also from other processes, wait for each other.
func Build(ctx context.Context, o Options) (*Binaries, error) {
	root, err := cacheRoot(o.CacheDir)
	if err != nil {
		return nil, err
	}
	tools, err := toolsDir()
	if err != nil {
		return nil, err
	}
	source, err := sourceKey(tools)
	if err != nil {
		return nil, err
	}
	goVersion, err := goOutput(ctx, filepath.Join(tools, "kubernetes"), "env", "GOVERSION")
	if errors.Is(err, errNoGo) {
		return builtBefore(root, source)
	}
	if err != nil {
		return nil, err
	}
	name := buildDirName(source, goVersion)
	b := &Binaries{Dir: filepath.Join(buildsDir(root), name)}
	if isDir(b.Dir) {
		return b, nil
	}
	unlock, err := lockFile(ctx, filepath.Join(buildsDir(root), "."+name+".lock"), func() {
		newReporter(o.Progress, "build", len(programs)).say(1, "waiting for another build", false, 0)
	})
	if err != nil {
		return nil, fmt.Errorf("waiting for another build of the lab: %w", err)
	}
	defer unlock()
	if isDir(b.Dir) {
		return b, nil
	}
	return b, b.build(ctx, tools, o.Progress)
}

// builtBefore finds a build of the same sources by any go version, for machines without the go command.
func builtBefore(root, source string) (*Binaries, error) {
	found, _ := filepath.Glob(filepath.Join(buildsDir(root), buildDirName(source, "go*")))
	for i := len(found) - 1; i >= 0; i-- {
		if !strings.HasSuffix(found[i], partial) {
			return &Binaries{Dir: found[i]}, nil
		}
	}
	return nil, errNoGo
}

const partial = ".partial"

// build fills a partial folder and renames it when all is there. A build that was interrupted is taken up again: the
// folder's name covers all that goes in, and each program appears under its name only when it is complete.
func (b *Binaries) build(ctx context.Context, tools string, tell func(Progress)) error {
	dir := b.Dir + partial
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("making room for the lab's programs: %w", err)
	}
	report := newReporter(tell, "build", len(programs))
	first := float64(firstBuild / time.Duration(runtime.NumCPU()))
	expected := time.Duration(first)
	left, built := 1.0, 0.0 // shares of a whole first build
	for i, p := range programs {
		say := func(done bool) { report.say(i+1, p.name, done, expected) }
		anew, err := p.build(ctx, tools, filepath.Join(dir, p.name), say)
		if err != nil {
			return err
		}
		left -= p.share
		if anew {
			built += p.share
		}
		// The pace so far tells more than any constant, as soon as there is one.
		elapsed := float64(time.Since(report.begun))
		if built > 0 {
			expected = time.Duration(elapsed + left*elapsed/built)
		} else {
			expected = time.Duration(elapsed + left*first)
		}
	}
	for _, a := range assets {
		if err := a.copy(ctx, tools, dir); err != nil {
			return err
		}
	}
	if err := os.Rename(dir, b.Dir); err != nil {
		return fmt.Errorf("finishing the build: %w", err)
	}
	return nil
}

// build makes the program out, unless an interrupted build made it before, and tells which.
func (p program) build(ctx context.Context, tools, out string, say func(done bool)) (anew bool, err error) {
	say(false)
	if _, err := os.Stat(out); err == nil {
		say(true)
		return false, nil
	}
	cmd, err := goCommand(ctx, filepath.Join(tools, p.module), p.buildArgs(out+".tmp")...)
	if err != nil {
		return false, err
	}
	// An interrupted go command leaves its work behind.
	work := out + ".work"
	if err := os.MkdirAll(work, 0o755); err != nil {
		return false, fmt.Errorf("building %s: %w", p.name, err)
	}
	defer os.RemoveAll(work)
	cmd.Env = append(cmd.Env, "GOTMPDIR="+work)
	var output strings.Builder
	cmd.Stdout, cmd.Stderr = &output, &output
	interruptGroup(cmd)
	stop := every(20*time.Second, func() { say(false) })
	err = cmd.Run()
	stop()
	if ctx.Err() != nil {
		_ = os.Remove(out + ".tmp")
		return false, fmt.Errorf("building %s: %w", p.name, context.Cause(ctx))
	}
	if err != nil {
		return false, fmt.Errorf("building %s in %s: %w\n%s", p.pkg, cmd.Dir, err, tail(output.String(), 20))
	}
	if err := os.Rename(out+".tmp", out); err != nil {
		return false, fmt.Errorf("building %s: %w", p.name, err)
	}
	say(true)
	return true, nil
}

// copy takes the asset's YAML files out of the module, so that later starts need no go command.
func (a asset) copy(ctx context.Context, tools, dir string) error {
	module, err := goOutput(ctx, filepath.Join(tools, a.tools), "list", "-m", "-f", "{{.Dir}}", a.module)
	if err != nil {
		return fmt.Errorf("finding module %s: %w", a.module, err)
	}
	files, err := filepath.Glob(filepath.Join(module, filepath.FromSlash(a.from), "*.yaml"))
	if err != nil {
		return fmt.Errorf("finding %s of module %s: %w", a.from, a.module, err)
	}
	if len(files) == 0 {
		return fmt.Errorf("module %s has no *.yaml in %s: its layout changed, adapt the lab's assets", a.module, a.from)
	}
	to := filepath.Join(dir, a.to)
	if err := os.MkdirAll(to, 0o755); err != nil {
		return fmt.Errorf("copying %s: %w", a.from, err)
	}
	for _, file := range files {
		if filepath.Base(file) == "kustomization.yaml" {
			continue
		}
		if err := copyFile(file, filepath.Join(to, filepath.Base(file))); err != nil {
			return fmt.Errorf("copying %s: %w", a.from, err)
		}
	}
	return nil
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		out.Close()
		return err
	}
	return out.Close()
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// every calls f each period until the returned function is called, which waits for a call under way.
func every(period time.Duration, f func()) (stop func()) {
	done, gone := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		ticker := time.NewTicker(period)
		defer ticker.Stop()
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
				f()
			}
		}
	}()
	return func() { close(done); <-gone }
}
