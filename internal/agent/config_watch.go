package agent

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
)

// Watch calls onChange after the files of a configuration may have changed: when one was
// written, replaced, added or taken away, and when Kubernetes has replaced a ConfigMap. It
// waits until they are at rest, so that one edit is one call, and never calls twice at once.
// The first call is for what may have changed before it watched. It returns nil when ctx
// ends, and an error when there is nothing to watch.
//
// Of a link, both its place and its target are watched; links in the path above are not.
func Watch(ctx context.Context, path string, onChange func()) error {
	path, err := filepath.Abs(path)
	if err != nil {
		return fmt.Errorf("watch the configuration: %w", err)
	}
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("watch the configuration: %w", err)
	}
	defer watcher.Close()
	w := &configWatch{path: path, watcher: watcher}
	if err := w.follow(); err != nil {
		return fmt.Errorf("watch the configuration %s: %w", path, err)
	}
	changes, settled := make(chan struct{}, 1), make(chan struct{})
	changes <- struct{}{}
	go func() {
		defer close(settled)
		settleConfig(ctx, changes, onChange)
	}()
	w.run(ctx, changes)
	<-settled
	return nil
}

// configWatch tells which events are about a configuration.
type configWatch struct {
	path    string
	watcher *fsnotify.Watcher
	files   map[string]bool // the path, the files that are read, and what each is a link to
}

func (w *configWatch) run(ctx context.Context, changes chan<- struct{}) {
	for {
		select {
		case <-ctx.Done():
			return
		case e := <-w.watcher.Events:
			if !w.concerns(e.Name) {
				continue
			}
			if e.Name == w.path { // perhaps another directory of the same name
				_ = w.watcher.Remove(w.path)
			}
		case <-w.watcher.Errors: // events were lost
		}
		_ = w.follow() // what is gone may come back, and its directory is watched
		select {
		case changes <- struct{}{}:
		default:
		}
	}
}

// concerns reports whether a name is one of the configuration.
func (w *configWatch) concerns(name string) bool {
	base := filepath.Base(name)
	return w.files[name] || base == configMapLink || w.files[filepath.Dir(name)] && isConfigName(base)
}

// follow watches the directories of all files, which may be others than before. Only that of
// the path itself has to be there.
func (w *configWatch) follow() error {
	w.files = map[string]bool{w.path: true}
	names, _ := configNames(w.path)
	dirs := map[string]bool{}
	for _, name := range append(names, w.path) {
		w.files[name] = true
		if target, err := filepath.EvalSymlinks(name); err == nil {
			w.files[target] = true
		}
	}
	for name := range w.files {
		dirs[filepath.Dir(name)] = true
	}
	for dir := range dirs {
		if err := w.watcher.Add(dir); err != nil && dir == filepath.Dir(w.path) {
			return err
		}
	}
	if info, err := os.Stat(w.path); err == nil && info.IsDir() {
		return w.watcher.Add(w.path)
	}
	return nil
}

// How long files have to be at rest before they are read, and how long they may go on.
const (
	configRest  = 250 * time.Millisecond
	configHaste = 5 * time.Second
)

// settleConfig calls onChange once changes have ceased, or have gone on for too long.
func settleConfig(ctx context.Context, changes <-chan struct{}, onChange func()) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-changes:
		}
		haste := time.After(configHaste)
		for resting := true; resting; {
			select {
			case <-ctx.Done():
				return
			case <-changes:
			case <-haste:
				resting = false
			case <-time.After(configRest):
				resting = false
			}
		}
		onChange()
	}
}
