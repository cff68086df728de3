package mutation

import (
	"flag"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const root = "../.."

var (
	mutate = flag.Bool("mutate", false, "carry the mutations out")
	only   = flag.String("id", "", "carry out this one alone, or those that match it: capture-*")
	write  = flag.String("write", "", "write the result to this file, below the root of the module")
)

// Every mutation still applies, and names a test that is there.
func TestTheListsAreTrue(t *testing.T) {
	list, err := Read("testdata")
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]Tests{}
	for _, m := range list {
		if _, ok := tests[m.Package]; !ok {
			if tests[m.Package], err = TestsOf(filepath.Join(root, m.Package)); err != nil {
				t.Fatal(err)
			}
		}
		if !tests[m.Package].Have(m.Test) {
			t.Errorf("%s: there is no %s in %s: name the test that fails without the guard", m.ID, m.Test, m.Package)
		}
	}
	if _, err := switched(root, list); err != nil {
		t.Error(err)
	}
}

// A guard is taken out, and the test that is named for it has to fail.
func TestEveryGuardIsMissed(t *testing.T) {
	if !*mutate {
		t.Skip("takes a minute or two: make mutate")
	}
	list, err := Read("testdata")
	if err != nil {
		t.Fatal(err)
	}
	if *only != "" {
		var one []Mutation
		for _, m := range list {
			if match, err := path.Match(*only, m.ID); err != nil {
				t.Fatal(err)
			} else if match {
				one = append(one, m)
			}
		}
		if list = one; len(list) == 0 {
			t.Fatalf("no mutation has the id %q", *only)
		}
	}
	start := time.Now()
	results, err := Run(t.Context(), root, list, func(r Result) { fmt.Println(r) })
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		if r.Err != nil || r.Survived {
			t.Error(r)
		}
	}
	fmt.Println(summary(results), "in", time.Since(start).Round(time.Second))
	if *write != "" && *only == "" && !t.Failed() {
		if err := os.WriteFile(filepath.Join(root, *write), page(results), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAListIsReadAsItIsWritten(t *testing.T) {
	const text = `# The guards of nothing.
package: internal/x

id: one
promise: It holds: always.
file: a.go
test: TestX/a case
-	if closed {
-		return
+	if false {
+		return

id: two
promise: It is gone.
file: b.go
test: TestY
-  - guard
`
	want := []Mutation{
		{ID: "one", Promise: "It holds: always.", Package: "internal/x", File: "a.go", Test: "TestX/a case", Old: "\tif closed {\n\t\treturn", New: "\tif false {\n\t\treturn"},
		{ID: "two", Promise: "It is gone.", Package: "internal/x", File: "b.go", Test: "TestY", Old: "  - guard"},
	}
	got, err := parse(text)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for _, broken := range []string{"id: no-package\npromise: x\nfile: x\ntest: TestX\n-x\n", "package: x\n\nid: no-text\npromise: x\nfile: x\ntest: TestX\n", "what: is this\n"} {
		if _, err := parse(broken); err == nil {
			t.Errorf("%q was accepted", broken)
		}
	}
}

func TestAPatternSelectsOneTest(t *testing.T) {
	if got, want := pattern("TestX/what (it) is"), `^TestX$/^what_\(it\)_is$`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
