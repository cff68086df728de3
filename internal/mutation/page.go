package mutation

import (
	"bytes"
	"fmt"
	"strings"
)

func summary(results []Result) string {
	var killed, survived, wrong int
	for _, r := range results {
		switch {
		case r.Err != nil:
			wrong++
		case r.Survived:
			survived++
		default:
			killed++
		}
	}
	return fmt.Sprintf("%d mutations: %d killed, %d survived, %d errors", len(results), killed, survived, wrong)
}

// page is docs/mutation.md.
func page(results []Result) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, `# Every guard, taken out once

A guard is a condition, a precondition, an order or a refusal that keeps a promise. Below is
the promise, and the test that fails when the guard is taken out. The lists are in
internal/mutation/testdata, in plain text.

    make mutate                              all of them; writes this page
    make mutate MUTATE_FLAGS='-id ID'        one of them, or some: capture-*; writes nothing

The source tree is not touched. The compiler is shown files in which every mutation is a copy
of its function, and an environment variable switches one of them on: one build for a package,
one run of one test for a mutation. A mutation that does not build, or whose test does not run,
is an error of the list. That all of them still apply, and name a test that exists, is part of
make test-short.

Not on the lists: what only a real control plane shows, which has its tests in test/e2e (the
wiring of the manager, its watches and its leader election); and what is not Go, of which the
tests of api/v1alpha1 and charts compare every rule (the refusals at admission, the rights).

Last run: %s.
`, summary(results))
	var dir string
	for _, r := range results {
		if r.Package != dir {
			dir = r.Package
			fmt.Fprintf(&b, "\n## %s\n\n| id | what the guard keeps | file | killed by |\n|---|---|---|---|\n", dir)
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", r.ID, cell(r.Promise), cell(r.File), cell(r.Test))
	}
	return b.Bytes()
}

func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }
