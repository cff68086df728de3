package executortest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/tasuki-io/tasuki/internal/executor"
)

// runner is a way to have a request carried out.
type runner struct {
	run func(ctx context.Context, q executor.Request) executor.Result
	// raw gives an executor something on its standard input, whatever it is.
	raw func(stdin string) (stdout string, exit int)
}

// within runs the executor in the process of the test, but for that as one.
func within(execute executor.Execute, provider string) runner {
	serve := func(ctx context.Context, stdin []byte) ([]byte, int) {
		var out bytes.Buffer
		exit := executor.Serve(ctx, bytes.NewReader(stdin), &out, map[string]executor.Execute{provider: execute})
		return out.Bytes(), exit
	}
	return runner{
		run: func(ctx context.Context, q executor.Request) executor.Result {
			in, err := json.Marshal(q)
			if err != nil {
				return executor.Result{Outcome: executor.OutcomeRefused, Message: err.Error()}
			}
			r, err := executor.DecodeResult(serve(ctx, in))
			if err != nil {
				return executor.Result{Outcome: executor.OutcomeUnknown, Message: err.Error()}
			}
			return r
		},
		raw: func(stdin string) (string, int) {
			out, exit := serve(context.Background(), []byte(stdin))
			return string(out), exit
		},
	}
}

// process runs the executor as the agent does.
func process(t *testing.T, provider string) runner {
	path := Binary(t)
	return runner{
		run: (&executor.Command{Path: path}).Run,
		raw: func(stdin string) (string, int) {
			c := exec.Command(path, provider)
			c.Stdin = strings.NewReader(stdin)
			out, err := c.Output()
			var exited *exec.ExitError
			if err != nil && !errors.As(err, &exited) {
				t.Fatal(err)
			}
			return string(out), c.ProcessState.ExitCode()
		},
	}
}

// Main runs the tests of a package that uses the process. It is called from TestMain.
func Main(m *testing.M) (exit int) {
	defer func() {
		if built != "" {
			os.RemoveAll(built)
		}
	}()
	return m.Run()
}

// Binary builds tasuki-executor as it is shipped, once in a run of the tests, and returns its path.
func Binary(t testing.TB) string {
	t.Helper()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

var built string // the directory of the binary

var binary = sync.OnceValues(func() (path string, err error) {
	if built, err = os.MkdirTemp("", "tasuki-executor-"); err != nil {
		return "", err
	}
	path = filepath.Join(built, "tasuki-executor")
	build := exec.Command("go", "build", "-o", path, "github.com/tasuki-io/tasuki/cmd/tasuki-executor")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build tasuki-executor: %w\n%s", err, out)
	}
	return path, nil
})
