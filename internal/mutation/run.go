package mutation

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"
)

// workers is how many tests run at once.
const workers = 2

// Result is what became of one mutation.
type Result struct {
	Mutation
	Survived bool
	Err      error // the test did not run, or fails without any mutation
	Took     time.Duration
}

func (r Result) String() string {
	verdict := "killed by " + r.Test
	switch {
	case r.Err != nil:
		verdict = "ERROR: " + r.Err.Error()
	case r.Survived:
		verdict = "SURVIVES " + r.Test
	}
	return fmt.Sprintf("%-36s %5.1fs  %s", r.ID, r.Took.Seconds(), verdict)
}

// Run carries the mutations out on the module at root, which stays as it is. It reports each
// result when it is known, and returns all of them in the order of the list.
func Run(ctx context.Context, root string, list []Mutation, report func(Result)) ([]Result, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	var all []Result
	for len(list) > 0 {
		n := 1
		for n < len(list) && list[n].Package == list[0].Package {
			n++
		}
		results, err := runPackage(ctx, root, list[:n], report)
		if err != nil {
			return nil, err
		}
		all, list = append(all, results...), list[n:]
	}
	return all, nil
}

func runPackage(ctx context.Context, root string, list []Mutation, report func(Result)) ([]Result, error) {
	work, err := os.MkdirTemp("", "mutation")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(work)
	binary, err := build(ctx, root, work, list)
	if err != nil {
		return nil, err
	}
	if failed, err := list[0].test(ctx, root, binary, "", ""); err != nil {
		return nil, fmt.Errorf("the tests of %s without any mutation: %w", list[0].Package, err)
	} else if failed {
		return nil, fmt.Errorf("the tests of %s fail without any mutation: run them by themselves", list[0].Package)
	}
	results := make([]Result, len(list))
	next := make(chan int)
	var wg sync.WaitGroup
	var mu sync.Mutex
	for range workers {
		wg.Go(func() {
			for i := range next {
				start := time.Now()
				failed, err := list[i].test(ctx, root, binary, list[i].ID, list[i].Test)
				mu.Lock()
				results[i] = Result{Mutation: list[i], Survived: err == nil && !failed, Err: err, Took: time.Since(start)}
				report(results[i])
				mu.Unlock()
			}
		})
	}
	for i := range list {
		next <- i
	}
	close(next)
	wg.Wait()
	return results, nil
}

// test runs one test, or all of the package, with one mutation switched on, or none. It
// reports whether the test failed; one that did not run at all is an error.
func (m Mutation) test(ctx context.Context, root, binary, id, name string) (failed bool, err error) {
	c := exec.CommandContext(ctx, binary, "-test.short", "-test.timeout=2m", "-test.v", "-test.run="+pattern(name))
	c.Dir = filepath.Join(root, m.Package)
	c.Env = append(os.Environ(), variable+"="+id)
	out, err := c.CombinedOutput()
	switch text := string(out); {
	case !strings.Contains(text, "=== RUN   "+strings.ReplaceAll(name, " ", "_")):
		return false, fmt.Errorf("%s did not run: %v\n%s", name, err, out)
	case err == nil:
		return false, nil
	case !strings.Contains(text, "--- FAIL: ") && !strings.Contains(text, "panic: "):
		return false, fmt.Errorf("%s ended otherwise than by failing: %w\n%s", name, err, out)
	}
	return true, nil
}

// pattern selects one test and nothing else, or all.
func pattern(test string) string {
	if test == "" {
		return ""
	}
	parts := strings.Split(strings.ReplaceAll(test, " ", "_"), "/")
	for i, p := range parts {
		parts[i] = "^" + regexp.QuoteMeta(p) + "$"
	}
	return strings.Join(parts, "/")
}
