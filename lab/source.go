package lab

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

const modulePath = "github.com/tasuki-io/tasuki"

var errNoSource = errors.New("the lab is built from the tasuki source tree: run inside a clone of " + modulePath +
	", or run a tasuki that was built in one without -trimpath")

// toolsDir finds lab/tools: upward from the working folder, else beside this source file.
func toolsDir() (string, error) {
	if wd, err := os.Getwd(); err == nil {
		for dir := wd; ; dir = filepath.Dir(dir) {
			if tools, ok := toolsIn(dir); ok {
				return tools, nil
			}
			if dir == filepath.Dir(dir) {
				break
			}
		}
	}
	// With -trimpath the file is named by import path, which is not absolute.
	if _, file, _, ok := runtime.Caller(0); ok && filepath.IsAbs(file) {
		if tools, ok := toolsIn(filepath.Dir(filepath.Dir(file))); ok {
			return tools, nil
		}
	}
	return "", errNoSource
}

func toolsIn(root string) (string, bool) {
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil || moduleOf(mod) != modulePath {
		return "", false
	}
	tools := filepath.Join(root, "lab", "tools")
	info, err := os.Stat(tools)
	return tools, err == nil && info.IsDir()
}

func moduleOf(mod []byte) string {
	for lines := bufio.NewScanner(bytes.NewReader(mod)); lines.Scan(); {
		if name, ok := strings.CutPrefix(strings.TrimSpace(lines.Text()), "module "); ok {
			return strings.Trim(strings.TrimSpace(name), `"`)
		}
	}
	return ""
}

var errNoGo = errors.New("the go command is not on PATH: the lab's first build needs it")

// goCommand prepares the go command in one of the nested modules, free of settings that would change what is built.
func goCommand(ctx context.Context, dir string, args ...string) (*exec.Cmd, error) {
	path, err := exec.LookPath("go")
	if err != nil {
		return nil, errNoGo
	}
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=", "GOOS="+runtime.GOOS, "GOARCH="+runtime.GOARCH)
	return cmd, nil
}

func goOutput(ctx context.Context, dir string, args ...string) (string, error) {
	cmd, err := goCommand(ctx, dir, args...)
	if err != nil {
		return "", err
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("go %s in %s: %w\n%s", strings.Join(args, " "), dir, err, tail(stderr.String(), 20))
	}
	return strings.TrimSpace(string(out)), nil
}
