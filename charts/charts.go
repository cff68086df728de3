// Package charts holds the Helm chart and, for tests, runs the real helm and kustomize on it
// and on what is made of it.
package charts

import (
	"bytes"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
)

// Tool runs helm or kustomize, as tools/helm/go.mod pins them, in the root of the source tree,
// and returns what it printed. The error has what it complained of. The first run of a tool
// builds it, which takes minutes.
func Tool(root, name string, args ...string) (string, error) {
	path, err := build(tool{root, name})
	if err != nil {
		return "", err
	}
	return run(root, path, args...)
}

type tool struct{ root, name string }

var (
	mu    sync.Mutex
	built = map[tool]string{}
)

// build asks the go command where the tool is in its cache, which puts it there.
func build(t tool) (string, error) {
	mu.Lock()
	defer mu.Unlock()
	if built[t] == "" {
		out, err := run(t.root, "go", "tool", "-modfile="+filepath.Join("tools", "helm", "go.mod"), "-n", t.name)
		if err != nil {
			return "", fmt.Errorf("build the %s of tools/helm: %w", t.name, err)
		}
		built[t] = strings.TrimSpace(out)
	}
	return built[t], nil
}

func run(dir, path string, args ...string) (string, error) {
	var out, complaints bytes.Buffer
	cmd := exec.Command(path, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &out, &complaints
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("%w\n%s", err, complaints.String())
	}
	return out.String(), nil
}
