package lab

import (
	"errors"
	"fmt"
	"path/filepath"
	"sync"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Lab is a running control plane, started by this process or found.
type Lab struct {
	dir layout

	mu    sync.Mutex
	state state
}

// ErrNotFound says that no lab of that name is up.
var ErrNotFound = errors.New("not up")

// ErrRunning says that a lab of that name is up already; Find returns it.
var ErrRunning = errors.New("already up")

// Find returns a lab that was started elsewhere, from the default cache (see Options.CacheDir). Empty means DefaultName.
// A lab is found even when some of its components have died; Status and Check tell.
func Find(name string) (*Lab, error) { return findIn("", name) }

func findIn(cacheDir, name string) (*Lab, error) {
	name, err := nameOrDefault(name)
	if err != nil {
		return nil, err
	}
	root, err := cacheRoot(cacheDir)
	if err != nil {
		return nil, err
	}
	dir := layout(filepath.Join(labsDir(root), name))
	s, err := readState(dir)
	if missing(err) {
		return nil, fmt.Errorf("lab %s is %w: start it with \"tasuki lab up --name %s\"", name, ErrNotFound, name)
	}
	if err != nil {
		return nil, err
	}
	return &Lab{dir: dir, state: s}, nil
}

// Name is the lab's name.
func (l *Lab) Name() string { return filepath.Base(string(l.dir)) }

// Ready tells whether the lab's start is over. Check tells whether all of it still runs.
func (l *Lab) Ready() bool { return l.snapshot().Ready }

// Running names the components whose processes run, in the order of Components.
func (l *Lab) Running() []string {
	running := l.snapshot().Running
	var names []string
	for _, name := range Components() {
		if running[name].alive() {
			names = append(names, name)
		}
	}
	return names
}

// Dir is the lab's folder.
func (l *Lab) Dir() string { return string(l.dir) }

// Kubeconfig is the path of the administrator's kubeconfig.
func (l *Lab) Kubeconfig() string { return l.dir.kubeconfig(admin) }

// RESTConfig is the administrator's client configuration, with so many requests allowed that no test waits for the
// client's own rate limit.
func (l *Lab) RESTConfig() (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", l.Kubeconfig())
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig of lab %s: %w", l.Name(), err)
	}
	config.QPS, config.Burst = 1000, 2000
	return config, nil
}

// Audit is the path of the API server's audit log; AuditWrites reads it.
func (l *Lab) Audit() string { return l.dir.audit() }

// LogPath is where a component's output goes.
func (l *Lab) LogPath(component string) string { return l.dir.log(component) }
